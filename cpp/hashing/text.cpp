// Text made ready for analysis, 64 bytes at a time; documents to sparse rows; Python's strings to one buffer.
#include "hashing/text.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/arrays.hpp"
#include "hashing/documents.hpp"
#include "base/parallel.hpp"
#include "hashing/substrings.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mercer {

namespace {

// ---------------------------------------------------------------------------------------------- 64 bytes at a time

// For each block of 64 bytes: its lower case (or a copy), and bits for its word characters, white spaces and bytes
// beyond ASCII.
using Classify = void (*)(const char* in, size_t blocks, bool lowercase, char* out, uint64_t* word, uint64_t* space,
                          uint64_t* high);
// Where a bit differs from the one before, as in Runs.
using FindEdges = size_t (*)(const uint64_t* bits, size_t first, size_t count, size_t size, bool flipped,
                             uint64_t& carry, uint32_t* out);

// The hashes of n-grams, as in PaddedHash.
using NgramHasher = void (*)(const PaddedHash& hash, const char* p, size_t count, size_t n, uint64_t* out);

inline bool between(uint8_t c, char first, char last) { return c >= uint8_t(first) && c <= uint8_t(last); }

[[maybe_unused]] void classify_portable(const char* in, size_t blocks, bool lowercase, char* out, uint64_t* word,
                                        uint64_t* space, uint64_t* high) {
  for (size_t b = 0; b < blocks; ++b, in += 64, out += 64) {
    word[b] = space[b] = high[b] = 0;
    for (int i = 0; i < 64; ++i) {
      const auto c = uint8_t(in[i]);
      const bool upper = between(c, 'A', 'Z');
      word[b] |= uint64_t(upper || between(c, 'a', 'z') || between(c, '0', '9') || c == '_') << i;
      space[b] |= uint64_t(c == ' ' || between(c, 9, 13) || between(c, 28, 31)) << i;
      high[b] |= uint64_t(c >> 7) << i;
      out[i] = char(c + (upper && lowercase ? 32 : 0));
    }
  }
}

__attribute__((always_inline)) inline size_t find_edges_with(const uint64_t* bits, size_t first, size_t count,
                                                             size_t size, bool flipped, uint64_t& carry,
                                                             uint32_t* out) {
  const uint64_t flip = flipped ? ~uint64_t(0) : 0;
  uint32_t* const begin = out;
  for (size_t b = first; b < first + count; ++b) {
    uint64_t here = bits[b] ^ flip;
    if (size - b * 64 < 64) here &= (uint64_t(1) << (size - b * 64)) - 1;
    uint64_t edges = here ^ (here << 1 | carry);
    carry = here >> 63;
    const int n = __builtin_popcountll(edges);
    const auto base = uint32_t(b * 64);
    // Eight at a time, some in vain: cheaper than a loop whose end is hard to foresee.
    for (int k = 0; k < n; k += 8)
      for (int i = 0; i < 8; ++i) {
        out[k + i] = base + uint32_t(edges ? __builtin_ctzll(edges) : 0);
        edges &= edges - 1;
      }
    out += n;
  }
  return size_t(out - begin);
}

size_t find_edges_portable(const uint64_t* bits, size_t first, size_t count, size_t size, bool flipped, uint64_t& carry,
                           uint32_t* out) {
  return find_edges_with(bits, first, count, size, flipped, carry, out);
}

void ngrams_portable(const PaddedHash& hash, const char* p, size_t count, size_t n, uint64_t* out) {
  hash.ngrams_portable(p, count, n, out);
}

#if defined(__x86_64__)

// x in first .. last, byte by byte: SSE2 and AVX2 compare unsigned bytes by way of their minimum.
inline __m128i in_range(__m128i x, char first, char last) {
  const __m128i y = _mm_sub_epi8(x, _mm_set1_epi8(first));
  return _mm_cmpeq_epi8(_mm_min_epu8(y, _mm_set1_epi8(char(last - first))), y);
}

void classify_sse2(const char* in, size_t blocks, bool lowercase, char* out, uint64_t* word, uint64_t* space,
                   uint64_t* high) {
  const __m128i step = _mm_set1_epi8(lowercase ? 32 : 0);
  for (size_t b = 0; b < blocks; ++b) {
    uint64_t words = 0, spaces = 0, highs = 0;
    for (int i = 0; i < 64; i += 16, in += 16, out += 16) {
      const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
      const __m128i upper = in_range(x, 'A', 'Z');
      const __m128i letter = _mm_or_si128(upper, in_range(x, 'a', 'z'));
      const __m128i other = _mm_or_si128(in_range(x, '0', '9'), _mm_cmpeq_epi8(x, _mm_set1_epi8('_')));
      const __m128i blank =
          _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8(' ')), _mm_or_si128(in_range(x, 9, 13), in_range(x, 28, 31)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_add_epi8(x, _mm_and_si128(upper, step)));
      words |= uint64_t(uint16_t(_mm_movemask_epi8(_mm_or_si128(letter, other)))) << i;
      spaces |= uint64_t(uint16_t(_mm_movemask_epi8(blank))) << i;
      highs |= uint64_t(uint16_t(_mm_movemask_epi8(x))) << i;
    }
    word[b] = words;
    space[b] = spaces;
    high[b] = highs;
  }
}

__attribute__((target("avx2"))) inline __m256i in_range(__m256i x, char first, char last) {
  const __m256i y = _mm256_sub_epi8(x, _mm256_set1_epi8(first));
  return _mm256_cmpeq_epi8(_mm256_min_epu8(y, _mm256_set1_epi8(char(last - first))), y);
}

__attribute__((target("avx2"))) void classify_avx2(const char* in, size_t blocks, bool lowercase, char* out,
                                                   uint64_t* word, uint64_t* space, uint64_t* high) {
  const __m256i step = _mm256_set1_epi8(lowercase ? 32 : 0);
  for (size_t b = 0; b < blocks; ++b) {
    uint64_t words = 0, spaces = 0, highs = 0;
    for (int i = 0; i < 64; i += 32, in += 32, out += 32) {
      const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
      const __m256i upper = in_range(x, 'A', 'Z');
      const __m256i letter = _mm256_or_si256(upper, in_range(x, 'a', 'z'));
      const __m256i other = _mm256_or_si256(in_range(x, '0', '9'), _mm256_cmpeq_epi8(x, _mm256_set1_epi8('_')));
      const __m256i blank = _mm256_or_si256(_mm256_cmpeq_epi8(x, _mm256_set1_epi8(' ')),
                                            _mm256_or_si256(in_range(x, 9, 13), in_range(x, 28, 31)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_add_epi8(x, _mm256_and_si256(upper, step)));
      words |= uint64_t(uint32_t(_mm256_movemask_epi8(_mm256_or_si256(letter, other)))) << i;
      spaces |= uint64_t(uint32_t(_mm256_movemask_epi8(blank))) << i;
      highs |= uint64_t(uint32_t(_mm256_movemask_epi8(x))) << i;
    }
    word[b] = words;
    space[b] = spaces;
    high[b] = highs;
  }
}

#define MERCER_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,popcnt,bmi,bmi2")))

MERCER_WIDE inline uint64_t in_range(__m512i x, char first, char last) {
  return _mm512_cmple_epu8_mask(_mm512_sub_epi8(x, _mm512_set1_epi8(first)), _mm512_set1_epi8(char(last - first)));
}

MERCER_WIDE void classify_avx512(const char* in, size_t blocks, bool lowercase, char* out, uint64_t* word,
                                 uint64_t* space, uint64_t* high) {
  const __m512i step = _mm512_set1_epi8(lowercase ? 32 : 0);
  for (size_t b = 0; b < blocks; ++b, in += 64, out += 64) {
    const __m512i x = _mm512_loadu_si512(in);
    const uint64_t upper = in_range(x, 'A', 'Z');
    _mm512_storeu_si512(out, _mm512_mask_add_epi8(x, upper, x, step));
    word[b] = upper | in_range(x, 'a', 'z') | in_range(x, '0', '9') | _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8('_'));
    space[b] = _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(' ')) | in_range(x, 9, 13) | in_range(x, 28, 31);
    high[b] = _mm512_movepi8_mask(x);
  }
}

__attribute__((target("popcnt,bmi,bmi2"))) size_t find_edges_bmi(const uint64_t* bits, size_t first, size_t count,
                                                                 size_t size, bool flipped, uint64_t& carry,
                                                                 uint32_t* out) {
  return find_edges_with(bits, first, count, size, flipped, carry, out);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // GCC's own headers, where an intrinsic needs any vector to start from
#endif

// 64-bit products, lane by lane, as PaddedHash has them: the low half xor the high half of 128 bits.
#define MERCER_PRODUCTS __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

MERCER_PRODUCTS inline __m512i folded_product(__m512i a, __m512i b) {
  const __m512i low = _mm512_set1_epi64(0xFFFFFFFF);
  const __m512i a1 = _mm512_srli_epi64(a, 32), b1 = _mm512_srli_epi64(b, 32);
  const __m512i p00 = _mm512_mul_epu32(a, b);
  const __m512i middle = _mm512_add_epi64(_mm512_mul_epu32(a1, b), _mm512_srli_epi64(p00, 32));
  const __m512i other = _mm512_add_epi64(_mm512_mul_epu32(a, b1), _mm512_and_si512(middle, low));
  const __m512i high = _mm512_add_epi64(_mm512_add_epi64(_mm512_mul_epu32(a1, b1), _mm512_srli_epi64(middle, 32)),
                                        _mm512_srli_epi64(other, 32));
  return _mm512_xor_si512(high, _mm512_or_si512(_mm512_slli_epi64(other, 32), _mm512_and_si512(p00, low)));
}

MERCER_PRODUCTS inline __m512i mixed(__m512i x) {
  const __m512i k = _mm512_set1_epi64(int64_t(0xD6E8FEB86659FD93u));
  x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 32)), k);
  x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 32)), k);
  return _mm512_xor_si512(x, _mm512_srli_epi64(x, 32));
}

// Which of 16 bytes from p on make the words a and b of the eight n-grams at p, p + 1, … (see fast_hash); 0x80: a zero.
struct NgramBytes {
  alignas(64) uint8_t a[64], b[64];
  explicit NgramBytes(size_t n) {
    for (size_t lane = 0; lane < 8; ++lane)
      for (size_t byte = 0; byte < 8; ++byte) {
        uint8_t &first = a[8 * lane + byte], &second = b[8 * lane + byte];
        if (n >= 8)
          first = second = uint8_t(lane + byte);
        else if (n >= 4)
          first = byte < 4 ? uint8_t(lane + byte) : 0x80, second = byte < 4 ? uint8_t(lane + n - 4 + byte) : 0x80;
        else
          first = byte < 3 ? uint8_t(lane + (byte == 2 ? 0 : byte == 1 ? n / 2 : n - 1)) : 0x80, second = 0x80;
      }
  }
};

MERCER_PRODUCTS void ngrams_avx512(const PaddedHash& hasher, const char* p, size_t count, size_t n, uint64_t* out) {
  if (n > 16) return hasher.ngrams_portable(p, count, n, out);
  static const NgramBytes layouts[9] = {NgramBytes(0), NgramBytes(1), NgramBytes(2), NgramBytes(3), NgramBytes(4),
                                        NgramBytes(5), NgramBytes(6), NgramBytes(7), NgramBytes(8)};
  const NgramBytes& layout = layouts[n < 8 ? n : 8];
  const __m512i bytes_a = _mm512_load_si512(layout.a), bytes_b = _mm512_load_si512(layout.b);
  const __m512i k1 = _mm512_set1_epi64(int64_t(PaddedHash::K1)), k2 = _mm512_set1_epi64(int64_t(PaddedHash::K2));
  const __m512i key_a = _mm512_set1_epi64(int64_t(PaddedHash::K1 ^ n * PaddedHash::K1)),
                mixed_seed = _mm512_set1_epi64(int64_t(hasher.mixed_seed()));
  const size_t behind = n < 8 ? 0 : n - 8;
  for (size_t i = 0; i < count; i += 8) {
    const __m512i at_p = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i)));
    const __m512i at_end = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i + behind)));
    const __m512i a = _mm512_xor_si512(_mm512_shuffle_epi8(at_p, bytes_a), key_a);
    const __m512i b = _mm512_xor_si512(_mm512_shuffle_epi8(at_end, bytes_b), k2);
    const __m512i hash = folded_product(_mm512_xor_si512(folded_product(a, b), k2), k1);
    _mm512_storeu_si512(out + i, mixed(_mm512_xor_si512(hash, mixed_seed)));
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

Classify classifier() {
  switch (set_for("text")) {
    case InstructionSet::avx512: return classify_avx512;
    case InstructionSet::avx2: return classify_avx2;
    case InstructionSet::baseline: break;
  }
  return classify_sse2;
}

FindEdges edge_finder() { return set_for("text") == InstructionSet::baseline ? find_edges_portable : find_edges_bmi; }

NgramHasher ngram_hasher() { return set_for("text") == InstructionSet::avx512 ? ngrams_avx512 : ngrams_portable; }

#else

NgramHasher ngram_hasher() { return ngrams_portable; }
Classify classifier() { return classify_portable; }
FindEdges edge_finder() { return find_edges_portable; }

#endif

constexpr size_t MARGIN = 64;  // bytes kept readable on both sides of a text

template <class T> void at_least(std::vector<T>& v, size_t size) {
  if (v.size() < size) v.resize(std::max(size, v.size() * 2));
}

uint64_t low_bits(size_t count) { return count >= 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1; }

}  // namespace

size_t Runs::find(const uint64_t* bits, size_t first, size_t count, size_t size, bool flipped, uint64_t& carry,
                  uint32_t* out) {
  return edge_finder()(bits, first, count, size, flipped, carry, out);
}

PaddedHash::PaddedHash(uint64_t seed) : seed_(seed), mixed_(mix64(seed)), ngrams_(ngram_hasher()) {}

void PreparedText::prepare(std::string_view document, bool lowercase) {
  const size_t full = document.size() / 64, blocks = full + 1;
  at_least(plain_, 64 * blocks + 2 * MARGIN);
  at_least(plain_masks_, 3 * blocks);
  text_ = plain_.data() + MARGIN;
  size_ = document.size();
  word_ = plain_masks_.data();
  space_ = word_ + blocks;
  uint64_t* high = space_ + blocks;
  const Classify classify = classifier();
  classify(document.data(), full, lowercase, text_, word_, space_, high);
  char rest[64] = {};
  if (size_ % 64) std::memcpy(rest, document.data() + 64 * full, size_ % 64);
  classify(rest, 1, lowercase, text_ + 64 * full, word_ + full, space_ + full, high + full);
  uint64_t any = 0;
  for (size_t b = 0; b < blocks; ++b) any |= high[b];
  ascii_ = any == 0;
  if (!ascii_) rewrite(document, lowercase);
}

// Appends bits for count bytes; those beyond are 0.
void PreparedText::append(uint64_t word, uint64_t space, size_t count) {
  const size_t at = size_ / 64, shift = size_ % 64;
  word_[at] |= word << shift;
  space_[at] |= space << shift;
  if (shift + count > 64) {
    word_[at + 1] |= word >> (64 - shift);
    space_[at + 1] |= space >> (64 - shift);
  }
  size_ += count;
}

// The pass for text beyond ASCII: stretches of ASCII are copied with their bits, other characters are looked up one by
// one.
void PreparedText::rewrite(std::string_view document, bool lowercase) {
  const CharacterTable& table = CharacterTable::get();
  const uint64_t *word = word_, *space = space_, *high = space_ + (space_ - word_);
  const char* plain = text_;
  const size_t n = document.size(), room = 2 * n + 64;  // no character's lower case is more than half as long again
  at_least(wide_, room + 2 * MARGIN);
  wide_masks_.assign(2 * (room / 64 + 2), 0);
  text_ = wide_.data() + MARGIN;
  word_ = wide_masks_.data();
  space_ = word_ + room / 64 + 2;
  size_ = 0;
  for (size_t i = 0; i < n;) {
    const size_t block = i / 64, shift = i % 64;
    const uint64_t left = high[block] >> shift;
    const size_t run = std::min(n - i, left ? size_t(__builtin_ctzll(left)) : 64 - shift);
    if (run) {
      std::memcpy(text_ + size_, plain + i, run);
      append(word[block] >> shift & low_bits(run), space[block] >> shift & low_bits(run), run);
      i += run;
      continue;
    }
    const Character c = read_character(document.data() + i, n - i);
    if (!c.length) {
      text_[size_] = document[i++];
      append(0, 0, 1);
    } else if (lowercase && c.code == CharacterTable::DOTTED_I) {
      std::memcpy(text_ + size_, "i\xCC\x87", 3);
      append(1, 0, 3);
      i += 2;
    } else {
      const size_t length = size_t(write_character(lowercase ? table.lower(c.code) : c.code, text_ + size_));
      append(table.is_word(c.code) ? low_bits(length) : 0, table.is_space(c.code) ? low_bits(length) : 0, length);
      i += size_t(c.length);
    }
  }
}

void PreparedText::collapse_spaces(Runs& runs) {
  const size_t blocks = (size_ + 63) / 64;
  uint64_t carry = 0, twice = 0;
  for (size_t b = 0; b < blocks; ++b) {
    twice |= space_[b] & (space_[b] << 1 | carry);
    carry = space_[b] >> 63;
  }
  if (!twice) return;
  size_t from = 0, out = 0;  // the text from here on is still to be moved there
  const auto move_to = [&](size_t end) {
    std::memmove(text_ + out, text_ + from, end - from);
    out += end - from;
  };
  runs(space_, size_, false, [&](size_t begin, size_t end) {
    if (end - begin == character_length(text_[begin])) return;  // a white space by itself stays what it is
    move_to(begin);
    text_[out++] = ' ';
    from = end;
  });
  move_to(size_);
  size_ = out;
}

void PreparedText::find_characters(std::vector<uint32_t>& begins) const {
  begins.clear();
  for (size_t i = 0; i < size_;) {
    begins.push_back(uint32_t(i));
    const Character c = read_character(text_ + i, size_ - i);
    i += c.length ? size_t(c.length) : 1;
  }
  begins.push_back(uint32_t(size_));
}

namespace {

// ---------------------------------------------------------------------------------------------- documents to rows

Documents documents_of(const In1<uint8_t>& data, nb::handle offsets, In1<int32_t>& narrow, In1<int64_t>& wide) {
  Documents d{reinterpret_cast<const char*>(data.data()), nullptr, nullptr, 0};
  size_t count = 0;
  if (nb::try_cast(offsets, narrow, false)) {
    d.short_offsets = narrow.data();
    count = narrow.shape(0);
  } else if (nb::try_cast(offsets, wide, false)) {
    d.long_offsets = wide.data();
    count = wide.shape(0);
  } else {
    throw nb::type_error("offsets must be a contiguous array of int32 or int64");
  }
  require(count >= 1, "offsets must hold at least one value");
  d.n = int64_t(count) - 1;
  require(d.offset(0) >= 0, "offsets must not be negative");
  for (int64_t i = 0; i < d.n; ++i) require(d.offset(i) <= d.offset(i + 1), "offsets must not decrease");
  require(d.offset(d.n) <= int64_t(data.shape(0)), "offsets go beyond the buffer");
  return d;
}

TextSettings text_settings(const std::string& analyzer, int min_n, int max_n, bool lowercase, uint64_t seed) {
  TextSettings s;
  require(analyzer == "word" || analyzer == "char" || analyzer == "char_wb",
          "analyzer must be 'word', 'char' or 'char_wb'");
  s.analyzer = analyzer == "word" ? Analyzer::word : analyzer == "char" ? Analyzer::chars : Analyzer::char_wb;
  require(min_n >= 1 && max_n >= min_n, "n-grams must have a length of at least 1, the shortest first");
  s.min_n = min_n;
  s.max_n = max_n;
  s.lowercase = lowercase;
  s.seed = seed;
  return s;
}

void require_bits(int n_bits) { require(n_bits >= 1 && n_bits <= 30, "n_bits must lie in 1 .. 30"); }

// A row whose features have some copies each.
class CopiedRow {
 public:
  CopiedRow(RowMerger<CountItem>& row, int copies) : row_(row), copies_(uint64_t(copies)) {}

  size_t copies() const { return copies_; }
  __attribute__((always_inline)) void add(uint64_t hash) {
    row_.add(hash);
    for (uint64_t c = 1; c < copies_; ++c) row_.add(combine(hash, c));
  }
  __attribute__((always_inline)) void pack(uint64_t hash, uint32_t* items) const {
    items[0] = row_.pack(hash);
    for (uint64_t c = 1; c < copies_; ++c) items[c] = row_.pack(combine(hash, c));
  }
  void add_packed(const uint32_t* items, size_t size, uint32_t count) { row_.add_packed(items, size, count); }

 private:
  RowMerger<CountItem>& row_;
  uint64_t copies_;
};

// A row whose features come one by one or many at once.
struct SingleRow {
  RowMerger<CountItem>& row;
  __attribute__((always_inline)) void operator()(uint64_t hash) { row.add(hash); }
  void operator()(const uint64_t* hashes, size_t count) { row.add(hashes, count); }
};

nb::tuple text_rows(const Documents& documents, const TextSettings& settings, int n_bits, bool with_signs, bool single,
                    int copies, int threads) {
  const auto all = [&] {
    return
        [analyzer = TextAnalyzer(settings), copies](std::string_view document, RowMerger<CountItem>& merger) mutable {
          CopiedRow row(merger, copies);
          if (copies == 1)
            analyzer(document, SingleRow{merger});
          else
            analyzer(document, [&](uint64_t hash) { row.add(hash); });
        };
  };
  const auto by_words = [&] {
    const size_t bytes = size_t(documents.offset(documents.n) - documents.offset(0));
    return [analyzer = TextAnalyzer(settings), memo = WordMemo(bytes), copies](std::string_view document,
                                                                               auto& merger) mutable {
      analyzer.by_words(document, memo, CopiedRow(merger, copies));
    };
  };
  HashedRows rows(single);
  {
    nb::gil_scoped_release released;
    const CountItem item(n_bits);
    rows = settings.analyzer == Analyzer::char_wb
               ? hash_documents(documents, n_bits, with_signs, single, item, threads, by_words)
               : hash_documents(documents, n_bits, with_signs, single, item, threads, all);
  }
  return rows.release();
}

nb::tuple string_rows(const Documents& documents, const StringSettings& settings, const double* weights, int n_bits,
                      bool with_signs, bool single, int threads) {
  HashedRows rows(single);
  {
    nb::gil_scoped_release released;
    rows = hash_documents(documents, n_bits, with_signs, single, WeightedItem(n_bits, weights), threads, [&] {
      return [analyzer = StringAnalyzer(settings)](std::string_view document, RowMerger<WeightedItem>& row) mutable {
        analyzer(document, [&](uint64_t hash, int weight, auto) { row.add(hash, weight); });
      };
    });
  }
  return rows.release();
}

}  // namespace

StringSettings string_settings(const std::string& kernel, int length, int mismatches, int gap, int shift, bool binary,
                               uint64_t seed, const std::vector<std::string>& alphabet) {
  StringSettings s;
  const char* const names[] = {"spectrum", "bounded", "mismatch", "gappy", "positional"};
  int k = 0;
  while (k < 5 && kernel != names[k]) ++k;
  require(k < 5, "kernel must be 'spectrum', 'bounded', 'mismatch', 'gappy' or 'positional'");
  s.kernel = StringKernel(k);
  require(length >= 1 && length <= 1000000, "the length of substrings must lie in 1 .. 1000000");
  require(mismatches >= 0 && gap >= 0 && shift >= 0, "mismatches, gap and shift must not be negative");
  require(gap <= 1000000 && shift <= 1000000, "gap and shift must be at most 1000000");
  s.length = length;
  s.mismatches = std::min(mismatches, length);
  s.gap = gap;
  s.shift = shift;
  s.binary = binary;
  s.seed = seed;
  s.alphabet = alphabet;
  return s;
}

namespace {

void require_weights(const In1<double>& weights, const StringSettings& s) {
  const size_t most = size_t(s.length) + (s.kernel == StringKernel::gappy ? size_t(s.gap) : 0);
  require(weights.shape(0) == most + 1, "there must be a weight for every length from 0 on");
  require(all_finite(weights.data(), int64_t(weights.shape(0))), "weights must be finite");
}

// ---------------------------------------------------------------------------------------------- names of features

// Distinct features with their names and how often they were seen, in the order of their first appearance.
class NameCounts {
 public:
  void add(uint64_t hash, std::string_view name) {
    const auto [at, fresh] = places_.try_emplace(hash, names_.size());
    if (fresh) {
      hashes_.push_back(hash);
      names_.emplace_back(name);
      counts_.push_back(0);
    }
    ++counts_[at->second];
  }
  nb::tuple handed_over() {
    nb::list names;
    for (const std::string& name : names_) {
      // What is no UTF-8 is shown as it would be in an error message.
      PyObject* text = PyUnicode_DecodeUTF8(name.data(), Py_ssize_t(name.size()), "backslashreplace");
      if (!text) throw nb::python_error();
      names.append(nb::steal(text));
    }
    return nb::make_tuple(names, to_numpy(std::move(hashes_)), to_numpy(std::move(counts_)));
  }

 private:
  std::unordered_map<uint64_t, size_t> places_;
  std::vector<uint64_t> hashes_;
  std::vector<std::string> names_;
  std::vector<int64_t> counts_;
};

// -------------------------------------------------------------------------------------- Python's strings to one buffer

// Writes characters of any width as UTF-8; false at a surrogate.
template <class Unit> bool encode(const Unit* units, size_t n, Buffer<uint8_t>& out) {
  constexpr size_t MOST = sizeof(Unit) == 1 ? 2 : sizeof(Unit) == 2 ? 3 : 4;
  char* const begin = reinterpret_cast<char*>(out.room(MOST * n + 4));
  char* p = begin;
  for (size_t i = 0; i < n; ++i) {
    const auto code = uint32_t(units[i]);
    if ((code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return false;
    p += write_character(code, p);
  }
  out.advance(size_t(p - begin));
  return true;
}

[[noreturn]] void fail_surrogate(int64_t i) {
  fail("document " + std::to_string(i) +
       " holds half a surrogate pair, which has no form in UTF-8: encode it yourself and give bytes");
}

void append_bytes(const char* data, size_t size, Buffer<uint8_t>& out) {
  out.append(reinterpret_cast<const uint8_t*>(data), size);
}

void append_str(PyObject* text, int64_t i, Buffer<uint8_t>& out) {
  const auto n = size_t(PyUnicode_GET_LENGTH(text));
  const void* data = PyUnicode_DATA(text);
  if (PyUnicode_IS_ASCII(text)) return append_bytes(static_cast<const char*>(data), n, out);
  bool good = true;
  switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND: good = encode(static_cast<const Py_UCS1*>(data), n, out); break;
    case PyUnicode_2BYTE_KIND: good = encode(static_cast<const Py_UCS2*>(data), n, out); break;
    default: good = encode(static_cast<const Py_UCS4*>(data), n, out);
  }
  if (!good) fail_surrogate(i);
}

[[noreturn]] void fail_item(PyObject* item, int64_t i, const char* expected) {
  const std::string type = Py_TYPE(item)->tp_name, where = "document " + std::to_string(i);
  const bool missing = item == Py_None || type == "NAType" || type == "NaTType" ||
                       (PyFloat_Check(item) && PyFloat_AS_DOUBLE(item) != PyFloat_AS_DOUBLE(item));
  if (missing) fail(where + " is missing (None or NaN): leave it out, or give an empty string");
  throw nb::type_error((where + ": expected " + expected + ", found " + type).c_str());
}

struct Packed {
  Buffer<uint8_t> data;
  Buffer<int64_t> offsets;

  Packed() { close(); }
  void close() { offsets.push(int64_t(data.size())); }
  nb::tuple handed_over(bool binary) { return nb::make_tuple(data.release(), offsets.release(), binary); }
};

nb::tuple pack_documents(nb::handle documents) {
  require(PyList_Check(documents.ptr()) || PyTuple_Check(documents.ptr()), "documents must be a list or tuple");
  Packed out;
  bool binary = false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(documents.ptr()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(documents.ptr(), i);
    if (i == 0) binary = PyBytes_Check(item);
    if (binary ? !PyBytes_Check(item) : !PyUnicode_Check(item))
      fail_item(item, i, i == 0 ? "str or bytes" : binary ? "bytes, as before" : "str, as before");
    if (binary)
      append_bytes(PyBytes_AS_STRING(item), size_t(PyBytes_GET_SIZE(item)), out.data);
    else
      append_str(item, i, out.data);
    out.close();
  }
  return out.handed_over(binary);
}

// NumPy's fixed-width strings: rows of code points or bytes, zeros at the end left out.
template <class Unit> nb::tuple pack_fixed(Array<const Unit, 2> rows) {
  Packed out;
  const size_t width = rows.shape(1);
  for (size_t i = 0; i < rows.shape(0); ++i) {
    const Unit* row = rows.data() + i * width;
    size_t n = width;
    while (n && row[n - 1] == 0) --n;
    if constexpr (sizeof(Unit) == 1)
      append_bytes(reinterpret_cast<const char*>(row), n, out.data);
    else if (!encode(row, n, out.data))
      fail_surrogate(int64_t(i));
    out.close();
  }
  return out.handed_over(sizeof(Unit) == 1);
}

// One document a line; a line ends with \n, \r\n or \r. The lines are moved together where they are, without their
// ends: offsets of the lines, the last one being how much of the text is left.
nb::object split_lines(Out1<uint8_t> text) {
  Buffer<int64_t> offsets;
  {
    nb::gil_scoped_release released;
    char* const begin = reinterpret_cast<char*>(text.data());
    char* const end = begin + text.shape(0);
    char *p = begin, *out = begin;
    char* carriage = nullptr;  // the next \r, looked for once only
    const auto find = [](char* from, char* to, char c) {
      void* found = from < to ? std::memchr(from, c, size_t(to - from)) : nullptr;
      return found ? static_cast<char*>(found) : to;
    };
    offsets.push(0);
    while (p < end) {
      if (!carriage || carriage < p) carriage = find(p, end, '\r');
      char* const line_end = find(p, carriage, '\n');
      const auto size = size_t(line_end - p);
      if (out != p) std::memmove(out, p, size);
      out += size;
      offsets.push(int64_t(out - begin));
      p = line_end + 1;
      if (line_end == carriage && p < end && *p == '\n') ++p;
    }
  }
  return offsets.release();
}

// The characters that occur, as bytes objects, in the order of their codes.
nb::list characters(const Documents& documents, bool binary) {
  std::vector<bool> seen(CharacterTable::LIMIT + 256);  // bytes that are not UTF-8 stand behind the characters
  {
    nb::gil_scoped_release released;
    for (int64_t i = 0; i < documents.n; ++i) {
      const std::string_view text = documents[i];
      for (size_t k = 0; k < text.size();) {
        const Character c = binary ? Character{0, 0} : read_character(text.data() + k, text.size() - k);
        seen[c.length ? c.code : CharacterTable::LIMIT + uint8_t(text[k])] = true;
        k += c.length ? size_t(c.length) : 1;
      }
    }
  }
  nb::list out;
  for (uint32_t code = 0; code < seen.size(); ++code) {
    if (!seen[code]) continue;
    char bytes[4] = {char(code - CharacterTable::LIMIT)};
    const int n = code < CharacterTable::LIMIT ? write_character(code, bytes) : 1;
    out.append(nb::bytes(bytes, size_t(n)));
  }
  return out;
}

std::vector<std::string> byte_strings(nb::list items) {
  std::vector<std::string> out;
  for (nb::handle item : items) {
    if (!PyBytes_Check(item.ptr())) throw nb::type_error("characters must be bytes objects");
    out.emplace_back(PyBytes_AS_STRING(item.ptr()), size_t(PyBytes_GET_SIZE(item.ptr())));
  }
  return out;
}

}  // namespace

void bind_hashing(nb::module_& m) {
  m.def(
      "hash_bytes", [](nb::bytes text, uint64_t seed) { return hash_bytes({text.c_str(), text.size()}, seed); },
      "text"_a, "seed"_a = 0, "A 64-bit hash, the same on all platforms.");
  m.def(
      "feature_hash",
      [](nb::bytes name, uint64_t seed) { return feature_hash(std::string_view(name.c_str(), name.size()), seed); },
      "name"_a, "seed"_a = 0);
  m.def(
      "combine_hashes",
      [](In1<uint64_t> first, uint64_t second) {
        std::vector<uint64_t> out(first.shape(0));
        for (size_t i = 0; i < out.size(); ++i) out[i] = combine(first.data()[i], second);
        return to_numpy(std::move(out));
      },
      "first"_a, "second"_a);
}

void bind_text(nb::module_& m) {
  nb::class_<StringSettings>(m, "StringSettings", "Which substrings are features of a document.")
      .def(
          "__init__",
          [](StringSettings* self, const std::string& kernel, int length, int mismatches, int gap, int shift,
             bool binary, uint64_t seed, nb::list alphabet) {
            new (self) StringSettings(
                string_settings(kernel, length, mismatches, gap, shift, binary, seed, byte_strings(alphabet)));
          },
          "kernel"_a, "length"_a, "mismatches"_a, "gap"_a, "shift"_a, "binary"_a, "seed"_a, "alphabet"_a);

  m.attr("UNICODE_VERSION") = UNICODE_VERSION;

  m.def(
      "text_rows",
      [](In1<uint8_t> data, nb::object offsets, const std::string& analyzer, int min_n, int max_n, bool lowercase,
         uint64_t seed, int n_bits, bool with_signs, int copies, bool single, int threads) {
        In1<int32_t> narrow;
        In1<int64_t> wide;
        const Documents documents = documents_of(data, offsets, narrow, wide);
        const TextSettings settings = text_settings(analyzer, min_n, max_n, lowercase, seed);
        require_bits(n_bits);
        require(copies >= 1, "copies must be at least 1");
        threads = thread_count(threads);
        return text_rows(documents, settings, n_bits, with_signs, single, copies, threads);
      },
      "data"_a, "offsets"_a, "analyzer"_a, "min_n"_a, "max_n"_a, "lowercase"_a, "seed"_a, "n_bits"_a, "with_signs"_a,
      "copies"_a, "single"_a, "threads"_a);

  m.def(
      "text_names",
      [](In1<uint8_t> data, nb::object offsets, const std::string& analyzer, int min_n, int max_n, bool lowercase,
         uint64_t seed) {
        In1<int32_t> narrow;
        In1<int64_t> wide;
        const Documents documents = documents_of(data, offsets, narrow, wide);
        NameCounts names;
        {
          nb::gil_scoped_release released;
          TextAnalyzer analyze(text_settings(analyzer, min_n, max_n, lowercase, seed));
          for (int64_t i = 0; i < documents.n; ++i)
            analyze.with_text(documents[i], [&](uint64_t hash, std::string_view name) { names.add(hash, name); });
        }
        return names.handed_over();
      },
      "data"_a, "offsets"_a, "analyzer"_a, "min_n"_a, "max_n"_a, "lowercase"_a, "seed"_a);

  m.def(
      "string_rows",
      [](In1<uint8_t> data, nb::object offsets, const std::string& kernel, int length, int mismatches, int gap,
         int shift, bool binary, uint64_t seed, nb::list alphabet, In1<double> weights, int n_bits, bool with_signs,
         bool single, int threads) {
        In1<int32_t> narrow;
        In1<int64_t> wide;
        const Documents documents = documents_of(data, offsets, narrow, wide);
        const StringSettings settings =
            string_settings(kernel, length, mismatches, gap, shift, binary, seed, byte_strings(alphabet));
        require_weights(weights, settings);
        require_bits(n_bits);
        threads = thread_count(threads);
        return string_rows(documents, settings, weights.data(), n_bits, with_signs, single, threads);
      },
      "data"_a, "offsets"_a, "kernel"_a, "length"_a, "mismatches"_a, "gap"_a, "shift"_a, "binary"_a, "seed"_a,
      "alphabet"_a, "weights"_a, "n_bits"_a, "with_signs"_a, "single"_a, "threads"_a);

  m.def(
      "string_names",
      [](In1<uint8_t> data, nb::object offsets, const std::string& kernel, int length, int mismatches, int gap,
         int shift, bool binary, uint64_t seed, nb::list alphabet) {
        In1<int32_t> narrow;
        In1<int64_t> wide;
        const Documents documents = documents_of(data, offsets, narrow, wide);
        const StringSettings settings =
            string_settings(kernel, length, mismatches, gap, shift, binary, seed, byte_strings(alphabet));
        NameCounts names;
        {
          nb::gil_scoped_release released;
          StringAnalyzer analyze(settings);
          for (int64_t i = 0; i < documents.n; ++i)
            analyze(documents[i], [&](uint64_t hash, int, auto text) { names.add(hash, text()); });
        }
        return names.handed_over();
      },
      "data"_a, "offsets"_a, "kernel"_a, "length"_a, "mismatches"_a, "gap"_a, "shift"_a, "binary"_a, "seed"_a,
      "alphabet"_a);

  m.def(
      "string_characters",
      [](In1<uint8_t> data, nb::object offsets, bool binary) {
        In1<int32_t> narrow;
        In1<int64_t> wide;
        return characters(documents_of(data, offsets, narrow, wide), binary);
      },
      "data"_a, "offsets"_a, "binary"_a);

  m.def("pack_documents", &pack_documents, "documents"_a);
  m.def("split_lines", &split_lines, "text"_a.noconvert());
  m.def("pack_ucs4", &pack_fixed<uint32_t>, "rows"_a);
  m.def("pack_bytes", &pack_fixed<uint8_t>, "rows"_a);
}

}  // namespace mercer
