// How variables with two states lie in memory for the loops of inference/spins.hpp: colour by colour, in blocks of one vector.
//
//   log p(x) = Σ_i bias_i x_i + Σ_ij weight_ij x_i x_j + const,    x_i ∈ {0, 1}
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "inference/factors.hpp"
#include "inference/spin_loops.hpp"

namespace mercer {

// Biases, neighbours with their weights (each once, ascending) and colours of the variables.
struct SpinGraph {
  std::vector<double> bias;
  std::vector<std::vector<std::pair<int64_t, double>>> neighbours;
  std::vector<std::vector<int64_t>> colours;  // members of each

  static bool possible(const FlatGraph& g) {
    const FactorStructure& s = g.structure();
    for (int32_t c : s.cards)
      if (c != 2) return false;
    for (int64_t f = 0; f < s.m; ++f) {
      if (s.arity(f) != 2) return false;
      for (int k = 0; k < 4; ++k)
        if (g.table(f)[k] == kImpossible) return false;
    }
    return true;
  }

  explicit SpinGraph(const FlatGraph& g) {
    const FactorStructure& s = g.structure();
    neighbours.resize(size_t(s.n));
    bias.resize(size_t(s.n));
    for (int64_t i = 0; i < s.n; ++i) {
      const double* u = g.unary() + s.state_starts[size_t(i)];
      bias[size_t(i)] = u[0] == kImpossible ? (u[1] == kImpossible ? 0.0 : 1e30) : std::max(u[1] - u[0], -1e30);
    }
    for (int64_t f = 0; f < s.m; ++f) {
      const int64_t slot = s.scope_starts[size_t(f)];
      const int64_t u = s.scopes[size_t(slot)], v = s.scopes[size_t(slot) + 1];
      const double* t = g.table(f);
      bias[size_t(u)] += t[2] - t[0];
      bias[size_t(v)] += t[1] - t[0];
      const double weight = t[0] + t[3] - t[1] - t[2];
      neighbours[size_t(u)].push_back({v, weight});
      neighbours[size_t(v)].push_back({u, weight});
    }
    for (auto& around : neighbours) merge(around);
    colour();
  }

 private:
  // Several factors may join two variables, and their weights may cancel.
  static void merge(std::vector<std::pair<int64_t, double>>& around) {
    std::sort(around.begin(), around.end());
    size_t kept = 0;
    for (size_t k = 0; k < around.size();) {
      std::pair<int64_t, double> one = around[k++];
      while (k < around.size() && around[k].first == one.first) one.second += around[k++].second;
      if (one.second != 0) around[kept++] = one;
    }
    around.resize(kept);
  }

  // Greedy: the first colour that no neighbour has.
  void colour() {
    std::vector<int> chosen(neighbours.size(), -1), taken;
    for (size_t i = 0; i < neighbours.size(); ++i) {
      taken.assign(neighbours[i].size() + 1, 0);
      for (const auto& [j, weight] : neighbours[i])
        if (chosen[size_t(j)] >= 0 && size_t(chosen[size_t(j)]) < taken.size()) taken[size_t(chosen[size_t(j)])] = 1;
      const size_t c = size_t(std::find(taken.begin(), taken.end(), 0) - taken.begin());
      chosen[i] = int(c);
      if (c == colours.size()) colours.emplace_back();
      colours[c].push_back(int64_t(i));
    }
  }
};

// Places of the variables: colours one after the other, each from a whole block of W on, in chunks of C blocks.
template <int64_t W, int64_t C> struct SpinPlaces {
  std::vector<int64_t> place, variable;  // of every variable; at every place, or −1
  std::vector<int64_t> chunk_starts{0}, colour_starts{0};

  explicit SpinPlaces(const SpinGraph& g) : place(g.bias.size()) {
    for (const std::vector<int64_t>& members : g.colours) {
      for (int64_t i : members) {
        place[size_t(i)] = int64_t(variable.size());
        variable.push_back(i);
      }
      variable.resize((variable.size() + W - 1) / W * W, -1);
      while (chunk_starts.back() < blocks()) chunk_starts.push_back(std::min(blocks(), chunk_starts.back() + C));
      colour_starts.push_back(int64_t(chunk_starts.size()) - 1);
    }
  }

  size_t length() const { return variable.size(); }
  int64_t blocks() const { return int64_t(variable.size()) / W; }

  // Where the neighbours of a block lie, each seen from the first lane: few numbers if they lie side by side.
  std::vector<int64_t> distances(const SpinGraph& g, int64_t block) const {
    std::vector<int64_t> starts;
    for (int64_t lane = 0; lane < W; ++lane) {
      const int64_t i = variable[size_t(W * block + lane)];
      if (i < 0) continue;
      for (const auto& [j, weight] : g.neighbours[size_t(i)]) starts.push_back(place[size_t(j)] - lane);
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    return starts;
  }
};

// Any biases and weights, in single precision.
struct Spins : SpinPlaces<16, 32> {
  std::vector<float> bias, weights;
  std::vector<int64_t> slot_starts{0}, bases;
  std::vector<int32_t> places;
  SpinField field{};

  explicit Spins(const SpinGraph& g) : SpinPlaces(g), bias(length(), 0.0f) {
    for (size_t p = 0; p < length(); ++p)
      if (variable[p] >= 0) bias[p] = float(g.bias[size_t(variable[p])]);
    for (int64_t b = 0; b < blocks(); ++b) {
      connect(g, b);
      slot_starts.push_back(int64_t(bases.size()));
    }
    field = {bias.data(),   slot_starts.data(),  bases.data(),         weights.data(),
             places.data(), chunk_starts.data(), colour_starts.data(), int(colour_starts.size()) - 1};
  }

 private:
  // Slots of a block: neighbours at the same distance share one that is read with a plain load; where that would take
  // many slots, the k-th neighbours do, read place by place.
  void connect(const SpinGraph& g, int64_t b) {
    const std::vector<int64_t> starts = distances(g, b);
    size_t most = 0;
    for (int64_t lane = 0; lane < 16; ++lane) {
      const int64_t i = variable[size_t(16 * b + lane)];
      if (i >= 0) most = std::max(most, g.neighbours[size_t(i)].size());
    }
    const bool inside = starts.empty() || (starts.front() >= 0 && starts.back() + 16 <= int64_t(length()));
    if (inside && starts.size() <= 3 * most)
      by_distance(g, b, starts);
    else
      by_number(g, b, most);
  }

  void by_distance(const SpinGraph& g, int64_t b, const std::vector<int64_t>& starts) {
    const size_t first = bases.size();
    bases.insert(bases.end(), starts.begin(), starts.end());
    weights.resize(16 * bases.size(), 0.0f);
    for (int64_t lane = 0; lane < 16; ++lane) {
      const int64_t i = variable[size_t(16 * b + lane)];
      if (i < 0) continue;
      for (const auto& [j, weight] : g.neighbours[size_t(i)]) {
        const size_t slot =
            size_t(std::lower_bound(starts.begin(), starts.end(), place[size_t(j)] - lane) - starts.begin());
        weights[16 * (first + slot) + size_t(lane)] = float(weight);
      }
    }
  }

  void by_number(const SpinGraph& g, int64_t b, size_t most) {
    for (size_t k = 0; k < most; ++k) {
      bases.push_back(-1 - int64_t(places.size() / 16));
      for (int64_t lane = 0; lane < 16; ++lane) {
        const int64_t i = variable[size_t(16 * b + lane)];
        const bool there = i >= 0 && k < g.neighbours[size_t(i)].size();
        places.push_back(there ? int32_t(place[size_t(g.neighbours[size_t(i)][k].first)]) : 0);
        weights.push_back(there ? float(g.neighbours[size_t(i)][k].second) : 0.0f);
      }
    }
  }
};

// All weights of a variable equal, as in Ising's model: p(x_i = 1 | rest) takes one value for each number of neighbours
// that are 1.
struct Counts : SpinPlaces<64, 8> {
  static constexpr int64_t WIDTH = 64, FLUSH = 255;  // visits are counted in bytes
  static constexpr size_t MOST = 8;                  // neighbours
  static constexpr int64_t REPAID = 8;               // sweeps that repay new thresholds
  std::vector<double> bias, weight;                  // of every variable
  std::vector<double> up;                            // variables × (degree + 1): p(x_i = 1 | count)
  std::vector<int8_t> thresholds, masks;
  std::vector<uint64_t> exact;
  std::vector<int64_t> slot_starts{0}, bases;
  CountField field{};

  static bool possible(const SpinGraph& g) {
    for (const auto& around : g.neighbours) {
      if (around.size() > MOST) return false;
      for (const auto& one : around)
        if (one.second != around[0].second) return false;
    }
    const SpinPlaces places(g);
    for (int64_t b = 0; b < places.blocks(); ++b)
      if (places.distances(g, b).size() > 2 * MOST) return false;
    return true;
  }

  explicit Counts(const SpinGraph& g) : SpinPlaces(g), bias(g.bias), weight(bias.size(), 0.0) {
    size_t degree = 1;
    for (size_t i = 0; i < bias.size(); ++i) {
      degree = std::max(degree, g.neighbours[i].size());
      if (!g.neighbours[i].empty()) weight[i] = g.neighbours[i][0].second;
    }
    for (int64_t b = 0; b < blocks(); ++b) {
      const std::vector<int64_t> starts = distances(g, b);
      const size_t first = bases.size();
      bases.insert(bases.end(), starts.begin(), starts.end());
      masks.resize(64 * bases.size(), 0);
      for (int64_t lane = 0; lane < 64; ++lane) {
        const int64_t i = variable[size_t(64 * b + lane)];
        if (i < 0) continue;
        for (const auto& [j, w] : g.neighbours[size_t(i)]) {
          const size_t slot =
              size_t(std::lower_bound(starts.begin(), starts.end(), place[size_t(j)] - lane) - starts.begin());
          masks[64 * (first + slot) + size_t(lane)] = 1;
        }
      }
      slot_starts.push_back(int64_t(bases.size()));
    }
    up.resize(bias.size() * (degree + 1));
    thresholds.assign(length() * (degree + 1), -128);
    exact.assign(length() * (degree + 1), 0);
    field = {thresholds.data(), exact.data(),        slot_starts.data(),   bases.data(),
             masks.data(),      chunk_starts.data(), colour_starts.data(), int(colour_starts.size()) - 1,
             int(degree)};
  }

  // Whether these sweeps are all at one temperature and enough to compute the thresholds for it.
  bool prepare(const double* betas, int64_t sweeps) {
    if (sweeps == 0 || std::any_of(betas, betas + sweeps, [&](double b) { return b != betas[0]; })) return false;
    if (betas[0] == beta_) return true;
    if (sweeps < REPAID) return false;
    beta_ = betas[0];
    const size_t levels = size_t(field.degree) + 1;
    for (size_t i = 0; i < bias.size(); ++i) {
      const bool again = i > 0 && bias[i] == bias[i - 1] && weight[i] == weight[i - 1];
      const size_t block = size_t(place[i]) / 64, lane = size_t(place[i]) % 64;
      for (size_t c = 0; c < levels; ++c) {
        double& p = up[levels * i + c];
        p = again ? up[levels * (i - 1) + c] : 1.0 / (1.0 + std::exp(-beta_ * (bias[i] + weight[i] * double(c))));
        const uint64_t number = p >= 1.0 ? UINT64_MAX : uint64_t(p * 0x1p64);
        exact[levels * size_t(place[i]) + c] = number;
        thresholds[64 * (levels * block + c) + lane] = int8_t(int(number >> 56) - 128);
      }
    }
    return true;
  }

  // Σ over sweeps of p(x_i = 1 | count): by how often each count was met (0 is what is left).
  double taken(size_t i, int64_t sweeps, const uint8_t* visits) const {
    const size_t degree = size_t(field.degree), block = size_t(place[i]) / 64, lane = size_t(place[i]) % 64;
    const double* p = up.data() + (degree + 1) * i;
    double sum = 0.0;
    for (size_t c = 1; c <= degree; ++c) {
      const int64_t met = visits[64 * (degree * block + c - 1) + lane];
      sum += double(met) * p[c];
      sweeps -= met;
    }
    return sum + double(sweeps) * p[0];
  }

 private:
  double beta_ = -1.0;
};

}  // namespace mercer
