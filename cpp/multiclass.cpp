// Dual ascent for multiclass margins (multiclass.hpp) as a Python object that is driven epoch by epoch.
#include <algorithm>
#include <cmath>

#include "bindings.hpp"

namespace mercer {
namespace {

class MulticlassDual {
 public:
  MulticlassDual(const FeatureRows& rows, In1<int32_t> labels, In1<double> upper, In2<double> costs, bool squared, uint64_t seed,
                 int shards, int64_t block)
      : rows_(rows), labels_(labels), upper_(upper), n_labels_(int64_t(costs.shape(0))), squared_(squared) {
    require(n_labels_ >= 1 && n_labels_ <= (1 << 24) && costs.shape(1) == costs.shape(0), "costs must be a square matrix");
    require(int64_t(labels.shape(0)) == rows.n_rows(), "labels must have one value for each row");
    require(int64_t(upper.shape(0)) == rows.n_rows(), "upper must have one value for each row");
    require(rows.n_columns() <= (int64_t(1) << 40) / n_labels_, "there are too many weights");
    require(shards >= 1 && shards <= MarginState::kMaxShards, "shards must be between 1 and 8");
    require(block >= 1, "block must be at least 1");
    for (int64_t i = 0; i < rows.n_rows(); ++i) {
      require(labels.data()[i] >= 0 && labels.data()[i] < n_labels_, "a label is out of range");
      require(std::isfinite(upper.data()[i]) && upper.data()[i] >= 0, "upper must be finite and not negative");
    }
    for (int64_t y = 0; y < n_labels_; ++y)
      for (int64_t c = 0; c < n_labels_; ++c) {
        const double cost = costs.data()[y * n_labels_ + c];
        require(std::isfinite(cost) && cost >= 0, "costs must be finite and not negative");
        require(y != c || cost == 0, "the diagonal of costs must be 0");
      }
    state_.shards = shards;
    state_.block = block;
    state_.seed = seed;
    nb::gil_scoped_release release;
    if (rows.single()) kernels().multiclass_prepare_f32(problem<float>(), costs.data(), state_);
    else kernels().multiclass_prepare_f64(problem<double>(), costs.data(), state_);
  }

  double epoch(int threads) {
    const int n_threads = thread_count(threads);
    nb::gil_scoped_release release;
    if (rows_.single()) return kernels().multiclass_epoch_f32(problem<float>(), state_, n_threads);
    return kernels().multiclass_epoch_f64(problem<double>(), state_, n_threads);
  }
  std::pair<double, double> check(double tol, int threads) {
    require(tol >= 0, "tol must not be negative");
    const int n_threads = thread_count(threads);
    nb::gil_scoped_release release;
    if (rows_.single()) kernels().multiclass_check_f32(problem<float>(), state_, tol, n_threads);
    else kernels().multiclass_check_f64(problem<double>(), state_, tol, n_threads);
    return {state_.primal, state_.dual};
  }
  int64_t active() const { return int64_t(state_.active.size()); }

  void weights(Out1<double> out) const {
    require(int64_t(out.shape(0)) == rows_.n_columns() * n_labels_, "out must have n_features * n_labels values");
    for (int64_t f = 0; f < rows_.n_columns(); ++f)
      std::copy_n(state_.average + f * state_.stride, n_labels_, out.data() + f * n_labels_);
  }
  void dual_variables(Out2<double> out) const {
    require(int64_t(out.shape(0)) == rows_.n_rows() && int64_t(out.shape(1)) == n_labels_, "out must be examples x labels");
    std::fill_n(out.data(), rows_.n_rows() * n_labels_, 0.0);
    for (int64_t i = 0; i < rows_.n_rows(); ++i)
      for (const auto& [c, a] : state_.alpha[i]) out.data()[i * n_labels_ + c] = a;
  }

 private:
  template <class T> MarginProblem<T> problem() const {
    return {rows_.view<T>(), labels_.data(), upper_.data(), int(n_labels_), squared_};
  }

  FeatureRows rows_;
  In1<int32_t> labels_;
  In1<double> upper_;
  int64_t n_labels_;
  bool squared_;
  MarginState state_;
};

}  // namespace

void bind_multiclass(nb::module_& m) {
  nb::class_<MulticlassDual>(m, "MulticlassDual", "Dual ascent for the multiclass (squared) hinge with costs.")
      .def(nb::init<const FeatureRows&, In1<int32_t>, In1<double>, In2<double>, bool, uint64_t, int, int64_t>(), "rows"_a,
           "labels"_a.noconvert(), "upper"_a.noconvert(), "costs"_a.noconvert(), "squared"_a, "seed"_a, "shards"_a, "block"_a)
      .def("epoch", &MulticlassDual::epoch, "threads"_a, "Visits every active example once; the sum of their gaps on the way.")
      .def("check", &MulticlassDual::check, "tol"_a, "threads"_a, "(primal, dual) over all examples; renews the active ones.")
      .def("weights", &MulticlassDual::weights, "out"_a.noconvert(), "Copies W, label by label within a feature, to out.")
      .def("dual_variables", &MulticlassDual::dual_variables, "out"_a.noconvert(), "Copies α of the wrong labels to out.")
      .def_prop_ro("active", &MulticlassDual::active);
}

}  // namespace mercer
