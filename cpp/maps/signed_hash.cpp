// Signed hash projections: z = H x / √S,  H[i][t] = Σ_s 1[bucket_s(t) = i] sign_s(t),  S places for each feature t.
//
// H is never stored. Bucket and sign of a place come from different bits of a mixed hash: with both from the remainders
// of one number, signs within a bucket agree for even numbers of buckets, and inner products are biased. A word of 64
// bits serves two places.
//
// A plan lists the places by buckets, two bytes each: then a sum stays in a register, where adding to hashed places
// would load and store it for every place. Buckets with as many features in a tile are summed side by side. Where
// buckets are many and their sums short, or places too many to keep, features are added to their places instead. Which
// of the two depends on the sizes of the map only, and sums of a row run in the same order with any number of rows and
// threads.
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

constexpr int64_t kTile = 256;  // features whose places are kept at a time, where there is no plan
constexpr int64_t kGroup = 64;  // lines of rows that share the hashing, if their sums fill no more than
constexpr int64_t kGroupBytes = int64_t(1) << 24;
constexpr int64_t kMostBuckets = int64_t(1) << 25;
constexpr int64_t kMostHashes = int64_t(1) << 16;
constexpr int64_t kMostPlanned = int64_t(1) << 24;  // places of a plan: 32 MiB
constexpr int64_t kLeastPlanned = 4;                // places a bucket in a tile

void check_places(int64_t n_hashes, int64_t n_buckets) {
  require(n_hashes >= 1 && n_hashes <= kMostHashes, "n_hashes must lie between 1 and 2^16");
  require(n_buckets >= 1 && n_buckets <= kMostBuckets, "the output must have between 1 and 2^25 columns");
}

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

// The places of all features by tiles, signs and buckets.
class HashPlan {
 public:
  HashPlan(int64_t n_features, uint64_t seed, int64_t n_hashes, int64_t n_buckets)
      : n_features(n_features), n_hashes(n_hashes), n_buckets(n_buckets) {
    require(n_features >= 1, "there must be at least one feature");
    check_places(n_hashes, n_buckets);
    require(serves(n_features, n_hashes, n_buckets), "a plan does not pay for these sizes");
    nb::gil_scoped_release release;
    const Places hash(seed, n_hashes, n_buckets);
    std::vector<uint32_t> places(size_t(kHashTile * n_hashes));
    for (int64_t first = 0; first < n_features; first += kHashTile) {
      const int64_t features = std::min(kHashTile, n_features - first);
      for (int64_t t = 0; t < features; ++t) hash.of_feature(uint64_t(first + t), places.data() + t * n_hashes);
      for (const uint32_t minus : {0u, kHashMinus}) add_part(places.data(), features, minus);
      poll_signals(4 * features * n_hashes);
    }
  }
  static bool serves(int64_t n_features, int64_t n_hashes, int64_t n_buckets) {
    if (n_features < 1 || n_hashes < 1 || n_hashes > kMostHashes || n_buckets < 1 || n_buckets > kMostBuckets)
      return false;
    const int64_t per_tile = std::min(n_features, kHashTile) * n_hashes;
    return n_features <= kMostPlanned / n_hashes && per_tile >= kLeastPlanned * n_buckets;
  }
  // Tile 0 with plus, tile 0 with minus, tile 1 with plus, …
  HashSlices slices(int64_t part) const {
    const int64_t n = (n_buckets + kHashSlice - 1) / kHashSlice;
    return {buckets_.data() + part * n * kHashSlice, lengths_.data() + part * n,
            features_.data() + firsts_[size_t(part)], n};
  }
  const int64_t n_features, n_hashes, n_buckets;

 private:
  void add_part(const uint32_t* places, int64_t features, uint32_t minus) {
    const int64_t k = n_buckets, n = (k + kHashSlice - 1) / kHashSlice;
    std::vector<int32_t> starts(size_t(k) + 1, 0), order(size_t(k), 0);
    std::vector<uint16_t> sorted;
    const int64_t total = features * n_hashes;
    for (int64_t i = 0; i < total; ++i)
      if ((places[i] & kHashMinus) == minus) ++starts[size_t(places[i] / kHashLine) + 1];
    for (int64_t b = 0; b < k; ++b) starts[size_t(b) + 1] += starts[size_t(b)];
    sorted.resize(size_t(starts[size_t(k)]));
    std::vector<int32_t> next(starts.begin(), starts.end() - 1);
    for (int64_t t = 0, i = 0; t < features; ++t)
      for (int64_t s = 0; s < n_hashes; ++s, ++i)
        if ((places[i] & kHashMinus) == minus) sorted[size_t(next[size_t(places[i] / kHashLine)]++)] = uint16_t(t);
    const auto length = [&](int32_t b) { return starts[size_t(b) + 1] - starts[size_t(b)]; };
    for (int64_t b = 0; b < k; ++b) order[size_t(b)] = int32_t(b);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return length(a) < length(b); });
    firsts_.push_back(features_.size());
    for (int64_t s = 0; s < n; ++s) {
      const int64_t last = std::min(k, (s + 1) * kHashSlice) - 1, longest = length(order[size_t(last)]);
      lengths_.push_back(uint32_t(longest));
      const size_t at = features_.size();
      features_.resize(at + size_t(longest * kHashSlice), uint16_t(8 * kHashTile));
      for (int64_t l = 0; l < kHashSlice; ++l) {
        const int64_t place = s * kHashSlice + l;
        buckets_.push_back(place < k ? uint32_t(order[size_t(place)]) : uint32_t(k));
        if (place >= k) continue;
        const int32_t b = order[size_t(place)], start = starts[size_t(b)];
        for (int32_t e = 0; e < length(b); ++e)
          features_[at + size_t(e * kHashSlice + l)] = uint16_t(8 * sorted[size_t(start + e)]);
      }
    }
  }

  std::vector<uint32_t> buckets_, lengths_;
  std::vector<uint16_t> features_;
  std::vector<size_t> firsts_;
};

template <class T> void project_lines(const T* x, int64_t rows, const HashPlan& plan, double scale, T* out) {
  constexpr int64_t L = kHashLine / int64_t(sizeof(T));
  const int64_t d = plan.n_features, k = plan.n_buckets, lines = (rows + L - 1) / L;
  const SignedHashLoops<T>& call = loops<SignedHashLoops<T>>();
  std::vector<T> memory(size_t((lines * (k + 1) + kHashTile + 2) * L), T(0));  // zeros, on whole cache lines
  T* const tile =
      reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(memory.data()) + kHashLine - 1) & ~uintptr_t(kHashLine - 1));
  T* const sums = tile + (kHashTile + 1) * L;
  for (int64_t first = 0, part = 0; first < d; first += kHashTile, part += 2) {
    const int64_t features = std::min(kHashTile, d - first);
    for (int64_t line = 0; line < lines; ++line) {
      call.fill_tile(x + line * L * d + first, d, std::min(L, rows - line * L), features, tile);
      const bool wraps = line + 1 == lines;
      const int64_t at = wraps ? first + kHashTile : first, next = wraps ? 0 : line + 1;
      const int64_t half = at < d ? std::min(L, rows - next * L) / 2 : 0;
      const int64_t bytes = std::min(kHashTile, d - at) * int64_t(sizeof(T));
      for (const int64_t minus : {0, 1}) {
        const char* ahead = half == 0 ? nullptr : reinterpret_cast<const char*>(x + (next * L + minus * half) * d + at);
        call.add_slices(tile, plan.slices(part + minus), minus == 1, {ahead, d * int64_t(sizeof(T)), half, bytes},
                        sums + line * (k + 1) * L);
      }
    }
    poll_signals(features * plan.n_hashes * lines);
  }
  for (int64_t line = 0; line < lines; ++line) {
    const T* sum = sums + line * (k + 1) * L;
    const int64_t filled = std::min(L, rows - line * L);
    for (int64_t r = 0; r < filled; ++r)
      for (int64_t j = 0; j < k; ++j) out[(line * L + r) * k + j] = T(double(sum[j * L + r]) * scale);
  }
}

template <class T> void project_row(const T* x, const HashPlan& plan, double scale, T* out) {
  const int64_t d = plan.n_features, k = plan.n_buckets;
  const SignedHashLoops<T>& call = loops<SignedHashLoops<T>>();
  constexpr int64_t apart = 8 / int64_t(sizeof(T));
  std::vector<T> sums(size_t(k + 1), T(0)), tile(size_t((kHashTile + 1) * apart), T(0));
  for (int64_t first = 0, part = 0; first < d; first += kHashTile, part += 2) {
    const int64_t features = std::min(kHashTile, d - first);
    for (int64_t t = 0; t < features; ++t) tile[size_t(t * apart)] = x[first + t];
    for (const int64_t minus : {0, 1})
      call.add_slices_of_row(tile.data(), plan.slices(part + minus), minus == 1, sums.data());
  }
  for (int64_t j = 0; j < k; ++j) out[j] = T(double(sums[size_t(j)]) * scale);
}

template <class T> void planned_hash_rows(const HashPlan& plan, In2<T> x, Out2<T> out, int threads) {
  constexpr int64_t L = kHashLine / int64_t(sizeof(T));
  const int64_t n = int64_t(x.shape(0)), d = int64_t(x.shape(1)), k = int64_t(out.shape(1));
  require(d == plan.n_features, "the rows do not have the features of the plan");
  require(int64_t(out.shape(0)) == n && k == plan.n_buckets, "the output has the wrong shape");
  const int n_threads = thread_count(threads);
  const T* from = x.data();
  T* to = out.data();
  nb::gil_scoped_release release;
  const double scale = 1.0 / std::sqrt(double(plan.n_hashes));
  if (n == 1) return project_row(from, plan, scale, to);
  const int64_t lines = (n + L - 1) / L, most = std::clamp(kGroupBytes / ((k + 1) * kHashLine), int64_t(1), kGroup);
  const int64_t group = L * std::clamp((lines + n_threads - 1) / n_threads, int64_t(1), most);
  in_parallel((n + group - 1) / group, n_threads, [&](int64_t part) {
    const int64_t first = part * group;
    project_lines(from + first * d, std::min(group, n - first), plan, scale, to + first * k);
  });
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
  nb::class_<HashPlan>(m, "HashPlan", "The hashed places of features, by buckets.")
      .def(nb::init<int64_t, uint64_t, int64_t, int64_t>(), "n_features"_a, "seed"_a, "n_hashes"_a, "n_buckets"_a);
  m.def("hash_plan_serves", &HashPlan::serves, "n_features"_a, "n_hashes"_a, "n_buckets"_a,
        "Whether a plan is small enough, and sums long enough.");
  m.def("planned_hash_rows", &planned_hash_rows<float>, "plan"_a, "x"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
  m.def("planned_hash_rows", &planned_hash_rows<double>, "plan"_a, "x"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
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
