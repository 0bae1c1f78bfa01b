// Text to features: words, character n-grams, and their hashes, straight from UTF-8.
//
// A word is a run of two or more letters, digits or underscores (scikit-learn's default); its hash is feature_hash of its bytes, in lower
// case if so asked. A word n-gram's hash is combine(hash of the first n - 1 words, hash of the last). A character n-gram's hash
// is feature_hash of its bytes; "char" takes n-grams over the whole document, "char_wb" over each word with a space on both sides.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hashing.hpp"

namespace mercer {

enum class Analyzer { word, chars, char_wb };

struct TextSettings {
  Analyzer analyzer = Analyzer::word;
  int min_n = 1, max_n = 1;
  bool lowercase = true;
  uint64_t seed = 0;
};

// Calls take(uint64_t hash) for every feature of a document, with repeats, in the order of the text. Bytes that are not UTF-8
// separate words and never fail. An analyzer keeps its working memory; use one for each thread.
class TextAnalyzer {
 public:
  explicit TextAnalyzer(const TextSettings& settings) : settings_(settings) {}
  template <class Take> void operator()(std::string_view document, Take take);

 private:
  TextSettings settings_;
  std::vector<uint64_t> words_;
  std::string lowered_;
};

// A first, plain version: ASCII only. To be replaced.
template <class Take> void TextAnalyzer::operator()(std::string_view document, Take take) {
  lowered_.assign(document);
  if (settings_.lowercase)
    for (char& c : lowered_)
      if (c >= 'A' && c <= 'Z') c = char(c + 32);
  const auto in_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || uint8_t(c) >= 128;
  };
  words_.clear();
  for (size_t i = 0; i < lowered_.size();) {
    if (!in_word(lowered_[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < lowered_.size() && in_word(lowered_[i])) ++i;
    if (i - begin >= 2) words_.push_back(feature_hash(std::string_view(lowered_).substr(begin, i - begin), settings_.seed));
  }
  for (size_t begin = 0; begin < words_.size(); ++begin) {
    uint64_t hash = words_[begin];
    for (int n = 1; n <= settings_.max_n && begin + n <= words_.size(); ++n) {
      if (n > 1) hash = combine(hash, words_[begin + n - 1]);
      if (n >= settings_.min_n) take(hash);
    }
  }
}

}  // namespace mercer
