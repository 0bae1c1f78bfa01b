// Compiled once for each instruction set, without fused products: sums are the same for vectors of any width.
#include "solvers/smo_loops.hpp"

#include <algorithm>

#include "base/dense.hpp"

namespace mercer::MERCER_ARCH {

namespace {

using smo::Extremes, smo::Watched, smo::kInfinity;

constexpr int64_t kBlock = 64;  // entries among which the place of an extreme value is looked for

template <class Read>
[[gnu::always_inline]] inline Extremes moved(Watched w, const double* ki, const double* kj, double t, Read read) {
  Extremes found;
  double* __restrict values = w.v;
  const double* __restrict grows = w.grows, * __restrict falls = w.falls;
  for (int64_t first = 0; first < w.size; first += kBlock) {
    const int64_t end = std::min(first + kBlock, w.size);
    double up = -kInfinity, down = kInfinity;
#pragma omp simd reduction(max : up) reduction(min : down)
    for (int64_t s = first; s < end; ++s) {
      const double v = values[s] - t * (read(ki, s) - read(kj, s)), grown = v + grows[s], fallen = v + falls[s];
      values[s] = v;
      up = grown > up ? grown : up;
      down = fallen < down ? fallen : down;
    }
    if (up > found.up + w.tie) {
      found.up = up;
      found.block = first;
    }
    found.down = std::min(found.down, down);
  }
  return found;
}

// What a pair with s promises: (up - v_s)^2 / curvature, 0 where s may not fall.
template <class Read>
[[gnu::always_inline]] inline double promise(Watched w, const double* ki, double up, double kii, int64_t s, Read read) {
  const double violation = up - (w.v[s] + w.falls[s]), curvature = kii + w.diagonal[s] - 2 * read(ki, s);
  const double positive = violation > 0 ? violation : 0.0;
  return positive * positive / (curvature > w.flat ? curvature : w.flat);
}

template <class Read>
[[gnu::always_inline]] inline int64_t most_promising(Watched w, const double* ki, double up, double kii, Read read) {
  double most = 0;
  int64_t block = -1, at = -1;
  for (int64_t first = 0; first < w.size; first += kBlock) {
    const int64_t end = std::min(first + kBlock, w.size);
    double here = 0;
#pragma omp simd reduction(max : here)
    for (int64_t s = first; s < end; ++s) {
      const double of_s = promise(w, ki, up, kii, s, read);
      here = of_s > here ? of_s : here;
    }
    if (here > most) {
      most = here;
      block = first;
    }
  }
  if (block < 0) return -1;
  most = -1;
  for (int64_t s = block; s < std::min(block + kBlock, w.size); ++s)
    if (const double here = promise(w, ki, up, kii, s, read); here > most) {
      most = here;
      at = s;
    }
  return at;
}

Extremes move(Watched w, const double* ki, const double* kj, double t) {
  if (w.places) return moved(w, ki, kj, t, [places = w.places](const double* k, int64_t s) { return k[places[s]]; });
  return moved(w, ki, kj, t, [](const double* k, int64_t s) { return k[s]; });
}

int64_t partner(Watched w, const double* ki, double up, double kii) {
  if (w.places)
    return most_promising(w, ki, up, kii, [places = w.places](const double* k, int64_t s) { return k[places[s]]; });
  return most_promising(w, ki, up, kii, [](const double* k, int64_t s) { return k[s]; });
}

// Four rows at a time, over stretches of the sums that stay in the first cache.
void add_rows(const double* const* rows, const double* c, int64_t count, int64_t first, double* out, int64_t n) {
  constexpr int64_t kStretch = 1024;
  for (int64_t from = 0; from < n; from += kStretch) {
    const int64_t end = std::min(n, from + kStretch);
    int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
      const double c0 = c[k], c1 = c[k + 1], c2 = c[k + 2], c3 = c[k + 3];
      const double *x0 = rows[k] + first, *x1 = rows[k + 1] + first, *x2 = rows[k + 2] + first,
                   *x3 = rows[k + 3] + first;
#pragma omp simd
      for (int64_t j = from; j < end; ++j) out[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j]);
    }
    for (; k < count; ++k) {
      const double ck = c[k];
      const double* x = rows[k] + first;
#pragma omp simd
      for (int64_t j = from; j < end; ++j) out[j] += ck * x[j];
    }
  }
}

void add_squares(const double* x, const double* c, int64_t m, double* H) {
  for (int64_t r = 0; r < m; ++r) {
    const double here[4] = {c[0] * x[r], c[1] * x[m + r], c[2] * x[2 * m + r], c[3] * x[3 * m + r]};
    if (here[0] != 0 || here[1] != 0 || here[2] != 0 || here[3] != 0) add_four(x + r, m, here, H + r * m + r, m - r);
  }
}

}  // namespace

template <> const SmoLoops& table<SmoLoops>() {
  static constexpr SmoLoops loops = {
      .move = move,
      .partner = partner,
      .add_rows = add_rows,
      .add_squares = add_squares,
  };
  return loops;
}

}  // namespace mercer::MERCER_ARCH
