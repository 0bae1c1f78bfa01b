// Substrings of a fixed length as 64-bit keys, and rows of (key, value) for the kernels that count them.
//
//   Φ_u(x) = √w_|u| · #{places of u in x}        exact, with mismatches, with gaps, or at its position
//
// A key depends on u alone, so rows made apart can be compared. Over a known alphabet of A letters it is the number of
// u in base A with a leading 1 (no two strings share one while A^|u| < 2^63). Otherwise strings of A, C, G, T take two
// bits a letter up to 30 letters, characters below 256 eight bits up to 7 letters, and everything else a hash of 62
// bits: the two highest bits say which.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hashing/feature_hash.hpp"

namespace mercer {

constexpr uint32_t unknown_symbol = 0xFFFFFFFFu;  // not of the alphabet: no substring holds it
constexpr uint32_t any_symbol = 0xFFFFFFFEu;      // stands for a replaced symbol where there is no alphabet

// Arithmetic modulo the prime 2^61 - 1: polynomials over it tell strings apart, and can be rolled along a string.
struct Prime61 {
  static constexpr uint64_t p = (uint64_t(1) << 61) - 1;
  static uint64_t reduce(uint64_t a) {
    a = (a & p) + (a >> 61);
    return a >= p ? a - p : a;
  }
  static uint64_t times(uint64_t a, uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return reduce((uint64_t(product) & p) + uint64_t(product >> 61));
  }
  static uint64_t plus(uint64_t a, uint64_t b) { return reduce(a + b); }
  static uint64_t minus(uint64_t a, uint64_t b) { return a >= b ? a - b : a + p - b; }
  static constexpr uint64_t base = 0x0D6E8FEB86659FD9u;
  static uint64_t power(int64_t n) {
    uint64_t result = 1, square = base;
    for (; n > 0; n >>= 1, square = times(square, square))
      if (n & 1) result = times(result, square);
    return result;
  }
};

// Coders: `push` appends a symbol, `roll` also drops the first of `length` symbols, `key` is the number of the string.

// Strings over an alphabet of known size; symbols are its numbers.
class AlphabetCoder {
 public:
  using State = uint64_t;
  AlphabetCoder(uint64_t letters, int64_t length)
      : base_(std::max<uint64_t>(2, letters)), powers_(size_t(length) + 1, 1) {
    for (size_t i = 1; i < powers_.size(); ++i) powers_[i] = powers_[i - 1] * base_;
  }
  State start() const { return 0; }
  State push(State state, uint32_t symbol) const { return state * base_ + symbol; }
  State roll(State state, uint32_t first, uint32_t symbol, int64_t length) const {
    return (state - first * powers_[size_t(length) - 1]) * base_ + symbol;
  }
  uint64_t key(State state, int64_t length) const { return state + powers_[size_t(length)]; }
  uint64_t place(int64_t i) const { return powers_[size_t(i)]; }

 private:
  uint64_t base_;
  std::vector<uint64_t> powers_;
};

// Strings of characters. `hashed`: whether some of them need the polynomial; without it a step takes a fraction of the
// time.
template <bool hashed> class TextCoder {
 public:
  struct State {
    uint64_t bases = 0, bytes = 0, polynomial = 0;
    int64_t not_bases = 0, not_bytes = 0;
  };
  explicit TextCoder(int64_t length) : drop_(hashed ? Prime61::power(length) : 0) {}
  State start() const { return {}; }
  State push(State state, uint32_t symbol) const {
    const int base = number(symbol);
    state.bases = (state.bases << 2) | uint64_t(base & 3);
    state.not_bases += base < 0;
    state.bytes = (state.bytes << 8) | (symbol & 255);
    state.not_bytes += symbol > 255;
    if (hashed) state.polynomial = Prime61::plus(Prime61::times(state.polynomial, Prime61::base), uint64_t(symbol) + 1);
    return state;
  }
  State roll(State state, uint32_t first, uint32_t symbol, int64_t) const {
    state = push(state, symbol);
    state.not_bases -= number(first) < 0;
    state.not_bytes -= first > 255;
    if (hashed) state.polynomial = Prime61::minus(state.polynomial, Prime61::times(uint64_t(first) + 1, drop_));
    return state;
  }
  uint64_t key(const State& state, int64_t length) const {
    if (state.not_bases == 0 && length <= most_bases) {
      const uint64_t one = uint64_t(1) << (2 * length);
      return one | (state.bases & (one - 1));
    }
    if (state.not_bytes == 0 && length <= most_bytes) {
      const uint64_t one = uint64_t(1) << (8 * length);
      return (uint64_t(1) << 62) | one | (state.bytes & (one - 1));
    }
    return (uint64_t(3) << 62) | (combine(state.polynomial, uint64_t(length)) >> 2);
  }

  // Whether all strings of up to `length` of these characters have exact codes.
  static bool exact(const uint32_t* x, int64_t n, int64_t length) {
    if (length > most_bases) return false;
    const auto coded = [&](uint32_t c) { return number(c) >= 0 || (c <= 255 && length <= most_bytes); };
    return std::all_of(x, x + n, coded);
  }

 private:
  static constexpr int64_t most_bases = 30, most_bytes = 7;
  static int number(uint32_t symbol) {
    switch (symbol) {
      case 'A': return 0;
      case 'C': return 1;
      case 'G': return 2;
      case 'T': return 3;
      default: return -4;  // its low bits are 0
    }
  }
  uint64_t drop_;
};

// Strings of tokens, each known by a hash.
class TokenCoder {
 public:
  using State = uint64_t;
  TokenCoder(const uint64_t* hashes, int64_t length) : hashes_(hashes), drop_(Prime61::power(length)) {}
  State start() const { return 0; }
  State push(State state, uint32_t symbol) const {
    return Prime61::plus(Prime61::times(state, Prime61::base), value(symbol));
  }
  State roll(State state, uint32_t first, uint32_t symbol, int64_t) const {
    return Prime61::minus(push(state, symbol), Prime61::times(value(first), drop_));
  }
  uint64_t key(State state, int64_t length) const { return combine(state, uint64_t(length)); }

 private:
  uint64_t value(uint32_t symbol) const {
    return Prime61::reduce(symbol == any_symbol ? 0x9E3779B97F4A7C15u : hashes_[symbol]);
  }
  const uint64_t* hashes_;
  uint64_t drop_;
};

// Adds up the values of keys. Small keys, the usual case for DNA, have a table; others are sorted at the end.
class KeyTally {
 public:
  explicit KeyTally(bool presence) : presence_(presence), table_(table_size, 0.0), used_(table_size / 64, 0) {}
  void add(uint64_t key, double value) {
    if (key >= table_size) {
      others_.push_back({key, value});
      return;
    }
    used_[key >> 6] |= uint64_t(1) << (key & 63);
    table_[key] = presence_ ? value : table_[key] + value;
  }
  // Appends the row in ascending order of keys and starts afresh.
  void finish(std::vector<uint64_t>& keys, std::vector<double>& values) {
    for (size_t word = 0; word < used_.size(); ++word) {
      for (uint64_t bits = used_[word]; bits; bits &= bits - 1) {
        const size_t key = word * 64 + size_t(__builtin_ctzll(bits));
        keys.push_back(key);
        values.push_back(table_[key]);
        table_[key] = 0.0;
      }
      used_[word] = 0;
    }
    sort_others();
    for (size_t i = 0; i < others_.size();) {
      const uint64_t key = others_[i].key;
      double total = others_[i].value;
      for (++i; i < others_.size() && others_[i].key == key; ++i)
        if (!presence_) total += others_[i].value;
      keys.push_back(key);
      values.push_back(total);
    }
    others_.clear();
  }

 private:
  static constexpr uint64_t table_size = 1 << 13;
  struct Entry {
    uint64_t key;
    double value;
  };
  // Stable, so that sums do not depend on the sort. Many entries are sorted digit by digit, digits that are all equal
  // left out.
  void sort_others() {
    if (others_.size() < 1024) {
      std::stable_sort(others_.begin(), others_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
      return;
    }
    constexpr int bits = 11;
    constexpr size_t digits = size_t(1) << bits;
    uint64_t differing = 0;
    for (const Entry& entry : others_) differing |= entry.key ^ others_[0].key;
    spare_.resize(others_.size());
    for (int shift = 0; shift < 64; shift += bits) {
      if (((differing >> shift) & (digits - 1)) == 0) continue;
      size_t starts[digits + 1] = {};
      for (const Entry& entry : others_) ++starts[((entry.key >> shift) & (digits - 1)) + 1];
      for (size_t d = 1; d < digits; ++d) starts[d] += starts[d - 1];
      for (const Entry& entry : others_) spare_[starts[(entry.key >> shift) & (digits - 1)]++] = entry;
      others_.swap(spare_);
    }
  }

  bool presence_;
  std::vector<double> table_;
  std::vector<uint64_t> used_;
  std::vector<Entry> others_, spare_;
};

struct KmerSettings {
  int64_t shortest, longest;  // lengths of the substrings
  int64_t extra;              // mismatches, gap or shift
  const double* values;       // of a feature, by its length (by its span where there are gaps)
  const uint32_t* letters;    // for mismatches: what may stand in place of a symbol
  int64_t n_letters;
};

// Calls visit(first place, state) for all substrings of one length without an unknown symbol, in time linear in n.
template <class Coder, class Visit>
void each_window(const Coder& coder, const uint32_t* x, int64_t n, int64_t length, Visit visit) {
  auto state = coder.start();
  int64_t run = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == unknown_symbol) {
      state = coder.start();
      run = 0;
      continue;
    }
    state = run < length ? coder.push(state, x[i]) : coder.roll(state, x[i - length], x[i], length);
    if (++run >= length) visit(i - length + 1, state);
  }
}

template <class MakeCoder>
void count_substrings(const MakeCoder& make, const uint32_t* x, int64_t n, const KmerSettings& s, KeyTally& tally) {
  for (int64_t length = s.shortest; length <= std::min(s.longest, n); ++length) {
    const double value = s.values[length];
    if (value == 0.0) continue;
    const auto coder = make(length);
    each_window(coder, x, n, length, [&](int64_t, const auto& state) { tally.add(coder.key(state, length), value); });
  }
}

// All strings over the letters that differ from the window in at most `left` places from `place` on.
template <class Tally>
void add_neighbours(const AlphabetCoder& coder, const uint32_t* window, uint64_t code, const KmerSettings& s,
                    int64_t place, int64_t left, Tally& tally) {
  tally.add(coder.key(code, s.longest), s.values[s.longest]);
  if (left == 0) return;
  for (int64_t i = place; i < s.longest; ++i) {
    const uint64_t unit = coder.place(s.longest - 1 - i);
    const uint64_t without = code - window[i] * unit;
    for (uint32_t letter = 0; letter < uint32_t(s.n_letters); ++letter)
      if (letter != window[i]) add_neighbours(coder, window, without + letter * unit, s, i + 1, left - 1, tally);
  }
}

template <class Coder>
void add_neighbours(const Coder& coder, std::vector<uint32_t>& window, const KmerSettings& s, int64_t place,
                    int64_t left, KeyTally& tally) {
  auto state = coder.start();
  for (const uint32_t symbol : window) state = coder.push(state, symbol);
  tally.add(coder.key(state, s.longest), s.values[s.longest]);
  if (left == 0) return;
  for (int64_t i = place; i < s.longest; ++i) {
    const uint32_t kept = window[size_t(i)];
    for (int64_t a = 0; a < s.n_letters; ++a) {
      if (s.letters[a] == kept) continue;
      window[size_t(i)] = s.letters[a];
      add_neighbours(coder, window, s, i + 1, left - 1, tally);
    }
    window[size_t(i)] = kept;
  }
}

template <class MakeCoder>
void count_neighbours(const MakeCoder& make, const uint32_t* x, int64_t n, const KmerSettings& s, KeyTally& tally) {
  const auto coder = make(s.longest);
  std::vector<uint32_t> window;
  each_window(coder, x, n, s.longest, [&](int64_t i, const auto& state) {
    if constexpr (std::is_same_v<std::decay_t<decltype(coder)>, AlphabetCoder>) {
      add_neighbours(coder, x + i, state, s, 0, s.extra, tally);
    } else {
      (void)state;
      window.assign(x + i, x + i + s.longest);
      add_neighbours(coder, window, s, 0, s.extra, tally);
    }
  });
}

// Subsequences that begin at `first`: `taken` symbols so far, the last of them at `last`.
template <class Coder, class State>
void add_subsequences(const Coder& coder, const State& state, const uint32_t* x, int64_t n, const KmerSettings& s,
                      int64_t first, int64_t last, int64_t taken, KeyTally& tally) {
  if (taken == s.longest) {
    tally.add(coder.key(state, taken), s.values[last - first + 1]);
    return;
  }
  const int64_t end = std::min(n, first + s.extra + taken + 1);  // leaves room for the symbols that are still to come
  for (int64_t i = last + 1; i < end; ++i)
    if (x[i] != unknown_symbol) add_subsequences(coder, coder.push(state, x[i]), x, n, s, first, i, taken + 1, tally);
}

template <class MakeCoder>
void count_subsequences(const MakeCoder& make, const uint32_t* x, int64_t n, const KmerSettings& s, KeyTally& tally) {
  const auto coder = make(s.longest);
  for (int64_t i = 0; i + s.longest <= n; ++i)
    if (x[i] != unknown_symbol) add_subsequences(coder, coder.push(coder.start(), x[i]), x, n, s, i, i, 1, tally);
}

// Substrings with their place q, and with the next `shift` places: two strings share shift + 1 - |i - j| of them.
template <class MakeCoder>
void count_positional(const MakeCoder& make, const uint32_t* x, int64_t n, const KmerSettings& s, KeyTally& tally) {
  const auto coder = make(s.longest);
  for (int64_t i = 0; i < n; ++i) {
    auto state = coder.start();
    for (int64_t length = 1; length <= std::min(s.longest, n - i) && x[i + length - 1] != unknown_symbol; ++length) {
      state = coder.push(state, x[i + length - 1]);
      if (s.values[length] == 0.0) continue;
      const uint64_t key = coder.key(state, length);
      for (int64_t q = i; q <= i + s.extra; ++q)
        tally.add(combine(key, uint64_t(q)) | (uint64_t(1) << 63), s.values[length]);
    }
  }
}

enum class KmerMode { substrings, mismatch, gappy, positional };

template <class MakeCoder>
void count_kmers(KmerMode mode, const MakeCoder& make, const uint32_t* x, int64_t n, const KmerSettings& s,
                 KeyTally& tally) {
  switch (mode) {
    case KmerMode::substrings: return count_substrings(make, x, n, s, tally);
    case KmerMode::mismatch: return count_neighbours(make, x, n, s, tally);
    case KmerMode::gappy: return count_subsequences(make, x, n, s, tally);
    case KmerMode::positional: return count_positional(make, x, n, s, tally);
  }
}

// A table of weights by key, read in constant time: f(x) = Σ_keys weight(key) value(key).
class KeyTable {
 public:
  KeyTable(const uint64_t* keys, const double* weights, int64_t n) {
    size_t size = 16;
    while (size < size_t(n) * 2) size *= 2;
    mask_ = size - 1;
    slots_.assign(size, Slot{0, 0.0, false});
    for (int64_t i = 0; i < n; ++i) {
      Slot& slot = slots_[find(keys[i])];
      slot = Slot{keys[i], slot.used ? slot.weight + weights[i] : weights[i], true};
    }
  }
  double score(const uint64_t* keys, const double* values, int64_t n) const {
    double total = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const Slot& slot = slots_[find(keys[i])];
      if (slot.used) total += slot.weight * values[i];
    }
    return total;
  }

 private:
  struct Slot {
    uint64_t key;
    double weight;
    bool used;
  };
  size_t find(uint64_t key) const {
    size_t i = size_t(mix64(key)) & mask_;
    while (slots_[i].used && slots_[i].key != key) i = (i + 1) & mask_;
    return i;
  }
  size_t mask_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace mercer
