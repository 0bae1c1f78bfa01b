// Kernels of strings: n-grams, mismatches, gaps, positions, all substrings, subsequences, edit distance.
//
// Strings are stacked: string i is codes[offsets[i] .. offsets[i + 1]]. The functions for Gram matrices fill the rows
// start .. stop of K; for a collection with itself (no second one) they compute the entries up to the diagonal and copy
// them over, so that K is symmetric to the last bit. A K of one column takes the diagonal alone.
#include <cmath>
#include <numeric>
#include <variant>

#include "base/arrays.hpp"
#include "kernels/kmers.hpp"
#include "base/parallel.hpp"
#include "kernels/sequence_kernels.hpp"
#include "kernels/suffixes.hpp"

namespace mercer {
namespace {

using Codes = In1<uint32_t>;
using Offsets = In1<int64_t>;

class Strings {
 public:
  Strings(const Codes& codes, const Offsets& offsets, const char* name)
      : codes_(codes.data()), offsets_(offsets.data()) {
    size_ = require_offsets(offsets, int64_t(codes.shape(0)), (std::string(name) + ": offsets").c_str(), "codes");
  }
  void require_below(int64_t sigma) const {
    require(sigma >= 0 && sigma < (int64_t(1) << 31) - 4, "sigma must be from 0 to 2^31");
    for (int64_t i = 0; i < offsets_[size_]; ++i) require(int64_t(codes_[i]) < sigma, "a code is not below sigma");
  }
  int64_t size() const { return size_; }
  int64_t total() const { return offsets_[size_]; }
  const uint32_t* begin(int64_t i) const { return codes_ + offsets_[i]; }
  int64_t length(int64_t i) const { return offsets_[i + 1] - offsets_[i]; }
  int64_t longest() const {
    int64_t most = 0;
    for (int64_t i = 0; i < size_; ++i) most = std::max(most, length(i));
    return most;
  }

 private:
  const uint32_t* codes_;
  const int64_t* offsets_;
  int64_t size_;
};

// The part of a Gram matrix that one call fills.
class Target {
 public:
  Target(const Strings& left, const std::optional<Codes>& codes, const std::optional<Offsets>& offsets, int64_t sigma,
         int64_t start, int64_t stop, Out2<double>& K)
      : left_(left),
        symmetric_(!codes),
        right_(codes ? Strings(*codes, require_both(offsets), "the second collection") : left),
        K_(K.data()),
        start_(start),
        stop_(stop) {
    require(codes.has_value() == offsets.has_value(), "codes and offsets of the second collection come together");
    left_.require_below(sigma);
    if (!symmetric_) right_.require_below(sigma);
    diagonal_ = symmetric_ && K.shape(1) == 1;
    require(int64_t(K.shape(0)) == left_.size() && (diagonal_ || int64_t(K.shape(1)) == right_.size()),
            "K has the wrong shape");
    require(0 <= start && start <= stop && stop <= left_.size(), "rows must be within the matrix");
  }
  const Strings& left() const { return left_; }
  const Strings& right() const { return right_; }
  bool symmetric() const { return symmetric_; }
  bool diagonal() const { return diagonal_; }
  int64_t start() const { return start_; }
  int64_t rows() const { return stop_ - start_; }
  // Columns of a row: first_column .. columns.
  int64_t first_column(int64_t row) const { return diagonal_ ? row : 0; }
  int64_t columns(int64_t row) const { return symmetric_ ? row + 1 : right_.size(); }
  void set(int64_t i, int64_t j, double value) const {
    if (diagonal_) {
      K_[i] = value;
      return;
    }
    K_[i * right_.size() + j] = value;
    if (symmetric_) K_[j * right_.size() + i] = value;
  }

 private:
  static const Offsets& require_both(const std::optional<Offsets>& offsets) {
    require(offsets.has_value(), "codes and offsets of the second collection come together");
    return *offsets;
  }
  Strings left_;
  bool symmetric_, diagonal_ = false;
  Strings right_;
  double* K_;
  int64_t start_, stop_;
};

void require_weights(const In1<double>& weights, int64_t least, const char* what) {
  require(int64_t(weights.shape(0)) >= least, what);
  require(all_finite(weights.data(), int64_t(weights.shape(0))), "weights must be finite");
}

// ---------------------------------------------------------------------------------------------- rows of substrings

KmerMode kmer_mode(const std::string& name) {
  if (name == "substrings") return KmerMode::substrings;
  if (name == "mismatch") return KmerMode::mismatch;
  if (name == "gappy") return KmerMode::gappy;
  if (name == "positional") return KmerMode::positional;
  fail("unknown mode " + name);
}

struct KmerRequest {
  KmerMode mode;
  KmerSettings settings;
  int64_t letters;         // of the alphabet that the codes are numbers of; 0: none
  const uint64_t* hashes;  // of tokens; null: codes are characters
  bool exact;              // all substrings of the characters have codes
};

void count_string(const KmerRequest& r, const uint32_t* x, int64_t n, KeyTally& tally) {
  if (r.letters > 0) {
    count_kmers(
        r.mode, [&](int64_t length) { return AlphabetCoder(uint64_t(r.letters), length); }, x, n, r.settings, tally);
  } else if (r.hashes) {
    count_kmers(r.mode, [&](int64_t length) { return TokenCoder(r.hashes, length); }, x, n, r.settings, tally);
  } else if (r.exact) {
    count_kmers(r.mode, [&](int64_t length) { return TextCoder<false>(length); }, x, n, r.settings, tally);
  } else {
    count_kmers(r.mode, [&](int64_t length) { return TextCoder<true>(length); }, x, n, r.settings, tally);
  }
}

bool exact_code_fits(int64_t letters, int64_t length) {
  uint64_t power = 1;
  const uint64_t base = uint64_t(std::max<int64_t>(2, letters));
  for (int64_t i = 0; i < length; ++i) {
    if (power > ((uint64_t(1) << 63) - 1) / base) return false;
    power *= base;
  }
  return true;
}

void check_symbols(const Strings& strings, const uint32_t* letters, int64_t n_letters, int64_t below) {
  const auto known = [&](uint32_t c) { return c == unknown_symbol || int64_t(c) < below; };
  for (int64_t i = 0; i < strings.total(); ++i) require(known(strings.begin(0)[i]), "a code is out of range");
  for (int64_t i = 0; i < n_letters; ++i)
    require(letters[i] == any_symbol || known(letters[i]), "a letter is out of range");
}

nb::tuple kmer_rows(Codes codes, Offsets offsets, std::optional<In1<uint64_t>> hashes, int64_t alphabet,
                    const std::string& mode, int64_t shortest, int64_t longest, int64_t extra, In1<double> values,
                    Codes letters, bool presence, int threads) {
  const Strings strings(codes, offsets, "the strings");
  threads = thread_count(threads);
  require(1 <= shortest && shortest <= longest, "lengths must be at least 1, the shortest first");
  require(longest <= (int64_t(1) << 40), "lengths must be at most 2^40");
  require(extra >= 0 && extra <= (int64_t(1) << 30), "extra must not be negative");
  KmerRequest r{kmer_mode(mode),
                {shortest, longest, extra, values.data(), letters.data(), int64_t(letters.shape(0))},
                alphabet,
                nullptr,
                false};
  require_weights(values, longest + 1 + (r.mode == KmerMode::gappy ? extra : 0),
                  "values must be given for all lengths");
  require(r.mode != KmerMode::gappy || longest <= 1000, "subsequences with gaps have at most 1000 symbols");
  if (hashes) r.hashes = hashes->data();
  require(alphabet >= 0 && (alphabet == 0 || exact_code_fits(alphabet, longest)),
          "the alphabet is too large for exact codes");
  require(alphabet == 0 || r.mode != KmerMode::mismatch || r.settings.n_letters == alphabet,
          "letters must be those of the alphabet");
  check_symbols(strings, r.settings.letters, r.settings.n_letters,
                alphabet ? alphabet
                : hashes ? int64_t(hashes->shape(0))
                         : int64_t(any_symbol));

  const bool changed = r.mode == KmerMode::mismatch && alphabet == 0;  // letters come in that the strings may not have
  r.exact = !changed && !hashes && TextCoder<true>::exact(strings.begin(0), strings.total(), longest);

  const int64_t n = strings.size(), chunk = 64, chunks = (n + chunk - 1) / chunk;
  std::vector<std::vector<uint64_t>> keys(static_cast<size_t>(chunks));
  std::vector<std::vector<double>> found(static_cast<size_t>(chunks));
  std::vector<int64_t> ends(static_cast<size_t>(n) + 1, 0);
  {
    nb::gil_scoped_release release;
    in_parallel(chunks, threads, [&](int64_t c) {
      KeyTally tally(presence);
      auto& own_keys = keys[size_t(c)];
      for (int64_t i = c * chunk; i < std::min(n, (c + 1) * chunk); ++i) {
        const size_t before = own_keys.size();
        count_string(r, strings.begin(i), strings.length(i), tally);
        tally.finish(own_keys, found[size_t(c)]);
        ends[size_t(i) + 1] = int64_t(own_keys.size() - before);
      }
    });
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    for (size_t c = 1; c < keys.size(); ++c) {
      keys[0].insert(keys[0].end(), keys[c].begin(), keys[c].end());
      found[0].insert(found[0].end(), found[c].begin(), found[c].end());
      std::vector<uint64_t>().swap(keys[c]);
      std::vector<double>().swap(found[c]);
    }
  }
  if (chunks == 0)
    return nb::make_tuple(to_numpy(std::move(ends)), to_numpy(std::vector<uint64_t>()),
                          to_numpy(std::vector<double>()));
  return nb::make_tuple(to_numpy(std::move(ends)), to_numpy(std::move(keys[0])), to_numpy(std::move(found[0])));
}

nb::object key_scores(const KeyTable& table, Offsets offsets, In1<uint64_t> keys, In1<double> values) {
  require(keys.shape(0) == values.shape(0), "keys and values must be equally many");
  const int64_t n = require_offsets(offsets, int64_t(keys.shape(0)), "offsets", "keys");
  std::vector<double> scores(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t low = offsets.data()[i], high = offsets.data()[i + 1];
    scores[size_t(i)] = table.score(keys.data() + low, values.data() + low, high - low);
  }
  return to_numpy(std::move(scores));
}

// ---------------------------------------------------------------------------------------------- all substrings

constexpr int64_t few_symbols = 64;        // a row of transitions for all of them
constexpr int64_t short_string = 1 << 13;  // its automaton stays in the caches
constexpr int64_t longest_text = (int64_t(1) << 31) - 16;

// x with its own symbols renumbered from 0: automata need a row of transitions for these only. Others become `count`.
class Renumbered {
 public:
  explicit Renumbered(int64_t sigma) : number_(size_t(sigma), 0) {}
  const std::vector<uint32_t>& set(const uint32_t* x, int64_t n) {
    for (const uint32_t symbol : present_) number_[symbol] = 0;
    present_.clear();
    for (int64_t i = 0; i < n; ++i)
      if (number_[x[i]] == 0) {
        present_.push_back(x[i]);
        number_[x[i]] = uint32_t(present_.size());
      }
    return get(x, n, own_);
  }
  // Symbols of another string; those that x does not have are beyond all others.
  const std::vector<uint32_t>& get(const uint32_t* z, int64_t n, std::vector<uint32_t>& made) const {
    made.resize(size_t(n));
    for (int64_t i = 0; i < n; ++i) made[size_t(i)] = number_[z[i]] - 1;  // 0 - 1 is the largest number
    return made;
  }
  int64_t count() const { return int64_t(present_.size()); }

 private:
  std::vector<uint32_t> number_, present_, own_;
};

template <class Transitions>
void automaton_row(const Target& target, int64_t i, const Renumbered& numbers, const std::vector<uint32_t>& x,
                   const double* W) {
  SubstringAutomaton<Transitions> automaton(numbers.count());
  automaton.reset(int64_t(x.size()));
  automaton.add(x.data(), int64_t(x.size()), 1.0);
  automaton.annotate(W);
  std::vector<uint32_t> z;
  for (int64_t j = target.first_column(i); j < target.columns(i); ++j) {
    numbers.get(target.right().begin(j), target.right().length(j), z);
    target.set(i, j, automaton.score(z.data(), int64_t(z.size()), W));
  }
}

double pair_value(const uint32_t* x, int64_t nx, const uint32_t* z, int64_t nz, int64_t sigma, const double* W) {
  require(nx + nz < longest_text, "two strings together must have less than 2^31 symbols");
  if (sigma <= 254) return SubstringPair<uint8_t>()(x, nx, z, nz, sigma, W);
  return SubstringPair<int32_t>()(x, nx, z, nz, sigma, W);
}

// One row: by an automaton of its string where that is short and there are columns to share it, else by suffix arrays
// of the pairs.
void substring_row(const Target& target, int64_t i, int64_t sigma, const double* W, Renumbered& numbers) {
  const uint32_t* x = target.left().begin(i);
  const int64_t n = target.left().length(i);
  if (n == 0 || n > short_string || target.columns(i) - target.first_column(i) < 4) {
    for (int64_t j = target.first_column(i); j < target.columns(i); ++j)
      target.set(i, j, pair_value(x, n, target.right().begin(j), target.right().length(j), sigma, W));
    return;
  }
  const auto& own = numbers.set(x, n);
  if (numbers.count() <= few_symbols)
    automaton_row<DenseTransitions>(target, i, numbers, own, W);
  else
    automaton_row<HashedTransitions>(target, i, numbers, own, W);
}

void all_substrings_gram(Codes codes, Offsets offsets, std::optional<Codes> other_codes,
                         std::optional<Offsets> other_offsets, int64_t sigma, In1<double> cumulative, int64_t start,
                         int64_t stop, Out2<double> K, int threads) {
  const Target target(Strings(codes, offsets, "the strings"), other_codes, other_offsets, sigma, start, stop, K);
  require_weights(cumulative, std::max(target.left().longest(), target.right().longest()) + 1,
                  "cumulative weights must reach the longest string");
  threads = thread_count(threads);
  nb::gil_scoped_release release;
  const int64_t parts = std::min<int64_t>(target.rows(), 4 * threads);
  in_parallel(parts, threads, [&](int64_t part) {
    Renumbered numbers(sigma);
    for (int64_t r = part; r < target.rows(); r += parts)
      substring_row(target, target.start() + r, sigma, cumulative.data(), numbers);
  });
}

// f(z) = Σ_i a_i k(x_i, z) with the automaton of all x_i.
class SubstringModel {
 public:
  SubstringModel(Codes codes, Offsets offsets, int64_t sigma, In1<double> coef, In1<double> cumulative)
      : W_(cumulative.data(), cumulative.data() + cumulative.shape(0)),
        automaton_(make(sigma, Strings(codes, offsets, "the strings").total())) {
    const Strings strings(codes, offsets, "the strings");
    strings.require_below(sigma);
    require(int64_t(coef.shape(0)) == strings.size(), "there must be one coefficient for each string");
    require(all_finite(coef.data(), strings.size()), "coefficients must be finite");
    require_weights(cumulative, strings.longest() + 1, "cumulative weights must reach the longest string");
    require(strings.total() < (int64_t(1) << 29), "the strings must have less than 2^29 symbols in all");
    std::visit(
        [&](auto& automaton) {
          nb::gil_scoped_release release;
          automaton.reset(strings.total());
          for (int64_t i = 0; i < strings.size(); ++i)
            automaton.add(strings.begin(i), strings.length(i), coef.data()[i]);
          automaton.annotate(W_.data());
        },
        automaton_);
  }
  nb::object scores(Codes codes, Offsets offsets, int threads) const {
    const Strings strings(codes, offsets, "the strings");
    threads = thread_count(threads);
    std::vector<double> values(static_cast<size_t>(strings.size()));
    {
      nb::gil_scoped_release release;
      in_parallel(strings.size(), threads, [&](int64_t i) {
        values[size_t(i)] = std::visit(
            [&](const auto& a) { return a.score(strings.begin(i), strings.length(i), W_.data()); }, automaton_);
      });
    }
    return to_numpy(std::move(values));
  }

 private:
  using Automaton = std::variant<SubstringAutomaton<DenseTransitions>, SubstringAutomaton<HashedTransitions>>;
  static Automaton make(int64_t sigma, int64_t total) {
    require(sigma >= 0 && sigma < longest_text, "sigma must be from 0 to 2^31");
    if (sigma <= few_symbols && total * sigma <= (int64_t(1) << 26))
      return SubstringAutomaton<DenseTransitions>(std::max<int64_t>(1, sigma));
    return SubstringAutomaton<HashedTransitions>(sigma);
  }
  std::vector<double> W_;
  Automaton automaton_;
};

// ---------------------------------------------------------------------------------------------- recursions over places

void weighted_degree_gram(Codes codes, Offsets offsets, std::optional<Codes> other_codes,
                          std::optional<Offsets> other_offsets, int64_t sigma, int64_t shift, In1<double> weights,
                          int64_t start, int64_t stop, Out2<double> K, int threads) {
  const Target target(Strings(codes, offsets, "the strings"), other_codes, other_offsets, sigma, start, stop, K);
  const int64_t degree = int64_t(weights.shape(0));
  require(degree >= 1, "there must be a weight for each degree from 1 on");
  require_weights(weights, degree, "");
  require(shift >= 0 && shift < (int64_t(1) << 31), "shift must not be negative");
  threads = thread_count(threads);
  nb::gil_scoped_release release;
  const int64_t planes = planes_for(sigma);
  const WeightedDegree packer(degree, shift, planes);
  const auto pack = [&](const Strings& strings, int64_t from, int64_t to, std::vector<int64_t>& starts) {
    std::vector<uint64_t> bits;
    starts.assign(1, 0);
    for (int64_t i = from; i < to; ++i) starts.push_back(starts.back() + planes * ((strings.length(i) + 63) / 64));
    bits.resize(size_t(starts.back()));
    for (int64_t i = from; i < to; ++i)
      packer.pack(strings.begin(i), strings.length(i), (strings.length(i) + 63) / 64,
                  bits.data() + starts[size_t(i - from)]);
    return bits;
  };
  std::vector<int64_t> left_starts, right_starts;
  const auto left = pack(target.left(), start, stop, left_starts);
  const auto right = pack(target.right(), 0, target.right().size(), right_starts);
  const int64_t parts = std::min<int64_t>(target.rows(), 4 * threads);
  in_parallel(parts, threads, [&](int64_t part) {
    WeightedDegree value(degree, shift, planes);
    for (int64_t r = part; r < target.rows(); r += parts) {
      const int64_t i = start + r, nx = target.left().length(i);
      for (int64_t j = target.first_column(i); j < target.columns(i); ++j) {
        const int64_t nz = target.right().length(j);
        const uint64_t *x = left.data() + left_starts[size_t(r)], *z = right.data() + right_starts[size_t(j)];
        target.set(i, j, value(x, nx, (nx + 63) / 64, z, nz, (nz + 63) / 64, weights.data()));
      }
    }
  });
}

// Strings of a collection by length, in groups of as many as there are lanes, interleaved.
class Lanes {
 public:
  explicit Lanes(const Strings& strings) : order_(size_t(strings.size())) {
    constexpr int L = subsequence_lanes;
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int64_t a, int64_t b) { return strings.length(a) < strings.length(b); });
    starts_.push_back(0);
    for (int64_t g = 0; g < groups(); ++g) {
      lengths_.push_back(strings.length(order_[size_t(std::min<int64_t>(g * L + L, strings.size()) - 1)]));
      starts_.push_back(starts_.back() + lengths_.back());
    }
    symbols_.assign(size_t(starts_.back()), Symbol8{LaneBits{} - 1});
    for (size_t r = 0; r < order_.size(); ++r)
      for (int64_t j = 0; j < strings.length(order_[r]); ++j)
        symbols_[size_t(starts_[r / L] + j)].v[r % L] = strings.begin(order_[r])[j];
  }
  int64_t groups() const { return (int64_t(order_.size()) + subsequence_lanes - 1) / subsequence_lanes; }
  int64_t longest() const { return lengths_.empty() ? 0 : lengths_.back(); }
  int64_t length(int64_t group) const { return lengths_[size_t(group)]; }
  const Symbol8* symbols(int64_t group) const { return symbols_.data() + starts_[size_t(group)]; }
  const std::vector<int64_t>& order() const { return order_; }

 private:
  std::vector<int64_t> order_, starts_, lengths_;
  std::vector<Symbol8> symbols_;
};

// Rows of one thread: its buffers, and the values of one string with the columns first .. last by length.
class SubsequenceRows {
 public:
  SubsequenceRows(const Target& target, const Lanes& lanes, int64_t shortest, int64_t length, double decay)
      : target_(target), lanes_(lanes), shortest_(shortest), length_(length), decay_(decay) {
    // Groups beyond this length have values that are computed pair by pair.
    reach_ = lanes.longest();
    while (reach_ > 0 && !subsequence_in_range(1, reach_, length, decay)) reach_ /= 2;
    D_.resize(size_t(length * (reach_ + 1)));
    same_.resize(size_t(reach_));
    double power = 1.0;
    for (int64_t j = 0; j < reach_; ++j) {
      down_.push_back(1.0 / power);
      up_.push_back(power *= decay);
    }
  }
  void fill(int64_t i, int64_t first, int64_t last) {
    constexpr int64_t L = subsequence_lanes;
    const uint32_t* s = target_.left().begin(i);
    const int64_t n = target_.left().length(i);
    for (int64_t g = first / L; g * L < last; ++g) {
      double found[L];
      const int64_t from = std::max(first, g * L), to = std::min(last, (g + 1) * L), width = lanes_.length(g);
      const bool scaled = width <= reach_ && subsequence_in_range(n, width, length_, decay_);
      if (scaled)
        subsequence_values({s, n, lanes_.symbols(g), width, shortest_, length_, decay_, D_.data(), same_.data(),
                            up_.data(), down_.data()},
                           found);
      for (int64_t c = from; c < to; ++c) {
        const int64_t j = lanes_.order()[size_t(c)];
        target_.set(i, j, scaled ? found[c - g * L] : pair(s, n, j));
      }
    }
  }

 private:
  double pair(const uint32_t* s, int64_t n, int64_t j) {
    return subsequence_value(s, n, target_.right().begin(j), target_.right().length(j), shortest_, length_, decay_, K_);
  }
  const Target& target_;
  const Lanes& lanes_;
  int64_t shortest_, length_, reach_;
  double decay_;
  std::vector<Lane8> D_;
  std::vector<Symbol8> same_;
  std::vector<double> up_, down_, K_;
};

// start and stop are rows of the matrix, or, for a collection with itself, ranks by length.
void subsequence_gram(Codes codes, Offsets offsets, std::optional<Codes> other_codes,
                      std::optional<Offsets> other_offsets, int64_t sigma, int64_t shortest, int64_t length,
                      double decay, int64_t start, int64_t stop, Out2<double> K, int threads) {
  const Target target(Strings(codes, offsets, "the strings"), other_codes, other_offsets, sigma, start, stop, K);
  require(1 <= shortest && shortest <= length && length <= 10000,
          "lengths must be from 1 to 10000, the shortest first");
  require(std::isfinite(decay) && decay > 0 && decay <= 1, "decay must be above 0 and at most 1");
  threads = thread_count(threads);
  nb::gil_scoped_release release;
  const Lanes lanes(target.right());
  const int64_t parts = std::min<int64_t>(target.rows(), 4 * threads);
  in_parallel(parts, threads, [&](int64_t part) {
    SubsequenceRows rows(target, lanes, shortest, length, decay);
    for (int64_t r = part; r < target.rows(); r += parts) {
      const int64_t rank = start + r, i = target.symmetric() ? lanes.order()[size_t(rank)] : rank;
      rows.fill(i, target.first_column(rank), target.columns(rank));
    }
  });
}

void edit_distance_gram(Codes codes, Offsets offsets, std::optional<Codes> other_codes,
                        std::optional<Offsets> other_offsets, int64_t sigma, double indel, double substitution,
                        int64_t start, int64_t stop, Out2<double> K, int threads) {
  const Target target(Strings(codes, offsets, "the strings"), other_codes, other_offsets, sigma, start, stop, K);
  require(std::isfinite(indel) && indel > 0 && std::isfinite(substitution) && substitution > 0,
          "costs must be positive");
  threads = thread_count(threads);
  nb::gil_scoped_release release;
  const int64_t parts = std::min<int64_t>(target.rows(), 4 * threads);
  const bool equal = indel == substitution;
  in_parallel(parts, threads, [&](int64_t part) {
    UnitDistance unit;
    std::vector<double> row;
    for (int64_t r = part; r < target.rows(); r += parts) {
      const int64_t i = start + r, n = target.left().length(i);
      const uint32_t* x = target.left().begin(i);
      const bool by_bits = equal && unit.set(x, n, sigma);
      for (int64_t j = target.first_column(i); j < target.columns(i); ++j) {
        const uint32_t* z = target.right().begin(j);
        const int64_t m = target.right().length(j);
        target.set(i, j, by_bits ? indel * double(unit(z, m)) : edit_distance(x, n, z, m, indel, substitution, row));
      }
    }
  });
}

}  // namespace

void bind_string_kernels(nb::module_& m) {
  m.def("kmer_rows", &kmer_rows, "codes"_a, "offsets"_a, "hashes"_a.none(), "alphabet"_a, "mode"_a, "shortest"_a,
        "longest"_a, "extra"_a, "values"_a, "letters"_a, "presence"_a, "threads"_a);
  m.def("all_substrings_gram", &all_substrings_gram, "codes"_a, "offsets"_a, "other_codes"_a.none(),
        "other_offsets"_a.none(), "sigma"_a, "cumulative"_a, "start"_a, "stop"_a, "K"_a, "threads"_a);
  m.def("weighted_degree_gram", &weighted_degree_gram, "codes"_a, "offsets"_a, "other_codes"_a.none(),
        "other_offsets"_a.none(), "sigma"_a, "shift"_a, "weights"_a, "start"_a, "stop"_a, "K"_a, "threads"_a);
  m.def("subsequence_gram", &subsequence_gram, "codes"_a, "offsets"_a, "other_codes"_a.none(), "other_offsets"_a.none(),
        "sigma"_a, "shortest"_a, "length"_a, "decay"_a, "start"_a, "stop"_a, "K"_a, "threads"_a);
  m.def("edit_distance_gram", &edit_distance_gram, "codes"_a, "offsets"_a, "other_codes"_a.none(),
        "other_offsets"_a.none(), "sigma"_a, "indel"_a, "substitution"_a, "start"_a, "stop"_a, "K"_a, "threads"_a);
  nb::class_<KeyTable>(m, "KeyTable")
      .def(
          "__init__",
          [](KeyTable* self, In1<uint64_t> keys, In1<double> weights) {
            require(keys.shape(0) == weights.shape(0), "keys and weights must be equally many");
            require(all_finite(weights.data(), int64_t(weights.shape(0))), "weights must be finite");
            new (self) KeyTable(keys.data(), weights.data(), int64_t(keys.shape(0)));
          },
          "keys"_a, "weights"_a)
      .def("scores", &key_scores, "offsets"_a, "keys"_a, "values"_a);
  nb::class_<SubstringModel>(m, "SubstringModel")
      .def(nb::init<Codes, Offsets, int64_t, In1<double>, In1<double>>(), "codes"_a, "offsets"_a, "sigma"_a, "coef"_a,
           "cumulative"_a)
      .def("scores", &SubstringModel::scores, "codes"_a, "offsets"_a, "threads"_a);
  m.def(
      "token_hash",
      [](nb::bytes name, uint64_t seed) { return feature_hash(std::string_view(name.c_str(), name.size()), seed); },
      "name"_a, "seed"_a);
}

}  // namespace mercer
