// What the binding files share: arrays and their checks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace nb = nanobind;
using namespace nb::literals;

namespace mercer {

template <class T, int D> using Array = nb::ndarray<T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
template <class T> using In1 = Array<const T, 1>;
template <class T> using In2 = Array<const T, 2>;
template <class T> using In3 = Array<const T, 3>;
template <class T> using Out1 = Array<T, 1>;
template <class T> using Out2 = Array<T, 2>;
template <class T> using Out3 = Array<T, 3>;

// Compiled once: a thousand checks would each make a string and clean up after it.
[[noreturn, gnu::cold]] void fail(const char* what);
[[noreturn, gnu::cold]] void fail(const std::string& what);
inline void require(bool condition, const char* what) {
  if (!condition) fail(what);
}

template <class T> bool all_finite(const T* x, int64_t n) {
  // The sum of x - x is 0 for finite values and NaN otherwise.
  T total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i] - x[i];
  return total == 0;
}

// Where the items of a stack begin: item i is offsets[i] .. offsets[i + 1]. All offsets are checked before one of them
// is used, since a single wrong one leads outside the arrays. Returns the number of items.
template <class T> int64_t require_ascending(const T* offsets, size_t size, const char* name) {
  if (size < 1) fail(std::string(name) + " must hold at least one value");
  for (size_t i = 1; i < size; ++i)
    if (offsets[i - 1] > offsets[i]) fail(std::string(name) + " must not decrease");
  return int64_t(size) - 1;
}
// Of all of the `total` things.
template <class T>
int64_t require_offsets(const T* offsets, size_t size, int64_t total, const char* name, const char* things) {
  const int64_t n = require_ascending(offsets, size, name);
  if (offsets[0] != 0) fail(std::string(name) + " must start with 0");
  if (int64_t(offsets[n]) != total) fail(std::string(name) + " must end with the number of " + things);
  return n;
}
template <class T> int64_t require_offsets(const In1<T>& offsets, int64_t total, const char* name, const char* things) {
  return require_offsets(offsets.data(), offsets.shape(0), total, name, things);
}
// Of some of the `total` things, which may begin late and end early.
template <class T>
int64_t require_offsets_within(const In1<T>& offsets, int64_t total, const char* name, const char* things) {
  const int64_t n = require_ascending(offsets.data(), offsets.shape(0), name);
  if (offsets.data()[0] < 0) fail(std::string(name) + " must not be negative");
  if (int64_t(offsets.data()[n]) > total) fail(std::string(name) + " go beyond the " + things);
  return n;
}
// Of a stretch of `total` things that was cut out of a larger stack, whose offsets it keeps.
inline int64_t require_offsets_of_part(const In1<int64_t>& offsets, int64_t total, const char* name,
                                       const char* things) {
  const int64_t n = require_ascending(offsets.data(), offsets.shape(0), name);
  if (offsets.data()[0] < 0) fail(std::string(name) + " must not be negative");
  if (offsets.data()[n] - offsets.data()[0] != total) fail(std::string(name) + " do not fit the number of " + things);
  return n;
}

template <class T> nb::object to_numpy(std::vector<T>&& data) {
  auto* kept = new std::vector<T>(std::move(data));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

inline int thread_count(int threads) {
  require(threads >= 1, "threads must be at least 1");
  // More threads than processors gain nothing, and OpenMP ends the process where it cannot make one.
  static const int most = std::max(64, 4 * int(std::thread::hardware_concurrency()));
  return std::min(threads, most);
}

}  // namespace mercer
