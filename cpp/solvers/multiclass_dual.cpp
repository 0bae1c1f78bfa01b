// Dual ascent for multiclass margins (solvers/multiclass_dual.hpp) as a Python object that is driven epoch by epoch.
#include <algorithm>
#include <cmath>

#include "base/csr_rows.hpp"
#include "solvers/multiclass_loops.hpp"

namespace mercer {
namespace {

class MulticlassDual {
 public:
  MulticlassDual(const FeatureRows& rows, In1<int32_t> labels, In1<double> upper, In2<double> costs, bool squared,
                 uint64_t seed, int shards, int64_t block, int strips)
      : rows_(rows), labels_(labels), upper_(upper), n_labels_(int64_t(costs.shape(0))), squared_(squared) {
    require(n_labels_ >= 1 && n_labels_ <= (1 << 24) && costs.shape(1) == costs.shape(0),
            "costs must be a square matrix");
    require(int64_t(labels.shape(0)) == rows.n_rows(), "labels must have one value for each row");
    require(int64_t(upper.shape(0)) == rows.n_rows(), "upper must have one value for each row");
    require(rows.n_columns() <= (int64_t(1) << 40) / n_labels_, "there are too many weights");
    require(shards >= 1 && shards <= MarginState::kMaxShards, "shards must be between 1 and 8");
    require(block >= 1, "block must be at least 1");
    require(strips >= 1 && strips <= 64 && (strips == 1 || shards == 1),
            "strips must be between 1 and 64, and 1 with several shards");
    require(rows.n_rows() < (int64_t(1) << 32), "there are too many examples");
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
    state_.strips.wanted = strips;
    state_.seed = seed;
    nb::gil_scoped_release release;
    if (rows.single())
      single_.prepare(problem<float>(), costs.data(), state_);
    else
      double_.prepare(problem<double>(), costs.data(), state_);
  }

  double epoch(int threads) {
    const int n_threads = thread_count(threads);
    nb::gil_scoped_release release;
    if (rows_.single()) return single_.epoch(problem<float>(), state_, n_threads);
    return double_.epoch(problem<double>(), state_, n_threads);
  }
  std::pair<double, double> check(double tol, int threads) {
    require(tol >= 0, "tol must not be negative");
    const int n_threads = thread_count(threads);
    nb::gil_scoped_release release;
    if (rows_.single())
      single_.check(problem<float>(), state_, tol, n_threads);
    else
      double_.check(problem<double>(), state_, tol, n_threads);
    return {state_.primal, state_.dual};
  }
  int strips() const { return state_.strips.count(); }
  int64_t active() const { return int64_t(state_.active.size()); }

  void weights(Out1<double> out) const {
    require(int64_t(out.shape(0)) == rows_.n_columns() * n_labels_, "out must have n_features * n_labels values");
    pack(state_.average, out.data());
  }
  void dual_variables(Out2<double> out) const {
    require(int64_t(out.shape(0)) == rows_.n_rows() && int64_t(out.shape(1)) == n_labels_,
            "out must be examples x labels");
    std::fill_n(out.data(), rows_.n_rows() * n_labels_, 0.0);
    for (int64_t i = 0; i < rows_.n_rows(); ++i)
      for (const auto& [c, a] : state_.alpha[i]) out.data()[i * n_labels_ + c] = a;
  }

  // All that the next epoch depends on. Taken after a check.
  nb::dict state() const {
    nb::dict all;
    auto put = [&](const char* name, auto&& values) { all[name] = to_numpy(std::move(values)); };
    put("w", packed(state_.w[0]));
    put("average", packed(state_.average));
    std::vector<int64_t> starts(1, 0);
    MarginState::Block alpha;
    for (const auto& block : state_.alpha) {
      alpha.insert(alpha.end(), block.begin(), block.end());
      starts.push_back(int64_t(alpha.size()));
    }
    put("starts", std::move(starts));
    put("labels", labels_of(alpha));
    put("values", values_of(alpha));
    put("old_starts", std::vector<int64_t>(state_.old_starts));
    put("old_labels", labels_of(state_.old));
    put("old_values", values_of(state_.old));
    put("active", std::vector<int64_t>(state_.active));
    put("counts", std::vector<int64_t>{int64_t(state_.seed), state_.since, state_.averaged, state_.strips.batch});
    put("reach", std::vector<double>{state_.reach});
    return all;
  }
  void restore(In1<double> w, In1<double> average, In1<int64_t> starts, In1<int32_t> labels, In1<double> values,
               In1<int64_t> old_starts, In1<int32_t> old_labels, In1<double> old_values, In1<int64_t> active,
               In1<int64_t> counts, In1<double> reach) {
    const int64_t n = rows_.n_rows();
    for (const auto* weights : {&w, &average}) {
      require(int64_t(weights->shape(0)) == rows_.n_columns() * n_labels_,
              "w and average must have n_features * n_labels values");
      require(all_finite(weights->data(), int64_t(weights->shape(0))), "w and average must be finite");
    }
    check_variables(starts, labels, values);
    if (old_starts.shape(0))
      check_variables(old_starts, old_labels, old_values);
    else
      require(old_labels.shape(0) == 0 && old_values.shape(0) == 0, "old variables without starts");
    std::vector<uint8_t> seen(n, 0);
    for (size_t k = 0; k < active.shape(0); ++k) {
      const int64_t i = active.data()[k];
      require(i >= 0 && i < n && !seen[i], "active must be different examples");
      seen[i] = 1;
    }
    require(counts.shape(0) == 4 && counts.data()[1] >= 0 && counts.data()[2] >= 0, "counts must be four numbers");
    require(state_.strips.count() == 1 || (counts.data()[3] >= 1 && counts.data()[3] <= state_.strips.most),
            "the batch is out of range");
    require(reach.shape(0) == 1 && reach.data()[0] >= 1 && reach.data()[0] <= 1024, "reach must be between 1 and 1024");
    unpack(w.data(), state_.w[0]);
    unpack(average.data(), state_.average);
    for (int a = 1; state_.shards > 1 && a <= state_.shards; ++a) unpack(w.data(), state_.w[a]);
    for (int64_t i = 0; i < n; ++i) {
      state_.alpha[i].clear();
      for (int64_t k = starts.data()[i]; k < starts.data()[i + 1]; ++k)
        state_.alpha[i].emplace_back(labels.data()[k], values.data()[k]);
    }
    state_.old_starts.assign(old_starts.data(), old_starts.data() + old_starts.shape(0));
    state_.old.clear();
    for (size_t k = 0; k < old_labels.shape(0); ++k)
      state_.old.emplace_back(old_labels.data()[k], old_values.data()[k]);
    state_.active.assign(active.data(), active.data() + active.shape(0));
    state_.seed = uint64_t(counts.data()[0]);
    state_.since = counts.data()[1], state_.averaged = counts.data()[2], state_.strips.batch = counts.data()[3];
    state_.reach = reach.data()[0];
  }

 private:
  static std::vector<int32_t> labels_of(const MarginState::Block& block) {
    std::vector<int32_t> labels;
    for (const auto& [c, a] : block) labels.push_back(c);
    return labels;
  }
  static std::vector<double> values_of(const MarginState::Block& block) {
    std::vector<double> values;
    for (const auto& [c, a] : block) values.push_back(a);
    return values;
  }
  std::vector<double> packed(const double* w) const {
    std::vector<double> out(rows_.n_columns() * n_labels_);
    pack(w, out.data());
    return out;
  }
  void pack(const double* w, double* out) const {
    for (int64_t f = 0; f < rows_.n_columns(); ++f) {
      if (state_.stride == 1)
        out[2 * f] = -w[f], out[2 * f + 1] = w[f];
      else
        std::copy_n(w + f * state_.stride, n_labels_, out + f * n_labels_);
    }
  }
  void unpack(const double* from, double* w) const {
    if (state_.stride == 1) {
      for (int64_t f = 0; f < rows_.n_columns(); ++f) w[f] = from[2 * f + 1];
      return;
    }
    for (int64_t f = 0; f < rows_.n_columns(); ++f) std::copy_n(from + f * n_labels_, n_labels_, w + f * state_.stride);
  }
  void check_variables(In1<int64_t> starts, In1<int32_t> labels, In1<double> values) const {
    const int64_t n = rows_.n_rows(), size = int64_t(labels.shape(0));
    require(int64_t(starts.shape(0)) == n + 1 && starts.data()[0] == 0 && starts.data()[n] == size,
            "starts do not fit");
    require(int64_t(values.shape(0)) == size, "labels and values must be equally many");
    for (int64_t i = 0; i < n; ++i) require(starts.data()[i] <= starts.data()[i + 1], "starts must not decrease");
    for (int64_t i = 0; i < n; ++i) {
      double total = 0;
      for (int64_t k = starts.data()[i]; k < starts.data()[i + 1]; ++k) {
        require(labels.data()[k] >= 0 && labels.data()[k] < n_labels_, "a label is out of range");
        require(k == starts.data()[i] || labels.data()[k - 1] < labels.data()[k],
                "the labels of an example must ascend");
        require(labels.data()[k] != labels_.data()[i], "the true label has no dual variable");
        require(std::isfinite(values.data()[k]) && values.data()[k] >= 0,
                "dual variables must be finite and not negative");
        total += values.data()[k];
      }
      // The sum of an example is kept up to rounding.
      require(squared_ || total <= upper_.data()[i] * (1 + 1e-6),
              "the dual variables of an example are above their bound");
    }
  }
  template <class T> MarginProblem<T> problem() const {
    return {{labels_.data(), upper_.data(), int(n_labels_), squared_}, rows_.view<T>()};
  }

  FeatureRows rows_;
  In1<int32_t> labels_;
  In1<double> upper_;
  int64_t n_labels_;
  bool squared_;
  MarginState state_;
  // Costs are laid out for the vectors of one set.
  const MulticlassLoops<float>& single_ = loops<MulticlassLoops<float>>();
  const MulticlassLoops<double>& double_ = loops<MulticlassLoops<double>>();
};

}  // namespace

void bind_multiclass(nb::module_& m) {
  nb::class_<MulticlassDual>(m, "MulticlassDual", "Dual ascent for the multiclass (squared) hinge with costs.")
      .def(nb::init<const FeatureRows&, In1<int32_t>, In1<double>, In2<double>, bool, uint64_t, int, int64_t, int>(),
           "rows"_a, "labels"_a.noconvert(), "upper"_a.noconvert(), "costs"_a.noconvert(), "squared"_a, "seed"_a,
           "shards"_a, "block"_a, "strips"_a = 1)
      .def("epoch", &MulticlassDual::epoch, "threads"_a,
           "Visits every active example once; the sum of their gaps on the way.")
      .def("check", &MulticlassDual::check, "tol"_a, "threads"_a,
           "(primal, dual) over all examples; renews the active ones.")
      .def("weights", &MulticlassDual::weights, "out"_a.noconvert(),
           "Copies W, label by label within a feature, to out.")
      .def("dual_variables", &MulticlassDual::dual_variables, "out"_a.noconvert(),
           "Copies α of the wrong labels to out.")
      .def("state", &MulticlassDual::state,
           "All that the next epoch depends on, as arrays by name; to be taken after a check.")
      .def("restore", &MulticlassDual::restore, "w"_a.noconvert(), "average"_a.noconvert(), "starts"_a.noconvert(),
           "labels"_a.noconvert(), "values"_a.noconvert(), "old_starts"_a.noconvert(), "old_labels"_a.noconvert(),
           "old_values"_a.noconvert(), "active"_a.noconvert(), "counts"_a.noconvert(), "reach"_a.noconvert(),
           "Goes on from a state.")
      .def_prop_ro("strips", &MulticlassDual::strips, "Number of strips in use; 1: the rows are not cut.")
      .def_prop_ro("active", &MulticlassDual::active);
}

}  // namespace mercer
