// Chart parsing with weighted grammars: the Python face of structures/chart.hpp. Sentences are stacked, with offsets; each is
// parsed by one thread, so results do not depend on their number.
#include "structures/chart.hpp"

#include "base/arrays.hpp"
#include "base/parallel.hpp"

namespace mercer {
namespace {

constexpr int64_t kLargestChart = int64_t(1) << 29;  // items of one sentence: 4 GiB of scores

template <class Rule, size_t N>
std::vector<Rule> read_rules(const In2<int32_t>& table, const char* name, const int32_t (&bounds)[N],
                             int32_t n_weights) {
  if (table.shape(1) != N + 1) fail(std::string(name) + " must have one column for each symbol and one for the weight");
  std::vector<Rule> rules(table.shape(0));
  for (size_t r = 0; r < rules.size(); ++r) {
    const int32_t* row = table.data() + r * (N + 1);
    for (size_t k = 0; k < N; ++k)
      if (row[k] < 0 || row[k] >= bounds[k]) fail(std::string(name) + " has a symbol that is out of range");
    if (row[N] < -1 || row[N] >= n_weights) fail(std::string(name) + " has a weight that is out of range");
    if constexpr (N == 3)
      rules[r] = {row[0], row[1], row[2], row[3]};
    else
      rules[r] = {row[0], row[1], row[2]};
  }
  return rules;
}

ChartGrammar make_grammar(int32_t n_terminals, int32_t n_labels, int32_t n_weights, int32_t start, In1<int32_t> labels,
                          In2<int32_t> binary, In2<int32_t> unary, In2<int32_t> lexical) {
  ChartGrammar g;
  require(n_terminals >= 0 && n_labels >= 0 && n_weights >= 0,
          "n_terminals, n_labels and n_weights must not be negative");
  require(labels.shape(0) >= 1 && labels.shape(0) < (size_t(1) << 30), "a grammar needs at least one symbol");
  g.n_symbols = int32_t(labels.shape(0));
  g.n_terminals = n_terminals;
  g.n_labels = n_labels;
  g.n_weights = n_weights;
  require(start >= 0 && start < g.n_symbols, "start is out of range");
  g.start = start;
  g.label.assign(labels.data(), labels.data() + g.n_symbols);
  for (int32_t label : g.label) require(label >= -1 && label < n_labels, "a label is out of range");
  const int32_t S = g.n_symbols;
  g.binary = read_rules<BinaryRule>(binary, "binary", {S, S, S}, n_weights);
  g.unary = read_rules<UnaryRule>(unary, "unary", {S, S}, n_weights);
  g.lexical = read_rules<LexicalRule>(lexical, "lexical", {S, n_terminals}, n_weights);
  const int32_t on_cycle = g.prepare();
  if (on_cycle >= 0) fail("the unary rules have a cycle through symbol " + std::to_string(on_cycle));
  return g;
}

using Spans = std::optional<In2<double>>;

// A checked batch of sentences.
struct Batch {
  const ChartGrammar& g;
  RuleScores scores;
  std::vector<Sentence> sentences;
  std::vector<int64_t> first_cell;
  int threads;

  int64_t size() const { return int64_t(sentences.size()); }
  // The words are read after the checks only: the arrays stay alive through the caller.
  Batch(const ChartGrammar& grammar, const In1<double>& w, const In1<int32_t>& words, const In1<int64_t>& offsets,
        const Spans& spans, bool count_lexical, int threads_)
      : g(grammar), scores(checked(grammar, w), w.data()), threads(thread_count(threads_)) {
    const int64_t n = require_offsets(offsets, int64_t(words.shape(0)), "offsets", "words");
    const int64_t* o = offsets.data();
    for (size_t t = 0; t < words.shape(0); ++t)
      require(words.data()[t] >= 0 && words.data()[t] < g.n_terminals, "a word is out of range");
    sentences.resize(size_t(n));
    first_cell.assign(size_t(n) + 1, 0);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t length = o[i + 1] - o[i];
      require(length < (1 << 20) && Sentence::cells(length) <= kLargestChart / g.n_symbols,
              "a sentence is too long for a grammar with so many symbols");
      first_cell[size_t(i) + 1] = first_cell[size_t(i)] + Sentence::cells(length);
    }
    if (spans) {
      require(int64_t(spans->shape(0)) == first_cell.back() && int64_t(spans->shape(1)) == g.n_labels,
              "span scores must have a row for each cell and a column for each label");
      require(all_finite(spans->data(), first_cell.back() * g.n_labels), "span scores must be finite");
    }
    for (int64_t i = 0; i < n; ++i) {
      const double* sigma = spans ? spans->data() + first_cell[size_t(i)] * g.n_labels : nullptr;
      sentences[size_t(i)] = {words.data() + o[i], int32_t(o[i + 1] - o[i]), sigma, count_lexical};
    }
  }

 private:
  static const ChartGrammar& checked(const ChartGrammar& g, const In1<double>& w) {
    require(int64_t(w.shape(0)) == g.n_weights, "w must have one weight for each rule");
    for (int32_t r = 0; r < g.n_weights; ++r)
      require(w.data()[r] < std::numeric_limits<double>::infinity(), "weights must be numbers below infinity");
    return g;
  }
};

// Lists of rules, stacked.
nb::tuple stacked(std::vector<std::vector<int32_t>>& lists, std::vector<double>&& scores) {
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> all;
  for (auto& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
    offsets.push_back(int64_t(all.size()));
  }
  return nb::make_tuple(to_numpy(std::move(all)), to_numpy(std::move(offsets)), to_numpy(std::move(scores)));
}

nb::tuple best(const ChartGrammar& g, In1<double> w, In1<int32_t> words, In1<int64_t> offsets, Spans spans,
               bool count_lexical, int threads) {
  const Batch batch(g, w, words, offsets, spans, count_lexical, threads);
  std::vector<std::vector<int32_t>> trees(batch.sentences.size());
  std::vector<double> scores(batch.sentences.size(), kForbidden);
  {
    nb::gil_scoped_release release;
    in_parallel(batch.size(), batch.threads, [&](int64_t i) {
      const Sentence& x = batch.sentences[size_t(i)];
      if (!x.n) return;
      MaxCells chart;
      fill(g, batch.scores, x, chart);
      scores[size_t(i)] = root_value(g, x, chart);
      if (scores[size_t(i)] != kForbidden) best_derivation(g, x, chart, trees[size_t(i)]);
    });
  }
  return stacked(trees, std::move(scores));
}

nb::tuple k_best(const ChartGrammar& g, In1<double> w, In1<int32_t> words, In1<int64_t> offsets, int32_t k, Spans spans,
                 bool count_lexical, int threads) {
  require(k >= 1 && k <= (1 << 20), "k must be between 1 and 2^20");
  const Batch batch(g, w, words, offsets, spans, count_lexical, threads);
  require(batch.size() <= (int64_t(1) << 32) / k, "too many trees at once");
  std::vector<std::vector<int32_t>> trees(batch.sentences.size() * size_t(k));
  std::vector<double> scores(batch.sentences.size() * size_t(k), kForbidden);
  {
    nb::gil_scoped_release release;
    in_parallel(batch.size(), batch.threads, [&](int64_t i) {
      const Sentence& x = batch.sentences[size_t(i)];
      if (!x.n) return;
      MaxCells chart;
      fill(g, batch.scores, x, chart);
      KBest search(g, batch.scores, x, chart);
      for (int32_t rank = 0; rank < k; ++rank) {
        const size_t at = size_t(i) * size_t(k) + size_t(rank);
        scores[at] = search.score(rank);
        if (scores[at] == kForbidden) break;
        search.derivation(rank, trees[at]);
      }
    });
  }
  return stacked(trees, std::move(scores));
}

// log Z of each sentence; expected rules go to counts (sentences × rules), expected brackets to brackets (cells ×
// labels).
nb::object log_partition(const ChartGrammar& g, In1<double> w, In1<int32_t> words, In1<int64_t> offsets, Spans spans,
                         bool count_lexical, std::optional<Out2<double>> counts, std::optional<Out2<double>> brackets,
                         int threads) {
  const Batch batch(g, w, words, offsets, spans, count_lexical, threads);
  if (counts)
    require(int64_t(counts->shape(0)) == batch.size() && int64_t(counts->shape(1)) == g.n_weights,
            "counts must be sentences × rules");
  if (brackets) {
    require(counts.has_value(), "brackets need counts");
    require(int64_t(brackets->shape(0)) == batch.first_cell.back() && int64_t(brackets->shape(1)) == g.n_labels,
            "brackets must be cells × labels");
  }
  std::vector<double> values(batch.sentences.size(), kForbidden);
  {
    nb::gil_scoped_release release;
    in_parallel(batch.size(), batch.threads, [&](int64_t i) {
      const Sentence& x = batch.sentences[size_t(i)];
      if (!x.n) return;
      SumCells chart;
      fill(g, batch.scores, x, chart);
      values[size_t(i)] = root_value(g, x, chart);
      if (!counts || values[size_t(i)] == kForbidden) return;
      expectations(g, batch.scores, x, chart, counts->data() + i * g.n_weights,
                   brackets ? brackets->data() + batch.first_cell[size_t(i)] * g.n_labels : nullptr);
    });
  }
  return to_numpy(std::move(values));
}

nb::tuple f1_best(const ChartGrammar& g, In1<double> w, In1<int32_t> words, In1<int64_t> offsets, In2<uint8_t> truth,
                  In1<int64_t> n_true, Spans spans, bool count_lexical, int threads) {
  const Batch batch(g, w, words, offsets, spans, count_lexical, threads);
  require(int64_t(truth.shape(0)) == batch.first_cell.back() && int64_t(truth.shape(1)) == g.n_labels,
          "truth must be cells × labels");
  require(int64_t(n_true.shape(0)) == batch.size(), "n_true must have one number for each sentence");
  for (int64_t i = 0; i < batch.size(); ++i) require(n_true.data()[i] >= 0, "n_true must not be negative");
  std::vector<std::vector<int32_t>> trees(batch.sentences.size());
  std::vector<double> scores(batch.sentences.size(), kForbidden);
  {
    nb::gil_scoped_release release;
    in_parallel(batch.size(), batch.threads, [&](int64_t i) {
      const Sentence& x = batch.sentences[size_t(i)];
      if (!x.n) return;
      F1Search search(g, batch.scores, x, truth.data() + batch.first_cell[size_t(i)] * g.n_labels, n_true.data()[i]);
      scores[size_t(i)] = search.run(trees[size_t(i)]);
    });
  }
  return stacked(trees, std::move(scores));
}

}  // namespace

#define MERCER_PARSE_ARGUMENTS "w"_a.noconvert(), "words"_a.noconvert(), "offsets"_a.noconvert()

void bind_parsing(nb::module_& m) {
  nb::class_<ChartGrammar>(m, "ChartGrammar", "A grammar of binary, unary and lexical rules, ready for charts.")
      .def(
          "__init__",
          [](ChartGrammar* self, int32_t n_terminals, int32_t n_labels, int32_t n_weights, int32_t start,
             In1<int32_t> labels, In2<int32_t> binary, In2<int32_t> unary, In2<int32_t> lexical) {
            new (self)
                ChartGrammar(make_grammar(n_terminals, n_labels, n_weights, start, labels, binary, unary, lexical));
          },
          "n_terminals"_a, "n_labels"_a, "n_weights"_a, "start"_a, "labels"_a.noconvert(), "binary"_a.noconvert(),
          "unary"_a.noconvert(), "lexical"_a.noconvert())
      .def("best", &best, MERCER_PARSE_ARGUMENTS, "spans"_a.noconvert().none(), "count_lexical"_a, "threads"_a = 1)
      .def("k_best", &k_best, MERCER_PARSE_ARGUMENTS, "k"_a, "spans"_a.noconvert().none(), "count_lexical"_a,
           "threads"_a = 1)
      .def("log_partition", &log_partition, MERCER_PARSE_ARGUMENTS, "spans"_a.noconvert().none(), "count_lexical"_a,
           "counts"_a.noconvert().none(), "brackets"_a.noconvert().none(), "threads"_a = 1)
      .def("f1_best", &f1_best, MERCER_PARSE_ARGUMENTS, "truth"_a.noconvert(), "n_true"_a.noconvert(),
           "spans"_a.noconvert().none(), "count_lexical"_a, "threads"_a = 1);
}

#undef MERCER_PARSE_ARGUMENTS

}  // namespace mercer
