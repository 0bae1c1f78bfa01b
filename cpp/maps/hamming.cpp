// Binary codes: signs to packed bits, and exact search by Hamming distance.
//
//   dist(a, b) = Σ_w popcount(a_w xor b_w)                                  over the 64-bit words of two codes
//
// Codes lie in blocks of eight, word by word: blocks[b][w][i] is word w of the code at position 8 b + i. One vector of
// 512 bits then holds the same word of eight codes, counts need no sums across lanes, and the distances of eight codes
// come out of one register. A tile of queries shares each stretch of codes while it is in the first-level cache. Of a
// stretch only the blocks that hold a distance below the query's limit (its k-th best so far, or the radius) are looked
// at again. All are integers and neighbours are ordered by (distance, position), so neither the instruction set nor the
// number of threads can change a result.
#include "base/arrays.hpp"
#include "base/dispatch.hpp"
#include "base/parallel.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>
#if defined(MERCER_X86)
#include <immintrin.h>
#endif

namespace mercer {
namespace {

constexpr int64_t kStretchBytes = 1 << 14;  // of codes that a tile of queries shares
constexpr int64_t kLoneBytes = 1 << 17;     // that a lone query, which shares nothing, walks over at a time, at first
constexpr int64_t kStreamBytes =
    1 << 19;  // then it reads several streams of this length at once: one alone does not use the memory
constexpr int64_t kStreams = 8;
constexpr int64_t kTile = 128;          // queries that walk over the codes together
constexpr int64_t kMaxWords = 1 << 18;  // of one code: 2^24 bits

// Blocks of a stretch with at least one distance below the limit. Each thread keeps its own, as large as any it has
// needed: fresh memory would take longer than a short search.
struct Hits {
  std::unique_ptr<int32_t[]> block;
  std::unique_ptr<uint8_t[]> lanes;      // bit i: code i of the block is below the limit
  std::unique_ptr<int32_t[]> distances;  // eight a block
  int64_t room = 0;
  static Hits& of_thread(int64_t blocks) {
    static thread_local Hits hits;
    if (hits.room < blocks) {
      hits.room = 0;
      hits.block.reset(new int32_t[size_t(blocks)]);
      hits.lanes.reset(new uint8_t[size_t(blocks)]);
      hits.distances.reset(new int32_t[size_t(blocks) * 8]);
      hits.room = blocks;
    }
    return hits;
  }
};

using Scan = int64_t (*)(const uint64_t* blocks, int64_t count, int64_t words, const uint64_t* query, int64_t limit,
                         Hits& hits);

inline uint64_t ones(uint64_t x) {
  x -= (x >> 1) & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (x * 0x0101010101010101u) >> 56;
}

int64_t scan_baseline(const uint64_t* blocks, int64_t count, int64_t words, const uint64_t* query, int64_t limit,
                      Hits& hits) {
  int64_t found = 0;
  for (int64_t b = 0; b < count; ++b, blocks += 8 * words) {
    uint64_t sums[8] = {};
    for (int64_t w = 0; w < words; ++w)
      for (int i = 0; i < 8; ++i) sums[i] += ones(blocks[8 * w + i] ^ query[w]);
    uint8_t lanes = 0;
    for (int i = 0; i < 8; ++i) {
      lanes = uint8_t(lanes | (int64_t(sums[i]) < limit) << i);
      hits.distances[size_t(8 * found + i)] = int32_t(sums[i]);
    }
    if (!lanes) continue;
    hits.block[size_t(found)] = int32_t(b);
    hits.lanes[size_t(found++)] = lanes;
  }
  return found;
}

#if defined(MERCER_X86)
#define MERCER_AVX2 __attribute__((target("avx2")))
#define MERCER_VPOPCNT __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")))

// Counts by looking up halves of bytes; sums of bytes stay below 256 for 31 words.
MERCER_AVX2 inline __m256i byte_ones(__m256i x) {
  const __m256i table =
      _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i low = _mm256_set1_epi8(15);
  return _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(x, low)),
                         _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), low)));
}

MERCER_AVX2 int64_t scan_avx2(const uint64_t* blocks, int64_t count, int64_t words, const uint64_t* query,
                              int64_t limit, Hits& hits) {
  const __m256i zero = _mm256_setzero_si256(), bound = _mm256_set1_epi64x(limit);
  int64_t found = 0;
  for (int64_t b = 0; b < count; ++b, blocks += 8 * words) {
    __m256i sum[2] = {zero, zero};
    for (int64_t w = 0; w < words;) {
      __m256i bytes[2] = {zero, zero};
      for (const int64_t stop = std::min(words, w + 31); w < stop; ++w) {
        const __m256i q = _mm256_set1_epi64x(int64_t(query[w]));
        for (int h = 0; h < 2; ++h) {
          const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(blocks + 8 * w + 4 * h));
          bytes[h] = _mm256_add_epi8(bytes[h], byte_ones(_mm256_xor_si256(codes, q)));
        }
      }
      for (int h = 0; h < 2; ++h) sum[h] = _mm256_add_epi64(sum[h], _mm256_sad_epu8(bytes[h], zero));
    }
    const int lanes = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(bound, sum[0]))) |
                      _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(bound, sum[1]))) << 4;
    if (!lanes) continue;
    int64_t sums[8];
    for (int h = 0; h < 2; ++h) _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 4 * h), sum[h]);
    for (int i = 0; i < 8; ++i) hits.distances[size_t(8 * found + i)] = int32_t(sums[i]);
    hits.block[size_t(found)] = int32_t(b);
    hits.lanes[size_t(found++)] = uint8_t(lanes);
  }
  return found;
}

// W words, known when compiled for the usual lengths, so that the query stays in registers; W = 0: any number of words.
// A long code is left as soon as all eight distances have reached the limit.
template <int W>
MERCER_VPOPCNT int64_t scan_words(const uint64_t* blocks, int64_t count, int64_t words, const uint64_t* query,
                                  int64_t limit, Hits& hits) {
  const __m512i bound = _mm512_set1_epi64(limit);
  __m512i q[W > 0 ? W : 1];
  for (int w = 0; w < W; ++w) q[w] = _mm512_set1_epi64(int64_t(query[w]));
  int64_t found = 0;
  for (int64_t b = 0; b < count; ++b) {
    __m512i sum = _mm512_setzero_si512();
    if (W > 0) {
      const uint64_t* codes = blocks + 8 * W * b;
      for (int w = 0; w < W; ++w)
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(_mm512_loadu_si512(codes + 8 * w), q[w])));
    } else {
      const uint64_t* codes = blocks + 8 * words * b;
      for (int64_t w = 0; w < words;) {
        for (const int64_t stop = std::min(words, w + 16); w < stop; ++w)
          sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(_mm512_loadu_si512(codes + 8 * w),
                                                                           _mm512_set1_epi64(int64_t(query[w])))));
        if (!_mm512_cmplt_epi64_mask(sum, bound)) break;
      }
    }
    const __mmask8 lanes = _mm512_cmplt_epi64_mask(sum, bound);
    if (__builtin_expect(lanes == 0, 1)) continue;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(hits.distances.get() + 8 * found), _mm512_cvtepi64_epi32(sum));
    hits.block[size_t(found)] = int32_t(b);
    hits.lanes[size_t(found++)] = lanes;
  }
  return found;
}
// The same for kStreams stretches of `count` blocks that lie one after another, read side by side; the hits of stream s
// begin at s count.
template <int W>
MERCER_VPOPCNT void scan_streams(const uint64_t* blocks, int64_t count, const uint64_t* query, int64_t limit,
                                 Hits& hits, int64_t* found) {
  const __m512i bound = _mm512_set1_epi64(limit);
  __m512i q[W];
  for (int w = 0; w < W; ++w) q[w] = _mm512_set1_epi64(int64_t(query[w]));
  for (int64_t s = 0; s < kStreams; ++s) found[s] = 0;
  for (int64_t b = 0; b < count; ++b)
    for (int64_t s = 0; s < kStreams; ++s) {
      const uint64_t* codes = blocks + 8 * W * (s * count + b);
      __m512i sum = _mm512_setzero_si512();
      for (int w = 0; w < W; ++w)
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(_mm512_loadu_si512(codes + 8 * w), q[w])));
      const __mmask8 lanes = _mm512_cmplt_epi64_mask(sum, bound);
      if (__builtin_expect(lanes == 0, 1)) continue;
      const int64_t at = s * count + found[s]++;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(hits.distances.get() + 8 * at), _mm512_cvtepi64_epi32(sum));
      hits.block[size_t(at)] = int32_t(b);
      hits.lanes[size_t(at)] = lanes;
    }
}
#endif

using Streams = void (*)(const uint64_t* blocks, int64_t count, const uint64_t* query, int64_t limit, Hits& hits,
                         int64_t* found);

// nullptr where counting, not reading, takes the time.
Streams best_streams(int64_t words) {
#if defined(MERCER_X86)
  if (set_for("hamming") == InstructionSet::avx512 && machine_has(Feature::popcounts_of_vectors)) {
    switch (words) {
      case 1: return scan_streams<1>;
      case 2: return scan_streams<2>;
      case 3: return scan_streams<3>;
      case 4: return scan_streams<4>;
      case 8: return scan_streams<8>;
    }
  }
#endif
  (void)words;
  return nullptr;
}

Scan best_scan(int64_t words) {
#if defined(MERCER_X86)
  const InstructionSet set = set_for("hamming");
  if (set == InstructionSet::avx512 && machine_has(Feature::popcounts_of_vectors)) {
    switch (words) {
      case 1: return scan_words<1>;
      case 2: return scan_words<2>;
      case 3: return scan_words<3>;
      case 4: return scan_words<4>;
      case 8: return scan_words<8>;
      default: return scan_words<0>;
    }
  }
  if (set != InstructionSet::baseline) return scan_avx2;
#endif
  (void)words;
  return scan_baseline;
}

// ---------------------------------------------------------------------------------------------- neighbours

// A neighbour as one number, so that the order of numbers is that by distance, then position.
inline uint64_t neighbour(int64_t distance, int64_t position) { return uint64_t(distance) << 38 | uint64_t(position); }
inline int64_t distance_of(uint64_t n) { return int64_t(n >> 38); }
inline int64_t position_of(uint64_t n) { return int64_t(n & ((uint64_t(1) << 38) - 1)); }

// The k best so far (a heap with the worst on top), or, with k = 0, all within a radius.
class Best {
 public:
  Best(int64_t k, int64_t radius) : k_(k), limit_(radius + 1) {
    if (k) kept_.reserve(size_t(std::min<int64_t>(k, 1 << 16)));
  }
  int64_t limit() const { return limit_; }  // only distances below it are of interest
  void add(int64_t distance, int64_t position) {
    const uint64_t n = neighbour(distance, position);
    if (k_ == 0 || int64_t(kept_.size()) < k_) {
      kept_.push_back(n);
      if (k_ == 0) return;
      std::push_heap(kept_.begin(), kept_.end());
    } else if (n < kept_.front()) {
      std::pop_heap(kept_.begin(), kept_.end());
      kept_.back() = n;
      std::push_heap(kept_.begin(), kept_.end());
    }
    // Positions ascend within a scan: an equal distance that comes later is no better.
    if (int64_t(kept_.size()) == k_) limit_ = std::min(limit_, distance_of(kept_.front()) + (ascending_ ? 0 : 1));
  }
  void any_order() { ascending_ = false; }
  bool full() const { return k_ > 0 && int64_t(kept_.size()) == k_; }
  int64_t worst() const { return distance_of(kept_.front()); }
  std::vector<uint64_t>& kept() { return kept_; }

 private:
  int64_t k_, limit_;
  bool ascending_ = true;
  std::vector<uint64_t> kept_;
};

struct Codes {
  const uint64_t* blocks;
  int64_t words, n;        // words a code, codes
  const uint8_t* allowed;  // a bit a position, eight a byte, lowest first; nullptr: all
  int64_t count() const { return (n + 7) / 8; }
  uint8_t lanes(int64_t b) const {
    const uint8_t valid = 8 * b + 8 <= n ? 255 : uint8_t((1 << (n - 8 * b)) - 1);
    return allowed ? uint8_t(valid & allowed[b]) : valid;
  }
};

// Offers the hits begin .. end of a stretch, whose first block is `at`.
void offer(const Codes& codes, const Hits& hits, int64_t begin, int64_t end, int64_t at, Best& best) {
  for (int64_t h = begin; h < end; ++h) {
    const int64_t b = at + hits.block[size_t(h)];
    for (unsigned left = hits.lanes[size_t(h)] & codes.lanes(b); left; left &= left - 1) {
      const int i = __builtin_ctz(left);
      const int64_t distance = hits.distances[size_t(8 * h + i)];
      if (distance < best.limit()) best.add(distance, 8 * b + i);
    }
  }
}

// Blocks first .. last against some queries.
void walk(const Codes& codes, int64_t first, int64_t last, const uint64_t* queries, int64_t n_queries, Best* best) {
  const Scan scan = best_scan(codes.words);
  const Streams streams = n_queries == 1 ? best_streams(codes.words) : nullptr;
  const int64_t bytes = n_queries == 1 ? kLoneBytes : kStretchBytes, block = 64 * codes.words;
  const int64_t stretch = std::max<int64_t>(8, bytes / block), stream = kStreamBytes / block;
  const bool side_by_side = streams && last - first >= stretch + kStreams * stream;
  Hits& hits = Hits::of_thread(side_by_side ? kStreams * stream : stretch);
  for (int64_t at = first; at < last;) {
    if (side_by_side && at - first >= stretch && last - at >= kStreams * stream) {
      int64_t found[kStreams];
      streams(codes.blocks + 8 * codes.words * at, stream, queries, best->limit(), hits, found);
      for (int64_t s = 0; s < kStreams; ++s)
        offer(codes, hits, s * stream, s * stream + found[s], at + s * stream, *best);
      at += kStreams * stream;
      continue;
    }
    const int64_t count =
        std::min(at == first ? std::min<int64_t>(stretch, 64) : stretch, last - at);  // a first limit, soon
    for (int64_t q = 0; q < n_queries; ++q) {
      const int64_t found = scan(codes.blocks + 8 * codes.words * at, count, codes.words, queries + q * codes.words,
                                 best[q].limit(), hits);
      offer(codes, hits, 0, found, at, best[q]);
    }
    at += count;
  }
}

// All neighbours of all queries, sorted. Codes are cut into ranges where there are fewer tiles of queries than threads.
std::vector<std::vector<uint64_t>> neighbours(const Codes& codes, const uint64_t* queries, int64_t n_queries, int64_t k,
                                              int64_t radius, int threads) {
  if (n_queries == 0) return {};
  const int64_t tile = std::min(kTile, std::max<int64_t>(1, (n_queries + threads - 1) / threads));
  const int64_t tiles = (n_queries + tile - 1) / tile;
  const int64_t ranges =
      tiles >= threads ? 1
                       : std::min<int64_t>((threads + tiles - 1) / tiles, std::max<int64_t>(1, codes.count() / 1024));
  std::vector<std::vector<Best>> parts(size_t(tiles * ranges));
  in_parallel(tiles * ranges, threads, [&](int64_t part) {
    const int64_t t = part / ranges, r = part % ranges;
    const int64_t from = t * tile, to = std::min(n_queries, from + tile);
    std::vector<Best> best(size_t(to - from), Best(k, radius));
    walk(codes, codes.count() * r / ranges, codes.count() * (r + 1) / ranges, queries + from * codes.words, to - from,
         best.data());
    parts[size_t(part)] = std::move(best);
  });
  std::vector<std::vector<uint64_t>> all(static_cast<size_t>(n_queries));
  for (int64_t q = 0; q < n_queries; ++q) {
    auto& found = all[size_t(q)];
    for (int64_t r = 0; r < ranges; ++r) {
      auto& kept = parts[size_t(q / tile * ranges + r)][size_t(q % tile)].kept();
      found.insert(found.end(), kept.begin(), kept.end());
    }
    std::sort(found.begin(), found.end());
    if (k && int64_t(found.size()) > k) found.resize(size_t(k));
  }
  return all;
}

Codes checked_codes(const In3<uint64_t>& blocks, int64_t n, const std::optional<In1<uint8_t>>& allowed,
                    const In2<uint64_t>& queries) {
  require(blocks.shape(2) == 8, "blocks must hold eight codes each");
  const int64_t words = int64_t(blocks.shape(1));
  require(words >= 1 && words <= kMaxWords, "a code must have between 1 and 2^18 words");
  require(n >= 0 && n < (int64_t(1) << 38) && (n + 7) / 8 <= int64_t(blocks.shape(0)),
          "there are more codes than the blocks hold");
  require(int64_t(queries.shape(1)) == words, "queries must have as many words as the codes");
  require(!allowed || int64_t(allowed->shape(0)) == (n + 7) / 8, "allowed must hold one bit for each code");
  return {blocks.data(), words, n, allowed ? allowed->data() : nullptr};
}

nb::tuple to_arrays(const std::vector<std::vector<uint64_t>>& all) {
  std::vector<int64_t> offsets{0}, positions;
  std::vector<int32_t> distances;
  for (const auto& found : all) {
    for (uint64_t n : found) {
      distances.push_back(int32_t(distance_of(n)));
      positions.push_back(position_of(n));
    }
    offsets.push_back(int64_t(positions.size()));
  }
  return nb::make_tuple(to_numpy(std::move(offsets)), to_numpy(std::move(distances)), to_numpy(std::move(positions)));
}

nb::tuple hamming_search(In3<uint64_t> blocks, int64_t n, In2<uint64_t> queries, int64_t k, int64_t radius,
                         std::optional<In1<uint8_t>> allowed, int threads) {
  const Codes codes = checked_codes(blocks, n, allowed, queries);
  require(k >= 0 && radius >= 0 && radius <= 64 * codes.words,
          "k and radius must not be negative, nor the radius above the bits");
  threads = thread_count(threads);
  std::vector<std::vector<uint64_t>> all;
  {
    nb::gil_scoped_release release;
    all = neighbours(codes, queries.data(), int64_t(queries.shape(0)), k, radius, threads);
  }
  return to_arrays(all);
}

// ---------------------------------------------------------------------------------------------- multi-index hashing

// Substring j of a code: bits begin_j .. end_j of its words, at most 24 of them.
struct Substrings {
  std::vector<int64_t> begin;  // m + 1 of them
  int64_t m() const { return int64_t(begin.size()) - 1; }
  int64_t length(int64_t j) const { return begin[size_t(j) + 1] - begin[size_t(j)]; }
  Substrings(int64_t n_bits, int64_t m) {
    for (int64_t j = 0; j <= m; ++j) begin.push_back(n_bits * j / m);
  }
  uint32_t read(const uint64_t* code, int64_t step, int64_t j) const {
    const int64_t bit = begin[size_t(j)], shift = bit % 64, length = this->length(j);
    uint64_t value = code[bit / 64 * step] >> shift;
    if (shift + length > 64) value |= code[(bit / 64 + 1) * step] << (64 - shift);
    return uint32_t(value & ((uint64_t(1) << length) - 1));
  }
};

// For every substring the positions sorted by its value, and where each value begins.
struct MultiIndex {
  Substrings substrings;
  int64_t n, words;
  std::vector<std::vector<uint32_t>> starts, positions;

  MultiIndex(const Codes& codes, int64_t n_bits, int64_t m, int threads)
      : substrings(n_bits, m), n(codes.n), words(codes.words) {
    starts.resize(size_t(m));
    positions.resize(size_t(m));
    in_parallel(m, threads, [&](int64_t j) {
      auto& start = starts[size_t(j)];
      start.assign((size_t(1) << substrings.length(j)) + 1, 0);
      const auto value = [&](int64_t p) { return substrings.read(codes.blocks + p / 8 * 8 * words + p % 8, 8, j); };
      for (int64_t p = 0; p < n; ++p) ++start[value(p) + 1];
      for (size_t v = 1; v < start.size(); ++v) start[v] += start[v - 1];
      std::vector<uint32_t> next(start.begin(), start.end() - 1);
      positions[size_t(j)].resize(size_t(n));
      for (int64_t p = 0; p < n; ++p) positions[size_t(j)][next[value(p)]++] = uint32_t(p);
    });
  }
};

// Codes within m (r + 1) - 1 bits of a query agree with it in some substring up to r bits (the pigeonhole principle),
// so probing all substrings at r = 0, 1, … finds all neighbours up to that distance. Where this needs more probes than
// there are codes, the codes are scanned.
class Prober {
 public:
  Prober(const MultiIndex& index, const Codes& codes)
      : index_(index), codes_(codes), seen_(size_t(index.n + 63) / 64) {}

  std::vector<uint64_t> search(const uint64_t* query, int64_t k, int64_t radius) {
    Best best(k, radius);
    best.any_order();
    const bool complete = probe(query, k, radius, best);
    for (uint32_t p : touched_) seen_[p / 64] = 0;
    touched_.clear();
    if (!complete) {
      best = Best(k, radius);
      walk(codes_, 0, codes_.count(), query, 1, &best);
    }
    auto found = std::move(best.kept());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  bool probe(const uint64_t* query, int64_t k, int64_t radius, Best& best) {
    const int64_t m = index_.substrings.m();
    double budget = double(index_.n) / 8;  // a probe is a jump in memory; a scan reads on
    for (int64_t r = 0;; ++r) {
      for (int64_t j = 0; j < m; ++j) {
        const int64_t reach = m * r + j - 1;  // all neighbours up to here have been seen
        if ((k && best.full() && best.worst() <= reach) || reach >= radius) return true;
        const int64_t length = index_.substrings.length(j);
        if (r > length) continue;
        double probes = 1;
        for (int64_t i = 0; i < r; ++i) probes *= double(length - i) / double(i + 1);
        if ((budget -= probes) < 0) return false;
        const int64_t before = int64_t(touched_.size());
        const uint32_t value = index_.substrings.read(query, 1, j);
        flips(uint32_t(length), r, [&](uint32_t flip) { look(j, value ^ flip, query, best); });
        if ((budget -= double(int64_t(touched_.size()) - before)) < 0) return false;
      }
    }
  }

  // All numbers of `length` bits with r ones, ascending.
  template <class Visit> static void flips(uint32_t length, int64_t r, Visit visit) {
    if (r == 0) return visit(0u);
    uint64_t flip = (uint64_t(1) << r) - 1;
    while (flip < (uint64_t(1) << length)) {
      visit(uint32_t(flip));
      const uint64_t low = flip & (~flip + 1), carried = flip + low;
      flip = carried | (((flip ^ carried) / low) >> 2);
    }
  }

  void look(int64_t j, uint32_t value, const uint64_t* query, Best& best) {
    const uint32_t* positions = index_.positions[size_t(j)].data();
    for (uint32_t at = index_.starts[size_t(j)][value], end = index_.starts[size_t(j)][value + 1]; at < end; ++at) {
      const uint32_t p = positions[at];
      if (seen_[p / 64] >> (p % 64) & 1) continue;
      seen_[p / 64] |= uint64_t(1) << (p % 64);
      touched_.push_back(p);
      if (!(codes_.lanes(p / 8) >> (p % 8) & 1)) continue;
      const uint64_t* code = codes_.blocks + int64_t(p / 8) * 8 * codes_.words + p % 8;
      int64_t distance = 0;
      for (int64_t w = 0; w < codes_.words; ++w) distance += int64_t(ones(code[8 * w] ^ query[w]));
      if (distance < best.limit()) best.add(distance, p);
    }
  }

  const MultiIndex& index_;
  const Codes& codes_;
  std::vector<uint64_t> seen_;
  std::vector<uint32_t> touched_;
};

MultiIndex* make_multi_index(In3<uint64_t> blocks, int64_t n, int64_t n_bits, int64_t m, int threads) {
  require(blocks.shape(2) == 8 && blocks.shape(1) >= 1, "blocks must hold eight codes each");
  const int64_t words = int64_t(blocks.shape(1));
  require(words <= kMaxWords && n_bits >= 1 && n_bits <= 64 * words, "n_bits must fit the words of a code");
  require(n >= 0 && n < int64_t(UINT32_MAX) && (n + 7) / 8 <= int64_t(blocks.shape(0)),
          "there are more codes than the blocks hold");
  require(m >= 1 && m <= n_bits && (n_bits + m - 1) / m <= 24, "substrings must have between 1 and 24 bits");
  threads = thread_count(threads);
  nb::gil_scoped_release release;
  return new MultiIndex({blocks.data(), words, n, nullptr}, n_bits, m, threads);
}

nb::tuple multi_search(const MultiIndex& index, In3<uint64_t> blocks, In2<uint64_t> queries, int64_t k, int64_t radius,
                       std::optional<In1<uint8_t>> allowed, int threads) {
  const Codes codes = checked_codes(blocks, index.n, allowed, queries);
  require(codes.words == index.words, "the multi-index was made of other codes");
  require(k >= 0 && radius >= 0 && radius <= 64 * codes.words,
          "k and radius must not be negative, nor the radius above the bits");
  threads = thread_count(threads);
  const int64_t n_queries = int64_t(queries.shape(0)), parts = std::min<int64_t>(n_queries, 4 * threads);
  std::vector<std::vector<uint64_t>> all(static_cast<size_t>(n_queries));
  {
    nb::gil_scoped_release release;
    in_parallel(parts, threads, [&](int64_t part) {
      Prober prober(index, codes);
      for (int64_t q = n_queries * part / parts; q < n_queries * (part + 1) / parts; ++q)
        all[size_t(q)] = prober.search(queries.data() + q * codes.words, k, radius);
    });
  }
  return to_arrays(all);
}

// ---------------------------------------------------------------------------------------------- packing

// The bits of x >= 0, the first in the highest bit of the first byte as in numpy.packbits. NaN is refused by the
// caller.
template <class T> void pack_row(const T* x, int64_t n, uint8_t* out) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    unsigned byte = 0;
    for (int b = 0; b < 8; ++b) byte |= unsigned(x[i + b] >= 0) << (7 - b);
    *out++ = uint8_t(byte);
  }
  if (i == n) return;
  unsigned byte = 0;
  for (int b = 0; i + b < n; ++b) byte |= unsigned(x[i + b] >= 0) << (7 - b);
  *out = uint8_t(byte);
}

template <class T> void pack_signs(In2<T> values, Out2<uint8_t> out) {
  const int64_t rows = int64_t(values.shape(0)), n = int64_t(values.shape(1)), bytes = int64_t(out.shape(1));
  require(int64_t(out.shape(0)) == rows && bytes == (n + 7) / 8,
          "out must have a row for each row of values and a bit for each column");
  nb::gil_scoped_release release;
  for (int64_t r = 0; r < rows; ++r) pack_row(values.data() + r * n, n, out.data() + r * bytes);
}

}  // namespace

void bind_hamming(nb::module_& m) {
  m.def("hamming_search", &hamming_search, "blocks"_a.noconvert(), "n"_a, "queries"_a.noconvert(), "k"_a, "radius"_a,
        "allowed"_a.noconvert().none(), "threads"_a,
        "(offsets, distances, positions) of the k nearest (k = 0: of all) within a radius.");
  nb::class_<MultiIndex>(m, "MultiIndex")
      .def("search", &multi_search, "blocks"_a.noconvert(), "queries"_a.noconvert(), "k"_a, "radius"_a,
           "allowed"_a.noconvert().none(), "threads"_a);
  m.def("multi_index", &make_multi_index, nb::rv_policy::take_ownership, "blocks"_a.noconvert(), "n"_a, "n_bits"_a,
        "m"_a, "threads"_a);
  m.def("pack_signs", &pack_signs<float>, "values"_a.noconvert(), "out"_a.noconvert());
  m.def("pack_signs", &pack_signs<double>, "values"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace mercer
