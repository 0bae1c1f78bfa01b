// Losses of one score s against one target y, and how far a step along a feature vector goes.
//
//   loss             value                                  target
//   log              ln(1 + exp(-y s))                      y = +1, -1
//   hinge            m = max(0, 1 - y s)                    y = +1, -1
//   squared hinge    m^2                                    y = +1, -1
//   hybrid           a log + (1 - a) hinge                 y = +1, -1
//   squared          (s - y)^2                              a number
//   quantile         q (y - s) if y > s, else (1 - q) (s - y)
//   huber            e^2 / 2 if |e| <= eps, else eps |e| - eps^2 / 2,  e = s - y
//   poisson          exp(s) - y s                           a number >= 0; the prediction is exp(s)
//
// A step of weight h moves s at the speed ds/dt = -slope(s) q for a time h, q being the squared length of x under the
// rates of the weights. Followed to the end (and not along its first direction) it never overshoots, and a weight of 2
// is two examples in a row.
#pragma once

#include <algorithm>
#include <cmath>

namespace mercer {

enum class PointLoss { log, hinge, squared_hinge, hybrid, squared, quantile, huber, poisson };

struct LossSettings {
  PointLoss loss = PointLoss::log;
  double alpha = 0.5;     // hybrid: the share of the log loss
  double quantile = 0.5;  // quantile
  double epsilon = 1.0;   // huber
};

struct LossAt {
  double value, slope;  // slope: derivative in the score
};

inline double log1p_exp(double z) { return z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }
inline double sigmoid(double z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : 1 - 1 / (1 + std::exp(z)); }

inline LossAt loss_at(const LossSettings& settings, double s, double y) {
  const double z = y * s, margin = std::max(0.0, 1 - z), error = s - y;
  switch (settings.loss) {
    case PointLoss::log: return {log1p_exp(-z), -y * sigmoid(-z)};
    case PointLoss::hinge: return {margin, margin > 0 ? -y : 0};
    case PointLoss::squared_hinge: return {margin * margin, -2 * y * margin};
    case PointLoss::hybrid:
      return {settings.alpha * log1p_exp(-z) + (1 - settings.alpha) * margin,
              -y * (settings.alpha * sigmoid(-z) + (margin > 0 ? 1 - settings.alpha : 0))};
    case PointLoss::squared: return {error * error, 2 * error};
    case PointLoss::quantile:
      if (error < 0) return {-settings.quantile * error, -settings.quantile};
      return {(1 - settings.quantile) * error, error > 0 ? 1 - settings.quantile : 0};
    case PointLoss::huber: {
      const double e = settings.epsilon;
      if (std::abs(error) <= e) return {error * error / 2, error};
      return {e * std::abs(error) - e * e / 2, error > 0 ? e : -e};
    }
    case PointLoss::poisson: return {std::exp(s) - y * s, std::exp(s) - y};
  }
  return {0, 0};
}

// z' with z' + exp(z') = z + exp(z) + step: where the margin of the log loss arrives. Newton's method from the right of
// the root, where the function is convex and rising, descends to it.
inline double log_margin_after(double z, double step) {
  const double goal = z + std::exp(z) + step;
  double at = z + step * sigmoid(-z);
  if (goal > 1) at = std::min(at, std::log(goal));  // then the root lies above 0, and exp(root) below the goal
  for (int i = 0; i < 20; ++i) {
    const double e = std::exp(at), change = (at + e - goal) / (1 + e);
    at -= change;
    if (std::abs(change) <= 1e-7 * (1 + std::abs(at))) break;
  }
  return at;
}

// How far to go: the sum over the time h of -slope, so that the score moves by q times this.
inline double step_length(const LossSettings& settings, double s, double y, double h, double q) {
  const double error = y - s;
  const double direction = error > 0 ? 1 : -1;
  const auto log_step = [&](double z, double time) {
    return time * q < 1e-6 ? time * sigmoid(-z) : (log_margin_after(z, time * q) - z) / q;
  };
  const auto hinge_step = [&](double z, double time) { return std::min(time, std::max(0.0, 1 - z) / q); };
  // (1 - exp(-rate q h)) / q, the way down a parabola
  const auto decay = [&](double rate, double time) { return -std::expm1(-rate * q * time) / q; };
  if (!(q > 0)) return -h * loss_at(settings, s, y).slope;
  switch (settings.loss) {
    case PointLoss::log: return y * log_step(y * s, h);
    case PointLoss::hinge: return y * hinge_step(y * s, h);
    case PointLoss::squared_hinge: return y * std::max(0.0, 1 - y * s) * decay(2, h);
    case PointLoss::hybrid: {
      const double first = hinge_step(y * s, h * (1 - settings.alpha));
      return y * (first + log_step(y * s + q * first, h * settings.alpha));
    }
    case PointLoss::squared: return error * decay(2, h);
    case PointLoss::quantile:
      return direction * std::min(h * (error > 0 ? settings.quantile : 1 - settings.quantile), std::abs(error) / q);
    case PointLoss::huber: {
      const double e = settings.epsilon, beyond = std::max(0.0, std::abs(error) - e);
      const double until = beyond / (e * q);  // the time along the straight part
      if (h <= until) return direction * e * h;
      return direction * (beyond / q + std::min(std::abs(error), e) * decay(1, h - until));
    }
    case PointLoss::poisson: {
      // exp(-s) moves on a straight line (y = 0) or decays to 1 / y.
      const double v = std::exp(-s);
      const double after = y > 0 ? 1 / y + (v - 1 / y) * std::exp(-q * y * h) : v + q * h;
      return (-std::log(after) - s) / q;
    }
  }
  return 0;
}

}  // namespace mercer
