// Feature rows and patterns of weights that Python hands over: checked once, and kept alive.
#pragma once

#include <vector>

#include "base/arrays.hpp"
#include "base/csr.hpp"

namespace mercer {

// A view of sparse rows with their columns in any order, of some or all of the entries.
template <class T>
Rows<T> sparse_rows(const In1<int64_t>& indptr, const In1<int32_t>& indices, const In1<T>& values, int64_t n_columns) {
  require(indices.shape(0) == values.shape(0), "indices and values must be equally many");
  const int64_t n = require_offsets_within(indptr, int64_t(indices.shape(0)), "indptr", "indices");
  for (int64_t k = indptr.data()[0]; k < indptr.data()[n]; ++k)
    require(indices.data()[k] >= 0 && indices.data()[k] < n_columns, "a column index is out of range");
  return {indptr.data(), indices.data(), values.data(), n, n_columns};
}

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

}  // namespace mercer
