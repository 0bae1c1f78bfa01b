// Functions of all pairs of two collections of vectors, compiled once for each instruction set (kernels/pairwise.cpp).
//
//   out[i][j] = finish(Σ_k term(x_ik, z_jk)), or for the last three kinds of terms another function of the two rows
#pragma once

#include <cstdint>

#include "base/dispatch.hpp"

namespace mercer {

// What is added up over the coordinates, or computed from two rows.
enum class PairTerm : int {
  product = 0,      // x z
  squared = 1,      // (x - z)²
  absolute = 2,     // |x - z|
  minimum = 3,      // min(x, z)
  chi_squared = 4,  // (x - z)² / (x + z), 0 where both are 0
  harmonic = 5,     // 2 x z / (x + z), 0 where both are 0
  subsets = 6,      // Σ over the subsets of `degree` coordinates of the product of v_k: x z, or exp(-γ (x - z)²)
  groups = 7,       // Σ_g ω_g (Σ_{k in g} v_k x_k z_k)^degree
  splines = 8,      // Π_k B(|x_k - z_k| / width)
};

// What is made of the sum s.
enum class PairFinish : int {
  none = 0,      // s
  gaussian = 1,  // exp(-γ max(0, ‖x‖² + ‖z‖² - 2 s)), for the term x z
  decay = 2,     // exp(-γ s)
  matern_1 = 3,  // exp(-r), r = γ √s
  matern_3 = 4,  // (1 + r) exp(-r)
  matern_5 = 5,  // (1 + r + r² / 3) exp(-r)
  power = 6,     // (γ s + coef)^degree
};

struct PairRule {
  PairTerm term = PairTerm::product;
  PairFinish finish = PairFinish::none;
  double gamma = 1, coef = 0;
  int64_t degree = 1;
  // groups: members of group g are offsets[g] .. offsets[g + 1] of indices and values
  const int64_t *offsets = nullptr, *indices = nullptr;
  const double *values = nullptr, *weights = nullptr;
  int64_t n_groups = 0;
  int64_t inner = 1;       // groups: the degree inside; subsets: 1 for Gaussian coordinates, 0 for products
  double inner_gamma = 0;  // subsets: γ of the coordinates; splines: 1 / width
  // splines: pieces x (order + 1) coefficients in v = piece + 1 - t, highest power first
  const double* pieces = nullptr;
  int64_t n_pieces = 0, order = 0;
};

// out[row0 + i][j] for all rows i of A and j of B. With `mirror`, B holds the rows 0 .. row0 + rows of one collection
// whose rows from row0 on are A: entries j <= row0 + i are computed and written to out[j][row0 + i] too.
template <class T> struct PairTask {
  const T *A, *B;
  const T *a_norms, *b_norms;  // of the finish gaussian; may be nullptr otherwise
  int64_t n, m, d;
  T* out;
  int64_t stride, row0;
  bool mirror;
};

template <class T> struct PairLoops {
  static constexpr const char* concern = "pairwise";
  void (*pairs)(const PairTask<T>&, const PairRule&, int threads);
};

MERCER_TABLE(PairLoops<float>)
MERCER_TABLE(PairLoops<double>)

}  // namespace mercer
