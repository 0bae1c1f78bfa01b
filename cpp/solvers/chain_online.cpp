// Online learning over chains as Python sees it; see solvers/chain_online.hpp.
#include <cmath>
#include <optional>

#include "solvers/online_data.hpp"

namespace mercer {

namespace {

template <class T>
std::pair<double, int64_t> run_online(const FeatureRows& rows, const WeightPattern& pattern,
                                      const FeatureRows* edge_rows, const WeightPattern* edge_pattern,
                                      In1<int64_t> offsets, In1<int32_t> labels,
                                      std::optional<In1<uint8_t>> shared_mask, std::optional<In2<uint8_t>> allowed,
                                      const OnlineOptions& options, In1<int64_t> order, Out1<double> w,
                                      Out1<double> extra, OnlineState& state) {
  OnlineData<T> data =
      online_data<T>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, order, int64_t(w.shape(0)));
  const int64_t size = int64_t(w.shape(0));
  // SGD without an l1 penalty keeps nothing beside the weights.
  const bool lean = options.rule == Rule::sgd_log && options.l1 == 0.0;
  require(int64_t(extra.shape(0)) == size || (lean && extra.shape(0) == 0),
          "the vector beside the weights has the wrong length");
  if (allowed) {
    require(int64_t(allowed->shape(0)) == data.rows.n_rows && int64_t(allowed->shape(1)) == data.C,
            "allowed has the wrong shape");
    data.allowed = allowed->data();
  }
  int64_t mistakes = 0;
  nb::gil_scoped_release release;
  if (!all_finite(w.data(), size)) fail("weights must be finite");
  double loss;
  loss = loops<ChainOnlineLoops<T>>().online(data, options, order.data(), int64_t(order.shape(0)), w.data(),
                                             extra.data(), state, &mistakes);
  return {loss, mistakes};
}

std::pair<double, int64_t> online(const FeatureRows& rows, const WeightPattern& pattern, const FeatureRows* edge_rows,
                                  const WeightPattern* edge_pattern, In1<int64_t> offsets, In1<int32_t> labels,
                                  std::optional<In1<uint8_t>> shared_mask, std::optional<In2<uint8_t>> allowed,
                                  int rule, double rate, double decay, double l2, double l1, double aggressiveness,
                                  In1<int64_t> order, Out1<double> w, Out1<double> extra, OnlineState& state) {
  require(rule >= 0 && rule <= 2, "unknown rule");
  for (double x : {rate, decay, l2, l1, aggressiveness})
    require(std::isfinite(x) && x >= 0, "rates and penalties must be finite and not negative");
  const OnlineOptions options{Rule(rule), rate, decay, l2, l1, aggressiveness};
  if (rows.single())
    return run_online<float>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, allowed, options,
                             order, w, extra, state);
  return run_online<double>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, allowed, options,
                            order, w, extra, state);
}

}  // namespace

void bind_chain_online(nb::module_& m) {
  nb::class_<OnlineState>(m, "OnlineState", "What an online learner carries from call to call.")
      .def(nb::init<>())
      .def_rw("scale", &OnlineState::scale)
      .def_rw("step", &OnlineState::step)
      .def_rw("l1_total", &OnlineState::l1_total);
  m.def("online", &online, "rows"_a, "pattern"_a, "edge_rows"_a.none(), "edge_pattern"_a.none(),
        "offsets"_a.noconvert(), "labels"_a.noconvert(), "shared_mask"_a.noconvert().none(),
        "allowed"_a.noconvert().none(), "rule"_a, "rate"_a, "decay"_a, "l2"_a, "l1"_a, "aggressiveness"_a,
        "order"_a.noconvert(), "w"_a.noconvert(), "extra"_a.noconvert(), "state"_a,
        "Runs an online rule over the sequences in the given order; returns (summed loss, wrong labels).");
}

}  // namespace mercer
