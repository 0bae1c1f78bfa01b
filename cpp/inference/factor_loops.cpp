// Compiled once for each instruction set, without fused products: sums are the same for vectors of any width.
#include "inference/factor_loops.hpp"

#include <cmath>
#include <cstring>

#include "base/simd.hpp"

namespace mercer::MERCER_ARCH {

namespace {

void exp_all(double* x, int64_t count) {
  constexpr double lowest = -708.0, magic = 0x1.8p52;
  for (int64_t i = 0; i < count; ++i) {
    const double in = x[i], y = in > lowest ? in : lowest;
    const double t = y * 0x1.71547652b82fep0 + magic, n = t - magic;
    const double r = (y - n * 0x1.62e42fefa0000p-1) - n * 0x1.cf79abc9e3b3ap-40;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits, shift;
    std::memcpy(&bits, &p, sizeof p);
    std::memcpy(&shift, &t, sizeof t);
    bits += shift << 52;
    std::memcpy(&p, &bits, sizeof p);
    x[i] = in >= lowest ? p : 0.0;
  }
}

void log_all(const double* x, const double* weights, double* out, int64_t count) {
  constexpr int L = kLanes<double>;
  int64_t i = 0;
  for (; i + L <= count; i += L) store(out + i, load(weights + i) * vlog(load(x + i)));
  if (i == count) return;
  double last[L];
  for (int k = 0; k < L; ++k) last[k] = i + k < count ? x[i + k] : 1.0;
  store(last, vlog(load(last)));
  for (int k = 0; i + k < count; ++k) out[i + k] = weights[i + k] * last[k];
}

template <bool kMaximise> inline double either(double a, double b) { return kMaximise ? (a > b ? a : b) : a + b; }

// Odds of the mixture of two probabilities.
inline double blend(double odds, double old, double damping) {
  const double a = (1.0 - damping) * (1.0 + old), b = damping * (1.0 + odds);
  return (a * odds + b * old) / (a + b);
}

template <bool kShared, bool kMaximise, bool kDamped>
inline void odds_loop(const BinaryFactors& p, const double* __restrict B) {
  const int32_t* __restrict v0 = p.v0, * __restrict v1 = p.v1;
  const double* __restrict t00 = p.t00, * __restrict t01 = p.t01, * __restrict t10 = p.t10, * __restrict t11 = p.t11;
  double* __restrict r0 = p.r0, * __restrict r1 = p.r1, * __restrict change = p.change;
  for (int64_t f = 0; f < p.count; ++f) {
    const int64_t t = kShared ? 0 : f;
    const double a = r0[f], b = r1[f], B0 = B[v0[f]], B1 = B[v1[f]];
    const double to1 = either<kMaximise>(t01[t] * a, t11[t] * B0) / either<kMaximise>(t00[t] * a, t10[t] * B0);
    const double to0 = either<kMaximise>(t10[t] * b, t11[t] * B1) / either<kMaximise>(t00[t] * b, t01[t] * B1);
    // |m(1) − old m(1)|, where m(1) = r / (1 + r).
    const double d0 = std::abs(to0 - a) / ((1.0 + to0) * (1.0 + a)), d1 = std::abs(to1 - b) / ((1.0 + to1) * (1.0 + b));
    change[f] = d0 > d1 ? d0 : d1;
    r0[f] = kDamped ? blend(to0, a, p.damping) : to0;
    r1[f] = kDamped ? blend(to1, b, p.damping) : to1;
  }
}

template <bool kShared, bool kMaximise> void odds_block(const BinaryFactors& p, const double* B) {
  if (p.damping > 0.0) return odds_loop<kShared, kMaximise, true>(p, B);
  odds_loop<kShared, kMaximise, false>(p, B);
}

void odds_half(const BinaryHalf& p, const double* __restrict B) {
  const int32_t* __restrict v = p.v;
  const double* __restrict t00 = p.t00, * __restrict t01 = p.t01, * __restrict t10 = p.t10, * __restrict t11 = p.t11;
  const double* __restrict from = p.from;
  double* __restrict to = p.to, * __restrict change = p.change;
  const double damping = p.damping;
  for (int64_t f = 0; f < p.count; ++f) {
    const double a = from[f], b = B[v[f]], old = to[f];
    const double next = (t01[f] * a + t11[f] * b) / (t00[f] * a + t10[f] * b);
    change[f] = std::abs(next - old) / ((1.0 + next) * (1.0 + old));
    to[f] = blend(next, old, damping);
  }
}

}  // namespace

template <> const FactorLoops& table<FactorLoops>() {
  static constexpr FactorLoops loops = {
      .exp_all = exp_all,
      .log_all = log_all,
      .odds_sum_shared = odds_block<true, false>,
      .odds_sum = odds_block<false, false>,
      .odds_max_shared = odds_block<true, true>,
      .odds_max = odds_block<false, true>,
      .odds_half = odds_half,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
