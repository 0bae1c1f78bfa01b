// A block of examples on its way from a reader to a learner: features as 64-bit hashes with values, labels, weights.
//
// Python sees an opaque Examples object: a reader makes it in one thread while the learner works on the one before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mercer {

struct Examples {
  // Example i has the features hashes[indptr[i]] .. hashes[indptr[i + 1]], repeats allowed (they add up).
  std::vector<int64_t> indptr{0};
  std::vector<uint64_t> hashes;
  std::vector<float> values;    // empty: all 1
  bool documents = false;       // features are those of documents, so that repeats are counts; values is empty then
  std::vector<float> weights;   // importance of each example; empty: all 1
  std::vector<double> targets;  // numeric targets (regression), NaN where there is none; empty if the labels are names
  // Class labels: numbers into label_names, -1 where there is none. label_names are those of this block only; the
  // learner has the table of all labels. Both empty if targets are numeric.
  std::vector<int32_t> labels;
  std::vector<std::string> label_names;

  int64_t size() const { return int64_t(indptr.size()) - 1; }
  void check() const;  // throws std::invalid_argument unless all of the above holds
  // Every feature so many times, under hashes of its own: h, combine(h, 1), combine(h, 2), … behind each other.
  void copy_features(int copies);
};

}  // namespace mercer
