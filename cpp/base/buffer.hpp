// Arrays that grow while results are written and then become NumPy's, without a copy.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/arrays.hpp"
#include "base/memory.hpp"

namespace mercer {

// An array that grows and does not touch memory before it is used. Large ones lie in huge pages: results are written
// once, and much of the time would go into asking for small pages.
template <class T> class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_) HugePages<T>().deallocate(data_, capacity_);
  }
  size_t size() const { return size_; }
  const T* data() const { return data_; }
  // Room for `more` items at the end; advance() takes what was written there.
  T* room(size_t more) {
    if (capacity_ - size_ < more) reserve(std::max(size_ + more, capacity_ + capacity_ / 2));
    return data_ + size_;
  }
  void advance(size_t count) { size_ += count; }
  void push(T item) {
    *room(1) = item;
    ++size_;
  }
  void append(const T* items, size_t count) {
    if (!count) return;
    std::memcpy(room(count), items, count * sizeof(T));
    size_ += count;
  }
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    T* larger = HugePages<T>().allocate(capacity);
    if (size_) std::memcpy(larger, data_, size_ * sizeof(T));
    if (data_) HugePages<T>().deallocate(data_, capacity_);
    data_ = larger;
    capacity_ = capacity;
  }
  // Room for all there will be if this share of it is there now: growing copies.
  void foresee(double share) { reserve(size_t(double(size_) / share * 1.06) + 1024); }
  // The array as NumPy's, which owns it from now on.
  nb::object release() {
    room(1);  // never a null pointer
    auto* kept = new Buffer<T>(std::move(*this));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data_, {kept->size_}, owner));
  }

 private:
  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  T* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

// Rows end to end: a CSR matrix that grows.
template <class T> struct GrowingRows {
  Buffer<int64_t> ends;  // 0 in front
  Buffer<int32_t> indices;
  Buffer<T> values;

  GrowingRows() { ends.push(0); }
  // Room for more rows with so many values in all.
  void reserve(size_t rows, size_t size) {
    ends.reserve(ends.size() + rows);
    indices.reserve(indices.size() + size);
    values.reserve(values.size() + size);
  }
  // The next row is what was written behind the end of indices and values.
  void close(size_t size) {
    indices.advance(size);
    values.advance(size);
    ends.push(int64_t(indices.size()));
  }
  void append(const GrowingRows& other) {
    const auto before = int64_t(indices.size());
    indices.append(other.indices.data(), other.indices.size());
    values.append(other.values.data(), other.values.size());
    for (size_t i = 1; i < other.ends.size(); ++i) ends.push(before + other.ends.data()[i]);
  }
  nb::tuple release() { return nb::make_tuple(ends.release(), indices.release(), values.release()); }
};

}  // namespace mercer
