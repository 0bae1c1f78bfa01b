// Bindings of segmentations (structures/segments.hpp): checks every array, then calls the kernels of the machine's instruction
// set.
#include <cmath>
#include <limits>

#include "base/arrays.hpp"
#include "structures/segment_loops.hpp"

namespace mercer {
namespace {

template <class T, int D> using Maybe = std::optional<Array<T, D>>;

constexpr int64_t kMostStates = 8192;  // K C, whose square is a table of two neighbours
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool below_infinity(const double* x, int64_t n) {
  bool sound = true;
  for (int64_t k = 0; k < n; ++k) sound &= x[k] < kInfinity;
  return sound;
}

// Part scores, checked once when made; the arrays are kept alive.
class SegmentParts {
 public:
  SegmentParts(In2<double> lengths, In2<double> transitions, In1<double> start, In1<double> end, In1<int64_t> offsets,
               Maybe<const double, 2> frames, Maybe<const double, 2> means, Maybe<const double, 2> starts,
               Maybe<const double, 3> edges, Maybe<const double, 3> pair_means, Maybe<const double, 3> spans,
               Maybe<const double, 2> x, Maybe<const double, 2> variances, Maybe<const double, 3> pair_variances,
               Maybe<const int32_t, 1> mark_length, Maybe<const int32_t, 1> mark_label,
               Maybe<const double, 1> mark_score, Maybe<const uint8_t, 1> cuts, Maybe<const double, 4> pair_spans,
               Maybe<const double, 3> pair_span_scores)
      : lengths_(lengths),
        transitions_(transitions),
        start_(start),
        end_(end),
        offsets_(offsets),
        frames_(frames),
        means_(means),
        starts_(starts),
        edges_(edges),
        pair_means_(pair_means),
        spans_(spans),
        x_(x),
        variances_(variances),
        pair_variances_(pair_variances),
        mark_length_(mark_length),
        mark_label_(mark_label),
        mark_score_(mark_score),
        cuts_(cuts),
        pair_spans_(pair_spans),
        pair_span_scores_(pair_span_scores) {
    const int64_t K = int64_t(lengths.shape(0)), C = int64_t(lengths.shape(1));
    require(C >= 1 && C <= 32767, "segments need between 1 and 32767 labels");
    require(K >= 1 && K <= (1 << 24), "segments need a longest length between 1 and 2^24");
    require(K <= (int64_t(1) << 40) / (C * C), "the table of lengths is too large");
    require(int64_t(transitions.shape(0)) == C && int64_t(transitions.shape(1)) == C,
            "transitions must be labels x labels");
    require(int64_t(start.shape(0)) == C && int64_t(end.shape(0)) == C, "start and end need one score a label");
    b_.n = require_offsets_within(offsets, int64_t(1) << 40, "offsets", "longest possible sequence");
    T_ = offsets.data()[b_.n] - offsets.data()[0];
    b_.C = int(C);
    b_.K = int(K);
    b_.d = x ? int(x->shape(1)) : 0;
    b_.offsets = offsets.data();
    b_.lengths = sound(lengths, true);
    b_.transitions = sound(transitions, true);
    b_.start = sound(start, true);
    b_.end = sound(end, true);
    b_.frames = part(frames_, {T_, C}, "frames must be positions x labels", true);
    b_.means = part(means_, {T_, C}, "means must be positions x labels", false);
    b_.starts = part(starts_, {T_, C}, "starts must be positions x labels", true);
    b_.edges = part(edges_, {T_, C, C}, "edges must be positions x labels x labels", true);
    b_.pair_means = part(pair_means_, {T_, C, C}, "pair_means must be positions x labels x labels", false);
    b_.spans = part(spans_, {T_, K, C}, "spans must be positions x lengths x labels", true);
    b_.x = part(x_, {T_, b_.d}, "features must be positions x features", false);
    b_.variances = part(variances_, {b_.d, C}, "variances must be features x labels", false);
    b_.pair_variances = part(pair_variances_, {b_.d, C, C}, "pair_variances must be features x labels x labels", false);
    require(b_.x || (!b_.variances && !b_.pair_variances), "scores of variances need the features");
    require(bool(pair_spans) == bool(pair_span_scores), "give pair_spans and pair_span_scores together");
    if (pair_spans) {
      require(K * C <= kMostStates, "scores of two whole segments need at most 8192 lengths times labels");
      require(pair_spans->shape(3) <= (1 << 20), "pair_spans has too many features");
      b_.g = int(pair_spans->shape(3));
      b_.pair_spans =
          part(pair_spans_, {T_, K, K, b_.g}, "pair_spans must be positions x lengths x lengths x features", false);
      b_.pair_span_scores =
          part(pair_span_scores_, {b_.g, C, C}, "pair_span_scores must be features x labels x labels", false);
    }
    require(bool(mark_length) == bool(mark_label) && bool(mark_label) == bool(mark_score),
            "give all of the marks or none");
    if (mark_length) {
      require(int64_t(mark_length->shape(0)) == T_ && int64_t(mark_label->shape(0)) == T_,
              "marks must be one a position");
      for (int64_t t = 0; t < T_; ++t)
        require(mark_label->data()[t] >= 0 && mark_label->data()[t] < C, "the label of a mark is out of range");
      b_.mark_length = mark_length->data();
      b_.mark_label = mark_label->data();
      b_.mark_score = part(mark_score_, {T_}, "marks must be one a position", false);
    }
    require(!cuts || int64_t(cuts->shape(0)) == T_, "cuts must be one a position");
    b_.cuts = cuts ? cuts->data() : nullptr;
  }

  const SegmentBatch& batch() const { return b_; }
  int64_t positions() const { return T_; }

 private:
  template <class A> const double* sound(const A& array, bool may_forbid) const {
    const int64_t size = int64_t(array.size());
    require(below_infinity(array.data(), size) && (may_forbid || all_finite(array.data(), size)),
            "scores must be finite or -inf: a score is NaN or +inf (features or weights too large?)");
    return array.data();
  }
  template <class A>
  const double* part(const std::optional<A>& array, std::initializer_list<int64_t> shape, const char* what,
                     bool may_forbid) const {
    if (!array) return nullptr;
    size_t axis = 0;
    for (int64_t size : shape) require(int64_t(array->shape(axis++)) == size, what);
    return sound(*array, may_forbid);
  }

  In2<double> lengths_, transitions_;
  In1<double> start_, end_;
  In1<int64_t> offsets_;
  Maybe<const double, 2> frames_, means_, starts_;
  Maybe<const double, 3> edges_, pair_means_, spans_;
  Maybe<const double, 2> x_, variances_;
  Maybe<const double, 3> pair_variances_;
  Maybe<const int32_t, 1> mark_length_, mark_label_;
  Maybe<const double, 1> mark_score_;
  Maybe<const uint8_t, 1> cuts_;
  Maybe<const double, 4> pair_spans_;
  Maybe<const double, 3> pair_span_scores_;
  SegmentBatch b_{};
  int64_t T_ = 0;
};

void marginals(const SegmentParts& parts, Out1<double> log_partition, Maybe<double, 1> sums, Maybe<double, 2> frames,
               Maybe<double, 2> means, Maybe<double, 2> starts, Maybe<double, 3> edges, Maybe<double, 3> pair_means,
               Maybe<double, 3> spans, Maybe<double, 1> entropy, int threads) {
  const SegmentBatch& b = parts.batch();
  const int64_t T = parts.positions(), C = b.C, K = b.K;
  auto shaped = [](const auto& array, std::initializer_list<int64_t> shape, const char* what) {
    if (!array) return static_cast<double*>(nullptr);
    size_t axis = 0;
    for (int64_t size : shape) require(int64_t(array->shape(axis++)) == size, what);
    return array->data();
  };
  require(int64_t(log_partition.shape(0)) == b.n, "log_partition needs one place a sequence");
  SegmentMarginals out{};
  out.log_partition = log_partition.data();
  out.sums = shaped(sums, {b.sums()}, "sums has the wrong length");
  out.frames = shaped(frames, {T, C}, "frames has the wrong shape");
  out.means = shaped(means, {T, C}, "means has the wrong shape");
  out.starts = shaped(starts, {T, C}, "starts has the wrong shape");
  out.edges = shaped(edges, {T, C, C}, "edges has the wrong shape");
  out.pair_means = shaped(pair_means, {T, C, C}, "pair_means has the wrong shape");
  out.spans = shaped(spans, {T, K, C}, "spans has the wrong shape");
  out.entropy = shaped(entropy, {b.n}, "entropy needs one place a sequence");
  if (out.entropy)
    require((out.frames || !b.frames) && (out.means || !b.means) && (out.starts || !b.starts) &&
                (out.edges || !b.edges) && (out.pair_means || !b.pair_means) && (out.spans || !b.spans),
            "the entropy needs the marginals of every part that has scores");
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<SegmentLoops>().marginals(b, out, n_threads);
}

void best(const SegmentParts& parts, Out1<int32_t> length, Out1<int32_t> label, Out1<double> score, int threads) {
  require(int64_t(length.shape(0)) == parts.positions() && int64_t(label.shape(0)) == parts.positions(),
          "length and label need one place a position");
  require(int64_t(score.shape(0)) == parts.batch().n, "score needs one place a sequence");
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<SegmentLoops>().best(parts.batch(), length.data(), label.data(), score.data(), n_threads);
}

void k_best(const SegmentParts& parts, Out2<int32_t> length, Out2<int32_t> label, Out2<double> score, int threads) {
  const int64_t k = int64_t(score.shape(1));
  require(k >= 1 && k <= 1000000, "k must be at least 1");
  for (const auto* array : {&length, &label})
    require(int64_t(array->shape(0)) == k && int64_t(array->shape(1)) == parts.positions(),
            "length and label must be k x positions");
  require(int64_t(score.shape(0)) == parts.batch().n, "score must be sequences x k");
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<SegmentLoops>().k_best(parts.batch(), int(k), length.data(), label.data(), score.data(), n_threads);
}

void sample(const SegmentParts& parts, uint64_t seed, Out2<int32_t> length, Out2<int32_t> label, int threads) {
  const int64_t draws = int64_t(length.shape(0));
  require(draws <= (1 << 30) && int64_t(label.shape(0)) == draws, "length and label must be equally many");
  for (const auto* array : {&length, &label})
    require(int64_t(array->shape(1)) == parts.positions(), "length and label need one place a position");
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<SegmentLoops>().sample(parts.batch(), int(draws), seed, length.data(), label.data(), n_threads);
}

void spans(const SegmentParts& parts, Out3<double> out, int threads) {
  const SegmentBatch& b = parts.batch();
  require(int64_t(out.shape(0)) == parts.positions() && int64_t(out.shape(1)) == b.K && int64_t(out.shape(2)) == b.C,
          "spans must be positions x lengths x labels");
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<SegmentLoops>().spans(b, out.data(), n_threads);
}

void score(const SegmentParts& parts, In1<int64_t> lengths, In1<int32_t> labels, In1<int64_t> firsts, Out1<double> out,
           int threads) {
  const SegmentBatch& b = parts.batch();
  const int64_t count = int64_t(lengths.shape(0));
  require(int64_t(labels.shape(0)) == count, "lengths and labels must be equally many");
  require(int64_t(firsts.shape(0)) == b.n + 1 && int64_t(out.shape(0)) == b.n,
          "firsts or out does not fit the sequences");
  require_offsets(firsts, count, "firsts", "segments");
  for (int64_t k = 0; k < count; ++k) {
    require(labels.data()[k] >= 0 && labels.data()[k] < b.C, "a label is out of range");
    require(lengths.data()[k] >= 1 && lengths.data()[k] <= parts.positions(), "a length is out of range");
  }
  for (int64_t i = 0; i < b.n; ++i) {
    const int64_t first = firsts.data()[i], last = firsts.data()[i + 1];
    int64_t covered = 0;
    for (int64_t k = first; k < last; ++k) covered += lengths.data()[k];
    require(first == last || covered == b.offsets[i + 1] - b.offsets[i], "the segments must cover their sequence");
  }
  const int n_threads = thread_count(threads);
  nb::gil_scoped_release release;
  loops<SegmentLoops>().score(b, lengths.data(), labels.data(), firsts.data(), out.data(), n_threads);
}

}  // namespace

void bind_segments(nb::module_& m) {
  nb::class_<SegmentParts>(m, "SegmentParts", "Part scores of segmentations, checked.")
      .def(nb::init<In2<double>, In2<double>, In1<double>, In1<double>, In1<int64_t>, Maybe<const double, 2>,
                    Maybe<const double, 2>, Maybe<const double, 2>, Maybe<const double, 3>, Maybe<const double, 3>,
                    Maybe<const double, 3>, Maybe<const double, 2>, Maybe<const double, 2>, Maybe<const double, 3>,
                    Maybe<const int32_t, 1>, Maybe<const int32_t, 1>, Maybe<const double, 1>, Maybe<const uint8_t, 1>,
                    Maybe<const double, 4>, Maybe<const double, 3>>(),
           "lengths"_a.noconvert(), "transitions"_a.noconvert(), "start"_a.noconvert(), "end"_a.noconvert(),
           "offsets"_a.noconvert(), "frames"_a.noconvert().none() = nb::none(),
           "means"_a.noconvert().none() = nb::none(), "starts"_a.noconvert().none() = nb::none(),
           "edges"_a.noconvert().none() = nb::none(), "pair_means"_a.noconvert().none() = nb::none(),
           "spans"_a.noconvert().none() = nb::none(), "x"_a.noconvert().none() = nb::none(),
           "variances"_a.noconvert().none() = nb::none(), "pair_variances"_a.noconvert().none() = nb::none(),
           "mark_length"_a.noconvert().none() = nb::none(), "mark_label"_a.noconvert().none() = nb::none(),
           "mark_score"_a.noconvert().none() = nb::none(), "cuts"_a.noconvert().none() = nb::none(),
           "pair_spans"_a.noconvert().none() = nb::none(), "pair_span_scores"_a.noconvert().none() = nb::none())
      .def_prop_ro("n_sums", [](const SegmentParts& p) { return p.batch().sums(); })
      .def("marginals", &marginals, "log_partition"_a.noconvert(), "sums"_a.noconvert().none() = nb::none(),
           "frames"_a.noconvert().none() = nb::none(), "means"_a.noconvert().none() = nb::none(),
           "starts"_a.noconvert().none() = nb::none(), "edges"_a.noconvert().none() = nb::none(),
           "pair_means"_a.noconvert().none() = nb::none(), "spans"_a.noconvert().none() = nb::none(),
           "entropy"_a.noconvert().none() = nb::none(), "threads"_a = 1)
      .def("best", &best, "length"_a.noconvert(), "label"_a.noconvert(), "score"_a.noconvert(), "threads"_a = 1)
      .def("k_best", &k_best, "length"_a.noconvert(), "label"_a.noconvert(), "score"_a.noconvert(), "threads"_a = 1)
      .def("sample", &sample, "seed"_a, "length"_a.noconvert(), "label"_a.noconvert(), "threads"_a = 1)
      .def("spans", &spans, "out"_a.noconvert(), "threads"_a = 1)
      .def("score", &score, "lengths"_a.noconvert(), "labels"_a.noconvert(), "firsts"_a.noconvert(),
           "out"_a.noconvert(), "threads"_a = 1);
}

}  // namespace mercer
