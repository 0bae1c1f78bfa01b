// Label sets over hashed features: a probabilistic tree of labels [Jasinska2016], online and in fixed memory.
//
// Labels are the leaves of a tree in which every node has 16 children; label y lies under the children
// y / 16^(depth - 1), y / 16^(depth - 2), ..., y. P(y | x) is the product along the path of sigma(s_c(x)), the probability
// that a label of the example lies under child c if one lies under its parent. So an example with k labels trains at
// most k depth nodes of 16 children, whatever the number of labels, and the likely labels are found by walking from
// the root to the likely children.
//
// The weights of a feature for the children of a node share a line of 16 floats, at the hash of feature and node.
// AdaGrad: G += g^2, w -= rate g / sqrt(G), with G from kStart; x has unit length, and a constant feature is added.
#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

#include "base/arrays.hpp"
#include "base/parallel.hpp"
#include "base/signals.hpp"
#include "hashing/feature_hash.hpp"
#include "io/example_batch.hpp"

namespace mercer {
namespace {

constexpr int kChildren = 16;
constexpr float kStart = 0.01f;
constexpr uint64_t kConstant = 0x9e3779b97f4a7c15ull;

struct Shape {
  int64_t n_labels;
  int depth;
  uint64_t mask;  // of lines

  // How many labels a child of a node at this level has under it.
  int64_t span(int level) const {
    int64_t span = 1;
    for (int l = level + 1; l < depth; ++l) span *= kChildren;
    return span;
  }
  // Levels at which all labels lie under the first child decide nothing.
  int first_level() const {
    int level = 0;
    while (level + 1 < depth && n_labels <= span(level)) ++level;
    return level;
  }
  int children(int level, int64_t node) const {
    const int64_t width = span(level), first = node * kChildren * width;
    return int(std::clamp<int64_t>((n_labels - first + width - 1) / width, 0, kChildren));
  }
  uint64_t name(int level, int64_t node) const { return uint64_t(level + 1) << 48 | uint64_t(node); }
};

// An example with values of unit length.
struct Input {
  std::vector<uint64_t> hashes;
  std::vector<float> x;

  void read(const Examples& examples, int64_t i) {
    const int64_t begin = examples.indptr[size_t(i)], end = examples.indptr[size_t(i) + 1];
    hashes.assign(examples.hashes.begin() + begin, examples.hashes.begin() + end);
    x.assign(size_t(end - begin), 1.0f);
    if (!examples.values.empty()) std::copy(examples.values.begin() + begin, examples.values.begin() + end, x.begin());
    double total = 0;
    for (const float value : x) total += double(value) * value;
    const float scale = total > 0 ? float(1 / std::sqrt(total)) : 0.0f;
    for (float& value : x) value *= scale;
    hashes.push_back(kConstant);
    x.push_back(1.0f);
  }
};

float sigma(float s) { return 1.0f / (1.0f + std::exp(-s)); }

void score(const Input& input, const Shape& shape, uint64_t node, const float* weights, float* out) {
  std::fill(out, out + kChildren, 0.0f);
  for (size_t k = 0; k < input.x.size(); ++k) {
    const float* line = weights + (combine(input.hashes[k], node) & shape.mask) * kChildren;
    for (int c = 0; c < kChildren; ++c) out[c] += input.x[k] * line[c];
  }
}

Shape checked(int64_t n_labels, int depth, size_t size) {
  require(depth >= 1 && depth <= 7, "depth must lie between 1 and 7");
  int64_t most = 1;
  for (int l = 0; l < depth; ++l) most *= kChildren;
  require(n_labels >= 0 && n_labels <= most, "n_labels must fit the tree");
  const uint64_t lines = size / kChildren;
  require(size % kChildren == 0 && lines >= 1 && (lines & (lines - 1)) == 0, "the table must have 16 2^k numbers");
  return {n_labels, depth, lines - 1};
}

double learn(const Examples& examples, In1<int64_t> starts, In1<int32_t> labels, Out1<float> weights,
             Out1<float> squares, int64_t n_labels, int depth, double rate) {
  const Shape shape = checked(n_labels, depth, weights.shape(0));
  require(squares.shape(0) == weights.shape(0), "squares must have the size of weights");
  require(rate > 0 && std::isfinite(rate), "rate must be positive");
  const int64_t n = examples.size();
  require(int64_t(starts.shape(0)) == n + 1, "starts needs a number more than there are examples");
  require_offsets(starts, int64_t(labels.shape(0)), "starts", "labels");
  for (size_t i = 0; i < labels.shape(0); ++i)
    require(labels.data()[i] >= 0 && labels.data()[i] < n_labels, "a label is out of range");
  if (n_labels == 0) return 0;
  nb::gil_scoped_release unlocked;
  float *W = weights.data(), *G = squares.data();
  Input input;
  std::vector<int64_t> nodes, next;
  float scores[kChildren], slopes[kChildren];
  double loss = 0;
  const int top = shape.first_level();
  for (int64_t i = 0; i < n; ++i) {
    input.read(examples, i);
    const int32_t *begin = labels.data() + starts.data()[i], *end = labels.data() + starts.data()[i + 1];
    nodes.assign(1, 0);
    for (int level = top; level < depth; ++level) {
      const int64_t span = shape.span(level);
      next.clear();
      for (const int64_t node : nodes) {
        const uint64_t name = shape.name(level, node);
        const int children = shape.children(level, node);
        score(input, shape, name, W, scores);
        for (int c = 0; c < kChildren; ++c) slopes[c] = c < children ? sigma(scores[c]) : 0.0f;
        for (const int32_t* y = begin; y < end; ++y) {
          const int64_t child = *y / span;
          if (child / kChildren != node) continue;
          if (next.empty() || next.back() != child) {
            if (std::find(next.begin(), next.end(), child) == next.end()) {
              next.push_back(child);
              slopes[child % kChildren] -= 1.0f;
            }
          }
        }
        for (int c = 0; c < children; ++c) {
          const bool there = slopes[c] < 0;
          loss -= std::log(std::max(1e-7, there ? 1.0 + slopes[c] : 1.0 - double(slopes[c])));
        }
        for (size_t k = 0; k < input.x.size(); ++k) {
          const uint64_t at = (combine(input.hashes[k], name) & shape.mask) * kChildren;
          float *w = W + at, *squared = G + at;
          const float x = input.x[k];
          for (int c = 0; c < kChildren; ++c) {
            const float g = slopes[c] * x;
            squared[c] += g * g;
            w[c] -= float(rate) * g / std::sqrt(squared[c] + kStart);
          }
        }
      }
      nodes.swap(next);
      if (nodes.empty()) break;
    }
    if (i % 256 == 255) check_signals();
  }
  return loss;
}

struct Found {
  float probability;
  int level;
  int64_t node;
  bool operator<(const Found& other) const { return probability < other.probability; }
};

// Labels in the order of their probabilities: those of at least `least`, and at most so many.
void search(const Input& input, const Shape& shape, const float* W, double least, int64_t most,
            std::vector<std::pair<int32_t, float>>& out) {
  std::priority_queue<Found> open;
  open.push({1.0f, shape.first_level(), 0});
  float scores[kChildren];
  while (!open.empty() && int64_t(out.size()) < most) {
    const Found best = open.top();
    open.pop();
    if (best.level == shape.depth) {
      out.emplace_back(int32_t(best.node), best.probability);
      continue;
    }
    score(input, shape, shape.name(best.level, best.node), W, scores);
    const int children = shape.children(best.level, best.node);
    for (int c = 0; c < children; ++c) {
      const float probability = best.probability * sigma(scores[c]);
      if (probability >= float(least)) open.push({probability, best.level + 1, best.node * kChildren + c});
    }
  }
}

nb::tuple likely(const Examples& examples, In1<float> weights, int64_t n_labels, int depth, double least, int64_t most,
                 int threads) {
  const Shape shape = checked(n_labels, depth, weights.shape(0));
  require(least >= 0 && least <= 1, "least must be a probability");
  require(most >= 1, "most must be at least 1");
  threads = thread_count(threads);
  const int64_t n = examples.size(), block = 64;
  std::vector<std::vector<std::pair<int32_t, float>>> found(static_cast<size_t>(n));
  {
    nb::gil_scoped_release unlocked;
    if (n_labels > 0)
      in_parallel((n + block - 1) / block, threads, [&](int64_t part) {
        Input input;
        for (int64_t i = part * block; i < std::min(n, (part + 1) * block); ++i) {
          input.read(examples, i);
          search(input, shape, weights.data(), least, most, found[size_t(i)]);
        }
      });
  }
  std::vector<int64_t> starts{0};
  std::vector<int32_t> labels;
  std::vector<float> probabilities;
  for (const auto& row : found) {
    for (const auto& [label, probability] : row) {
      labels.push_back(label);
      probabilities.push_back(probability);
    }
    starts.push_back(int64_t(labels.size()));
  }
  return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(labels)), to_numpy(std::move(probabilities)));
}

}  // namespace

void bind_label_tree(nb::module_& m) {
  m.def("learn_label_sets", &learn, "examples"_a, "starts"_a, "labels"_a, "weights"_a, "squares"_a, "n_labels"_a,
        "depth"_a, "rate"_a, "Learns from the label sets of a block; the sum of the losses before each example.");
  m.def("likely_labels", &likely, "examples"_a, "weights"_a, "n_labels"_a, "depth"_a, "least"_a, "most"_a, "threads"_a,
        "(starts, labels, probabilities) of each example, the most likely first.");
}

}  // namespace mercer
