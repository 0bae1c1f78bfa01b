// What the binding files share: checked arrays, feature rows and weight patterns.
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

#include "base/dispatch.hpp"

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

[[noreturn]] inline void fail(const std::string& what) { throw std::invalid_argument(what); }
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

// The kernels in use: those of the machine's best instruction set unless another one was asked for.
const Kernels& kernels();

inline int thread_count(int threads) {
  require(threads >= 1, "threads must be at least 1");
  // More threads than processors gain nothing, and OpenMP ends the process where it cannot make one.
  static const int most = std::max(64, 4 * int(std::thread::hardware_concurrency()));
  return std::min(threads, most);
}
// ---------------------------------------------------------------------------------------------- feature rows

// Checked once when made; the arrays are kept alive. Python marks them read-only.
class FeatureRows {
 public:
  FeatureRows(In1<int64_t> indptr, In1<int32_t> indices, nb::object values, int64_t n_columns, bool single)
      : indptr_(indptr), indices_(indices), single_(single), n_columns_(n_columns) {
    n_rows_ = require_offsets(indptr, int64_t(indices.shape(0)), "indptr", "indices");
    const int64_t* p = indptr.data();
    require(n_columns >= 0, "n_columns must not be negative");
    for (int64_t i = 0; i < n_rows_; ++i)
      for (int64_t k = p[i]; k < p[i + 1]; ++k) {
        const int32_t column = indices.data()[k];
        require(column >= 0 && column < n_columns, "a column index is out of range");
        require(k == p[i] || indices.data()[k - 1] < column, "indices must ascend in every row");
      }
    if (!values.is_none()) { take_values(values, int64_t(indices.shape(0))); }
  }
  explicit FeatureRows(In2<double> dense) : dense64_(dense), single_(false) {
    set_dense(dense.shape(0), dense.shape(1), dense.data());
  }
  explicit FeatureRows(In2<float> dense) : dense32_(dense), single_(true) {
    set_dense(dense.shape(0), dense.shape(1), dense.data());
  }

  bool single() const { return single_; }
  int64_t n_rows() const { return n_rows_; }
  int64_t n_columns() const { return n_columns_; }

  template <class T> Rows<T> view() const {
    if (single_ != (sizeof(T) == 4)) throw nb::type_error("the feature rows are of another floating-point type");
    return {indptr_.is_valid() ? indptr_.data() : nullptr, indptr_.is_valid() ? indices_.data() : nullptr,
            static_cast<const T*>(values_), n_rows_, n_columns_};
  }

 private:
  template <class T> void set_dense(size_t rows, size_t columns, const T* data) {
    n_rows_ = int64_t(rows);
    n_columns_ = int64_t(columns);
    values_ = data;
    require(all_finite(data, n_rows_ * n_columns_), "features must be finite");
  }
  void take_values(nb::object values, int64_t count) {
    if (single_) {
      if (!nb::try_cast(values, values32_, false))
        throw nb::type_error("values must be a contiguous float32 array of one dimension");
      values_ = values32_.data();
      require(int64_t(values32_.shape(0)) == count, "values and indices must have one length");
      require(all_finite(values32_.data(), count), "features must be finite");
    } else {
      if (!nb::try_cast(values, values64_, false))
        throw nb::type_error("values must be a contiguous float64 array of one dimension");
      values_ = values64_.data();
      require(int64_t(values64_.shape(0)) == count, "values and indices must have one length");
      require(all_finite(values64_.data(), count), "features must be finite");
    }
  }

  In1<int64_t> indptr_;
  In1<int32_t> indices_;
  In1<double> values64_;
  In1<float> values32_;
  In2<double> dense64_;
  In2<float> dense32_;
  bool single_;
  const void* values_ = nullptr;
  int64_t n_rows_ = 0, n_columns_ = 0;
};

// Which (feature, column) pairs have weights.
class WeightPattern {
 public:
  WeightPattern(int64_t n_features, int64_t width) : n_features_(n_features), width_(width) {
    require(n_features >= 0 && width >= 1, "a pattern needs n_features >= 0 and width >= 1");
    require(n_features == 0 || width <= (int64_t(1) << 40) / n_features, "the pattern has too many weights");
    n_weights_ = n_features * width;
  }
  // starts: uint32, which are kept as they are, or int64. columns: uint16 where width allows it (half the memory to
  // read), or int32.
  template <class Start>
  WeightPattern(In1<Start> starts, In1<uint16_t> columns, int64_t width) : columns_(columns), width_(width) {
    set(starts, columns);
  }
  template <class Start>
  WeightPattern(In1<Start> starts, In1<int32_t> columns, int64_t width) : wide_columns_(columns), width_(width) {
    set(starts, columns);
  }
  Pattern view() const {
    return {starts_,
            columns_.is_valid() ? columns_.data() : nullptr,
            wide_columns_.is_valid() ? wide_columns_.data() : nullptr,
            n_features_,
            width_,
            n_weights_,
            heads_.empty() ? nullptr : heads_.data()};
  }

 private:
  template <class Start, class Column> void set(const In1<Start>& starts, const In1<Column>& columns) {
    require(width_ >= 1 && starts.shape(0) >= 1, "a pattern needs width >= 1 and at least one start");
    n_weights_ = int64_t(columns.shape(0));
    const Start* s = starts.data();
    require(n_weights_ <= int64_t(UINT32_MAX), "the pattern has too many weights");
    n_features_ = require_offsets(starts, n_weights_, "starts", "columns");
    keep(starts);
    for (int64_t f = 0; f < n_features_; ++f) {
      for (int64_t k = int64_t(s[f]); k < int64_t(s[f + 1]); ++k) {
        const int64_t c = columns.data()[k];
        require(c >= 0 && c < width_, "a column of the pattern is out of range");
        require(k == int64_t(s[f]) || columns.data()[k - 1] < c, "columns must ascend in every row of the pattern");
      }
    }
    if (width_ <= 32) set_heads(columns);
  }
  void keep(const In1<uint32_t>& starts) {
    given_starts_ = starts;
    starts_ = given_starts_.data();
  }
  void keep(const In1<int64_t>& starts) {
    own_starts_.assign(starts.data(), starts.data() + starts.shape(0));
    starts_ = own_starts_.data();
  }
  template <class Column> void set_heads(const In1<Column>& columns) {
    heads_.resize(size_t(n_features_));
    for (int64_t f = 0; f < n_features_; ++f) {
      heads_[size_t(f)] = {starts_[f], 0};
      for (uint32_t k = starts_[f]; k < starts_[f + 1]; ++k) heads_[size_t(f)].bits |= uint32_t(1) << columns.data()[k];
    }
  }

  In1<uint32_t> given_starts_;
  std::vector<uint32_t> own_starts_;
  const uint32_t* starts_ = nullptr;  // nullptr: all pairs have a weight
  std::vector<Pattern::Head> heads_;
  In1<uint16_t> columns_;
  In1<int32_t> wide_columns_;
  int64_t n_features_ = 0, width_ = 0, n_weights_ = 0;
};

// Checked sequences for the online and margin learners.
template <class T>
OnlineData<T> online_data(const FeatureRows& rows, const WeightPattern& pattern, const FeatureRows* edge_rows,
                          const WeightPattern* edge_pattern, In1<int64_t> offsets, In1<int32_t> labels,
                          const std::optional<In1<uint8_t>>& shared_mask, In1<int64_t> order, int64_t n_weights) {
  OnlineData<T> data{};
  data.rows = rows.view<T>();
  data.nodes = pattern.view();
  data.C = int(data.nodes.width);
  require(data.nodes.width <= 32767, "a chain needs between 1 and 32767 labels");
  require(rows.n_columns() <= data.nodes.n_features, "the rows have more features than the pattern");
  const int64_t C = data.C;
  require((edge_rows != nullptr) == (edge_pattern != nullptr), "edge rows and edge pattern come together");
  if (edge_rows) {
    data.edge_rows = edge_rows->view<T>();
    data.edges = edge_pattern->view();
    require(data.edge_rows.n_rows == data.rows.n_rows, "edge rows and rows must be equally many");
    require(data.edges.width == C * C, "the edge pattern must have labels x labels columns");
    require(edge_rows->n_columns() <= data.edges.n_features, "the edge rows have more features than the pattern");
  }
  data.n = require_offsets_within(offsets, data.rows.n_rows, "offsets", "rows");
  require(int64_t(labels.shape(0)) == data.rows.n_rows, "labels and rows must be equally many");
  for (size_t t = 0; t < labels.shape(0); ++t)
    require(labels.data()[t] >= -1 && labels.data()[t] < C, "a label is out of range");
  for (size_t k = 0; k < order.shape(0); ++k)
    require(order.data()[k] >= 0 && order.data()[k] < data.n, "the order names a sequence that does not exist");
  require(data.nodes.n_weights + C * C + 2 * C + data.edges.n_weights == n_weights, "weights have the wrong length");
  if (shared_mask) {
    require(int64_t(shared_mask->shape(0)) == C * C + 2 * C, "shared_mask has the wrong length");
    data.shared_mask = shared_mask->data();
  }
  data.offsets = offsets.data();
  data.labels = labels.data();
  return data;
}

}  // namespace mercer
