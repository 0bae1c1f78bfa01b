// Text to features: words, character n-grams, and their hashes, straight from UTF-8.
//
// A word is a run of two or more letters, digits or underscores of any script (scikit-learn's default: Python's \w\w+);
// its hash is feature_hash of its bytes, in lower case if so asked. A word n-gram's hash is combine(hash of the first n
// - 1 words, hash of the last). A character n-gram's hash is feature_hash of its bytes; "char" takes n-grams over the
// whole document, in which two or more white spaces in a row are one space, "char_wb" over each word between white
// spaces, with a space on both sides (a word that is not longer than n is one feature, and gives none of higher n).
//
// Lower case is Unicode's for each character by itself: Σ is always σ, İ is i and a dot above, as Python's str.lower()
// has it but for the sigma at the end of a word. Bytes that are not UTF-8 are characters that belong to no word.
//
// Work is done 64 bytes at a time: one pass writes the text in lower case and a bit for each byte (part of a word?
// white space?), then runs of bits are words. Text beyond ASCII has a second pass over its non-ASCII characters only.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hashing/feature_hash.hpp"
#include "hashing/utf8.hpp"

namespace mercer {

enum class Analyzer { word, chars, char_wb };

struct TextSettings {
  Analyzer analyzer = Analyzer::word;
  int min_n = 1, max_n = 1;
  bool lowercase = true;
  uint64_t seed = 0;
};

// Ends of runs of equal bits, in pieces: begin, end, begin, end, … of the runs of bits that are 1 (0 if flipped).
class Runs {
 public:
  static constexpr size_t BLOCKS = 1024;

  Runs() : edges_(64 * BLOCKS + 16) {}
  template <class Take> void operator()(const uint64_t* bits, size_t size, bool flipped, Take take) {
    const size_t blocks = (size + 63) / 64;
    uint64_t carry = 0;
    size_t kept = 0;
    for (size_t first = 0; first < blocks; first += BLOCKS) {
      const size_t count = blocks - first < BLOCKS ? blocks - first : BLOCKS;
      size_t n = kept + find(bits, first, count, size, flipped, carry, edges_.data() + kept);
      if (first + count == blocks && n % 2) edges_[n++] = uint32_t(size);
      const uint32_t* e = edges_.data();
      for (size_t i = 0; i + 1 < n; i += 2) take(size_t(e[i]), size_t(e[i + 1]));
      kept = n % 2;
      if (kept) edges_[0] = edges_[n - 1];
    }
  }

 private:
  static size_t find(const uint64_t* bits, size_t first, size_t count, size_t size, bool flipped, uint64_t& carry,
                     uint32_t* out);
  std::vector<uint32_t> edges_;
};

// A document made ready: in lower case if so asked, with bits for each byte. It may be read up to 64 bytes beyond both
// ends.
class PreparedText {
 public:
  void prepare(std::string_view document, bool lowercase);
  // Two or more white spaces in a row become one space. The bits are no longer those of the text.
  void collapse_spaces(Runs& runs);

  char* data() { return text_; }
  size_t size() const { return size_; }
  bool ascii() const { return ascii_; }
  const uint64_t* words() const { return word_; }
  const uint64_t* spaces() const { return space_; }
  // Where each character begins, and the end of the text. Not for ASCII: there every byte is a character.
  void find_characters(std::vector<uint32_t>& begins) const;

 private:
  void rewrite(std::string_view document, bool lowercase);
  void append(uint64_t word, uint64_t space, size_t count);

  std::vector<char> plain_, wide_;
  std::vector<uint64_t> plain_masks_, wide_masks_;
  char* text_ = nullptr;
  uint64_t *word_ = nullptr, *space_ = nullptr;
  size_t size_ = 0;
  bool ascii_ = true;
};

// feature_hash of bytes with 8 readable bytes before and behind them; the same value, without branches for short ones.
class PaddedHash {
 public:
  static constexpr uint64_t K1 = 0x9E3779B185EBCA87u, K2 = 0xC2B2AE3D27D4EB4Fu;  // of fast_hash

  explicit PaddedHash(uint64_t seed);

  __attribute__((always_inline)) uint64_t operator()(const char* p, size_t n) const {
    if (n > 16) return feature_hash(std::string_view(p, n), seed_);
    return of_ends(read64(p), read64(p + n - 8), n);
  }
  // The same with readable bytes before them only.
  __attribute__((always_inline)) uint64_t read_back(const char* p, size_t n) const {
    if (n > 16) return feature_hash(std::string_view(p, n), seed_);
    const size_t first = n < 8 ? n : 8;
    return of_ends(read64(p + first - 8) >> ((64 - 8 * first) & 63), read64(p + n - 8), n);
  }
  // The same for up to 16 bytes, the low ones first, in two words.
  __attribute__((always_inline)) uint64_t of_words(uint64_t low, uint64_t high, size_t n) const {
    __extension__ typedef unsigned __int128 Wide;
    const auto tail = uint64_t((Wide(high) << 64 | low) >> (n < 8 ? 0 : 8 * n - 64));
    return of_ends(low, tail << (n < 8 ? (64 - 8 * n) & 63 : 0), n);
  }

  // The hashes of p .. p + n, p + 1 .. p + 1 + n, …: count of them, at least one. A multiple of BLOCK may be written,
  // and 32 bytes behind the last of them may be read.
  static constexpr size_t BLOCK = 64;
  void ngrams(const char* p, size_t count, size_t n, uint64_t* out) const { ngrams_(*this, p, count, n, out); }
  // The same, one by one.
  void ngrams_portable(const char* p, size_t count, size_t n, uint64_t* out) const {
    const auto each = [&](auto hash) {
      for (size_t i = 0; i < count; ++i) out[i] = hash(p + i);
    };
    if (n == 1)
      each([&](const char* q) { return finish(uint64_t(uint8_t(q[0])) * 0x10101, 0, 1); });
    else if (n == 2)
      each([&](const char* q) { return finish(uint64_t(uint8_t(q[0])) << 16 | uint8_t(q[1]) * 0x101u, 0, 2); });
    else if (n == 3)
      each([&](const char* q) {
        return finish(uint64_t(uint8_t(q[0])) << 16 | uint8_t(q[1]) << 8 | uint8_t(q[2]), 0, 3);
      });
    else if (n < 8)
      each([&](const char* q) { return finish(read32(q), read32(q + n - 4), n); });
    else if (n <= 16)
      each([&](const char* q) { return finish(read64(q), read64(q + n - 8), n); });
    else
      each([&](const char* q) { return feature_hash(std::string_view(q, n), seed_); });
  }
  uint64_t mixed_seed() const { return mixed_; }

 private:
  // head begins with the first bytes, tail ends with the last ones; what else they hold does not count.
  __attribute__((always_inline)) uint64_t of_ends(uint64_t head, uint64_t tail, size_t n) const {
    if (n < 4) {
      const uint64_t three = (head & 0xFF) << 16 | (head >> (8 * (n >> 1)) & 0xFF) << 8 | tail >> 56;
      return finish(n ? three : 0, 0, n);
    }
    const uint64_t eight = n < 8 ? 0 : ~uint64_t(0);
    return finish(head & (eight | 0xFFFFFFFFu), tail >> (~eight & 32), n);
  }
  __attribute__((always_inline)) uint64_t finish(uint64_t a, uint64_t b, size_t n) const {
    return mix64(multiply(multiply(a ^ K1 ^ n * K1, b ^ K2) ^ K2, K1) ^ mixed_);
  }
  static uint64_t multiply(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 Wide;
    const Wide product = Wide(a) * b;
    return uint64_t(product) ^ uint64_t(product >> 64);
  }
  uint64_t seed_, mixed_;
  void (*ngrams_)(const PaddedHash& hash, const char* p, size_t count, size_t n, uint64_t* out);
};

// The n-grams of words seen before, packed by whoever asks for them. Text repeats its words, within a document and from
// one to the next, and a word's n-grams are many: to find them here is cheaper than to hash them again, and a
// document's repeats become a count.
class WordMemo {
 public:
  static constexpr size_t LONGEST = 16;  // bytes of a word
  static constexpr size_t ROOM = 56;     // n-grams of a word

  struct alignas(64) Slot {
    uint64_t head = 0, tail = 0;  // with the length, all there is to know of the word
    uint32_t length = 0;          // 0: a free slot
    uint32_t size = 0;            // of items
    uint32_t count = 0;           // how often the word stands in the document at hand
    uint32_t items[ROOM] = {};
  };

  // Space for as many words as a text of so many bytes may repeat: up to 1 MiB, as caches go.
  explicit WordMemo(size_t bytes) {
    size_t slots = 64;
    while (slots < 4096 && slots * 64 < bytes) slots *= 2;
    slots_.resize(slots);
    shift_ = 64 - __builtin_ctzll(slots);
  }

  // Takes note of the word in p .. p + n. make(items) packs its n-grams, up to ROOM, and returns how many there are.
  // They come to row.add_packed when the document ends, or the slot is needed for another word.
  template <class Row, class Make> void add(const char* p, size_t n, Row& row, Make make) {
    const uint64_t first = read64(p), last = read64(p + n - 8);
    const uint64_t head = n < 8 ? first & ((uint64_t(1) << 8 * n) - 1) : first, tail = n < 8 ? 0 : last;
    Slot& slot =
        slots_[(head * 0x9E3779B185EBCA87u ^ (tail + n) * 0xC2B2AE3D27D4EB4Fu) * 0xD6E8FEB86659FD93u >> shift_];
    if (slot.head == head && slot.tail == tail && slot.length == n) {
      if (!slot.count++) used_.push_back(&slot);
      return;
    }
    if (slot.count)
      row.add_packed(slot.items, slot.size, slot.count);
    else
      used_.push_back(&slot);
    slot.head = head;
    slot.tail = tail;
    slot.length = uint32_t(n);
    slot.size = uint32_t(make(slot.items));
    slot.count = 1;
  }
  template <class Row> void finish(Row& row) {
    for (Slot* slot : used_) {
      row.add_packed(slot->items, slot->size, slot->count);
      slot->count = 0;
    }
    used_.clear();
  }

 private:
  std::vector<Slot> slots_;
  std::vector<Slot*> used_;
  int shift_;
};

// Calls take(uint64_t hash) for every feature of a document, with repeats, in an order that depends on the document and
// the settings only; or take(const uint64_t* hashes, size_t count) for some of them at once, where take can be called
// so. Bytes that are not UTF-8 separate words and never fail. An analyzer keeps its working memory; use one for each
// thread.
class TextAnalyzer {
 public:
  explicit TextAnalyzer(const TextSettings& settings) : settings_(settings), hash_(settings.seed) {}

  template <class Take> void operator()(std::string_view document, Take take) {
    analyze(document, WithoutText<Take>{take});
  }
  // The same with the text of each feature: take(uint64_t hash, std::string_view text). The words of an n-gram are
  // joined by a space.
  template <class Take> void with_text(std::string_view document, Take take) {
    analyze(document, [&](uint64_t hash, auto text) { take(hash, text()); });
  }

  // For "char_wb", where most words came before: row.add(hash) for the features of some words, and for those of the
  // others row.add_packed(const uint32_t* items, size_t size, uint32_t count), that is, all of them so many times;
  // items are what row.pack(hash, items) has written, row.copies() for each feature.
  template <class Row> void by_words(std::string_view document, WordMemo& memo, Row row) {
    text_.prepare(checked(document), settings_.lowercase);
    const size_t copies = row.copies(), sizes = size_t(settings_.max_n - settings_.min_n + 1);
    for_each_word([&](size_t begin, size_t end, size_t& place) {
      if (end - begin > WordMemo::LONGEST || (end - begin + 2) * sizes * copies > WordMemo::ROOM) {
        ngrams_of_word(begin, end, place, [&](uint64_t hash, auto) __attribute__((always_inline)) { row.add(hash); });
        return;
      }
      memo.add(text_.data() + begin, end - begin, row, [&](uint32_t* items) {
        uint32_t* next = items;
        ngrams_of_word(begin, end, place, [&](uint64_t hash, auto) __attribute__((always_inline)) {
          row.pack(hash, next);
          next += copies;
        });
        return size_t(next - items);
      });
    });
    memo.finish(row);
  }

 private:
  template <class Take> struct WithoutText {
    Take& take;
    template <class Text> __attribute__((always_inline)) void operator()(uint64_t hash, Text) { take(hash); }
    __attribute__((always_inline)) void operator()(const uint64_t* hashes, size_t count) {
      if constexpr (std::is_invocable_v<Take&, const uint64_t*, size_t>)
        take(hashes, count);
      else
        for (size_t k = 0; k < count; ++k) take(hashes[k]);
    }
  };
  struct Span {
    uint64_t hash;
    uint32_t begin, end;
  };

  static std::string_view checked(std::string_view document) {
    if (document.size() >= (uint64_t(1) << 31)) throw std::length_error("a document is longer than 2 GiB");
    return document;
  }

  template <class Take> void analyze(std::string_view document, Take take) {
    text_.prepare(checked(document), settings_.lowercase);
    if (settings_.analyzer == Analyzer::word)
      words(take);
    else if (settings_.analyzer == Analyzer::chars)
      chars(take);
    else
      for_each_word([&](size_t begin, size_t end, size_t& place) { ngrams_of_word(begin, end, place, take); });
  }

  template <class Take> void words(Take take) {
    const char* data = text_.data();
    const bool ascii = text_.ascii();
    const auto single = [&](size_t begin, size_t end) {  // one character, though it may be of several bytes
      return end - begin < 2 || (!ascii && end - begin <= 4 && character_length(data[begin]) == end - begin);
    };
    if (settings_.max_n == 1) {
      runs_(text_.words(), text_.size(), false, [&](size_t begin, size_t end) {
        if (!single(begin, end))
          take(hash_(data + begin, end - begin), [&] { return std::string_view(data + begin, end - begin); });
      });
      return;
    }
    spans_.clear();
    runs_(text_.words(), text_.size(), false, [&](size_t begin, size_t end) {
      if (!single(begin, end)) spans_.push_back({hash_(data + begin, end - begin), uint32_t(begin), uint32_t(end)});
    });
    for (size_t first = 0; first < spans_.size(); ++first) {
      uint64_t hash = spans_[first].hash;
      const size_t most =
          spans_.size() - first < size_t(settings_.max_n) ? spans_.size() - first : size_t(settings_.max_n);
      for (size_t n = 1; n <= most; ++n) {
        if (n > 1) hash = combine(hash, spans_[first + n - 1].hash);
        if (n >= size_t(settings_.min_n)) take(hash, [&] { return joined(first, n); });
      }
    }
  }

  std::string_view joined(size_t first, size_t n) {
    joined_.clear();
    for (size_t i = first; i < first + n; ++i) {
      if (i > first) joined_.push_back(' ');
      joined_.append(text_.data() + spans_[i].begin, spans_[i].end - spans_[i].begin);
    }
    return joined_;
  }

  template <class Take> void chars(Take take) {
    text_.collapse_spaces(runs_);
    if (!text_.ascii()) text_.find_characters(begins_);
    const size_t size = text_.ascii() ? text_.size() : begins_.size() - 1;
    for (size_t n = size_t(settings_.min_n); n <= size_t(settings_.max_n) && n <= size; ++n) ngrams(0, size, n, take);
  }

  // Calls word(begin, end, place) for what stands between white spaces, with a space written on both sides; place is
  // for ngrams_of_word.
  template <class Word> void for_each_word(Word word) {
    char* data = text_.data();
    if (!text_.ascii()) text_.find_characters(begins_);
    size_t place = 0;
    runs_(text_.spaces(), text_.size(), true, [&](size_t begin, size_t end) {
      data[ptrdiff_t(begin) - 1] = data[end] = ' ';  // white space, or just outside of the text
      word(begin, end, place);
    });
  }

  // place: the number of a character that is not behind the word's first one.
  template <class Take> void ngrams_of_word(size_t begin, size_t end, size_t& place, Take take) {
    const bool ascii = text_.ascii();
    size_t first = begin, last = end;
    if (!ascii) {
      while (begins_[place] < begin) ++place;
      first = place;
      while (begins_[place] < end) ++place;
      last = place;
    }
    const size_t size = last - first + 2;
    for (size_t n = size_t(settings_.min_n); n <= size_t(settings_.max_n); ++n) {
      if (size <= n) {
        one(begin - 1, end + 1, take);
        break;
      }
      if (ascii) {
        ngrams(begin - 1, end + 1, n, take);
      } else {
        one(begin - 1, begins_[first + n - 1], take);
        if (n <= last - first) ngrams(first, last, n, take);
        one(begins_[last - n + 1], end + 1, take);
      }
    }
  }

  // The feature in the bytes begin .. end; begin may be −1.
  template <class Take> void one(size_t begin, size_t end, Take& take) {
    const char* p = text_.data() + ptrdiff_t(begin);
    take(hash_(p, end - begin), [&] { return std::string_view(p, end - begin); });
  }

  // The n-grams of the characters begin .. end.
  template <class Take> void ngrams(size_t begin, size_t end, size_t n, Take& take) {
    const char* data = text_.data() + ptrdiff_t(begin);
    const size_t count = end - begin - n + 1;
    if (!text_.ascii()) {
      for (size_t i = begin; i < begin + count; ++i) one(begins_[i], begins_[i + n], take);
      return;
    }
    uint64_t hashes[PaddedHash::BLOCK];
    for (size_t i = 0; i < count; i += PaddedHash::BLOCK) {
      const size_t size = count - i < PaddedHash::BLOCK ? count - i : PaddedHash::BLOCK;
      hash_.ngrams(data + i, size, n, hashes);
      if constexpr (std::is_invocable_v<Take&, const uint64_t*, size_t>)
        take(static_cast<const uint64_t*>(hashes), size);
      else
        for (size_t k = 0; k < size; ++k) take(hashes[k], [&] { return std::string_view(data + i + k, n); });
    }
  }

  TextSettings settings_;
  PaddedHash hash_;
  PreparedText text_;
  Runs runs_;
  std::vector<Span> spans_;
  std::vector<uint32_t> begins_;
  std::string joined_;
};

}  // namespace mercer
