// Symmetric matrices of a few rows: eigenvectors, linear systems, the rotation of a cross-covariance, exp of a motion.
#pragma once

#include <algorithm>
#include <cmath>

namespace mercer {

// Eigenvalues (ascending) and eigenvectors (rows of v) of a symmetric matrix, by cyclic Jacobi rotations.
template <int N> void jacobi(double (&a)[N][N], double (&values)[N], double (&v)[N][N]) {
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) v[i][j] = i == j;
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0, diagonal = 0;
    for (int i = 0; i < N; ++i) {
      diagonal += a[i][i] * a[i][i];
      for (int j = i + 1; j < N; ++j) off += a[i][j] * a[i][j];
    }
    if (off <= 1e-30 * diagonal || off == 0) break;
    for (int p = 0; p < N; ++p)
      for (int q = p + 1; q < N; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (int k = 0; k < N; ++k) {
          const double x = a[k][p], y = a[k][q];
          a[k][p] = c * x - s * y;
          a[k][q] = s * x + c * y;
        }
        for (int k = 0; k < N; ++k) {
          const double x = a[p][k], y = a[q][k];
          a[p][k] = c * x - s * y;
          a[q][k] = s * x + c * y;
        }
        for (int k = 0; k < N; ++k) {
          const double x = v[p][k], y = v[q][k];
          v[p][k] = c * x - s * y;
          v[q][k] = s * x + c * y;
        }
      }
  }
  for (int i = 0; i < N; ++i) values[i] = a[i][i];
  for (int i = 0; i < N; ++i) {
    int least = i;
    for (int j = i + 1; j < N; ++j)
      if (values[j] < values[least]) least = j;
    if (least == i) continue;
    std::swap(values[i], values[least]);
    for (int k = 0; k < N; ++k) std::swap(v[i][k], v[least][k]);
  }
}

// Solves a x = b for a positive definite matrix; false where it is not. a is overwritten.
template <int N> bool solve_spd(double (&a)[N][N], double (&b)[N]) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (int k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i == j) {
        if (!(sum > 0)) return false;
        a[i][i] = std::sqrt(sum);
      } else {
        a[i][j] = sum / a[j][j];
      }
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (int i = N - 1; i >= 0; --i) {
    for (int k = i + 1; k < N; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return true;
}

// The rotation r that maximises Σ_ij r[i][j] m[i][j], m = Σ (target - mean) (source - mean)ᵀ: Horn's quaternion.
inline void best_rotation(const double (&m)[3][3], double (&r)[3][3]) {
  double q[4][4] = {{m[0][0] + m[1][1] + m[2][2], m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]},
                    {0, m[0][0] - m[1][1] - m[2][2], m[0][1] + m[1][0], m[0][2] + m[2][0]},
                    {0, 0, m[1][1] - m[0][0] - m[2][2], m[1][2] + m[2][1]},
                    {0, 0, 0, m[2][2] - m[0][0] - m[1][1]}};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < i; ++j) q[i][j] = q[j][i];
  double values[4], v[4][4];
  jacobi<4>(q, values, v);
  const double w = v[3][0], x = v[3][1], y = v[3][2], z = v[3][3];
  const double rotation[3][3] = {{w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)},
                                 {2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)},
                                 {2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z}};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) r[i][j] = rotation[i][j];
}

// A rigid motion x -> r x + b of D = 2 or 3 dimensions.
template <int D> struct Motion {
  double r[D][D], b[D];
  void apply(const double* x, double* y) const {
    for (int i = 0; i < D; ++i) {
      y[i] = b[i];
      for (int j = 0; j < D; ++j) y[i] += r[i][j] * x[j];
    }
  }
  void turn(const double* x, double* y) const {
    for (int i = 0; i < D; ++i) {
      y[i] = 0;
      for (int j = 0; j < D; ++j) y[i] += r[i][j] * x[j];
    }
  }
  // From the first D rows of a matrix of D + 1 columns.
  static Motion from(const double* m) {
    Motion p;
    for (int i = 0; i < D; ++i) {
      for (int j = 0; j < D; ++j) p.r[i][j] = m[i * (D + 1) + j];
      p.b[i] = m[i * (D + 1) + D];
    }
    return p;
  }
  void to(double* m) const {
    for (int i = 0; i <= D; ++i)
      for (int j = 0; j <= D; ++j) m[i * (D + 1) + j] = i < D ? (j < D ? r[i][j] : b[i]) : j == D;
  }
};

// exp of an angle times an axis (3), of an angle (2).
inline void rotation_of(const double* w, double (&r)[3][3]) {
  const double angle = std::sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
  const double s = angle < 1e-6 ? 1 : std::sin(angle) / angle, half = angle < 1e-6 ? 0.5 : std::sin(angle / 2) / angle;
  const double c = angle < 1e-6 ? 0.5 : 2 * half * half;
  const double k[3][3] = {{0, -w[2], w[1]}, {w[2], 0, -w[0]}, {-w[1], w[0], 0}};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double square = 0;
      for (int l = 0; l < 3; ++l) square += k[i][l] * k[l][j];
      r[i][j] = (i == j) + s * k[i][j] + c * square;
    }
}
inline void rotation_of(const double* w, double (&r)[2][2]) {
  r[0][0] = r[1][1] = std::cos(w[0]);
  r[1][0] = std::sin(w[0]);
  r[0][1] = -r[1][0];
}

}  // namespace mercer
