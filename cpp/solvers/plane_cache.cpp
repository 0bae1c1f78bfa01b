// Planes of margin losses and block-coordinate ascent on their dual.
//
//   loss_i(w) = max_p offset_p - <w, slope_p>   over the planes p of block i (and 0: the plane of the true output)
//   dual: max Σ a_p offset_p - ½ ‖w‖² - Σ_i q_i,  w = Σ a_p slope_p,
//     power 1:  Σ_{p in i} a_p <= mass_i, q_i = 0        power 2 (squared loss):  q_i = (Σ_{p in i} a_p)² / (4 mass_i)
// A bound (of a relative margin: <w, slope> <= B) is a plane with slope -slope, offset -B and a_p >= 0 without any
// upper limit.
//
// The planes of a block are few; with their Gram matrix at hand the dual over one block is solved in place, and w
// changes once.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <vector>

#include "solvers/online_data.hpp"

namespace mercer {
namespace {

struct Plane {
  std::vector<int32_t> index;
  std::vector<double> value;
  double offset = 0, a = 0;
  uint64_t hash = 0;  // of index and value, in any order
  bool bound = false;
  int idle = 0;  // visits since a was last above 0
};

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Block {
  std::vector<Plane> planes;
  std::vector<double> gram;  // planes x planes
  double gap = 0;            // of the block, when it was last visited with a new plane
};

class Planes {
 public:
  Planes(int64_t n_blocks, int64_t n_weights, In1<double> mass, int power) : n_weights_(n_weights), power_(power) {
    require(n_blocks >= 0 && int64_t(mass.shape(0)) == n_blocks, "mass must be one number a block");
    require(n_weights >= 0 && n_weights <= INT32_MAX, "too many weights for block storage");
    require(power == 1 || power == 2, "power must be 1 or 2");
    for (int64_t i = 0; i < n_blocks; ++i)
      require(std::isfinite(mass.data()[i]) && mass.data()[i] > 0, "the mass of a block must be positive and finite");
    mass_.assign(mass.data(), mass.data() + n_blocks);
    blocks_.resize(n_blocks);
  }

  int64_t n_blocks() const { return int64_t(blocks_.size()); }
  int64_t n_weights() const { return n_weights_; }
  int64_t count() const { return count_; }
  int power() const { return power_; }
  double mass(int64_t i) const { return mass_[i]; }
  double linear() const { return linear_; }
  double quadratic() const {
    if (power_ == 1) return 0.0;
    double total = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const double a = used(blocks_[i]);
      total += a * a / (4.0 * mass_[i]);
    }
    return total;
  }
  int64_t nbytes() const {
    int64_t total = 0;
    for (const Block& block : blocks_) {
      for (const Plane& p : block.planes)
        total += int64_t(p.index.capacity() * 4 + p.value.capacity() * 8 + sizeof(Plane));
      total += int64_t(block.gram.capacity() * 8);
    }
    return total;
  }
  const Block& block(int64_t i) const { return blocks_[i]; }
  void forget_gap(int64_t i, double gap) { blocks_[i].gap = gap; }

  // Adds a plane unless the block has it already; returns whether it was new. `w` gives the block's gap.
  template <class Entry> bool add(int64_t i, int64_t size, Entry entry, double offset, bool bound, const double* w) {
    Block& block = blocks_[i];
    Plane plane;
    plane.index.resize(size);
    plane.value.resize(size);
    plane.offset = offset;
    plane.bound = bound;
    double height = offset, square = 0;
    for (int64_t k = 0; k < size; ++k) {
      const std::pair<int64_t, double> e = entry(k);
      plane.index[k] = int32_t(e.first);
      plane.value[k] = e.second;
      uint64_t bits;
      std::memcpy(&bits, &e.second, sizeof bits);
      plane.hash += mixed(bits ^ mixed(uint64_t(e.first)));
      height -= w[e.first] * e.second;
      square += e.second * e.second;
    }
    if (!bound) block.gap = gap_of(i, height, w);
    for (const Plane& p : block.planes)
      if (p.hash == plane.hash && p.bound == bound && p.offset == offset && p.index.size() == plane.index.size())
        return false;
    if (size == 0 && !bound && offset <= 0) return false;  // the true output itself
    const size_t m = block.planes.size();
    if (scatter_.empty()) scatter_.assign(n_weights_, 0.0);
    for (int64_t k = 0; k < size; ++k) scatter_[plane.index[k]] = plane.value[k];
    std::vector<double> gram((m + 1) * (m + 1));
    for (size_t a = 0; a < m; ++a) {
      for (size_t b = 0; b < m; ++b) gram[a * (m + 1) + b] = block.gram[a * m + b];
      gram[a * (m + 1) + m] = gram[m * (m + 1) + a] = along(block.planes[a], scatter_.data());
    }
    gram[m * (m + 1) + m] = square;
    for (int64_t k = 0; k < size; ++k) scatter_[plane.index[k]] = 0.0;
    block.gram = std::move(gram);
    block.planes.push_back(std::move(plane));
    ++count_;
    return true;
  }

  // Maximises the dual over the multipliers of one block.
  void solve(int64_t i, double* w, int max_idle) {
    Block& block = blocks_[i];
    const int m = int(block.planes.size());
    if (m == 0) return;
    slope_.resize(m);
    before_.resize(m);
    for (int p = 0; p < m; ++p) {
      slope_[p] = block.planes[p].offset - along(block.planes[p], w);
      before_[p] = block.planes[p].a;
    }
    if (power_ == 1)
      ascend(block, mass_[i]);
    else
      ascend_squared(block, mass_[i]);
    for (int p = 0; p < m; ++p) {
      Plane& plane = block.planes[p];
      const double change = plane.a - before_[p];
      if (change != 0.0) {
        linear_ += change * plane.offset;
        for (size_t k = 0; k < plane.index.size(); ++k) w[plane.index[k]] += change * plane.value[k];
      }
      plane.idle = plane.a > 0 ? 0 : plane.idle + 1;
    }
    if (max_idle > 0) prune(block, max_idle);
  }

  // What restore() needs, as arrays by name: all planes, block after block.
  nb::dict state() const {
    std::vector<int64_t> blocks, indptr(1, 0);
    std::vector<int32_t> indices, idle;
    std::vector<double> values, offsets, multipliers, gaps;
    std::vector<uint8_t> bounds;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      gaps.push_back(blocks_[i].gap);
      for (const Plane& p : blocks_[i].planes) {
        blocks.push_back(int64_t(i));
        indices.insert(indices.end(), p.index.begin(), p.index.end());
        values.insert(values.end(), p.value.begin(), p.value.end());
        indptr.push_back(int64_t(indices.size()));
        offsets.push_back(p.offset);
        multipliers.push_back(p.a);
        bounds.push_back(p.bound);
        idle.push_back(p.idle);
      }
    }
    nb::dict all;
    all["blocks"] = to_numpy(std::move(blocks));
    all["indptr"] = to_numpy(std::move(indptr));
    all["indices"] = to_numpy(std::move(indices));
    all["values"] = to_numpy(std::move(values));
    all["offsets"] = to_numpy(std::move(offsets));
    all["multipliers"] = to_numpy(std::move(multipliers));
    all["bounds"] = to_numpy(std::move(bounds));
    all["idle"] = to_numpy(std::move(idle));
    all["gaps"] = to_numpy(std::move(gaps));
    all["linear"] = to_numpy(std::vector<double>{linear_});
    return all;
  }
  // The rest of the last plane added to block i.
  void resume(int64_t i, double a, int idle) {
    blocks_[i].planes.back().a = a;
    blocks_[i].planes.back().idle = idle;
  }
  void resume(double linear) { linear_ = linear; }

  // Drops the oldest planes without weight of blocks with more than `most`.
  void trim(int64_t most) {
    for (Block& block : blocks_) {
      int64_t extra = int64_t(block.planes.size()) - most;
      if (extra <= 0) continue;
      for (Plane& p : block.planes)
        if (extra > 0 && p.a == 0.0) {
          p.idle = INT_MAX;
          --extra;
        }
      prune(block, INT_MAX);
    }
  }

  // The highest plane of each block at w: value (at least 0), and the sum of their slopes and offsets.
  std::pair<double, double> highest(const double* w, double* values, double* slope) const {
    double total = 0, offset = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const Plane* best = nullptr;
      double value = 0;
      for (const Plane& p : blocks_[i].planes) {
        if (p.bound) continue;
        const double v = p.offset - along(p, w);
        if (v > value) {
          value = v;
          best = &p;
        }
      }
      values[i] = value;
      if (!best) continue;
      total += mass_[i] * value;
      offset += mass_[i] * best->offset;
      for (size_t k = 0; k < best->index.size(); ++k) slope[best->index[k]] += mass_[i] * best->value[k];
    }
    return {total, offset};
  }

  // The largest step that one more exact solve of some block could still make, in dual units: Σ over blocks of their
  // gap over known planes.
  double residual(const double* w) const {
    double total = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      double best = 0, held = 0;
      const double a = power_ == 2 ? used(blocks_[i]) / (2.0 * mass_[i]) : 0.0;
      for (const Plane& p : blocks_[i].planes) {
        const double g = p.offset - along(p, w) - (p.bound ? 0.0 : a);
        if (p.bound)
          total += p.a > 0 ? std::fabs(g) * p.a : 0.0;
        else {
          best = std::max(best, g);
          held += p.a * g;
        }
      }
      total += power_ == 1 ? mass_[i] * best - held : best * used(blocks_[i]) - held;
    }
    return total;
  }

 private:
  static double used(const Block& block) {
    double total = 0;
    for (const Plane& p : block.planes)
      if (!p.bound) total += p.a;
    return total;
  }
  static double along(const Plane& p, const double* w) {
    double total = 0;
    for (size_t k = 0; k < p.index.size(); ++k) total += w[p.index[k]] * p.value[k];
    return total;
  }
  double gap_of(int64_t i, double height, const double* w) const {
    double held = 0;
    for (const Plane& p : blocks_[i].planes)
      if (!p.bound && p.a > 0) held += p.a * (p.offset - along(p, w));
    height = std::max(0.0, height);
    if (power_ == 1) return std::max(0.0, mass_[i] * height - held);
    const double a = used(blocks_[i]);  // of mass h² and its conjugate
    return std::max(0.0, mass_[i] * height * height - held + a * a / (4.0 * mass_[i]));
  }

  void move(Block& block, int p, double step) {
    const int m = int(block.planes.size());
    block.planes[p].a += step;
    for (int q = 0; q < m; ++q) slope_[q] -= step * block.gram[q * m + p];
  }

  // Sequential minimal optimisation over {a >= 0, Σ a <= mass}; the true output is a plane of slope 0 that takes what
  // is left.
  void ascend(Block& block, double mass) {
    const int m = int(block.planes.size());
    double left = mass - used(block);
    double scale = 0;
    for (int p = 0; p < m; ++p) scale = std::max(scale, std::fabs(slope_[p]));
    double tiny = 1e-13 * std::max(1.0, scale);
    for (int round = 0; round < 20 * m + 20; ++round) {
      int up = -1, down = -1, lone = -1;  // -1: the true output
      double high = 0, low = left > 1e-14 * mass ? 0.0 : INFINITY, alone = 0;
      for (int p = 0; p < m; ++p) {
        const Plane& plane = block.planes[p];
        const double g = slope_[p];
        if (plane.bound) {
          if ((g > 0 || plane.a > 0) && std::fabs(g) > alone) {
            alone = std::fabs(g);
            lone = p;
          }
          continue;
        }
        if (g > high) {
          high = g;
          up = p;
        }
        if (plane.a > 0 && g < low) {
          low = g;
          down = p;
        }
      }
      const double pair = high - low;
      // The last digits of one block are not worth the time while other blocks still move it: a hundredth of its first
      // violation.
      if (round == 0) tiny = std::max(tiny, 0.01 * std::max(pair, alone));
      if (alone <= tiny && !(pair > tiny)) break;
      if (alone > pair || !(pair > tiny)) {
        const double curve = block.gram[lone * m + lone];
        const double step = curve > 0 ? std::max(-block.planes[lone].a, slope_[lone] / curve) : -block.planes[lone].a;
        if (step == 0.0) break;
        move(block, lone, step);
        continue;
      }
      double curve = 0;
      if (up >= 0) curve += block.gram[up * m + up];
      if (down >= 0) curve += block.gram[down * m + down];
      if (up >= 0 && down >= 0) curve -= 2.0 * block.gram[up * m + down];
      const double limit = down >= 0 ? block.planes[down].a : left;
      double step = curve > 0 ? std::min(limit, pair / curve) : limit;
      if (!(step > 0)) break;
      if (up >= 0)
        move(block, up, step);
      else
        left += step;
      if (down >= 0) {
        const bool all = step == limit;
        move(block, down, -step);
        if (all) block.planes[down].a = 0.0;
      } else {
        left -= step;
      }
    }
  }

  // Coordinate ascent over a >= 0 with the term (Σ a)² / (4 mass).
  void ascend_squared(Block& block, double mass) {
    const int m = int(block.planes.size());
    const double extra = 1.0 / (2.0 * mass);
    double total = used(block);
    double scale = 0;
    for (int p = 0; p < m; ++p) scale = std::max(scale, std::fabs(slope_[p]));
    for (int round = 0; round < 20 * m + 20; ++round) {
      int best = -1;
      double gain = 1e-13 * std::max(1.0, scale);
      for (int p = 0; p < m; ++p) {
        const double g = slope_[p] - (block.planes[p].bound ? 0.0 : extra * total);
        if ((g > 0 || block.planes[p].a > 0) && std::fabs(g) > gain) {
          gain = std::fabs(g);
          best = p;
        }
      }
      if (best < 0) break;
      Plane& plane = block.planes[best];
      const double own = plane.bound ? 0.0 : extra;
      const double g = slope_[best] - own * total, curve = block.gram[best * m + best] + own;
      const double step = curve > 0 ? std::max(-plane.a, g / curve) : -plane.a;
      if (step == 0.0) break;
      move(block, best, step);
      if (!plane.bound) total += step;
    }
  }

  void prune(Block& block, int max_idle) {
    const size_t m = block.planes.size();
    kept_.clear();
    for (size_t p = 0; p < m; ++p)
      if (block.planes[p].idle < max_idle) kept_.push_back(p);
    if (kept_.size() == m) return;
    count_ -= int64_t(m - kept_.size());
    std::vector<double> gram(kept_.size() * kept_.size());
    for (size_t a = 0; a < kept_.size(); ++a)
      for (size_t b = 0; b < kept_.size(); ++b) gram[a * kept_.size() + b] = block.gram[kept_[a] * m + kept_[b]];
    for (size_t a = 0; a < kept_.size(); ++a)
      if (kept_[a] != a) block.planes[a] = std::move(block.planes[kept_[a]]);
    block.planes.resize(kept_.size());
    block.gram = std::move(gram);
  }

  int64_t n_weights_, count_ = 0;
  int power_;
  double linear_ = 0;
  std::vector<double> mass_;
  std::vector<Block> blocks_;
  std::vector<double> slope_, before_, scatter_;
  std::vector<size_t> kept_;
};

void check_weights(const Planes& planes, size_t size) {
  require(int64_t(size) == planes.n_weights(), "weights have the wrong length");
}
void check_blocks(const Planes& planes, In1<int64_t> blocks) {
  for (size_t k = 0; k < blocks.shape(0); ++k)
    require(blocks.data()[k] >= 0 && blocks.data()[k] < planes.n_blocks(), "no such block");
}

int64_t add_planes(Planes& planes, In1<int64_t> blocks, In1<int64_t> indptr, In1<int64_t> indices, In1<double> values,
                   In1<double> offsets, bool bound, In1<double> w) {
  check_weights(planes, w.shape(0));
  check_blocks(planes, blocks);
  const int64_t n = int64_t(blocks.shape(0));
  require(int64_t(indptr.shape(0)) == n + 1 && int64_t(offsets.shape(0)) == n, "one row and one offset a block");
  require(indices.shape(0) == values.shape(0), "the slopes are no CSR matrix");
  require_offsets(indptr, int64_t(indices.shape(0)), "indptr", "indices");
  for (int64_t k = 0; k < n; ++k)
    for (int64_t j = indptr.data()[k]; j < indptr.data()[k + 1]; ++j) {
      require(indices.data()[j] >= 0 && indices.data()[j] < planes.n_weights(), "a column index is out of range");
      require(j == indptr.data()[k] || indices.data()[j - 1] < indices.data()[j], "indices must ascend in every row");
    }
  require(all_finite(values.data(), int64_t(values.shape(0))) && all_finite(offsets.data(), n),
          "planes must be finite");
  int64_t added = 0;
  nb::gil_scoped_release release;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t begin = indptr.data()[k];
    added += planes.add(
        blocks.data()[k], indptr.data()[k + 1] - begin,
        [&](int64_t j) { return std::make_pair(indices.data()[begin + j], values.data()[begin + j]); },
        offsets.data()[k], bound, w.data());
  }
  return added;
}

// Σ a <= mass in every block (power 1), and linear = Σ a offset, both up to the rounding of many steps.
void check_multipliers(const Planes& planes, In1<int64_t> blocks, In1<double> offsets, In1<double> multipliers,
                       In1<uint8_t> bounds, double linear) {
  std::vector<double> used(planes.n_blocks(), 0.0);
  double total = 0, scale = 0;
  for (size_t k = 0; k < blocks.shape(0); ++k) {
    const int64_t i = blocks.data()[k];
    const double a = multipliers.data()[k], offset = offsets.data()[k];
    if (!bounds.data()[k]) used[i] += a;
    total += a * offset;
    scale += (a + 1e-3 * planes.mass(i)) * std::fabs(offset);
  }
  for (int64_t i = 0; i < planes.n_blocks(); ++i)
    require(planes.power() == 2 || used[i] <= planes.mass(i) * (1 + 1e-6),
            "the multipliers of a block are above its mass");
  require(std::fabs(linear - total) <= 1e-6 * scale + 1e-12, "linear is not the sum of multipliers times offsets");
}

// Planes that another object gave as its state(), into one that has none yet.
void restore_planes(Planes& planes, In1<int64_t> blocks, In1<int64_t> indptr, In1<int32_t> indices, In1<double> values,
                    In1<double> offsets, In1<double> multipliers, In1<uint8_t> bounds, In1<int32_t> idle,
                    In1<double> gaps, In1<double> linear) {
  const int64_t n = int64_t(blocks.shape(0)), size = int64_t(indices.shape(0));
  require(planes.count() == 0, "there are planes already");
  check_blocks(planes, blocks);
  require(int64_t(indptr.shape(0)) == n + 1 && indptr.data()[0] == 0 && indptr.data()[n] == size &&
              int64_t(values.shape(0)) == size,
          "the slopes are no CSR matrix");
  require(int64_t(offsets.shape(0)) == n && int64_t(multipliers.shape(0)) == n && int64_t(bounds.shape(0)) == n &&
              int64_t(idle.shape(0)) == n,
          "one offset, multiplier, bound and idle count a plane");
  require(int64_t(gaps.shape(0)) == planes.n_blocks() && linear.shape(0) == 1, "one gap a block");
  require(all_finite(values.data(), size) && all_finite(offsets.data(), n) && all_finite(multipliers.data(), n) &&
              all_finite(gaps.data(), planes.n_blocks()) && std::isfinite(linear.data()[0]),
          "planes must be finite");
  std::vector<int64_t> seen(planes.n_weights(), -1);
  for (int64_t k = 0; k < n; ++k) {
    require(indptr.data()[k] <= indptr.data()[k + 1] && indptr.data()[k + 1] <= size, "indptr must not decrease");
    require(multipliers.data()[k] >= 0 && idle.data()[k] >= 0, "multipliers and idle counts must not be negative");
    for (int64_t j = indptr.data()[k]; j < indptr.data()[k + 1]; ++j) {
      const int64_t f = indices.data()[j];
      require(f >= 0 && f < planes.n_weights(), "a column index is out of range");
      require(seen[f] != k, "a plane names a column twice");
      seen[f] = k;
    }
  }
  check_multipliers(planes, blocks, offsets, multipliers, bounds, linear.data()[0]);
  const std::vector<double> nowhere(planes.n_weights(), 0.0);
  for (int64_t k = 0; k < n; ++k) {
    const int64_t begin = indptr.data()[k], i = blocks.data()[k];
    const bool added = planes.add(
        i, indptr.data()[k + 1] - begin,
        [&](int64_t j) { return std::make_pair(int64_t(indices.data()[begin + j]), values.data()[begin + j]); },
        offsets.data()[k], bounds.data()[k] != 0, nowhere.data());
    require(added, "a plane is there twice");
    planes.resume(i, multipliers.data()[k], idle.data()[k]);
  }
  for (int64_t i = 0; i < planes.n_blocks(); ++i) planes.forget_gap(i, gaps.data()[i]);
  planes.resume(linear.data()[0]);
}

void solve_blocks(Planes& planes, In1<int64_t> blocks, Out1<double> w, int max_idle) {
  check_weights(planes, w.shape(0));
  check_blocks(planes, blocks);
  nb::gil_scoped_release release;
  for (size_t k = 0; k < blocks.shape(0); ++k) planes.solve(blocks.data()[k], w.data(), max_idle);
}

std::pair<double, double> highest_planes(const Planes& planes, In1<double> w, Out1<double> values, Out1<double> slope) {
  check_weights(planes, w.shape(0));
  check_weights(planes, slope.shape(0));
  require(int64_t(values.shape(0)) == planes.n_blocks(), "values must be one number a block");
  nb::gil_scoped_release release;
  return planes.highest(w.data(), values.data(), slope.data());
}

nb::object block_gaps(const Planes& planes) {
  std::vector<double> gaps(planes.n_blocks());
  for (int64_t i = 0; i < planes.n_blocks(); ++i) gaps[i] = planes.block(i).gap;
  return to_numpy(std::move(gaps));
}

// ---------------------------------------------------------------------------------------------- chains

// Every plane found becomes a step on the dual of its block.
struct AscentSink : PlaneSink {
  Planes& planes;
  double* w;
  int max_idle;
  AscentSink(Planes& p, double* weights, int idle) : planes(p), w(weights), max_idle(idle) {}
  void take(int64_t example, const std::pair<int64_t, double>* slope, int64_t size, double offset, double) override {
    planes.add(example, size, [&](int64_t k) { return slope[k]; }, offset, false, w);
    planes.solve(example, w, max_idle);
  }
};

// Pegasos with steps 1 / t: w = (total / t) Σ slopes, kept as the sum and the factor (state.scale).
struct SubgradientSink : PlaneSink {
  double* w;
  double total;
  OnlineState& state;
  double offsets = 0;
  SubgradientSink(double* weights, double mass, OnlineState& s) : w(weights), total(mass), state(s) {}
  void take(int64_t, const std::pair<int64_t, double>* slope, int64_t size, double offset, double) override {
    for (int64_t k = 0; k < size; ++k) w[slope[k].first] += total * slope[k].second;
    offsets += total * offset;
    state.step += 1.0;
    state.scale = 1.0 / state.step;
  }
};

template <class T>
double run_margin(const OnlineData<T>& data, const double* cost, In1<int64_t> order, double* w, OnlineState& state,
                  PlaneSink& sink) {
  return loops<ChainOnlineLoops<T>>().margin(data, cost, order.data(), int64_t(order.shape(0)), w, state, sink);
}

template <class T>
OnlineData<T> margin_data(const FeatureRows& rows, const WeightPattern& pattern, const FeatureRows* edge_rows,
                          const WeightPattern* edge_pattern, In1<int64_t> offsets, In1<int32_t> labels,
                          const std::optional<In1<uint8_t>>& shared_mask, In2<double> cost, In1<int64_t> order,
                          Out1<double> w) {
  const OnlineData<T> data =
      online_data<T>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, order, int64_t(w.shape(0)));
  require(int64_t(cost.shape(0)) == data.C && int64_t(cost.shape(1)) == data.C, "cost must be labels x labels");
  require(all_finite(cost.data(), int64_t(data.C) * data.C), "cost must be finite");
  require(all_finite(w.data(), int64_t(w.shape(0))), "weights must be finite");
  for (int64_t i = 0; i < data.n; ++i)
    for (int64_t t = data.offsets[i]; t < data.offsets[i + 1]; ++t)
      require(data.labels[t] >= 0, "margin learning needs all labels");
  return data;
}

double chain_ascent(const FeatureRows& rows, const WeightPattern& pattern, const FeatureRows* edge_rows,
                    const WeightPattern* edge_pattern, In1<int64_t> offsets, In1<int32_t> labels,
                    std::optional<In1<uint8_t>> shared_mask, In2<double> cost, In1<int64_t> order, Out1<double> w,
                    Planes& planes, int max_idle) {
  check_weights(planes, w.shape(0));
  check_blocks(planes, order);
  OnlineState state;
  AscentSink sink(planes, w.data(), max_idle);
  auto run = [&](auto data) {
    nb::gil_scoped_release release;
    return run_margin(data, cost.data(), order, w.data(), state, sink);
  };
  if (rows.single())
    return run(
        margin_data<float>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, cost, order, w));
  return run(margin_data<double>(rows, pattern, edge_rows, edge_pattern, offsets, labels, shared_mask, cost, order, w));
}

std::pair<double, double> chain_subgradient(const FeatureRows& rows, const WeightPattern& pattern,
                                            const FeatureRows* edge_rows, const WeightPattern* edge_pattern,
                                            In1<int64_t> offsets, In1<int32_t> labels,
                                            std::optional<In1<uint8_t>> shared_mask, In2<double> cost,
                                            In1<int64_t> order, Out1<double> w, double mass, OnlineState& state) {
  require(std::isfinite(mass) && mass > 0, "mass must be positive and finite");
  SubgradientSink sink(w.data(), mass, state);
  auto run = [&](auto data) {
    nb::gil_scoped_release release;
    return run_margin(data, cost.data(), order, w.data(), state, sink);
  };
  const double loss = rows.single() ? run(margin_data<float>(rows, pattern, edge_rows, edge_pattern, offsets, labels,
                                                             shared_mask, cost, order, w))
                                    : run(margin_data<double>(rows, pattern, edge_rows, edge_pattern, offsets, labels,
                                                              shared_mask, cost, order, w));
  return {loss, sink.offsets};
}

// Φ(x, y) - Φ(x, z) of a batch of chains as a CSR matrix with ascending columns.
template <class T>
nb::tuple difference(const Rows<T>& rows, const Pattern& p, const Rows<T>* edge_rows, const Pattern* q,
                     In1<int64_t> offsets, const int32_t* y, const int32_t* z, const uint8_t* mask) {
  const int64_t n = int64_t(offsets.shape(0)) - 1, C = p.width, at = p.n_weights, at_edges = at + C * C + 2 * C;
  std::vector<int64_t> indptr(n + 1, 0), columns;
  std::vector<double> values;
  std::vector<std::pair<int64_t, double>> entries;
  auto change = [&](int64_t k, double v) { entries.emplace_back(k, v); };
  auto shared = [&](int64_t right, int64_t wrong) {
    if (right == wrong) return;
    if (!mask || !mask[right]) change(at + right, 1.0);
    if (!mask || !mask[wrong]) change(at + wrong, -1.0);
  };
  auto features = [&](const Rows<T>& x, const Pattern& pattern, int64_t base, int64_t row, int64_t right,
                      int64_t wrong) {
    const int64_t begin = x.indptr ? x.indptr[row] : 0, size = x.indptr ? x.indptr[row + 1] - begin : x.n_columns;
    for (int64_t j = 0; j < size; ++j) {
      const int64_t f = x.indptr ? x.indices[begin + j] : j;
      const double v = !x.indptr  ? double(x.values[row * x.n_columns + j])
                       : x.values ? double(x.values[begin + j])
                                  : 1.0;
      if (!pattern.starts) {
        change(base + f * pattern.width + right, v);
        change(base + f * pattern.width + wrong, -v);
        continue;
      }
      for (int64_t k = pattern.starts[f]; k < pattern.starts[f + 1]; ++k) {
        if (pattern.column(k) == right) change(base + k, v);
        if (pattern.column(k) == wrong) change(base + k, -v);
      }
    }
  };
  {
    nb::gil_scoped_release release;
    const int64_t* o = offsets.data();
    for (int64_t i = 0; i < n; ++i) {
      entries.clear();
      const int64_t begin = o[i] - o[0], stop = o[i + 1] - o[0];
      if (begin < stop) {
        shared(C * C + y[begin], C * C + z[begin]);
        shared(C * C + C + y[stop - 1], C * C + C + z[stop - 1]);
      }
      for (int64_t t = begin; t < stop; ++t) {
        if (y[t] != z[t]) features(rows, p, 0, o[0] + t, y[t], z[t]);
        if (t == begin) continue;
        const int64_t right = y[t - 1] * C + y[t], wrong = z[t - 1] * C + z[t];
        if (right == wrong) continue;
        shared(right, wrong);
        if (edge_rows) features(*edge_rows, *q, at_edges, o[0] + t, right, wrong);
      }
      std::sort(entries.begin(), entries.end());
      for (size_t j = 0; j < entries.size();) {
        std::pair<int64_t, double> merged = entries[j];
        for (++j; j < entries.size() && entries[j].first == merged.first; ++j) merged.second += entries[j].second;
        if (merged.second == 0.0) continue;
        columns.push_back(merged.first);
        values.push_back(merged.second);
      }
      indptr[i + 1] = int64_t(columns.size());
    }
  }
  return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(columns)), to_numpy(std::move(values)));
}

nb::tuple chain_difference(const FeatureRows& rows, const WeightPattern& pattern, const FeatureRows* edge_rows,
                           const WeightPattern* edge_pattern, In1<int64_t> offsets, In1<int32_t> y, In1<int32_t> z,
                           std::optional<In1<uint8_t>> shared_mask) {
  const Pattern p = pattern.view();
  const int64_t n = require_offsets_within(offsets, rows.n_rows(), "offsets", "rows"), C = p.width;
  require(rows.n_columns() <= p.n_features, "the rows have more features than the pattern");
  require(C < (int64_t(1) << 31), "the pattern has too many labels");
  const int64_t count = offsets.data()[n] - offsets.data()[0];
  require(int64_t(y.shape(0)) == count && int64_t(z.shape(0)) == count, "labels do not fit the number of positions");
  for (int64_t t = 0; t < count; ++t)
    require(y.data()[t] >= 0 && y.data()[t] < C && z.data()[t] >= 0 && z.data()[t] < C, "a label is out of range");
  require((edge_rows != nullptr) == (edge_pattern != nullptr), "edge rows and edge pattern come together");
  if (shared_mask) require(int64_t(shared_mask->shape(0)) == C * C + 2 * C, "shared_mask has the wrong length");
  Pattern q{};
  if (edge_rows) {
    q = edge_pattern->view();
    require(q.width == C * C && edge_rows->n_columns() <= q.n_features, "the edge pattern does not fit");
    require(edge_rows->n_rows() == rows.n_rows(), "edge rows and rows must be equally many");
  }
  const uint8_t* mask = shared_mask ? shared_mask->data() : nullptr;
  auto run = [&](auto x, auto e) {
    return difference(x, p, edge_rows ? &e : nullptr, edge_rows ? &q : nullptr, offsets, y.data(), z.data(), mask);
  };
  if (rows.single()) return run(rows.view<float>(), edge_rows ? edge_rows->view<float>() : Rows<float>{});
  return run(rows.view<double>(), edge_rows ? edge_rows->view<double>() : Rows<double>{});
}

}  // namespace

void bind_blocks(nb::module_& m) {
  nb::class_<Planes>(m, "Planes", "Planes of margin losses, block by block, and ascent on their dual.")
      .def(nb::init<int64_t, int64_t, In1<double>, int>(), "n_blocks"_a, "n_weights"_a, "mass"_a.noconvert(),
           "power"_a = 1)
      .def_prop_ro("n_blocks", &Planes::n_blocks)
      .def_prop_ro("count", &Planes::count)
      .def_prop_ro("nbytes", &Planes::nbytes)
      .def_prop_ro("linear", &Planes::linear, "Σ a_p offset_p.")
      .def_prop_ro("quadratic", &Planes::quadratic, "The term of squared losses.")
      .def("add", &add_planes, "blocks"_a.noconvert(), "indptr"_a.noconvert(), "indices"_a.noconvert(),
           "values"_a.noconvert(), "offsets"_a.noconvert(), "bound"_a, "w"_a.noconvert(),
           "Adds one plane to each named block; returns how many were new.")
      .def("solve", &solve_blocks, "blocks"_a.noconvert(), "w"_a.noconvert(), "max_idle"_a = 0,
           "Maximises the dual over each block in turn; w follows. Planes idle for max_idle visits are dropped (0: "
           "never).")
      .def("state", &Planes::state, "All planes and their multipliers as arrays by name.")
      .def("restore", &restore_planes, "blocks"_a.noconvert(), "indptr"_a.noconvert(), "indices"_a.noconvert(),
           "values"_a.noconvert(), "offsets"_a.noconvert(), "multipliers"_a.noconvert(), "bounds"_a.noconvert(),
           "idle"_a.noconvert(), "gaps"_a.noconvert(), "linear"_a.noconvert(), "Goes on from a state.")
      .def(
          "trim",
          [](Planes& planes, int64_t most) {
            require(most >= 0, "most must not be negative");
            planes.trim(most);
          },
          "most"_a, "Drops the oldest planes without weight of blocks with more than this.")
      .def("highest", &highest_planes, "w"_a.noconvert(), "values"_a.noconvert(), "slope"_a.noconvert(),
           "The highest plane of each block at w: values; adds mass-weighted slopes; returns summed (value, offset).")
      .def(
          "residual",
          [](const Planes& planes, In1<double> w) {
            check_weights(planes, w.shape(0));
            return planes.residual(w.data());
          },
          "w"_a.noconvert(), "The gap of the dual over the planes that are known.")
      .def("gaps", &block_gaps, "The gap of each block when it last got a plane.");
#define MERCER_MARGIN_ARGUMENTS                                                                                \
  "rows"_a, "pattern"_a, "edge_rows"_a.none(), "edge_pattern"_a.none(), "offsets"_a.noconvert(),               \
      "labels"_a.noconvert(), "shared_mask"_a.noconvert().none(), "cost"_a.noconvert(), "order"_a.noconvert(), \
      "w"_a.noconvert()
  m.def("chain_ascent", &chain_ascent, MERCER_MARGIN_ARGUMENTS, "planes"_a, "max_idle"_a = 0,
        "One visit to each named sequence: its most violating labelling becomes a plane and its block is solved.");
  m.def("chain_subgradient", &chain_subgradient, MERCER_MARGIN_ARGUMENTS, "mass"_a, "state"_a,
        "One Pegasos step for each named sequence; returns (summed loss, summed offsets).");
#undef MERCER_MARGIN_ARGUMENTS
  m.def("chain_difference", &chain_difference, "rows"_a, "pattern"_a, "edge_rows"_a.none(), "edge_pattern"_a.none(),
        "offsets"_a.noconvert(), "y"_a.noconvert(), "z"_a.noconvert(), "shared_mask"_a.noconvert().none(),
        "Features of y less those of z, as (indptr, indices, values).");
}

}  // namespace mercer
