// The hashed online learner and its binding. See solvers/hashed_learner.hpp for what it computes.
#include "solvers/hashed_learner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(MERCER_X86)
#include <immintrin.h>
#endif

#include "base/arrays.hpp"
#include "base/dispatch.hpp"
#include "hashing/feature_hash.hpp"
#include "base/names.hpp"
#include "base/parallel.hpp"
#include "hashing/text.hpp"

namespace mercer {

namespace {

constexpr int kBlock = HashedModel::kBlock;
constexpr float kTiny = 1e-20f;  // least sum of squares: below it a weight does not move visibly
constexpr float kStart =
    0.1f;  // several classes: sums of squares start here, or one in a thousand would move a class at full rate
constexpr int64_t kAhead = 24;   // features between a prefetch and its use
constexpr int64_t kChunk = 256;  // features whose lines are fetched before any of them is used
constexpr uint64_t kPage = uint64_t(1) << 21;
constexpr int kExactClasses = 64;  // up to here the log loss changes all classes
constexpr double kLeastShare =
    2;  // beyond, those with a probability of at least this many times the average, 1 / classes
constexpr double kLargestScore = 1e30;
constexpr double kLargestMargin = 50;  // two classes: one long example must not count for hundreds of others

// ------------------------------------------------------------------------------------------ lines of 16 labels
//
// A place is the offset of a line in the table, times 16, plus the r by which its slots are permuted: label j is in
// slot j ^ r.

inline const float* line_at(const float* table, uint64_t place) { return table + (place >> 4); }
inline float* line_at(float* table, uint64_t place) { return table + (place >> 4); }

struct BlockKernels {
  // sums[j] += Σ_k x_k w_kj
  void (*sum)(const float* table, const uint64_t* places, const float* x, int64_t n, float* sums);
  // G_kj += weight (g_j x_k)², q[j] += Σ_k x_k² / sqrt(G_kj)
  void (*widen)(float* table, const uint64_t* places, const float* x, int64_t n, int64_t aux, const float* g,
                float weight, float* q);
  // w_kj -= step g_j x_k / sqrt(G_kj)
  void (*move)(float* table, const uint64_t* places, const float* x, int64_t n, int64_t aux, const float* g,
               float step);
};

void sum_plain(const float* table, const uint64_t* places, const float* x, int64_t n, float* sums) {
  for (int64_t k = 0; k < n; ++k) {
    const float* line = line_at(table, places[k]);
    const int r = int(places[k] & 15);
    for (int j = 0; j < kBlock; ++j) sums[j] += x[k] * line[j ^ r];
  }
}

inline void widen_slot(float& G, float gx, float x, float weight, float& q) {
  G += weight * (gx * gx);
  q += (x * x) / std::sqrt(G + kStart);
}

void widen_plain(float* table, const uint64_t* places, const float* x, int64_t n, int64_t aux, const float* g,
                 float weight, float* q) {
  for (int64_t k = 0; k < n; ++k) {
    float* sums = line_at(table, places[k]) + aux;
    const int r = int(places[k] & 15);
    for (int j = 0; j < kBlock; ++j) widen_slot(sums[j ^ r], g[j] * x[k], x[k], weight, q[j]);
  }
}

inline void move_slot(float& w, float G, float gx, float step) { w -= (step * gx) / std::sqrt(G + kStart); }

void move_plain(float* table, const uint64_t* places, const float* x, int64_t n, int64_t aux, const float* g,
                float step) {
  for (int64_t k = 0; k < n; ++k) {
    float* line = line_at(table, places[k]);
    const int r = int(places[k] & 15);
    for (int j = 0; j < kBlock; ++j) move_slot(line[j ^ r], line[aux + (j ^ r)], g[j] * x[k], step);
  }
}

#if defined(MERCER_X86)
// The same operations in the same order on eight labels at once, so with the same results. Slots j ^ r of a half line:
// its halves swap by bit 3 of r, and the rest is a permutation of eight.
#define MERCER_AVX2 __attribute__((target("avx2")))

MERCER_AVX2 inline __m256i slot_order(uint64_t place) {
  return _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(int(place & 7)));
}
MERCER_AVX2 inline __m256 load_half(const float* line, int half, uint64_t place, __m256i order) {
  return _mm256_permutevar8x32_ps(_mm256_loadu_ps(line + ((8 * half) ^ int(place & 8))), order);
}
MERCER_AVX2 inline void store_half(float* line, int half, uint64_t place, __m256i order, __m256 values) {
  _mm256_storeu_ps(line + ((8 * half) ^ int(place & 8)), _mm256_permutevar8x32_ps(values, order));
}

MERCER_AVX2 void sum_avx2(const float* table, const uint64_t* places, const float* x, int64_t n, float* sums) {
  __m256 low = _mm256_loadu_ps(sums), high = _mm256_loadu_ps(sums + 8);
  for (int64_t k = 0; k < n; ++k) {
    const float* line = line_at(table, places[k]);
    const __m256i order = slot_order(places[k]);
    const __m256 value = _mm256_set1_ps(x[k]);
    low = _mm256_add_ps(low, _mm256_mul_ps(value, load_half(line, 0, places[k], order)));
    high = _mm256_add_ps(high, _mm256_mul_ps(value, load_half(line, 1, places[k], order)));
  }
  _mm256_storeu_ps(sums, low);
  _mm256_storeu_ps(sums + 8, high);
}

MERCER_AVX2 void widen_avx2(float* table, const uint64_t* places, const float* x, int64_t n, int64_t aux,
                            const float* g, float weight, float* q) {
  const __m256 start = _mm256_set1_ps(kStart), h = _mm256_set1_ps(weight);
  const __m256 slopes[2] = {_mm256_loadu_ps(g), _mm256_loadu_ps(g + 8)};
  __m256 lengths[2] = {_mm256_loadu_ps(q), _mm256_loadu_ps(q + 8)};
  for (int64_t k = 0; k < n; ++k) {
    float* sums = line_at(table, places[k]) + aux;
    const __m256i order = slot_order(places[k]);
    const __m256 value = _mm256_set1_ps(x[k]), square = _mm256_mul_ps(value, value);
    for (int half = 0; half < 2; ++half) {
      const __m256 gx = _mm256_mul_ps(slopes[half], value);
      const __m256 G = _mm256_add_ps(load_half(sums, half, places[k], order), _mm256_mul_ps(h, _mm256_mul_ps(gx, gx)));
      store_half(sums, half, places[k], order, G);
      lengths[half] = _mm256_add_ps(lengths[half], _mm256_div_ps(square, _mm256_sqrt_ps(_mm256_add_ps(G, start))));
    }
  }
  _mm256_storeu_ps(q, lengths[0]);
  _mm256_storeu_ps(q + 8, lengths[1]);
}

MERCER_AVX2 void move_avx2(float* table, const uint64_t* places, const float* x, int64_t n, int64_t aux, const float* g,
                           float step) {
  const __m256 start = _mm256_set1_ps(kStart), length = _mm256_set1_ps(step);
  const __m256 slopes[2] = {_mm256_loadu_ps(g), _mm256_loadu_ps(g + 8)};
  for (int64_t k = 0; k < n; ++k) {
    float* line = line_at(table, places[k]);
    const __m256i order = slot_order(places[k]);
    const __m256 value = _mm256_set1_ps(x[k]);
    for (int half = 0; half < 2; ++half) {
      const __m256 gx = _mm256_mul_ps(slopes[half], value);
      const __m256 root = _mm256_sqrt_ps(_mm256_add_ps(load_half(line + aux, half, places[k], order), start));
      const __m256 w = load_half(line, half, places[k], order);
      store_half(line, half, places[k], order, _mm256_sub_ps(w, _mm256_div_ps(_mm256_mul_ps(length, gx), root)));
    }
  }
}
#endif

const BlockKernels& block_kernels() {
  static constexpr BlockKernels plain{sum_plain, widen_plain, move_plain};
#if defined(MERCER_X86)
  static constexpr BlockKernels wide{sum_avx2, widen_avx2, move_avx2};
  if (set_for("hashed_learner") != InstructionSet::baseline) return wide;
#endif
  return plain;
}

// ------------------------------------------------------------------------------------------ steps of one weight

struct StepSettings {
  float rate, l1, l2;
};

inline float soften(float w, float by) { return w > by ? w - by : w < -by ? w + by : 0.0f; }

// numbers: w, z, n with the distance `aux` between them.
inline void ftrl_step(float* numbers, int64_t aux, float gx, float weight, const StepSettings& s) {
  float &w = numbers[0], &z = numbers[aux], &n = numbers[2 * aux];
  const float before = std::sqrt(n);
  n += weight * (gx * gx);
  const float root = std::sqrt(n);
  z += weight * gx - (root - before) / s.rate * w;
  w = -soften(z, s.l1) / ((1 + root) / s.rate + s.l2);
}

}  // namespace

// ------------------------------------------------------------------------------------------ memory

FloatTable::FloatTable(uint64_t size) : size_(size) {
  if (size > (std::numeric_limits<size_t>::max() - kPage) / sizeof(float)) throw std::bad_alloc();
  // Fresh zeroed pages, moved up to the start of a large page.
  const uint64_t bytes = size * sizeof(float), slack = bytes >= kPage ? kPage : 64;
  owner_.reset(std::calloc(bytes + slack, 1));
  if (!owner_) throw std::bad_alloc();
  const uintptr_t start = (reinterpret_cast<uintptr_t>(owner_.get()) + slack - 1) / slack * slack;
  data_ = reinterpret_cast<float*>(start);
#if defined(__linux__)
  if (bytes >= kPage) madvise(data_, bytes / kPage * kPage, MADV_HUGEPAGE);
#endif
}

void FloatTable::Free::operator()(void* p) const { std::free(p); }

int HashedModel::width() const {
  switch (settings_.optimizer) {
    case Optimizer::adagrad: return 2;
    case Optimizer::ftrl:
      return settings_.task == Task::multiclass ? 3 : 4;  // one output: a weight must not straddle two lines
    case Optimizer::sgd: return 1;
  }
  return 1;
}

HashedModel::HashedModel(const LearnerSettings& settings) : settings_(settings), mask_(0) {
  require(settings.n_bits >= 1 && settings.n_bits <= 32, "n_bits must lie between 1 and 32");
  mask_ = bucket_mask(settings.n_bits);
  const bool several = settings.task == Task::multiclass;
  require(!several || settings.n_bits >= 4, "n_bits must be at least 4 for more than two classes");
  require(settings.rate > 0 && std::isfinite(settings.rate), "rate must be a positive number");
  require(settings.l1 >= 0 && std::isfinite(settings.l1), "l1 must be a number of at least 0");
  require(settings.l2 >= 0 && std::isfinite(settings.l2), "l2 must be a number of at least 0");
  require(settings.optimizer != Optimizer::sgd || settings.l2 > 0, "sgd needs an l2 above 0");
  require(settings.loss.alpha >= 0 && settings.loss.alpha <= 1, "alpha must lie between 0 and 1");
  require(settings.loss.quantile > 0 && settings.loss.quantile < 1, "quantile must lie between 0 and 1");
  require(settings.loss.epsilon > 0 && std::isfinite(settings.loss.epsilon), "epsilon must be a positive number");
  const bool classes = settings.loss.loss <= PointLoss::hybrid;
  require(classes == (settings.task != Task::regression), "this loss is not one of this task");
  if (!several || settings.label_hashing != LabelHashing::separate)
    table_ = FloatTable(uint64_t(width()) * (mask_ + 1) + kPadding);
  else
    table_ = FloatTable(kPadding);
  if (!several) intercepts_.assign(size_t(width()), 0.0f);
  if (settings.scaled) make_scales();
}

void HashedModel::make_scales() {
  if (settings_.optimizer != Optimizer::adagrad || scales_.size()) return;
  scales_ = FloatTable(mask_ + 1);
  if (settings_.task == Task::multiclass) return;
  // So far all values were 1.
  for (uint64_t i = 0; i <= mask_; ++i) scales_.data()[i] = table_.data()[2 * i + 1] > 0 ? 1.0f : 0.0f;
}

// Room for the weights of labels: intercepts, and the columns of separate tables.
void HashedModel::make_room(int64_t n_labels) {
  if (settings_.task != Task::multiclass) return;
  const int64_t blocks = (n_labels + kBlock - 1) / kBlock;
  intercepts_.resize(size_t(blocks * kBlock * width()), 0.0f);
  if (settings_.label_hashing != LabelHashing::separate || n_labels <= row_) return;
  // Twice the columns, so that labels that come one by one do not move the table each time.
  int64_t row = row_ == 0 ? n_labels : std::max(n_labels, 2 * row_);
  row = (row + 3) / 4 * 4;
  FloatTable wider(uint64_t(row) * uint64_t(width()) * (mask_ + 1) + kPadding);
  for (uint64_t bucket = 0; row_ > 0 && bucket <= mask_; ++bucket)
    for (int part = 0; part < width(); ++part)
      std::memcpy(wider.data() + (bucket * width() + part) * row, table_.data() + (bucket * width() + part) * row_,
                  size_t(row_) * sizeof(float));
  table_ = std::move(wider);
  row_ = row;
}

void HashedModel::set_labels(const std::vector<std::string>& labels) {
  require(settings_.task != Task::regression, "a regression has no labels");
  require(labels.size() >= labels_.size(), "the labels must begin with those there are");
  for (size_t i = 0; i < labels_.size(); ++i)
    require(labels[i] == labels_[i], "the labels must begin with those there are");
  if (settings_.task == Task::multiclass) make_room(int64_t(labels.size()));
  for (size_t i = labels_.size(); i < labels.size(); ++i)
    require(label_number(labels[i]) == int32_t(i), "the labels must differ from each other");
}

int32_t HashedModel::label_number(const std::string& name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  require(labels_.size() < size_t(std::numeric_limits<int32_t>::max() - kBlock), "there are too many labels");
  if (settings_.task == Task::binary && labels_.size() == 2)
    fail("a third label came to a model of two: name all classes at the start");
  make_room(int64_t(labels_.size()) + 1);
  const int32_t number = int32_t(labels_.size());
  labels_.push_back(name);
  numbers_.emplace(name, number);
  return number;
}

// ------------------------------------------------------------------------------------------ reading an example

// Repeats within an example become one feature with the value √count.
void ExampleWork::merge(const uint64_t* all, int64_t n_all, const float* table, uint64_t mask, int64_t stride) {
  keys.resize(size_t(n_all));
  counts.resize(size_t(n_all));
  size_t size = 64;
  while (size < size_t(2 * n_all)) size *= 2;
  if (slots.size() < size) slots.assign(size, {0, 0, 0});
  if (++stamp == 0) {  // after 2^32 examples the marks begin again
    std::fill(slots.begin(), slots.end(), Slot{0, 0, 0});
    stamp = 1;
  }
  int64_t found = 0;
  for (int64_t k = 0; k < n_all; ++k) {
    const uint64_t key = all[k];
    size_t at = size_t(key ^ (key >> 32)) & (size - 1);
    while (slots[at].stamp == stamp && slots[at].key != key) at = (at + 1) & (size - 1);
    if (slots[at].stamp == stamp) {
      ++counts[slots[at].position];
      continue;
    }
    if (table) __builtin_prefetch(table + int64_t(key & mask) * stride, 1);
    slots[at] = {key, stamp, uint32_t(found)};
    keys[size_t(found)] = key;
    counts[size_t(found)] = 1;
    ++found;
  }
  hashes = keys.data();
  n = found;
  ones = found == n_all;
  x.resize(size_t(n));
  for (int64_t k = 0; k < n; ++k) x[size_t(k)] = std::sqrt(float(counts[size_t(k)]));
}

// Values as the learner sees them: divided by the largest so far (adagrad), which for a feature never seen is itself.
void HashedModel::read(const Examples& examples, int64_t i, ExampleWork& work) const {
  const int64_t begin = examples.indptr[size_t(i)], n = examples.indptr[size_t(i) + 1] - begin;
  if (examples.documents && settings_.damped) {
    require(n < int64_t(std::numeric_limits<uint32_t>::max()), "an example has too many features");
    work.merge(examples.hashes.data() + begin, n, settings_.task == Task::multiclass ? nullptr : table_.data(), mask_,
               width());
    if (!scales_.size()) return;
  } else {
    work.hashes = examples.hashes.data() + begin;
    work.n = n;
    work.ones = examples.values.empty() && !scales_.size();
    if (work.ones && settings_.task != Task::multiclass) return;
    work.x.resize(size_t(n));
    for (int64_t k = 0; k < n; ++k)
      work.x[size_t(k)] = examples.values.empty() ? 1.0f : examples.values[size_t(begin + k)];
  }
  if (!scales_.size()) return;
  work.ones = false;
  for (int64_t k = 0; k < work.n; ++k) {
    const float scale = scales_.data()[work.hashes[k] & mask_];
    work.x[size_t(k)] = scale > 0 ? work.x[size_t(k)] / scale : 0.0f;
  }
}

void HashedModel::read_and_rescale(const Examples& examples, int64_t i, ExampleWork& work) {
  const int64_t begin = examples.indptr[size_t(i)], end = examples.indptr[size_t(i) + 1];
  if (scales_.size())
    for (int64_t k = begin; k < end; ++k) {
      float& scale = scales_.data()[examples.hashes[size_t(k)] & mask_];
      scale = std::max(scale, examples.values.empty() ? 1.0f : std::abs(examples.values[size_t(k)]));
    }
  read(examples, i, work);
  work.norm = double(work.n);
  if (!work.ones) {
    work.norm = 0;
    for (int64_t k = 0; k < work.n; ++k) work.norm += double(work.x[size_t(k)]) * double(work.x[size_t(k)]);
  }
}

// ------------------------------------------------------------------------------------------ scores

double HashedModel::score_one(const ExampleWork& work) const {
  const int64_t stride = width(), n = work.n;
  const float* table = table_.data();
  const uint64_t* hashes = work.hashes;
  double even = 0, odd = 0;
  const auto weight = [&](int64_t k) { return table[int64_t(hashes[k] & mask_) * stride]; };
  const auto fetch = [&](int64_t k)
                         __attribute__((always_inline)) {  // else the compiler sees no effect, and drops the calls
                           if (k < n) __builtin_prefetch(table + int64_t(hashes[k] & mask_) * stride, 1);
                         };
  for (int64_t k = 0; k < std::min(n, kAhead); ++k) fetch(k);
  int64_t k = 0;
  if (work.ones) {
    for (; k + 1 < n; k += 2) {
      fetch(k + kAhead), fetch(k + kAhead + 1);
      even += weight(k), odd += weight(k + 1);
    }
    if (k < n) even += weight(k);
  } else {
    const float* x = work.x.data();
    for (; k + 1 < n; k += 2) {
      fetch(k + kAhead), fetch(k + kAhead + 1);
      even += double(weight(k)) * x[k], odd += double(weight(k + 1)) * x[k + 1];
    }
    if (k < n) even += double(weight(k)) * x[k];
  }
  return factor_ * (even + odd) + intercepts_[0] + centre_;
}

void HashedModel::place(const ExampleWork& work, int64_t block, int64_t begin, int64_t end, uint64_t* out,
                        float* x) const {
  const float* table = table_.data();
  const uint64_t width = uint64_t(this->width()), lines = width * kBlock;
  if (settings_.label_hashing == LabelHashing::separate) {
    const uint64_t length = width * uint64_t(row_);
    for (int64_t k = begin; k < end; ++k)
      out[k - begin] = ((work.hashes[k] & mask_) * length + uint64_t(block) * kBlock) << 4;
    std::copy(work.x.data() + begin, work.x.data() + end, x);
  } else if (settings_.label_hashing == LabelHashing::joint) {
    for (int64_t k = begin; k < end; ++k) {
      const uint64_t hash = combine(work.hashes[k], uint64_t(block)), index = hash & mask_;
      x[k - begin] = float(hash_sign(hash)) * work.x[size_t(k)];
      out[k - begin] = ((index >> 4) * lines) << 4 | (index & 15);
    }
  } else {
    const uint64_t shift = mix64(2 * uint64_t(block) + 1), factor = mix64(2 * uint64_t(block) + 2) | 1;
    for (int64_t k = begin; k < end; ++k) {
      const uint64_t hash = (work.hashes[k] & mask_) * factor + shift, index = hash & mask_;
      x[k - begin] = float(hash_sign(hash)) * work.x[size_t(k)];
      out[k - begin] = ((index >> 4) * lines) << 4 | (index & 15);
    }
  }
  for (int64_t k = 0; k < end - begin; ++k) __builtin_prefetch(line_at(table, out[k]), 0);
}

void HashedModel::score_all(ExampleWork& work) const {
  const int64_t blocks = n_blocks();
  work.scores.assign(size_t(blocks * kBlock), 0.0f);
  for (auto& places : work.places) places.resize(size_t(kChunk));
  for (auto& x : work.signed_x) x.resize(size_t(kChunk));
  for (int64_t begin = 0; begin < work.n; begin += kChunk) {
    const int64_t end = std::min(work.n, begin + kChunk);
    // While the lines of one block are summed, those of the next are on their way.
    place(work, 0, begin, end, work.places[0].data(), work.signed_x[0].data());
    for (int64_t block = 0; block < blocks; ++block) {
      if (block + 1 < blocks)
        place(work, block + 1, begin, end, work.places[(block + 1) & 1].data(), work.signed_x[(block + 1) & 1].data());
      block_kernels().sum(table_.data(), work.places[block & 1].data(), work.signed_x[block & 1].data(), end - begin,
                          work.scores.data() + block * kBlock);
    }
  }
  const float factor = float(factor_);
  for (int64_t y = 0; y < blocks * kBlock; ++y)
    work.scores[size_t(y)] = factor * work.scores[size_t(y)] + intercepts_[size_t(y) * size_t(width())];
}

void HashedModel::scores(const Examples& examples, int64_t begin, int64_t end, float* out, int threads) const {
  const int64_t outputs = n_outputs(), parts = std::min<int64_t>(end - begin, 8 * int64_t(threads));
  in_parallel(parts, threads, [&](int64_t part) {
    ExampleWork work;
    for (int64_t i = begin + (end - begin) * part / parts; i < begin + (end - begin) * (part + 1) / parts; ++i) {
      read(examples, i, work);
      if (settings_.task != Task::multiclass) {
        out[i - begin] = float(score_one(work));
        continue;
      }
      score_all(work);
      std::copy_n(work.scores.data(), outputs, out + (i - begin) * outputs);
    }
  });
}

void HashedModel::top(const Examples& examples, int64_t k, int32_t* labels, float* out, int threads) const {
  const int64_t n = examples.size(), outputs = n_outputs(), parts = std::min<int64_t>(n, 8 * int64_t(threads));
  in_parallel(parts, threads, [&](int64_t part) {
    ExampleWork work;
    std::vector<int32_t> order;
    for (int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
      read(examples, i, work);
      score_all(work);
      order.resize(size_t(outputs));
      for (int64_t y = 0; y < outputs; ++y) order[size_t(y)] = int32_t(y);
      const auto better = [&](int32_t a, int32_t b) {
        const float first = work.scores[size_t(a)], second = work.scores[size_t(b)];
        return first > second || (first == second && a < b);
      };
      std::partial_sort(order.begin(), order.begin() + k, order.end(), better);
      for (int64_t j = 0; j < k; ++j) {
        labels[i * k + j] = order[size_t(j)];
        out[i * k + j] = work.scores[size_t(order[size_t(j)])];
      }
    }
  });
}

// ------------------------------------------------------------------------------------------ learning

// The rate of this example, which counts from here on.
double HashedModel::next_rate(double norm, double weight) {
  norm += settings_.intercept ? 1 : 0;
  weight_ += weight;
  norms_ += norm;
  largest_ = std::max(largest_, norm);
  t_ += 1;
  switch (settings_.optimizer) {
    case Optimizer::adagrad:
      return norms_ > 0 ? settings_.rate * std::sqrt(t_ / norms_) * std::sqrt(std::sqrt(t_ / norms_)) : 0;
    case Optimizer::ftrl: return settings_.rate;
    case Optimizer::sgd: return 1 / (settings_.l2 * t_ + std::max(largest_, 1e-12) / settings_.rate);
  }
  return 0;
}

// Mean and spread of the targets so far: what a step of regression is measured in. The first target is
// the centre that all scores are measured from.
void HashedModel::note_target(double y, double weight) {
  if (weight <= 0) return;
  if (settings_.intercept && target_weight_ == 0)
    centre_ = settings_.loss.loss == PointLoss::poisson ? std::log(std::max(y, 0.5)) : y;
  target_weight_ += weight;
  const double centre = settings_.intercept ? target_mean_ : 0;
  const double change = y - target_mean_;
  target_mean_ += change * weight / target_weight_;
  const double squared = settings_.intercept ? change * (y - target_mean_) : (y - centre) * (y - centre);
  target_spread_ += (squared - target_spread_) * weight / target_weight_;
}

// All weights times 1 - rate λ, by their common factor.
void HashedModel::shrink_all(double rate) {
  factor_ *= std::max(0.0, 1 - rate * settings_.l2);
  if (factor_ > 1e-6) return;
  for (uint64_t i = 0; i < table_.size(); ++i) table_.data()[i] = float(table_.data()[i] * factor_);
  factor_ = 1;
}

void HashedModel::step_one(ExampleWork& work, double y, double score, double slope, double weight, double rate) {
  const int64_t stride = width(), n = work.n;
  float* table = table_.data();
  const auto numbers = [&](int64_t k) { return table + int64_t(work.hashes[k] & mask_) * stride; };
  const auto x_of = [&](int64_t k) { return work.ones ? 1.0f : work.x[size_t(k)]; };
  const float g = float(slope), h = float(weight), l1 = float(settings_.l1), l2 = float(settings_.l2);
  const bool intercept = settings_.intercept;
  if (settings_.optimizer == Optimizer::ftrl) {
    const StepSettings step{float(rate), l1, l2};
    for (int64_t k = 0; k < n; ++k) ftrl_step(numbers(k), 1, g * x_of(k), h, step);
    if (intercept) ftrl_step(intercepts_.data(), 1, g, h, {float(rate), 0, 0});
    return;
  }
  if (settings_.optimizer == Optimizer::sgd) {
    const float by = float(rate * weight * slope / factor_), least = float(rate * settings_.l1 / factor_);
    for (int64_t k = 0; k < n; ++k) {
      float& w = *numbers(k);
      w -= by * x_of(k);
      if (l1 > 0) w = soften(w, least);
    }
    if (intercept) intercepts_[0] -= float(rate * weight * slope);
    return;
  }
  // adagrad: the sums of squares, and with them how far a unit step moves the score
  work.steps.resize(size_t(n));
  float* steps = work.steps.data();
  double q = 0;
  if (work.ones) {
    const float add = h * (g * g);
    for (int64_t k = 0; k < n; ++k) numbers(k)[1] += add;
    for (int64_t k = 0; k < n; ++k) q += steps[k] = 1.0f / std::sqrt(std::max(numbers(k)[1], kTiny));
  } else {
    for (int64_t k = 0; k < n; ++k) {
      const float gx = g * work.x[size_t(k)];
      numbers(k)[1] += h * (gx * gx);
    }
    for (int64_t k = 0; k < n; ++k) {
      const float x = work.x[size_t(k)];
      steps[k] = x / std::sqrt(std::max(numbers(k)[1], kTiny));
      q += steps[k] * x;
    }
  }
  float own = 0;
  if (intercept) {
    intercepts_[1] += h * (g * g);
    q += own = 1.0f / std::sqrt(std::max(intercepts_[1], kTiny));
  }
  const float length = float(rate * step_length(settings_.loss, score, y, weight, rate * q));
  for (int64_t k = 0; k < n; ++k) *numbers(k) += length * steps[k];
  if (intercept) intercepts_[0] += length * own;
  if (l1 == 0 && l2 == 0) return;
  for (int64_t k = 0; k < n; ++k) {
    float* p = numbers(k);
    const float r = float(rate) * h / std::sqrt(std::max(p[1], kTiny));
    p[0] = soften(p[0] / (1 + r * l2), r * l1);
  }
}

// The loss of an example whose scores are known; leaves the slopes and the blocks where they are not all 0.
double HashedModel::multiclass_loss(ExampleWork& work, int32_t truth) const {
  const int64_t M = int64_t(labels_.size());
  const LossSettings& loss = settings_.loss;
  const float* s = work.scores.data();
  work.slopes.assign(work.scores.size(), 0.0f);
  work.touched.clear();
  if (M < 2) return 0;
  int64_t rival = truth == 0 ? 1 : 0;
  for (int64_t y = 0; y < M; ++y)
    if (y != truth && s[y] > s[rival]) rival = y;
  double value = 0;
  const double share = loss.loss == PointLoss::log ? 1 : loss.loss == PointLoss::hybrid ? loss.alpha : 0;
  if (share > 0) {
    const double top = std::max(s[truth], s[rival]);
    double others = 0;
    for (int64_t y = 0; y < M; ++y) {
      if (y == truth) continue;
      const float e = std::exp(s[y] - float(top));
      work.slopes[size_t(y)] = e;
      others += e;
    }
    const double own = std::exp(s[truth] - top), total = others + own;
    const float scale = float(share / total);
    const float least = M <= kExactClasses ? 0.0f : float(share * kLeastShare / double(M));
    for (int64_t y = 0; y < M; ++y) {
      float& slope = work.slopes[size_t(y)];
      slope *= scale;
      if (slope < least) slope = 0;
    }
    work.slopes[size_t(truth)] = -float(share * others / total);
    value += share * (std::log(total) - (s[truth] - top));
  }
  if (share < 1) {
    const double margin = 1 - (double(s[truth]) - double(s[rival]));
    if (margin > 0) {
      const bool squared = loss.loss == PointLoss::squared_hinge;
      const double slope = squared ? 2 * margin : 1 - share;
      value += squared ? margin * margin : (1 - share) * margin;
      work.slopes[size_t(rival)] += float(slope);
      work.slopes[size_t(truth)] -= float(slope);
    }
  }
  for (int64_t block = 0; block < n_blocks(); ++block)
    for (int j = 0; j < kBlock; ++j)
      if (work.slopes[size_t(block * kBlock + j)] != 0) {
        work.touched.push_back(block);
        break;
      }
  return value;
}

// How much of the plain step of adagrad to take. Along the direction of the slopes the margin z (of the truth against
// the soft or the hard maximum of the others) moves at the speed of a loss of one output, so solvers/pointwise_losses.hpp says where
// it arrives. `q` has the squared lengths Σ rate x² of the classes without the common rate.
double HashedModel::step_share(const ExampleWork& work, int32_t truth, double weight, double rate,
                               const std::vector<float>& q) const {
  const float* s = work.scores.data();
  double total = 0, own = -double(work.slopes[size_t(truth)]);
  if (!(own > 0)) return 1;
  for (int64_t block : work.touched)
    for (int64_t y = block * kBlock; y < (block + 1) * kBlock; ++y) {
      const double part = double(work.slopes[size_t(y)]) / own;
      total += part * part * double(q[size_t(y)]);
    }
  total *= rate;
  double best = -std::numeric_limits<double>::infinity(), others = 0;
  const int64_t M = int64_t(labels_.size());
  for (int64_t y = 0; y < M; ++y)
    if (y != truth) best = std::max(best, double(s[y]));
  double z = s[truth] - best;
  if (settings_.loss.loss == PointLoss::log || settings_.loss.loss == PointLoss::hybrid) {
    for (int64_t y = 0; y < M; ++y)
      if (y != truth) others += std::exp(s[y] - float(best));
    z -= std::log(others);
  }
  const double plain = -weight * loss_at(settings_.loss, z, 1).slope;
  return plain > 0 ? std::min(1.0, step_length(settings_.loss, z, 1, weight, total) / plain) : 1;
}

void HashedModel::step_all(ExampleWork& work, int32_t truth, double weight, double rate) {
  const int64_t w = width(), n = work.n;
  const bool separate = settings_.label_hashing == LabelHashing::separate;
  const int64_t aux = separate ? row_ : kBlock;
  float* table = table_.data();
  const float h = float(weight), l1 = float(settings_.l1), l2 = float(settings_.l2);
  std::vector<uint64_t>& places = work.places[0];
  places.resize(size_t(std::max(n, kChunk)));
  std::vector<float>& x = work.signed_x[0];
  x.resize(places.size());
  // Calls one(label, slope) for the labels of a block that change if these are few, or all(slopes) if it is worth
  // while.
  const auto each = [&](int64_t block, bool vector, auto one, auto all) {
    const float* slopes = work.slopes.data() + block * kBlock;
    const int changed = kBlock - int(std::count(slopes, slopes + kBlock, 0.0f));
    if (vector && changed > 3 && (!separate || (block + 1) * kBlock <= row_)) return all(slopes);
    for (int j = 0; j < kBlock; ++j)
      if (slopes[j] != 0) one(j, slopes[j]);
  };
  const bool adagrad = settings_.optimizer == Optimizer::adagrad;
  if (adagrad) {
    work.lengths.assign(work.scores.size(), 0.0f);
    for (int64_t block : work.touched) {
      place(work, block, 0, n, places.data(), x.data());
      float* q = work.lengths.data() + block * kBlock;
      each(
          block, true,
          [&](int j, float g) {
            for (int64_t k = 0; k < n; ++k)
              widen_slot(line_at(table, places[size_t(k)])[aux + (j ^ int(places[size_t(k)] & 15))], g * x[size_t(k)],
                         x[size_t(k)], h, q[j]);
          },
          [&](const float* slopes) { block_kernels().widen(table, places.data(), x.data(), n, aux, slopes, h, q); });
      for (int j = 0; settings_.intercept && j < kBlock; ++j)
        if (const float g = work.slopes[size_t(block * kBlock + j)]; g != 0)
          widen_slot(intercepts_[size_t((block * kBlock + j) * w + 1)], g, 1.0f, h, q[j]);
    }
  }
  const double share = adagrad ? step_share(work, truth, weight, rate, work.lengths) : 1;
  const float step = float(rate * weight * share / factor_);
  const StepSettings ftrl{float(rate), l1, l2};
  for (int64_t block : work.touched) {
    place(work, block, 0, n, places.data(), x.data());
    each(
        block, adagrad && l1 == 0 && l2 == 0,
        [&](int j, float g) {
          for (int64_t k = 0; k < n; ++k) {
            float* numbers = line_at(table, places[size_t(k)]) + (j ^ int(places[size_t(k)] & 15));
            const float gx = g * x[size_t(k)];
            if (settings_.optimizer == Optimizer::ftrl) {
              ftrl_step(numbers, aux, gx, h, ftrl);
            } else if (adagrad) {
              move_slot(numbers[0], numbers[aux], gx, step);
              const float r = float(rate) * h / std::sqrt(numbers[aux] + kStart);
              if (l1 > 0 || l2 > 0) numbers[0] = soften(numbers[0] / (1 + r * l2), r * l1);
            } else {
              numbers[0] -= step * gx;
              if (l1 > 0) numbers[0] = soften(numbers[0], float(rate * settings_.l1 / factor_));
            }
          }
        },
        [&](const float* slopes) { block_kernels().move(table, places.data(), x.data(), n, aux, slopes, step); });
    for (int j = 0; settings_.intercept && j < kBlock; ++j) {
      const float g = work.slopes[size_t(block * kBlock + j)];
      float* own = intercepts_.data() + (block * kBlock + j) * w;
      if (g == 0) continue;
      if (settings_.optimizer == Optimizer::ftrl)
        ftrl_step(own, 1, g, h, {float(rate), 0, 0});
      else if (adagrad)
        move_slot(own[0], own[1], g, step);
      else
        own[0] -= float(rate * weight) * g;
    }
  }
}

ProgressiveFigures HashedModel::learn(const Examples& examples, int64_t begin, int64_t end) {
  ProgressiveFigures figures;
  figures.examples = end - begin;
  const bool regression = settings_.task == Task::regression;
  if (regression)
    require(begin == end || !examples.targets.empty(), "a regression needs examples with numeric targets");
  else
    require(begin == end || !examples.labels.empty(), "a classifier needs examples with labels");
  if (!examples.values.empty() && !scales_.size()) make_scales();
  std::vector<int32_t> numbers(examples.label_names.size(), -1);
  for (int64_t i = begin; i < end; ++i) {
    const double weight = examples.weights.empty() ? 1.0 : double(examples.weights[size_t(i)]);
    double y = regression ? examples.targets[size_t(i)] : 0;
    int32_t label = -1;
    if (regression) {
      if (std::isnan(y)) continue;
    } else {
      const int32_t name = examples.labels[size_t(i)];
      if (name < 0) continue;
      if (numbers[size_t(name)] < 0) numbers[size_t(name)] = label_number(examples.label_names[size_t(name)]);
      label = numbers[size_t(name)];
      y = label == 1 ? 1 : -1;
    }
    figures.labelled += 1;
    figures.weight += weight;
    read_and_rescale(examples, i, work_);
    const bool several = settings_.task == Task::multiclass;
    double prediction, value, slope = 0, score = 0;
    if (several) {
      score_all(work_);
      prediction =
          double(std::max_element(work_.scores.begin(), work_.scores.begin() + n_outputs()) - work_.scores.begin());
      value = multiclass_loss(work_, label);
      score = work_.scores[size_t(label)];
    } else {
      if (regression) note_target(y, weight);
      score = score_one(work_);
      if (!regression) score = std::max(-kLargestMargin, std::min(kLargestMargin, score));
      const LossAt at = loss_at(settings_.loss, score, y);
      value = at.value, slope = at.slope;
      prediction = regression  ? (settings_.loss.loss == PointLoss::poisson ? std::exp(score) : score)
                   : score > 0 ? 1
                               : 0;
    }
    if (!(std::abs(score) < kLargestScore) || !std::isfinite(value))
      throw std::runtime_error("the scores grew beyond all bounds: lower learning_rate, or scale the features");
    figures.loss += weight * value;
    figures.errors += regression ? 0 : weight * (prediction != label);
    figures.last_target = regression ? y : label;
    figures.last_prediction = prediction;
    if (weight == 0) continue;
    double rate = next_rate(work_.norm, weight);
    if (regression && settings_.loss.loss != PointLoss::poisson && settings_.optimizer != Optimizer::sgd)
      rate *= std::sqrt(target_spread_);
    if (settings_.optimizer == Optimizer::sgd) shrink_all(rate);
    if (!(rate > 0)) continue;
    if (several) {
      if (!work_.touched.empty()) step_all(work_, label, weight, rate);
    } else if (slope != 0) {
      step_one(work_, y, score, slope, weight, rate);
    }
  }
  return figures;
}

// ------------------------------------------------------------------------------------------ state

std::vector<double> HashedModel::counters() const {
  return {t_, weight_, norms_, largest_, factor_, target_weight_, target_mean_, target_spread_, centre_, double(row_)};
}

void HashedModel::set_state(const float* table, uint64_t n_table, const float* scales, uint64_t n_scales,
                            const float* intercepts, uint64_t n_intercepts, const double* counters,
                            uint64_t n_counters) {
  require(n_counters == this->counters().size(), "the counters have the wrong length");
  require(all_finite(counters, int64_t(n_counters)), "the counters must be finite");
  if (settings_.task == Task::multiclass && settings_.label_hashing == LabelHashing::separate) {
    const double row = counters[9];
    require(row >= double(labels_.size()) && row < 1e9 && row == std::floor(row) && int64_t(row) % 4 == 0,
            "the rows have a wrong length");
    if (int64_t(row) != row_) {
      table_ = FloatTable(uint64_t(row) * uint64_t(width()) * (mask_ + 1) + kPadding);
      row_ = int64_t(row);
    }
  }
  require(n_table == table_.size() - kPadding, "the table has the wrong length");
  require(n_scales == 0 || (n_scales == mask_ + 1 && settings_.optimizer == Optimizer::adagrad),
          "the scales have the wrong length");
  require(n_intercepts == intercepts_.size(), "the intercepts have the wrong length");
  require(all_finite(table, int64_t(n_table)) && all_finite(scales, int64_t(n_scales)) &&
              all_finite(intercepts, int64_t(n_intercepts)),
          "the state must be finite");
  std::copy_n(table, n_table, table_.data());
  if (n_scales) {
    if (!scales_.size()) scales_ = FloatTable(mask_ + 1);
    std::copy_n(scales, n_scales, scales_.data());
  }
  std::copy_n(intercepts, n_intercepts, intercepts_.begin());
  t_ = counters[0], weight_ = counters[1], norms_ = counters[2], largest_ = counters[3], factor_ = counters[4];
  target_weight_ = counters[5], target_mean_ = counters[6], target_spread_ = counters[7], centre_ = counters[8];
}

// ------------------------------------------------------------------------------------------ binding

namespace {

using Name = std::pair<const char*, int>;
constexpr Name kTasks[] = {
    {"binary", int(Task::binary)}, {"multiclass", int(Task::multiclass)}, {"regression", int(Task::regression)}};
constexpr Name kLosses[] = {{"log", int(PointLoss::log)},
                            {"hinge", int(PointLoss::hinge)},
                            {"squared-hinge", int(PointLoss::squared_hinge)},
                            {"hybrid", int(PointLoss::hybrid)},
                            {"squared", int(PointLoss::squared)},
                            {"quantile", int(PointLoss::quantile)},
                            {"huber", int(PointLoss::huber)},
                            {"poisson", int(PointLoss::poisson)}};
constexpr Name kHashings[] = {{"joint", int(LabelHashing::joint)},
                              {"separate", int(LabelHashing::separate)},
                              {"two-stage", int(LabelHashing::two_stage)}};
constexpr Name kOptimizers[] = {
    {"adagrad", int(Optimizer::adagrad)}, {"ftrl", int(Optimizer::ftrl)}, {"sgd", int(Optimizer::sgd)}};

template <class T, size_t N> const char* name_of(const Name (&choices)[N], T value) {
  for (const auto& [choice, number] : choices)
    if (number == int(value)) return choice;
  return "";
}

template <class T, size_t N> T named(const char* what, const std::string& name, const Name (&choices)[N]) {
  for (const auto& [choice, number] : choices)
    if (name == choice) return T(number);
  fail(std::string("unknown ") + what + " '" + name + "'");
}

LearnerSettings learner_settings(const std::string& task, const std::string& loss, int n_bits,
                                 const std::string& label_hashing, const std::string& optimizer, double rate, double l1,
                                 double l2, double alpha, double quantile, double epsilon, bool intercept, bool scaled,
                                 bool damped) {
  LearnerSettings s;
  s.task = named<Task>("task", task, kTasks);
  s.loss.loss = named<PointLoss>("loss", loss, kLosses);
  s.label_hashing = named<LabelHashing>("label_hashing", label_hashing, kHashings);
  s.optimizer = named<Optimizer>("optimizer", optimizer, kOptimizers);
  s.n_bits = n_bits, s.rate = rate, s.l1 = l1, s.l2 = l2, s.intercept = intercept, s.scaled = scaled, s.damped = damped;
  s.loss.alpha = alpha, s.loss.quantile = quantile, s.loss.epsilon = epsilon;
  return s;
}

std::pair<int64_t, int64_t> checked_range(const Examples& examples, int64_t begin, std::optional<int64_t> end) {
  const int64_t last = end.value_or(examples.size());
  require(0 <= begin && begin <= last && last <= examples.size(),
          "begin and end must lie within the examples, in this order");
  return {begin, last};
}

nb::dict learn(HashedModel& model, const Examples& examples, int64_t begin, std::optional<int64_t> end) {
  const auto [first, last] = checked_range(examples, begin, end);
  ProgressiveFigures figures;
  {
    nb::gil_scoped_release release;
    figures = model.learn(examples, first, last);
  }
  nb::dict out;
  out["examples"] = figures.examples;
  out["labelled"] = figures.labelled;
  out["weight"] = figures.weight;
  out["loss"] = figures.loss;
  out["errors"] = figures.errors;
  out["last_target"] = figures.last_target;
  out["last_prediction"] = figures.last_prediction;
  return out;
}

template <class T> nb::object to_numpy_2d(std::vector<T>&& data, size_t rows, size_t columns) {
  auto* kept = new std::vector<T>(std::move(data));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(kept->data(), {rows, columns}, owner));
}

nb::object scores(const HashedModel& model, const Examples& examples, int64_t begin, std::optional<int64_t> end,
                  int threads) {
  const auto [first, last] = checked_range(examples, begin, end);
  const int64_t outputs = model.n_outputs();
  require(outputs == 0 || last - first <= (int64_t(1) << 40) / outputs,
          "too many scores for one call: take fewer examples");
  std::vector<float> out(size_t((last - first) * outputs));
  threads = thread_count(threads);
  {
    nb::gil_scoped_release release;
    model.scores(examples, first, last, out.data(), threads);
  }
  return to_numpy_2d(std::move(out), size_t(last - first), size_t(outputs));
}

nb::tuple top_k(const HashedModel& model, const Examples& examples, int64_t k, int threads) {
  require(model.settings().task == Task::multiclass, "top_k needs a model of several classes");
  require(k >= 1 && k <= model.n_outputs(), "k must lie between 1 and the number of labels");
  const int64_t n = examples.size();
  require(n <= (int64_t(1) << 40) / k, "too many examples for one call");
  std::vector<int32_t> labels(size_t(n * k));
  std::vector<float> values(size_t(n * k));
  threads = thread_count(threads);
  {
    nb::gil_scoped_release release;
    model.top(examples, k, labels.data(), values.data(), threads);
  }
  return nb::make_tuple(to_numpy_2d(std::move(labels), size_t(n), size_t(k)),
                        to_numpy_2d(std::move(values), size_t(n), size_t(k)));
}

nb::list label_list(const HashedModel& model) {
  nb::list out;
  for (const std::string& name : model.labels())
    out.append(nb::steal(PyUnicode_DecodeUTF8(name.data(), Py_ssize_t(name.size()), "surrogateescape")));
  return out;
}

void set_labels(HashedModel& model, const nb::list& labels) {
  std::vector<std::string> names;
  for (nb::handle label : labels) {
    if (!PyUnicode_Check(label.ptr())) throw nb::type_error("labels must be a list of str");
    names.push_back(bytes_of_name(label));
  }
  model.set_labels(names);
}

nb::object copied(const float* data, uint64_t n) { return to_numpy(std::vector<float>(data, data + n)); }

// What the constructor takes to make a model like this one.
nb::dict settings(const HashedModel& model) {
  const LearnerSettings& s = model.settings();
  nb::dict out;
  out["task"] = name_of(kTasks, s.task);
  out["loss"] = name_of(kLosses, s.loss.loss);
  out["n_bits"] = s.n_bits;
  out["label_hashing"] = name_of(kHashings, s.label_hashing);
  out["optimizer"] = name_of(kOptimizers, s.optimizer);
  out["rate"] = s.rate;
  out["l1"] = s.l1;
  out["l2"] = s.l2;
  out["alpha"] = s.loss.alpha;
  out["quantile"] = s.loss.quantile;
  out["epsilon"] = s.loss.epsilon;
  out["intercept"] = s.intercept;
  out["scaled"] = s.scaled;
  out["damped"] = s.damped;
  return out;
}

nb::dict state(const HashedModel& model) {
  nb::dict out;
  out["table"] = copied(model.table().data(), model.table().size() - HashedModel::kPadding);
  out["scales"] = copied(model.scales().data(), model.scales().size());
  out["intercepts"] = copied(model.intercepts().data(), model.intercepts().size());
  out["counters"] = to_numpy(model.counters());
  return out;
}

}  // namespace

void bind_learner(nb::module_& m) {
  nb::class_<HashedModel>(m, "HashedModel")
      .def(
          "__init__",
          [](HashedModel* self, const std::string& task, const std::string& loss, int n_bits,
             const std::string& label_hashing, const std::string& optimizer, double rate, double l1, double l2,
             double alpha, double quantile, double epsilon, bool intercept, bool scaled, bool damped) {
            new (self) HashedModel(learner_settings(task, loss, n_bits, label_hashing, optimizer, rate, l1, l2, alpha,
                                                    quantile, epsilon, intercept, scaled, damped));
          },
          nb::kw_only(), "task"_a, "loss"_a, "n_bits"_a = 22, "label_hashing"_a = "joint", "optimizer"_a = "adagrad",
          "rate"_a = 0.5, "l1"_a = 0.0, "l2"_a = 0.0, "alpha"_a = 0.5, "quantile"_a = 0.5, "epsilon"_a = 1.0,
          "intercept"_a = true, "scaled"_a = false, "damped"_a = true)
      .def("learn", &learn, "examples"_a, "begin"_a = 0, "end"_a.none() = nb::none())
      .def("scores", &scores, "examples"_a, "begin"_a = 0, "end"_a.none() = nb::none(), "threads"_a = 1)
      .def("top_k", &top_k, "examples"_a, "k"_a, "threads"_a = 1)
      .def("labels", &label_list)
      .def("set_labels", &set_labels, "labels"_a)
      .def("settings", &settings)
      .def("state", &state)
      .def(
          "set_state",
          [](HashedModel& model, In1<float> table, In1<float> scales, In1<float> intercepts, In1<double> counters) {
            model.set_state(table.data(), table.shape(0), scales.data(), scales.shape(0), intercepts.data(),
                            intercepts.shape(0), counters.data(), counters.shape(0));
          },
          "table"_a, "scales"_a, "intercepts"_a, "counters"_a)
      .def_prop_ro("n_outputs", &HashedModel::n_outputs)
      .def_prop_ro("table_bytes", &HashedModel::table_bytes);
}

}  // namespace mercer
