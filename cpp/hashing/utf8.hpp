// Characters in UTF-8: reading and writing them, and what Unicode says about each (the tables of hashing/unicode.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hashing/unicode.hpp"

namespace mercer {

// The character that begins at p, or length 0 where the bytes are not UTF-8 (cut short, overlong, a surrogate, beyond
// U+10FFFF).
struct Character {
  uint32_t code;
  int length;
};

inline Character read_character(const char* p, size_t left) {
  const auto* b = reinterpret_cast<const uint8_t*>(p);
  const auto more = [&](size_t i) { return (b[i] & 0xC0u) == 0x80u; };
  if (b[0] < 0x80) return {b[0], 1};
  if (b[0] >= 0xC2 && b[0] < 0xE0 && left >= 2 && more(1)) return {(b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu), 2};
  if (b[0] >= 0xE0 && b[0] < 0xF0 && left >= 3 && more(1) && more(2)) {
    const uint32_t code = (b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
    if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3};
  }
  if (b[0] >= 0xF0 && b[0] < 0xF5 && left >= 4 && more(1) && more(2) && more(3)) {
    const uint32_t code = (b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu);
    if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4};
  }
  return {0, 0};
}

// Writes a character and returns its length; room for 4 bytes is needed.
inline int write_character(uint32_t code, char* out) {
  if (code < 0x80) {
    out[0] = char(code);
    return 1;
  }
  if (code < 0x800) {
    out[0] = char(0xC0 | code >> 6);
    out[1] = char(0x80 | (code & 0x3F));
    return 2;
  }
  if (code < 0x10000) {
    out[0] = char(0xE0 | code >> 12);
    out[1] = char(0x80 | (code >> 6 & 0x3F));
    out[2] = char(0x80 | (code & 0x3F));
    return 3;
  }
  out[0] = char(0xF0 | code >> 18);
  out[1] = char(0x80 | (code >> 12 & 0x3F));
  out[2] = char(0x80 | (code >> 6 & 0x3F));
  out[3] = char(0x80 | (code & 0x3F));
  return 4;
}

// The length of a character from its first byte, in text that is known to be UTF-8.
inline size_t character_length(char first) {
  const auto b = uint8_t(first);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

// What Unicode says of each character, spread out from the ranges once.
class CharacterTable {
 public:
  static constexpr uint32_t LIMIT = 0x110000, DOTTED_I = 0x130;

  static const CharacterTable& get() {
    static const CharacterTable table;
    return table;
  }
  bool is_word(uint32_t code) const { return word_[code >> 6] >> (code & 63) & 1; }
  bool is_space(uint32_t code) const { return code <= last_space_ && (space_[code >> 6] >> (code & 63) & 1); }
  uint32_t lower(uint32_t code) const { return code < deltas_.size() ? uint32_t(int32_t(code) + deltas_[code]) : code; }

 private:
  CharacterTable() : word_(LIMIT / 64), space_(LIMIT / 64) {
    for (const CodeRange& r : WORD_RANGES)
      for (uint32_t c = r.first; c <= r.last; ++c) word_[c >> 6] |= uint64_t(1) << (c & 63);
    for (const CodeRange& r : SPACE_RANGES)
      for (uint32_t c = last_space_ = r.first; c <= r.last; last_space_ = c++)
        space_[c >> 6] |= uint64_t(1) << (c & 63);
    uint32_t last = 0;
    for (const LowerRun& run : LOWER_RUNS) last = run.last > last ? run.last : last;
    deltas_.assign(last + 1, 0);
    for (uint32_t c = 'A'; c <= 'Z'; ++c) deltas_[c] = 32;
    for (const LowerRun& run : LOWER_RUNS)
      for (uint32_t c = run.first; c <= run.last; c += run.step) deltas_[c] = run.delta;
  }

  std::vector<uint64_t> word_, space_;
  std::vector<int32_t> deltas_;
  uint32_t last_space_ = 0;
};

}  // namespace mercer
