// Sequences for online and margin learning over chains, from what Python hands over.
#pragma once

#include "base/csr_rows.hpp"
#include "solvers/chain_online_loops.hpp"

namespace mercer {

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
