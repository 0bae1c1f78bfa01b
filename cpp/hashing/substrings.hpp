// Strings to features: substrings of bounded length and their relatives.
//
//   spectrum      every substring of length k                              Φ_u(x) = λ_k #_u(x), |u| = k
//   bounded       every substring of length 1 .. k                         Φ_u(x) = λ_|u| #_u(x)
//   mismatch      every string of length k that differs from a substring   Φ_u(x) = λ_k #{i : |u ≠ x[i, i + k)| ≤ m}
//                 in at most m places, other letters from an alphabet
//   gappy         every subsequence of length k that spans s ≤ k + g
//                 Φ_u(x) = Σ_{i_1 < … < i_k, x[i] = u} λ_s, s = i_k - i_1 + 1
//   positional    substrings of length 1 .. k with their place
//                 Φ_{u,q}(x) = λ_|u| #{i : x[i, i + |u|) = u, 0 ≤ q - i ≤ shift}
//
// The hash of a string is feature_hash of its bytes; with a place q, combine(that, q). Characters are those of UTF-8,
// or bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hashing/text.hpp"

namespace mercer {

enum class StringKernel { spectrum, bounded, mismatch, gappy, positional };

struct StringSettings {
  StringKernel kernel = StringKernel::spectrum;
  int length = 1;      // k
  int mismatches = 0;  // m
  int gap = 0;         // g
  int shift = 0;
  bool binary = false;  // characters are bytes
  uint64_t seed = 0;
  std::vector<std::string> alphabet;
};

// Checked settings; the kernel by its name.
StringSettings string_settings(const std::string& kernel, int length, int mismatches, int gap, int shift, bool binary,
                               uint64_t seed, const std::vector<std::string>& alphabet);

// Calls take(hash, weight, text) for every feature of a string, with repeats: weight is the length (the span for gappy
// ones), text() its name. Use one for each thread.
class StringAnalyzer {
 public:
  explicit StringAnalyzer(const StringSettings& settings) : settings_(settings), hash_(settings.seed) {}

  template <class Take> void operator()(std::string_view document, Take take) {
    if (document.size() >= (uint64_t(1) << 31)) throw std::length_error("a string is longer than 2 GiB");
    text_.prepare(document, false);
    every_byte_ = settings_.binary || text_.ascii();
    if (!every_byte_) text_.find_characters(begins_);
    size_ = every_byte_ ? text_.size() : begins_.size() - 1;
    switch (settings_.kernel) {
      case StringKernel::spectrum: return substrings(size_t(settings_.length), take);
      case StringKernel::bounded:
        for (size_t n = 1; n <= size_t(settings_.length) && n <= size_; ++n) substrings(n, take);
        return;
      case StringKernel::mismatch: return mismatches(take);
      case StringKernel::gappy: return subsequences(take);
      case StringKernel::positional: return places(take);
    }
  }

 private:
  size_t at(size_t i) const { return every_byte_ ? i : begins_[i]; }
  std::string_view view(size_t begin, size_t end) { return {text_.data() + at(begin), at(end) - at(begin)}; }
  uint64_t hash(std::string_view text) const { return hash_(text.data(), text.size()); }

  template <class Take> void substrings(size_t n, Take& take) {
    for (size_t i = 0; i + n <= size_; ++i) {
      const std::string_view text = view(i, i + n);
      take(hash(text), int(n), [&] { return text; });
    }
  }

  template <class Take> void places(Take& take) {
    for (size_t n = 1; n <= size_t(settings_.length); ++n)
      for (size_t i = 0; i + n <= size_; ++i) {
        const std::string_view text = view(i, i + n);
        const uint64_t name = hash(text);
        for (int s = 0; s <= settings_.shift; ++s) {
          take(combine(name, i + size_t(s)), int(n), [&] {
            name_.assign(text).append("@").append(std::to_string(i + size_t(s)));
            return std::string_view(name_);
          });
        }
      }
  }

  // word_ is built with a margin, since the hash reads beyond both ends.
  template <class Take> void emit(int weight, Take& take) {
    word_.append(MARGIN, '\0');
    const std::string_view text(word_.data() + MARGIN, word_.size() - 2 * MARGIN);
    take(hash(text), weight, [&] { return text; });
    word_.resize(word_.size() - MARGIN);
  }

  template <class Take> void mismatches(Take& take) {
    for (size_t i = 0; i + size_t(settings_.length) <= size_; ++i) {
      word_.assign(MARGIN, '\0');
      neighbours(i, i + size_t(settings_.length), settings_.mismatches, take);
    }
  }

  // All ways to go on from character i to the end with at most `left` letters changed.
  template <class Take> void neighbours(size_t i, size_t end, int left, Take& take) {
    const size_t size = word_.size();
    if (i == end) return emit(settings_.length, take);
    const std::string_view own = view(i, i + 1);
    word_.append(own);
    neighbours(i + 1, end, left, take);
    word_.resize(size);
    if (left == 0) return;
    for (const std::string& letter : settings_.alphabet) {
      if (own == letter) continue;
      word_.append(letter);
      neighbours(i + 1, end, left - 1, take);
      word_.resize(size);
    }
  }

  template <class Take> void subsequences(Take& take) {
    for (size_t i = 0; i + size_t(settings_.length) <= size_; ++i) {
      word_.assign(MARGIN, '\0').append(view(i, i + 1));
      const size_t reach = std::min(size_, i + size_t(settings_.length) + size_t(settings_.gap));
      choose(i, i + 1, reach, settings_.length - 1, take);
    }
  }

  // All ways to choose `left` more characters from i up to the reach.
  template <class Take> void choose(size_t first, size_t i, size_t reach, int left, Take& take) {
    if (left == 0) return emit(int(i - first), take);
    const size_t size = word_.size();
    for (; i + size_t(left) <= reach; ++i) {
      word_.append(view(i, i + 1));
      choose(first, i + 1, reach, left - 1, take);
      word_.resize(size);
    }
  }

  static constexpr size_t MARGIN = 8;

  StringSettings settings_;
  PaddedHash hash_;
  PreparedText text_;
  std::vector<uint32_t> begins_;
  std::string word_, name_;
  size_t size_ = 0;
  bool every_byte_ = true;
};

// The features that a learner takes from a document: words and n-grams, or substrings where there are settings for them.
class DocumentAnalyzer {
 public:
  DocumentAnalyzer(const TextSettings& text, const std::optional<StringSettings>& strings) : words_(text) {
    if (strings) substrings_.emplace(*strings);
  }

  // Calls take(uint64_t hash) for every feature, with repeats.
  template <class Take> void operator()(std::string_view document, Take take) {
    if (substrings_)
      (*substrings_)(document, [&](uint64_t hash, int, auto) { take(hash); });
    else
      words_(document, take);
  }

 private:
  TextAnalyzer words_;
  std::optional<StringAnalyzer> substrings_;
};

}  // namespace mercer
