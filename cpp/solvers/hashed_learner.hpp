// Online learning of linear models over hashed features, in fixed memory: one output, or any number of classes.
//
// One output (two classes, regression): s(x) = b + Σ_k w[f_k & mask] x_k. The numbers of a weight (itself, its sum of
// squared gradients, …) lie side by side, so that an update touches one cache line.
//
// Several classes: s(x, y) = b_y + Σ_k sign(f_k, y / 16) w[index(f_k, y)] x_k. Labels go in blocks of 16, and the
// weights of a feature for the labels of a block share one line of 16:
//
//   joint      index(f, y) = (combine(f, y / 16) & mask) ^ (y % 16)
//   two-stage  index(f, y) = ((f & mask) a + c & mask) ^ (y % 16),
//              a (odd) and c hashes of y / 16: for each label a permutation
//   separate   row f & mask, column y of a table with 2^n_bits rows
//
// So any two pairs share a weight with probability 1 / 2^n_bits, and to score an example takes nnz · classes / 16
// lines. The sign is the highest bit of what index is the low bits of (1 for separate): what pairs that share a weight
// do to each other has mean 0.
//
// Optimizers; g = slope · x is the gradient of a weight, h the weight of the example:
//
//   adagrad   features divided by the largest |x| they had so far; G += h g², w moves along
//             -g eta (t / N)^(3/4) / sqrt(G), where N / t is the mean squared length of the examples, for as long as the
//             loss asks (solvers/pointwise_losses.hpp). Several classes: G starts at 0.1, and the log loss of more than 64 leaves
//             classes with less than twice the average probability alone. Regression: eta is in units of the spread of
//             the targets seen so far, so that the result does not depend on their unit.
//   ftrl      n += h g², z += h g - (change of sqrt(n)) / alpha · w;  w = -shrink(z, l1) / ((1 + sqrt(n)) / alpha + l2)
//   sgd       w <- (1 - eta λ) w - eta h g,  eta = 1 / (λ (t + t0)), λ = l2; w is kept as a number times a vector
//
// l1 and l2 of adagrad, and l1 of sgd, act on the weights of an example's features when it is learnt, and on no others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/example_batch.hpp"
#include "solvers/pointwise_losses.hpp"

namespace mercer {

enum class Task { binary, multiclass, regression };
enum class Optimizer { adagrad, ftrl, sgd };
enum class LabelHashing { joint, separate, two_stage };

struct LearnerSettings {
  Task task = Task::binary;
  LossSettings loss;
  Optimizer optimizer = Optimizer::adagrad;
  LabelHashing label_hashing = LabelHashing::joint;
  int n_bits = 22;
  double rate = 0.5, l1 = 0, l2 = 0;
  bool intercept = true;
  bool damped = true;  // documents: a feature that occurs c times has the value √c, not c
  bool scaled =
      false;  // room for the scales of features from the start; otherwise when the first value other than 1 comes
};

// Zeroed floats at the start of a cache line, in large pages where the system has them. Pages cost memory when they are
// touched.
class FloatTable {
 public:
  FloatTable() = default;
  explicit FloatTable(uint64_t size);  // throws std::bad_alloc
  float* data() { return data_; }
  const float* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> owner_;
  float* data_ = nullptr;
  uint64_t size_ = 0;
};

// What happened in a block: sums over its labelled examples, each judged before it was learnt.
struct ProgressiveFigures {
  int64_t examples = 0, labelled = 0;
  double weight = 0, loss = 0, errors = 0;      // sums; loss and errors times the weights
  double last_target = 0, last_prediction = 0;  // numbers of labels, or values
};

// Working memory of one example; one for each thread.
struct ExampleWork {
  struct Slot {
    uint64_t key;
    uint32_t stamp, position;
  };
  void merge(const uint64_t* all, int64_t n_all, const float* table, uint64_t mask, int64_t stride);

  const uint64_t* hashes = nullptr;  // of its features
  int64_t n = 0;
  bool ones = false;             // all values are 1, and x is not filled
  std::vector<float> x;          // values, scaled
  std::vector<uint64_t> keys;    // features without repeats
  std::vector<uint32_t> counts;  // how often each occurs
  std::vector<Slot> slots;       // open addressing by feature; a slot is taken if it has the stamp of this example
  uint32_t stamp = 0;
  double norm = 0;                  // Σ x²
  std::vector<float> steps;         // rate · x, one output
  std::vector<float> scores;        // of all classes, in whole blocks
  std::vector<float> slopes;        // derivatives of the loss in them
  std::vector<float> lengths;       // Σ rate · x² of each class
  std::vector<uint64_t> places[2];  // of the lines of a block of labels
  std::vector<float> signed_x[2];   // the values, with the signs of their lines
  std::vector<int64_t> touched;     // blocks that will be changed
};

class HashedModel {
 public:
  explicit HashedModel(const LearnerSettings& settings);

  // Learns from the examples begin .. end, in their order; those without label or target are passed over.
  ProgressiveFigures learn(const Examples& examples, int64_t begin, int64_t end);

  // Scores of examples: one number each, or n_outputs() of them.
  void scores(const Examples& examples, int64_t begin, int64_t end, float* out, int threads) const;
  void top(const Examples& examples, int64_t k, int32_t* labels, float* out, int threads) const;

  int64_t n_outputs() const { return settings_.task == Task::multiclass ? int64_t(labels_.size()) : 1; }
  const LearnerSettings& settings() const { return settings_; }
  const std::vector<std::string>& labels() const { return labels_; }
  void set_labels(const std::vector<std::string>& labels);
  uint64_t table_bytes() const { return 4 * (table_.size() - kPadding + scales_.size()); }

  // For model files: all numbers there are.
  const FloatTable& table() const { return table_; }
  const FloatTable& scales() const { return scales_; }
  const std::vector<float>& intercepts() const { return intercepts_; }
  std::vector<double> counters() const;
  void set_state(const float* table, uint64_t n_table, const float* scales, uint64_t n_scales, const float* intercepts,
                 uint64_t n_intercepts, const double* counters, uint64_t n_counters);

  static constexpr int kBlock = 16;
  static constexpr uint64_t kPadding = 16;  // blocks are read whole

 private:
  int width() const;  // numbers of a weight
  int64_t n_blocks() const { return (int64_t(labels_.size()) + kBlock - 1) / kBlock; }
  int32_t label_number(const std::string& name);
  void make_room(int64_t n_labels);
  void make_scales();
  void read(const Examples& examples, int64_t i, ExampleWork& work) const;
  void read_and_rescale(const Examples& examples, int64_t i, ExampleWork& work);
  void place(const ExampleWork& work, int64_t block, int64_t begin, int64_t end, uint64_t* out, float* x) const;
  double score_one(const ExampleWork& work) const;
  void score_all(ExampleWork& work) const;
  double next_rate(double norm, double weight);
  void note_target(double y, double weight);
  void step_one(ExampleWork& work, double y, double score, double slope, double weight, double rate);
  void step_all(ExampleWork& work, int32_t truth, double weight, double rate);
  double multiclass_loss(ExampleWork& work, int32_t truth) const;
  double step_share(const ExampleWork& work, int32_t truth, double weight, double rate,
                    const std::vector<float>& q) const;
  void shrink_all(double rate);

  LearnerSettings settings_;
  uint64_t mask_;
  FloatTable table_, scales_;
  std::vector<float> intercepts_;  // width() numbers for each output, one after the other
  std::vector<std::string> labels_;
  std::unordered_map<std::string, int32_t> numbers_;
  int64_t row_ = 0;  // separate: columns of the table

  // Counters: examples, their weight, Σ ‖x‖², largest ‖x‖², factor of all weights (sgd), and of the targets: weight,
  // mean, spread, first.
  double t_ = 0, weight_ = 0, norms_ = 0, largest_ = 0, factor_ = 1;
  double target_weight_ = 0, target_mean_ = 0, target_spread_ = 0, centre_ = 0;
  ExampleWork work_;
};

}  // namespace mercer
