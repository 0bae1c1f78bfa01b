// Hashed features to sparse rows: buckets sorted, features that share one added up, rows end to end.
//
//   row j = Σ over the row's features with bucket j of sign · value
//
// Two ways lead there. RowMerger packs a feature and its value into one integer: a count, or a place in a table of
// values; text and strings make many features, and an integer is all that moves. RowWriter takes any value, as records
// and graphlets have them. Both sort by bucket, leave out sums of zero, write a row where it stays, and add in an order
// that depends on the row only, so that the result is the same for any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "base/dispatch.hpp"
#include "hashing/feature_hash.hpp"

namespace mercer {

// Rows with values of float or of double: which, is asked once a row, so that all that comes before is compiled once.
struct HashedRows {
  explicit HashedRows(bool is_single) : single(is_single) {}
  // Calls work with the rows at hand.
  template <class Work> auto visit(Work work) { return single ? work(floats) : work(doubles); }

  void reserve(size_t rows, size_t size) {
    visit([&](auto& own) { own.reserve(rows, size); });
  }
  void append(const HashedRows& other) {
    if (single)
      floats.append(other.floats);
    else
      doubles.append(other.doubles);
  }
  nb::tuple release() {
    return visit([](auto& own) { return own.release(); });
  }

  bool single;
  GrowingRows<float> floats;
  GrowingRows<double> doubles;
};

// ---------------------------------------------------------------------------------------------- sorting

// Sorts items by the n_bits bits of their bucket, from `shift` on; those of one bucket keep their order. It keeps its
// working memory.
//
// Buckets are hashes and lie evenly: where the highest bits are in order, all but a few items are in place. So passes
// of counting go over as many bits as the number of items asks for, and insertion puts the rest right. The time does
// not grow with n_bits.
template <class Word> class BucketSort {
 public:
  BucketSort(int n_bits, int shift) : n_bits_(n_bits), shift_(shift) {}

  __attribute__((noinline)) void operator()(std::vector<Word>& items, size_t count) {
    if (count > FEW_ITEMS) {
      if (scratch_.size() < items.size()) scratch_.resize(items.size());
      const auto [passes, width] = plan_for(count);
      const int from = shift_ + n_bits_ - passes * width;
      if (passes == 1)
        radix_sort<1>(items, count, width, from);
      else if (passes == 2)
        radix_sort<2>(items, count, width, from);
      else
        radix_sort<3>(items, count, width, from);
      if (from == shift_) return;
    }
    if (insertion_sort(items.data(), count)) return;
    for (int bit = 0; bit < n_bits_; bit += 10) radix_sort<1>(items, count, std::min(10, n_bits_ - bit), shift_ + bit);
  }

 private:
  static constexpr size_t FEW_ITEMS = 24;
  struct Plan {
    int passes = 0, width = 0;  // bits of a pass
  };

  // Passes so many and so wide that moving items, clearing counters and putting right together take least: one answer
  // for all counts between two powers of two.
  Plan plan_for(size_t count) {
    const auto log = size_t(63 - __builtin_clzll(count));
    Plan& plan = plans_[log];
    if (plan.passes) return plan;
    const double n = 1.5 * std::ldexp(1.0, int(log));
    double least = std::numeric_limits<double>::infinity();
    for (int p = 1; p <= 3; ++p)
      for (int w = 1; w <= 12 && p * w <= n_bits_; ++w) {
        const double wrong = p * w < n_bits_ ? 2 * n + 10 * n * n / std::ldexp(1.0, p * w) : 0;
        const double cost = p * (4 * n + 1.5 * std::ldexp(1.0, w)) + wrong;
        if (cost >= least) continue;
        least = cost;
        plan = {p, w};
      }
    return plan;
  }

  // Passes of counting over digits from a bit on, the low one first; all digits are counted in one go.
  template <int PASSES>
  __attribute__((noinline)) void radix_sort(std::vector<Word>& items, size_t count, int width, int from_bit) {
    const size_t digits = size_t(1) << width;
    const Word mask = Word(digits - 1);
    uint32_t at[PASSES][4096];
    for (int p = 0; p < PASSES; ++p) std::memset(at[p], 0, digits * sizeof(uint32_t));
    const auto digit = [=](Word item, int p) { return item >> (from_bit + p * width) & mask; };
    const Word* from = items.data();
    for (size_t i = 0; i < count; ++i)
      for (int p = 0; p < PASSES; ++p) ++at[p][digit(from[i], p)];
    for (int p = 0; p < PASSES; ++p) {
      uint32_t total = 0;
      for (size_t d = 0; d < digits; ++d) total += std::exchange(at[p][d], total);
      from = items.data();
      Word* to = scratch_.data();
      for (size_t i = 0; i < count; ++i) to[at[p][digit(from[i], p)]++] = from[i];
      items.swap(scratch_);
    }
  }

  // False, with items still to be sorted, where that would take long: names may have been made up so that their hashes
  // are close.
  bool insertion_sort(Word* items, size_t count) const {
    size_t steps = 8 * count + 256;
    for (size_t i = 1; i < count; ++i) {
      const Word x = items[i];
      if (items[i - 1] >> shift_ <= x >> shift_) continue;
      size_t j = i;
      do items[j] = items[j - 1];
      while (--j > 0 && items[j - 1] >> shift_ > x >> shift_);
      items[j] = x;
      if (steps < i - j) return false;
      steps -= i - j;
    }
    return true;
  }

  int n_bits_, shift_;
  std::array<Plan, 64> plans_{};
  std::vector<Word> scratch_;
};

constexpr size_t FEW = 16;

// Which places to compare and exchange, one pair after the other, to sort up to FEW keys (Batcher's odd-even merge
// sort): no branch depends on the keys, which are random.
struct Network {
  std::array<std::pair<uint8_t, uint8_t>, 64> pairs{};
  size_t count = 0;
  explicit constexpr Network(size_t n) {
    for (size_t p = 1; p < n; p *= 2)
      for (size_t k = p; k >= 1; k /= 2)
        for (size_t j = k % p; j + k < n; j += 2 * k)
          for (size_t i = 0; i < k && i + j + k < n; ++i)
            if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) {
              pairs[count].first = uint8_t(i + j);
              pairs[count++].second = uint8_t(i + j + k);
            }
  }
};

template <size_t N, size_t... I> inline void sort_fixed(uint64_t* keys, std::index_sequence<I...>) {
  constexpr Network network(N);
  uint64_t k[N];
  std::memcpy(k, keys, sizeof k);
  const auto exchange = [&](size_t a, size_t b) {
    const uint64_t x = k[a], y = k[b];
    k[a] = x < y ? x : y;
    k[b] = x < y ? y : x;
  };
  (exchange(network.pairs[I].first, network.pairs[I].second), ...);
  std::memcpy(keys, k, sizeof k);
}
template <size_t N> void sort_fixed(uint64_t* keys) {
  sort_fixed<N>(keys, std::make_index_sequence<Network(N).count>{});
}

inline void sort_few(uint64_t* keys, size_t n) {
  switch (n) {
    case 2: return sort_fixed<2>(keys);
    case 3: return sort_fixed<3>(keys);
    case 4: return sort_fixed<4>(keys);
    case 5: return sort_fixed<5>(keys);
    case 6: return sort_fixed<6>(keys);
    case 7: return sort_fixed<7>(keys);
    case 8: return sort_fixed<8>(keys);
    case 9: return sort_fixed<9>(keys);
    case 10: return sort_fixed<10>(keys);
    case 11: return sort_fixed<11>(keys);
    case 12: return sort_fixed<12>(keys);
    case 13: return sort_fixed<13>(keys);
    case 14: return sort_fixed<14>(keys);
    case 15: return sort_fixed<15>(keys);
    case 16: return sort_fixed<16>(keys);
    default: return;
  }
}

// Keys of some rows, column by column: key c of row r is keys[c][r].
constexpr size_t SIDE_BY_SIDE = 128;
using KeyColumns = uint32_t[FEW][SIDE_BY_SIDE];

// Sorts the keys of each row, all rows at once, so that vectors hold many rows.
__attribute__((always_inline)) inline void sort_columns_with(KeyColumns& keys, const Network& network) {
  for (size_t k = 0; k < network.count; ++k) {
    uint32_t* const a = keys[network.pairs[k].first];
    uint32_t* const b = keys[network.pairs[k].second];
#pragma GCC ivdep
    for (size_t r = 0; r < SIDE_BY_SIDE; ++r) {
      const uint32_t x = a[r], y = b[r];
      a[r] = x < y ? x : y;
      b[r] = x < y ? y : x;
    }
  }
}
inline void sort_columns_portable(KeyColumns& keys, const Network& network) { sort_columns_with(keys, network); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) inline void sort_columns_avx2(KeyColumns& keys, const Network& network) {
  sort_columns_with(keys, network);
}
#endif

inline void sort_columns(KeyColumns& keys, size_t n) {
  const Network network(n);
#if defined(__x86_64__)
  if (set_for("hashed_rows") != InstructionSet::baseline) return sort_columns_avx2(keys, network);
#endif
  sort_columns_portable(keys, network);
}

// ----------------------------------------------------------------------------------- counts, and values out of a table

// A feature that counts, so many times ±1: the bucket, and below it the count plus a bias.
class CountItem {
 public:
  using Word = uint32_t;
  using Sum = int32_t;

  explicit CountItem(int n_bits) : shift_(32 - n_bits), bias_(uint32_t(1) << (shift_ - 1)) {}
  int shift() const { return shift_; }
  uint32_t make(uint64_t hash, bool negative, int) const {
    return uint32_t(hash) << shift_ | (bias_ + 1 - 2 * uint32_t(negative));
  }
  uint32_t bucket(uint32_t item) const { return item >> shift_; }
  int32_t value(uint32_t item) const { return int32_t(item & (2 * bias_ - 1)) - int32_t(bias_); }
  // A feature that counts ±1 made to count that often, up to most().
  uint32_t times(uint32_t item, uint32_t count) const { return item + (count - 1) * uint32_t(value(item)); }
  uint32_t most() const { return bias_ - 1; }

 private:
  int shift_;
  uint32_t bias_;
};

// A feature with one of up to 2^31 weights.
class WeightedItem {
 public:
  using Word = uint64_t;
  using Sum = double;

  WeightedItem(int n_bits, const double* weights) : mask_(uint32_t(bucket_mask(n_bits))), weights_(weights) {}
  int shift() const { return 32; }
  uint64_t make(uint64_t hash, bool negative, int weight) const {
    return (hash & mask_) << 32 | uint64_t(negative) << 31 | uint64_t(uint32_t(weight));
  }
  uint32_t bucket(uint64_t item) const { return uint32_t(item >> 32); }
  double value(uint64_t item) const {
    const double w = weights_[item & 0x7FFFFFFFu];
    return item >> 31 & 1 ? -w : w;
  }

 private:
  uint32_t mask_;
  const double* weights_;
};

// The features of one row on their way to its buckets: counts, or values out of a table. A row may be of any length.
template <class Item> class RowMerger {
 public:
  using Word = typename Item::Word;
  using Sum = typename Item::Sum;

  RowMerger(int n_bits, bool with_signs, Item item)
      : item_(item), sign_(with_signs), items_(PIECE), sort_(n_bits, item.shift()) {
    restart(PIECE);
  }

  // A feature packed into one integer.
  __attribute__((always_inline)) Word pack(uint64_t hash, int weight = 0) const {
    return item_.make(hash, bool(hash >> 63 & sign_), weight);
  }

  __attribute__((always_inline)) void add(uint64_t hash, int weight = 0) {
    if (__builtin_expect(next_ == last_, 0)) compact();
    *next_++ = pack(hash, weight);
  }

  // Many features, up to a piece.
  void add(const uint64_t* hashes, size_t count) {
    if (size_t(last_ - next_) < count) compact();
    for (size_t k = 0; k < count; ++k) next_[k] = pack(hashes[k]);
    next_ += count;
  }

  // Packed features, all of them so many times; a multiple of 8 may be read.
  void add_packed(const Word* items, size_t size, uint32_t count) {
    do {
      if (size_t(last_ - next_) < size + 8) compact();
      const uint32_t times = std::min(count, item_.most());
      if (times == 1) {
        for (size_t k = 0; k < size; k += 8) std::memcpy(next_ + k, items + k, 8 * sizeof(Word));
      } else {
        for (size_t k = 0; k < size; ++k) next_[k] = item_.times(items[k], times);
      }
      next_ += size;
      count -= times;
    } while (count);
  }

  // Writes the row behind the others and begins a new one.
  template <class T> void finish(GrowingRows<T>& rows) {
    size_t size;
    if (buckets_.empty()) {
      count_ = size_t(next_ - items_.data());
      sort();
      size = merge(rows.indices.room(count_ + 1), rows.values.room(count_ + 1));
    } else {
      compact();
      size = buckets_.size();
      int32_t* out = rows.indices.room(size);
      T* sums = rows.values.room(size);
      for (size_t i = 0; i < size; ++i) {
        out[i] = buckets_[i];
        sums[i] = T(sums_[i]);
      }
      buckets_.clear();
      sums_.clear();
    }
    rows.close(size);
    restart(PIECE);
  }

 private:
  static constexpr size_t PIECE = size_t(1) << 18;

  void restart(size_t room) {
    if (items_.size() < room) items_.resize(room);
    next_ = items_.data();
    last_ = next_ + room;
  }

  // A long row is merged in pieces, so that memory is bounded by its distinct buckets, not by its length.
  __attribute__((noinline)) void compact() {
    count_ = size_t(next_ - items_.data());
    sort();
    std::vector<int32_t> buckets(buckets_.size() + count_ + 1), new_buckets(count_ + 1);
    std::vector<Sum> sums(sums_.size() + count_ + 1), new_sums(count_ + 1);
    const size_t n = merge(new_buckets.data(), new_sums.data());
    size_t i = 0, j = 0, out = 0;
    while (i < buckets_.size() || j < n) {
      const bool old_one = j == n || (i < buckets_.size() && buckets_[i] <= new_buckets[j]);
      const bool new_one = i == buckets_.size() || (j < n && new_buckets[j] <= buckets_[i]);
      buckets[out] = old_one ? buckets_[i] : new_buckets[j];
      sums[out] = (old_one ? sums_[i] : Sum(0)) + (new_one ? new_sums[j] : Sum(0));
      i += old_one;
      j += new_one;
      out += sums[out] != Sum(0);
    }
    buckets.resize(out);
    sums.resize(out);
    buckets_.swap(buckets);
    sums_.swap(sums);
    restart(std::max(PIECE, 2 * out));
  }

  // Adds up the sorted items of each bucket; sums of zero are left out.
  template <class T> size_t merge(int32_t* buckets, T* sums) const {
    size_t out = 0;
    Sum sum = 0;
    uint32_t last = 0;
    const Word* items = items_.data();
    for (size_t i = 0; i < count_; ++i) {
      const uint32_t bucket = item_.bucket(items[i]);
      const bool same = bucket == last;
      out += size_t(!same & (sum != Sum(0)));
      sum = (same ? sum : Sum(0)) + item_.value(items[i]);
      buckets[out] = int32_t(bucket);
      sums[out] = T(sum);
      last = bucket;
    }
    return out + (sum != Sum(0));
  }

  void sort() { sort_(items_, count_); }

  Item item_;
  uint64_t sign_;  // 1 if features have signs
  std::vector<Word> items_;
  BucketSort<Word> sort_;
  Word *next_ = nullptr, *last_ = nullptr;  // where the next item goes; the end of the room for items
  size_t count_ = 0;                        // of items to sort
  std::vector<int32_t> buckets_;
  std::vector<Sum> sums_;
};

// ---------------------------------------------------------------------------------------------- values of their own

// Rows of features with values of their own. A row does not depend on the order in which its features come: those of
// one bucket are added in the order of their hashes.
class RowWriter {
 public:
  RowWriter(int n_bits, bool is_signed, bool single)
      : rows(single), mask_(bucket_mask(n_bits)), sign_(is_signed ? uint64_t(1) << 63 : 0), sort_(n_bits, 32) {}

  // A feature of the row at hand; the value is finite and not 0.
  void push(uint64_t hash, double value) {
    if (n_ == hashes_.size()) grow(n_ + 1);
    hashes_[n_] = hash;
    values_[n_++] = value;
    ones_ &= value == 1.0;
  }

  // As many features as there are places of a stride, but for those of value 0.
  void push_strided(const uint64_t* hashes, const double* values, size_t stride, size_t count) {
    if (n_ + count > hashes_.size()) grow(n_ + count);
    uint64_t* const to_hash = hashes_.data();
    double* const to_value = values_.data();
    size_t n = n_;
    bool ones = ones_;
    for (size_t c = 0; c < count; ++c) {
      const double value = values[c * stride];
      to_hash[n] = hashes[c * stride];
      to_value[n] = value;
      ones &= value == 1.0 || value == 0.0;
      n += value != 0.0;
    }
    n_ = n;
    ones_ = ones;
  }

  // Rows at once whose features stand column by column, up to SIDE_BY_SIDE rows and FEW columns, if all of them have
  // the value 1 or 0, which is none. Otherwise nothing is written, and the answer is false.
  bool write_ones(const uint64_t* hashes, const double* values, size_t stride, size_t columns, size_t count) {
    KeyColumns keys;
    const uint32_t mask = uint32_t(mask_), sign = sign_ != 0;
    uint32_t missing = 0, other = 0;
    for (size_t c = 0; c < columns; ++c) {
      const uint64_t* const hash = hashes + c * stride;
      const double* const value = values + c * stride;
      for (size_t r = 0; r < count; ++r) {
        const uint32_t key = (uint32_t(hash[r]) & mask) << 1 | (uint32_t(hash[r] >> 63) & sign);
        const bool none = value[r] == 0.0;
        missing |= uint32_t(none);
        other |= uint32_t(!none & (value[r] != 1.0));
        keys[c][r] = none ? NONE : key;
      }
      std::fill(keys[c] + count, keys[c] + SIDE_BY_SIDE, NONE);
    }
    if (other) return false;
    sort_columns(keys, columns);
    uint32_t shared = 0;
    for (size_t c = 1; c < columns; ++c)
      for (size_t r = 0; r < count; ++r) shared |= uint32_t((keys[c][r] ^ keys[c - 1][r]) < 2);
    rows.visit([&](auto& own) { write_ones(keys, columns, count, missing | shared, own); });
    return true;
  }

  void close(int64_t row) {
    const size_t n = n_;
    const uint64_t mask = mask_, sign = sign_;
    const uint64_t* const hashes = hashes_.data();
    uint64_t* keys = keys_.data();
    // bucket | sign | place: what a row of ones needs is in the key.
    for (size_t k = 0; k < n; ++k) keys[k] = (hashes[k] & mask) << 32 | (hashes[k] & sign) >> 32 | k;
    if (n <= FEW)
      sort_few(keys, n);
    else
      sort_(keys_, n);
    keys = keys_.data();
    uint64_t shared = 0;
    for (size_t k = 1; k < n; ++k) shared |= uint64_t((keys[k] ^ keys[k - 1]) >> 32 == 0);
    rows.visit([&](auto& own) {
      if (shared || !(ones_ ? write_ones(own) : write_values(own))) write_sums(row, own);
    });
    n_ = 0;
    ones_ = true;
  }

  HashedRows rows;

 private:
  static constexpr uint64_t kPlace = (uint64_t(1) << 31) - 1;
  static constexpr uint32_t NONE = ~uint32_t(0);  // behind all keys

  template <class T>
  static void write_ones(const KeyColumns& keys, size_t columns, size_t count, bool sums, GrowingRows<T>& rows) {
    int32_t* column = rows.indices.room(count * columns);
    T* value = rows.values.room(count * columns);
    rows.ends.room(count);
    const T ones[2] = {T(1), T(-1)};
    for (size_t r = 0; r < count; ++r) {
      size_t size = columns;
      if (sums) {
        size = write_sums(keys, r, columns, column, value);
      } else {
        for (size_t c = 0; c < columns; ++c) {
          const uint32_t key = keys[c][r];
          column[c] = int32_t(key >> 1);
          value[c] = ones[key & 1];
        }
      }
      column += size;
      value += size;
      rows.close(size);
    }
  }
  template <class T>
  static size_t write_sums(const KeyColumns& keys, size_t row, size_t columns, int32_t* column, T* value) {
    size_t size = 0;
    for (size_t c = 0; c < columns && keys[c][row] != NONE;) {
      const uint32_t bucket = keys[c][row] >> 1;
      int sum = 0;
      for (; c < columns && keys[c][row] >> 1 == bucket; ++c) sum += 1 - 2 * int(keys[c][row] & 1);
      column[size] = int32_t(bucket);
      value[size] = T(sum);
      size += sum != 0;
    }
    return size;
  }
  void grow(size_t least) {
    const size_t larger = std::max(2 * n_ + 16, least);
    if (larger > kPlace) fail("a row has too many features");
    hashes_.resize(larger);
    values_.resize(larger);
    keys_.resize(larger);
  }
  template <class T> bool write_ones(GrowingRows<T>& rows) const {
    const size_t n = n_;
    int32_t* const column = rows.indices.room(n);
    T* const value = rows.values.room(n);
    const uint64_t* const keys = keys_.data();
    for (size_t k = 0; k < n; ++k) {
      column[k] = int32_t(keys[k] >> 32);
      value[k] = T(1 - int32_t(keys[k] >> 30 & 2));
    }
    rows.close(n);
    return true;
  }
  // False, with nothing written, where a value is 0 or infinite in T.
  template <class T> bool write_values(GrowingRows<T>& rows) const {
    int32_t* const column = rows.indices.room(n_);
    T* const value = rows.values.room(n_);
    bool good = true;
    for (size_t k = 0; k < n_; ++k) {
      column[k] = int32_t(keys_[k] >> 32);
      value[k] = T(signed_value(keys_[k]));
      good &= value[k] != 0 && std::abs(value[k]) <= std::numeric_limits<T>::max();
    }
    if (!good) return false;
    rows.close(n_);
    return true;
  }
  template <class T> void write_sums(int64_t row, GrowingRows<T>& rows) {
    int32_t* const column = rows.indices.room(n_);
    T* const value = rows.values.room(n_);
    size_t size = 0;
    for (size_t k = 0; k < n_;) {
      size_t end = k + 1;
      while (end < n_ && (keys_[end] ^ keys_[k]) >> 32 == 0) ++end;
      std::sort(keys_.begin() + std::ptrdiff_t(k), keys_.begin() + std::ptrdiff_t(end), [this](uint64_t a, uint64_t b) {
        const uint64_t i = a & kPlace, j = b & kPlace;
        return hashes_[i] != hashes_[j] ? hashes_[i] < hashes_[j] : values_[i] < values_[j];
      });
      double total = 0;
      const int32_t bucket = int32_t(keys_[k] >> 32);
      for (; k < end; ++k) total += signed_value(keys_[k]);
      if (!(std::abs(total) <= double(std::numeric_limits<T>::max())))
        fail("row " + std::to_string(row) + ": a sum of features is too large for the dtype");
      if (T(total) == 0) continue;
      column[size] = bucket;
      value[size++] = T(total);
    }
    rows.close(size);
  }
  double signed_value(uint64_t key) const {
    uint64_t bits;
    std::memcpy(&bits, &values_[key & kPlace], 8);
    bits ^= (key & uint64_t(1) << 31) << 32;
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
  }

  uint64_t mask_, sign_;
  size_t n_ = 0;
  bool ones_ = true;
  std::vector<uint64_t> hashes_, keys_;
  std::vector<double> values_;
  BucketSort<uint64_t> sort_;
};

}  // namespace mercer
