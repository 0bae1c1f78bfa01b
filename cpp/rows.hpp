// Hashed features to sparse rows: buckets sorted, those that stand twice added up, rows end to end.
//
//   row j = Σ over the row's features with bucket j of sign · weight          spec 000 S06
//
// A feature is packed into one integer that is sorted by its bucket (radix sort: a few passes of counting), and then merged with its
// neighbours. Rows are written where they stay. A row's sums are added in an order that depends on the row only, so the result is the
// same for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "hashing.hpp"
#include "parallel.hpp"

namespace mercer {

// A feature that counts, so many times ±1: the bucket, and below it the count plus a bias.
class CountItem {
 public:
  using Word = uint32_t;
  using Sum = int32_t;

  explicit CountItem(int n_bits) : shift_(32 - n_bits), bias_(uint32_t(1) << (shift_ - 1)) {}
  int shift() const { return shift_; }
  uint32_t make(uint64_t hash, bool negative, int) const { return uint32_t(hash) << shift_ | (bias_ + 1 - 2 * uint32_t(negative)); }
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

// The features of one row on their way to its buckets.
template <class Item> class RowMerger {
 public:
  using Word = typename Item::Word;
  using Sum = typename Item::Sum;

  RowMerger(int n_bits, bool with_signs, Item item)
      : item_(item), sign_(with_signs), n_bits_(n_bits), items_(PIECE) {
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

  // Writes the row behind the arrays and begins a new one.
  template <class T> void finish(Buffer<int32_t>& indices, Buffer<T>& values) {
    size_t size;
    if (buckets_.empty()) {
      count_ = size_t(next_ - items_.data());
      sort();
      size = merge(indices.room(count_ + 1), values.room(count_ + 1));
    } else {
      compact();
      size = buckets_.size();
      int32_t* out = indices.room(size);
      T* sums = values.room(size);
      for (size_t i = 0; i < size; ++i) {
        out[i] = buckets_[i];
        sums[i] = T(sums_[i]);
      }
      buckets_.clear();
      sums_.clear();
    }
    indices.advance(size);
    values.advance(size);
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

  void sort() {
    if (count_ < 2) return;
    if (count_ <= 24) {
      insertion_sort();
      return;
    }
    // Passes over digits of equal width, so many that moving items and clearing counters together take least.
    int passes = 1, width = n_bits_;
    size_t least = ~size_t(0);
    for (int p = 1; p <= 6; ++p) {
      const int w = (n_bits_ + p - 1) / p;
      if (w > 12) continue;
      const size_t cost = size_t(p) * (2 * count_ + (size_t(1) << w));
      if (cost < least) {
        least = cost;
        passes = p;
        width = w;
      }
    }
    if (scratch_.size() < items_.size()) scratch_.resize(items_.size());
    if (passes == 2) radix_sort<2>(width);
    else if (passes == 3) radix_sort<3>(width);
    else for (int p = 0; p < passes; ++p) radix_sort<1>(width, p * width);
  }

  // Passes of counting over the digits of the bucket, from the low one on; all digits are counted in one go.
  template <int PASSES> void radix_sort(int width, int skip = 0) {
    const size_t digits = size_t(1) << width;
    const Word mask = Word(digits - 1);
    uint32_t at[PASSES][4096];
    for (int p = 0; p < PASSES; ++p) std::memset(at[p], 0, digits * sizeof(uint32_t));
    const int first = item_.shift() + skip;
    const auto digit = [=](Word item, int p) { return item >> (first + p * width) & mask; };
    for (size_t i = 0; i < count_; ++i)
      for (int p = 0; p < PASSES; ++p) ++at[p][digit(items_[i], p)];
    for (int p = 0; p < PASSES; ++p) {
      uint32_t total = 0;
      for (size_t d = 0; d < digits; ++d) total += std::exchange(at[p][d], total);
      const Word* from = items_.data();
      Word* to = scratch_.data();
      for (size_t i = 0; i < count_; ++i) to[at[p][digit(from[i], p)]++] = from[i];
      items_.swap(scratch_);
    }
  }

  void insertion_sort() {
    Word* items = items_.data();
    for (size_t i = 1; i < count_; ++i) {
      const Word x = items[i];
      size_t j = i;
      for (; j > 0 && item_.bucket(items[j - 1]) > item_.bucket(x); --j) items[j] = items[j - 1];
      items[j] = x;
    }
  }

  Item item_;
  uint64_t sign_;  // 1 if features have signs
  int n_bits_;
  std::vector<Word> items_, scratch_;
  Word *next_ = nullptr, *last_ = nullptr;  // where the next item goes; the end of the room for items
  size_t count_ = 0;                        // of items to sort
  std::vector<int32_t> buckets_;
  std::vector<Sum> sums_;
};

// Documents in one buffer: document i is data[offset(i)] .. data[offset(i + 1)].
struct Documents {
  const char* data;
  const int32_t* short_offsets;
  const int64_t* long_offsets;
  int64_t n;

  int64_t offset(int64_t i) const { return short_offsets ? short_offsets[i] : long_offsets[i]; }
  std::string_view operator[](int64_t i) const { return {data + offset(i), size_t(offset(i + 1) - offset(i))}; }
  // The first document that begins at or after this place.
  int64_t at(int64_t place) const {
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (offset(middle) < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

constexpr int64_t FORESEE_FROM = 1 << 16;  // bytes of text

template <class T> struct SparseRows {
  Buffer<int64_t> ends;
  Buffer<int32_t> indices;
  Buffer<T> values;

  void append(const SparseRows& other) {
    const auto before = int64_t(indices.size());
    indices.append(other.indices.data(), other.indices.size());
    values.append(other.values.data(), other.values.size());
    for (size_t i = 1; i < other.ends.size(); ++i) ends.push(before + other.ends.data()[i]);
  }
  nb::tuple release() { return nb::make_tuple(ends.release(), indices.release(), values.release()); }
};

// The rows of documents first .. last.
template <class T, class Item, class Row>
SparseRows<T> hash_range(const Documents& documents, int64_t first, int64_t last, RowMerger<Item>& merger, Row& row) {
  SparseRows<T> out;
  out.ends.reserve(size_t(last - first) + 1);
  out.ends.push(0);
  const int64_t begin = documents.offset(first), bytes = documents.offset(last) - begin;
  bool foreseen = bytes < FORESEE_FROM;
  for (int64_t i = first; i < last; ++i) {
    row(documents[i], merger);
    merger.finish(out.indices, out.values);
    out.ends.push(int64_t(out.indices.size()));
    const int64_t done = documents.offset(i + 1) - begin;
    if (!foreseen && done >= bytes / 32) {
      out.indices.foresee(double(done) / double(bytes));
      out.values.foresee(double(done) / double(bytes));
      foreseen = true;
    }
  }
  return out;
}

// One row a document: make_row() gives, for each thread, a function row(document, merger) that adds its features.
template <class T, class Item, class MakeRow>
SparseRows<T> hash_documents(const Documents& documents, int n_bits, bool with_signs, Item item, int threads, MakeRow make_row) {
  const int64_t begin = documents.offset(0), bytes = documents.offset(documents.n) - begin;
  const int64_t parts = threads <= 1 ? 1 : std::max<int64_t>(1, std::min<int64_t>(4 * threads, bytes / 65536));
  std::vector<SparseRows<T>> found(static_cast<size_t>(parts));
  in_parallel(parts, threads, [&](int64_t part) {
    auto row = make_row();
    RowMerger<Item> merger(n_bits, with_signs, item);
    // Empty documents at a boundary belong to the part that begins there.
    const int64_t first = part == 0 ? 0 : documents.at(begin + bytes * part / parts);
    const int64_t last = part == parts - 1 ? documents.n : documents.at(begin + bytes * (part + 1) / parts);
    found[size_t(part)] = hash_range<T>(documents, first, last, merger, row);
  });
  if (parts == 1) return std::move(found[0]);
  size_t size = 0;
  for (const SparseRows<T>& part : found) size += part.indices.size();
  SparseRows<T> all;
  all.ends.reserve(size_t(documents.n) + 1);
  all.indices.reserve(size);
  all.values.reserve(size);
  all.ends.push(0);
  for (SparseRows<T>& part : found) {
    all.append(part);
    SparseRows<T> done = std::move(part);  // its memory goes here
  }
  return all;
}

}  // namespace mercer
