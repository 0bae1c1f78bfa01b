"""Online learners with a dictionary entry for each weight: no table, no hashing, double precision, slow and obviously
right.

The same rules as ``cpp/solvers/hashed_learner.hpp``. A step "for as long as the loss asks" is followed by the method of
Runge and Kutta in small pieces.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

CLASS_LOSSES = ("log", "hinge", "hybrid", "squared-hinge")
PIECES = 30


def loss_value(loss, s, y, *, alpha=0.5, quantile=0.5, epsilon=1.0):
    margin = max(0.0, 1 - y * s)
    log = math.log1p(math.exp(-abs(y * s))) + max(0.0, -y * s)
    e = s - y
    return {
        "log": lambda: log,
        "hinge": lambda: margin,
        "squared-hinge": lambda: margin**2,
        "hybrid": lambda: alpha * log + (1 - alpha) * margin,
        "squared": lambda: e * e,
        "quantile": lambda: -quantile * e if e < 0 else (1 - quantile) * e,
        "huber": lambda: e * e / 2 if abs(e) <= epsilon else epsilon * abs(e) - epsilon**2 / 2,
        "poisson": lambda: math.exp(s) - y * s,
    }[loss]()


def loss_slope(loss, s, y, *, alpha=0.5, quantile=0.5, epsilon=1.0):
    if loss in CLASS_LOSSES:
        margin = max(0.0, 1 - y * s)
        if loss == "squared-hinge":
            return -2 * y * margin
        log, hinge = -y / (1 + math.exp(y * s)), -y * (margin > 0)
        return {"log": log, "hinge": hinge, "hybrid": alpha * log + (1 - alpha) * hinge}[loss]
    e = s - y
    if loss == "squared":
        return 2 * e
    if loss == "quantile":
        return -quantile if e < 0 else (1 - quantile) * (e > 0)
    return max(-epsilon, min(epsilon, e)) if loss == "huber" else math.exp(s) - y


def followed(loss, s, y, h, q, **settings):
    """∫ −slope over the time h while the score moves at the speed −slope · q."""
    if loss == "hybrid":  # first the hinge part, then the log part
        alpha = settings["alpha"]
        first = followed("hinge", s, y, h * (1 - alpha), q, **settings)
        return first + followed("log", s + q * first, y, h * alpha, q, **settings)
    if loss in ("hinge", "quantile"):  # of one speed, until the slope stops
        length = -loss_slope(loss, s, y, **settings) * h
        left = (y - s if loss == "quantile" else y * max(0.0, 1 - y * s)) / q
        return math.copysign(min(abs(length), abs(left)), left)

    def speed(length):
        return -loss_slope(loss, s + q * length, y, **settings)

    length, piece = 0.0, h / PIECES
    for _ in range(PIECES):
        first = speed(length)
        second = speed(length + piece / 2 * first)
        third = speed(length + piece / 2 * second)
        length += piece / 6 * (first + 2 * second + 2 * third + speed(length + piece * third))
    return length


def soften(w, by):
    return math.copysign(max(0.0, abs(w) - by), w)


@dataclass
class Learner:
    """One output, or ``n_classes`` of them; examples are dictionaries feature → value."""

    loss: str
    optimizer: str
    rate: float
    l1: float = 0.0
    l2: float = 0.0
    n_classes: int = 0
    settings: dict = field(default_factory=lambda: {"alpha": 0.5, "quantile": 0.5, "epsilon": 1.0})

    def __post_init__(self):
        self.w, self.sums, self.z = defaultdict(float), defaultdict(float), defaultdict(float)
        self.scale = defaultdict(float)
        self.t = self.norms = self.largest = 0.0
        self.targets, self.centre = [], 0.0

    # features of an example as weights' names: (feature, class), and None for the intercept
    def values(self, x):
        if self.optimizer == "adagrad":
            x = {f: v / self.scale[f] for f, v in x.items() if self.scale[f]}
        return {**x, None: 1.0}

    def score(self, x, c=0):
        return self.centre + sum(self.w[f, c] * v for f, v in self.values(x).items())

    def learn(self, x, y, h=1.0):
        """Returns the loss before the step. y: ±1, a number, or the number of a class."""
        if self.optimizer == "adagrad":
            for f, v in x.items():
                self.scale[f] = max(self.scale[f], abs(v))
        regression = self.loss not in CLASS_LOSSES
        if regression:
            if not self.targets:
                self.centre = math.log(max(y, 0.5)) if self.loss == "poisson" else y
            self.targets.append((y, h))
        x = self.values(x)
        scores = [self.centre + sum(self.w[f, c] * v for f, v in x.items()) for c in range(max(1, self.n_classes))]
        value, slopes = self.slopes(scores, y)
        rate = self.next_rate(sum(v * v for v in x.values()))
        if regression and self.loss != "poisson" and self.optimizer != "sgd":
            rate *= self.spread()
        if self.optimizer == "sgd":
            for name in self.w:
                if name[0] is not None:
                    self.w[name] *= 1 - rate * self.l2
        {"adagrad": self.adagrad, "ftrl": self.ftrl, "sgd": self.sgd}[self.optimizer](x, scores, y, slopes, rate, h)
        return value

    def slopes(self, scores, y):
        if not self.n_classes:
            return loss_value(self.loss, scores[0], y, **self.settings), {
                0: loss_slope(self.loss, scores[0], y, **self.settings)
            }
        alpha = {"log": 1.0, "hybrid": self.settings["alpha"]}.get(self.loss, 0.0)
        total = math.log(sum(math.exp(s) for s in scores))
        rival = max((c for c in range(self.n_classes) if c != y), key=lambda c: scores[c])
        margin = max(0.0, 1 - scores[y] + scores[rival])
        slopes = {c: alpha * (math.exp(s - total) - (c == y)) for c, s in enumerate(scores)}
        squared = self.loss == "squared-hinge"
        hinge = 2 * margin if squared else (1 - alpha) * (margin > 0)
        slopes[rival] += hinge
        slopes[y] -= hinge
        value = alpha * (total - scores[y]) + (margin**2 if squared else (1 - alpha) * margin)
        return value, {c: g for c, g in slopes.items() if g}

    def next_rate(self, norm):
        self.t, self.norms, self.largest = self.t + 1, self.norms + norm, max(self.largest, norm)
        if self.optimizer == "adagrad":
            return self.rate * (self.t / self.norms) ** 0.75
        return self.rate if self.optimizer == "ftrl" else 1 / (self.l2 * self.t + self.largest / self.rate)

    def spread(self):
        total = sum(h for _, h in self.targets)
        mean = sum(h * y for y, h in self.targets) / total
        return math.sqrt(sum(h * (y - mean) ** 2 for y, h in self.targets) / total)

    def adagrad(self, x, scores, y, slopes, rate, h):
        if not any(slopes.values()) or not rate:
            return
        for c, g in slopes.items():
            for f, v in x.items():
                self.sums[f, c] += h * (g * v) ** 2
        start = 0.1 if self.n_classes else 0.0
        q = {c: sum(v * v / math.sqrt(start + self.sums[f, c]) for f, v in x.items() if v) for c in slopes}
        if self.n_classes:
            own = -slopes[y]
            total = rate * sum((g / own) ** 2 * q[c] for c, g in slopes.items())
            others = [s for c, s in enumerate(scores) if c != y]
            soft = self.loss in ("log", "hybrid")
            z = scores[y] - (math.log(sum(map(math.exp, others))) if soft else max(others))
            plain = -h * loss_slope(self.loss, z, 1, **self.settings)
            share = min(1.0, followed(self.loss, z, 1, h, total, **self.settings) / plain) if plain > 0 else 1.0
            lengths = {c: -g * h * share for c, g in slopes.items()}
        else:
            lengths = {0: followed(self.loss, scores[0], y, h, rate * q[0], **self.settings)}
        for c, length in lengths.items():
            for f, v in x.items():
                r = rate / math.sqrt(start + self.sums[f, c])
                w = self.w[f, c] + r * length * v
                self.w[f, c] = w if f is None else soften(w / (1 + r * h * self.l2), r * h * self.l1)

    def ftrl(self, x, scores, y, slopes, rate, h):
        for c, g in slopes.items():
            if not g or not rate:
                continue
            for f, v in x.items():
                before = math.sqrt(self.sums[f, c])
                self.sums[f, c] += h * (g * v) ** 2
                root = math.sqrt(self.sums[f, c])
                self.z[f, c] += h * g * v - (root - before) / rate * self.w[f, c]
                l1, l2 = (0, 0) if f is None else (self.l1, self.l2)
                self.w[f, c] = -soften(self.z[f, c], l1) / ((1 + root) / rate + l2)

    def sgd(self, x, scores, y, slopes, rate, h):
        for c, g in slopes.items():
            if not g:
                continue
            for f, v in x.items():
                w = self.w[f, c] - rate * h * g * v
                self.w[f, c] = w if f is None else soften(w, rate * self.l1)
