// Signed hash projections: z = H x / √S,  H[i][t] = Σ_s 1[bucket_s(t) = i] sign_s(t),  S places for each feature t.
//
// H is never stored. Bucket and sign of a place come from different bits of a mixed hash: with both from the remainders
// of one number, signs within a bucket agree for even numbers of buckets, and inner products are biased. A word of 64
// bits serves two places. Sums run over features in their order, then over places: the same for any number of threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "hashing/feature_hash.hpp"
#include "maps/signed_hash_loops.hpp"

namespace mercer {
namespace {

constexpr int64_t kTile = 256;  // features whose places are kept at a time
constexpr int64_t kGroup = 64;  // lines of rows that share the hashing, if their sums fill no more than
constexpr int64_t kGroupBytes = int64_t(1) << 24;
constexpr int64_t kMostBuckets = int64_t(1) << 25;

struct Places {
  Places(uint64_t seed, int64_t n_hashes, int64_t n_buckets) : n_hashes(n_hashes), n_buckets(uint64_t(n_buckets)) {
    for (int64_t pair = 0; 2 * pair < n_hashes; ++pair) keys.push_back(mix64(feature_hash(uint64_t(pair), seed)));
  }
  // bucket · kHashLine, plus kHashMinus where the sign is −1.
  uint32_t place(uint32_t bits) const {
    const uint32_t bucket = uint32_t((uint64_t(bits & 0x7fffffffu) * n_buckets) >> 31);
    return bucket * uint32_t(kHashLine) | (bits >> 31) * kHashMinus;
  }
  void of_feature(uint64_t feature, uint32_t* out) const {
    const uint64_t mixed = mix64(feature + 0x9E3779B97F4A7C15u);  // feature_hash(feature, key), its first step shared
    int64_t s = 0;
    for (const uint64_t key : keys) {
      const uint64_t word = mix64(mixed ^ key);
      out[s++] = place(uint32_t(word));
      if (s < n_hashes) out[s++] = place(uint32_t(word >> 32));
    }
  }
  std::vector<uint64_t> keys;
  int64_t n_hashes;
  uint64_t n_buckets;
};

template <class T> void project_group(const T* x, int64_t rows, int64_t d, const Places& hash, double scale, T* out) {
  constexpr int64_t L = kHashLine / int64_t(sizeof(T));
  const int64_t lines = (rows + L - 1) / L, k = int64_t(hash.n_buckets), S = hash.n_hashes;
  std::vector<char> sums(size_t(lines * k * kHashLine), 0);
  std::vector<uint32_t> places(size_t(kTile * S));
  std::vector<T> tile(size_t(kTile * L));
  for (int64_t first = 0; first < d; first += kTile) {
    const int64_t features = std::min(kTile, d - first);
    for (int64_t t = 0; t < features; ++t) hash.of_feature(uint64_t(first + t), places.data() + t * S);
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t filled = std::min(L, rows - line * L);
      if (filled < L) std::fill(tile.begin(), tile.end(), T(0));
      for (int64_t r = 0; r < filled; ++r) {
        const T* row = x + (line * L + r) * d + first;
        for (int64_t t = 0; t < features; ++t) tile[size_t(t * L + r)] = row[t];
      }
      loops<SignedHashLoops<T>>().add_tile(tile.data(), features, places.data(), S, sums.data() + line * k * kHashLine);
    }
    poll_signals(features * S * lines);
  }
  const T* sum = reinterpret_cast<const T*>(sums.data());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < k; ++j) out[i * k + j] = T(double(sum[((i / L) * k + j) * L + i % L]) * scale);
}

void check_places(int64_t n_hashes, int64_t n_buckets) {
  require(n_hashes >= 1 && n_hashes <= (int64_t(1) << 16), "n_hashes must lie between 1 and 2^16");
  require(n_buckets >= 1 && n_buckets <= kMostBuckets, "the output must have between 1 and 2^25 columns");
}

template <class T> void signed_hash_rows(In2<T> x, uint64_t seed, int64_t n_hashes, Out2<T> out, int threads) {
  constexpr int64_t L = kHashLine / int64_t(sizeof(T));
  const int64_t n = int64_t(x.shape(0)), d = int64_t(x.shape(1)), k = int64_t(out.shape(1));
  require(int64_t(out.shape(0)) == n, "the output has the wrong shape");
  check_places(n_hashes, k);
  const int n_threads = thread_count(threads);
  const T* from = x.data();
  T* to = out.data();
  nb::gil_scoped_release release;
  const Places hash(seed, n_hashes, k);
  const double scale = 1.0 / std::sqrt(double(n_hashes));
  const int64_t lines = (n + L - 1) / L, most = std::clamp(kGroupBytes / (k * kHashLine), int64_t(1), kGroup);
  const int64_t group = L * std::clamp((lines + n_threads - 1) / n_threads, int64_t(1), most);
  in_parallel((n + group - 1) / group, n_threads, [&](int64_t part) {
    const int64_t first = part * group;
    project_group(from + first * d, std::min(group, n - first), d, hash, scale, to + first * k);
  });
}

template <class T>
void signed_hash_sparse(In1<int64_t> indptr, In1<int64_t> indices, In1<T> values, uint64_t seed, int64_t n_hashes,
                        Out2<T> out, int threads) {
  const int64_t n = require_offsets(indptr, int64_t(indices.shape(0)), "indptr", "indices");
  const int64_t k = int64_t(out.shape(1));
  require(values.shape(0) == indices.shape(0), "values and indices must have one length");
  require(int64_t(out.shape(0)) == n, "the output has the wrong shape");
  for (size_t i = 0; i < indices.shape(0); ++i) require(indices.data()[i] >= 0, "a column index is negative");
  check_places(n_hashes, k);
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  const Places hash(seed, n_hashes, k);
  const double scale = 1.0 / std::sqrt(double(n_hashes));
  constexpr int64_t kRows = 64;
  in_parallel((n + kRows - 1) / kRows, n_threads, [&](int64_t part) {
    std::vector<uint32_t> places(size_t(n_hashes), 0u);
    for (int64_t i = part * kRows; i < std::min(n, (part + 1) * kRows); ++i) {
      T* row = out.data() + i * k;
      std::fill(row, row + k, T(0));
      for (int64_t e = indptr.data()[i]; e < indptr.data()[i + 1]; ++e) {
        const T value = values.data()[e], both[2] = {value, -value};
        hash.of_feature(uint64_t(indices.data()[e]), places.data());
        for (const uint32_t place : places) row[place / kHashLine] += both[place & kHashMinus];
      }
      for (int64_t j = 0; j < k; ++j) row[j] = T(double(row[j]) * scale);
      poll_signals((indptr.data()[i + 1] - indptr.data()[i]) * n_hashes + k);
    }
  });
}

}  // namespace

void bind_signed_hash(nb::module_& m) {
  m.def("signed_hash_rows", &signed_hash_rows<float>, "x"_a.noconvert(), "seed"_a, "n_hashes"_a, "out"_a.noconvert(),
        "threads"_a);
  m.def("signed_hash_rows", &signed_hash_rows<double>, "x"_a.noconvert(), "seed"_a, "n_hashes"_a, "out"_a.noconvert(),
        "threads"_a);
  m.def("signed_hash_sparse", &signed_hash_sparse<float>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert(), "seed"_a, "n_hashes"_a, "out"_a.noconvert(), "threads"_a);
  m.def("signed_hash_sparse", &signed_hash_sparse<double>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert(), "seed"_a, "n_hashes"_a, "out"_a.noconvert(), "threads"_a);
}

}  // namespace mercer
