"""What theory says and what data say: thresholds of the hybrid loss, coverage of bounds, the adaptive hybrid loss.

    python benchmarks/theory.py [--parts thresholds nondominant coverage mixed grid basenp conll2000] [--seeds 5]
                                [--runs 2000]

``thresholds``  4,420 random distributions without a dominant label and random shares α: how often the printed
                condition of the hybrid loss holds though scores tie, and how often it fails though they do not; the
                exact threshold beside it.
``nondominant`` one input, 46 of 100 examples with the first of 3 to 10 labels, the others shared out equally (figure
                7.1 of Shi 2011): training error of log, hinge and hybrid loss, scores within 1e-3 tied at random.
``coverage``    bounds on the error of classifiers of a known problem, over many training sets: how often they fail.
``mixed``       five labels, a share rho of the examples at one point without a dominant label: log, hinge, hybrid and
                adaptive hybrid, and scikit-learn's logistic regression, whose constant has no penalty, beside
                LinearClassifier with the log loss. "adaptive" has a floor of 0.2, the default one of 0.5. Features are
                standardised by the training rows, and the constant feature is 10: the margin solvers penalise its
                weight, and with 1 that decides who wins. C (and α of the hybrid, floor and ceiling of the adaptive one)
                by 1,000 validation examples, error on 1,000 others.
``grid``        the same for log, hinge and hybrid on the 60 cells of figure 7.2 of Shi (2011).
``basenp``      the same as the next on the 900 base-NP sentences that come with CRF++.
``conll2000``   CoNLL-2000 chunking (needs MERCER_DATA), train and test pooled and cut 20 / 40 / 40 into training,
                validation and test. C and α by F1 on the validation part; the adaptive loss (with a floor of 0.2)
                takes the C of the log loss and chooses nothing by itself. The hinge loss is minimised to a certified
                relative gap of 1 %, the hybrid losses by L-BFGS from the weights of the log loss with the same C, 10
                steps to choose and 20 at the end, without a certificate.

No choice is made on test data.
"""

from __future__ import annotations

import argparse
import copy
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import from_data, parse, peer, record, sized, spread

from mercer.classification import LinearClassifier
from mercer.data import FeatureIndex, Sequences, Template
from mercer.datasets import load_basenp, load_conll2000, make_mixed_dominance, make_nondominant
from mercer.learning import AdaptiveHybrid, Hinge, Hybrid, Log, Loss, Penalty, Risk
from mercer.learning.adaptive import adapted
from mercer.learning.solvers import LBFGS
from mercer.learning.training import train
from mercer.metrics import span_report
from mercer.structures import Labels
from mercer.tagging import Tagger
from mercer.theory import pac_bayes
from mercer.theory.consistency import hybrid_threshold, is_consistent

# ---------------------------------------------------------------------------------------------- thresholds


def thresholds(args: argparse.Namespace) -> None:
    """The printed and the exact condition of alignment, beside the minimiser."""
    rng = np.random.default_rng(0)
    n = sized(4420, 60)
    printed = {"holds": 0, "holds, tied": 0, "fails": 0, "fails, aligned": 0}
    exact_wrong = 0
    while printed["holds"] + printed["fails"] < n:
        D = rng.dirichlet(np.ones(rng.integers(3, 6)))
        first, second = np.sort(D)[::-1][:2]
        alpha = float(rng.random())
        if first >= 0.5 or first - second <= 0.02:
            continue
        aligned = is_consistent(Hybrid(alpha), D)
        exact_wrong += aligned != (alpha > hybrid_threshold(D))
        if alpha > hybrid_threshold(D, "printed"):
            printed["holds"] += 1
            printed["holds, tied"] += not aligned
        else:
            printed["fails"] += 1
            printed["fails, aligned"] += aligned
    print(f"{n:,} random distributions without a dominant label, 3 to 5 labels, gap above 0.02, α uniform")
    print(f"printed condition holds   {printed['holds']:5d}, scores tie all the same {printed['holds, tied']:5d}")
    print(f"printed condition fails   {printed['fails']:5d}, aligned all the same    {printed['fails, aligned']:5d}")
    print(f"exact threshold wrong     {exact_wrong:5d}")
    record("thresholds", "printed condition holds", values={"cases": printed["holds"], "wrong": printed["holds, tied"]})
    record(
        "thresholds", "printed condition fails", values={"cases": printed["fails"], "wrong": printed["fails, aligned"]}
    )
    record("thresholds", "exact threshold", values={"cases": n, "wrong": exact_wrong})


# ---------------------------------------------------------------------------------------------- nondominant


def nondominant(args: argparse.Namespace) -> None:
    """Training error without a dominant label, by the number of labels."""
    losses: dict[str, tuple[Loss, str]] = {
        "log": (Log(), "lbfgs"),
        "hybrid, α = 0.5": (Hybrid(0.5), "bmrm"),
        "hinge": (Hinge(), "dual"),
    }
    print(f"{'labels':>6s} " + " ".join(f"{name:>16s}" for name in losses) + f" {'1 - 1/k':>8s}")
    for k in sized(range(3, 11), (3, 4)):
        X, y = make_nondominant(k)
        rows = Sequences(np.column_stack([X, np.full(len(X), 10.0)]), np.arange(len(X) + 1))
        errors = {}
        for name, (loss, solver) in losses.items():
            risk = Risk(Labels(k, rows.n_features), loss, rows, y.astype(np.int32))
            w = train(risk, solver=solver, C=0.01, tol=1e-7, max_iter=1000, random_state=0, warn=False)[0].w
            scores = Labels(k, rows.n_features).scores(w, rows)
            tied = scores > scores.max(axis=1, keepdims=True) - 1e-3
            chances = (tied[np.arange(len(y)), y] / tied.sum(axis=1)).mean()  # of the true label, ties drawn
            errors[name] = round(1.0 - float(chances), 3)
        print(f"{k:6d} " + " ".join(f"{value:16.3f}" for value in errors.values()) + f" {1 - 1 / k:8.3f}", flush=True)
        record("nondominant", f"{k} labels", values=errors | {"chance": round(1 - 1 / k, 3)})


# ---------------------------------------------------------------------------------------------- coverage


def sample(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three labels, features of length 1 at most, 10 % of the labels drawn at random."""
    y = rng.integers(0, 3, n)
    X = np.eye(3)[y] + 0.5 * rng.normal(size=(n, 3))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), y)


def coverage(args: argparse.Namespace) -> None:
    """How often bounds fail: of fitted classifiers, and for a posterior that does not look at the data (KL = 0)."""
    m, delta = sized(2000, 100), 0.05
    X_test, y_test = sample(sized(20_000, 2000), np.random.default_rng(10**6))
    failures = {
        "margin": 0,
        "McAllester": 0,
        "Seeger": 0,
        "twice Seeger": 0,
        "McAllester, KL = 0": 0,
        "Seeger, KL = 0": 0,
        "held-out examples": 0,
    }
    tightest = dict.fromkeys(("margin", "Seeger"), 1.0)
    for run in range(args.runs):
        rng = np.random.default_rng(run)
        X, y = sample(m, rng)
        model = LinearClassifier(loss="log", C=10.0, fit_intercept=False).fit(X, y)
        bounds = pac_bayes.bound(model, X, y, delta, B=np.sqrt(2.0), random_state=run, n_draws=100)
        error = float(np.mean(model.predict(X_test) != y_test))
        scores = X_test @ model.coef_.T * (bounds.scale / bounds.w_norm)
        noise = np.linalg.norm(X_test, axis=1)[:, None] * rng.standard_normal(scores.shape)
        gibbs = float(np.mean((scores + noise).argmax(axis=1) != y_test))
        failures["margin"] += bounds.margin < error
        failures["twice Seeger"] += bounds.average < error
        failures["McAllester"] += bounds.mcallester < gibbs
        failures["Seeger"] += bounds.seeger < gibbs
        tightest["margin"] = min(tightest["margin"], bounds.margin)
        tightest["Seeger"] = min(tightest["Seeger"], bounds.seeger)
        wrong = float(np.mean(rng.random(m) < 0.1))
        failures["McAllester, KL = 0"] += pac_bayes.gibbs_bound(wrong, 0.0, m, delta) < 0.1
        failures["Seeger, KL = 0"] += pac_bayes.seeger_bound(wrong, 0.0, m, delta) < 0.1
        failures["held-out examples"] += pac_bayes.held_out_bound(wrong, m, delta) < 0.1
    print(f"{args.runs} training sets of {m} examples, delta = {delta}; failures of each bound")
    for name, count in failures.items():
        print(f"{name:24s} {count:5d} of {args.runs} ({count / args.runs:.4f}, allowed {delta})")
        record("coverage", name, values={"failures": count, "runs": args.runs, "allowed": delta})
    print(f"lowest margin bound {tightest['margin']:.3f}, lowest Seeger bound {tightest['Seeger']:.3f}")


# ---------------------------------------------------------------------------------------------- mixed dominance

STRENGTHS = sized((0.01, 0.1, 1.0), (0.1,))
ALPHAS = sized((0.2, 0.5, 0.8), (0.5,))
CEILINGS = sized((0.5, 0.8, 1.0), (0.5,))
CELLS = sized([(rho, m) for rho in (0.1, 0.5, 0.9) for m in (60, 300)], [(0.5, 60)])
GRID = sized(
    [(rho / 10, m) for rho in range(1, 11) for m in (30, 60, 100, 300, 600, 1000)],
    [(0.1, 30)],
)  # of figure 7.2


def rows_of(X: np.ndarray) -> Sequences:
    """With a constant feature: the class means lie on one line."""
    return Sequences(np.column_stack([X, np.full(len(X), 10.0)]), np.arange(len(X) + 1))


def standardised(parts: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """By the rows of the first part."""
    mean, spread = parts[0][0].mean(axis=0), parts[0][0].std(axis=0)
    return [(X - mean) / np.where(spread > 0, spread, 1.0) for X, _ in parts]


def weights_of(loss: Loss, rows: Sequences, y: np.ndarray, C: float) -> np.ndarray:
    risk = Risk(Labels(5, rows.n_features), loss, rows, y.astype(np.int32))
    if isinstance(loss, AdaptiveHybrid):
        risk = adapted(risk, Penalty(), C)
    solver, tol = {"log": ("lbfgs", 1e-5), "hinge": ("dual", 1e-3)}.get(loss.name, ("bmrm", 1e-3))
    return train(risk, solver=solver, C=C, tol=tol, max_iter=2000, random_state=0, warn=False)[0].w


def error_of(w: np.ndarray, rows: Sequences, y: np.ndarray) -> float:
    """Labels whose scores are within 1e-3 of the best are as good: one is drawn."""
    scores = Labels(5, rows.n_features).scores(w, rows)
    tied = scores > scores.max(axis=1, keepdims=True) - 1e-3
    lots = np.random.default_rng(0).random(scores.shape)
    return float(np.mean(np.where(tied, lots, -1.0).argmax(axis=1) != y))


LEARNERS: dict[str, list[Loss]] = {
    "log": [Log()],
    "hinge": [Hinge()],
    "hybrid": [Hybrid(alpha) for alpha in ALPHAS],
    "adaptive": [AdaptiveHybrid(floor=0.2)],
    "adaptive, default": [AdaptiveHybrid()],
    "adaptive, range chosen": [
        AdaptiveHybrid(floor=low, ceiling=high) for low in ALPHAS for high in CEILINGS if low <= high
    ],
}


def peers() -> dict[str, Callable[[float], Any]]:
    own = {"LinearClassifier, log": lambda C: LinearClassifier(loss="log", C=C, tol=1e-6)}
    if peer("sklearn") is None:
        return own
    from sklearn.linear_model import LogisticRegression

    return {**own, "scikit-learn, logistic": lambda C: LogisticRegression(C=C, max_iter=2000)}


def mixed(args: argparse.Namespace) -> None:
    """Errors by the share of examples without a dominant label and the size of the training set."""
    names = args.learners or [*LEARNERS, *peers()]
    cells = [cell for cell in CELLS if args.rho in (None, cell[0])]
    worst = compared(cells, names, "mixed" if args.learners is None else "mixed, some", args.seeds)
    for name, points in worst.items() if args.learners is None and args.rho is None else ():
        print(f"{name}, less the best of log, hinge and hybrid: at most {points:+.1f} points")
        record("mixed", f"{name}, less the best of the others", values={"points": round(points, 1)})


def grid(args: argparse.Namespace) -> None:
    """The whole grid of the source: log, hinge and hybrid."""
    compared(GRID, ["log", "hinge", "hybrid"], "mixed, grid", args.seeds)


def compared(cells: list[tuple[float, int]], names: list[str], table: str, seeds: int) -> dict[str, float]:
    """Print and record the errors of learners; by how much adaptive ones are worse than the best at most."""
    print("error in per cent, mean of seeds; the best possible is 60 rho")
    print(f"{'rho':>4s} {'m':>5s} " + " ".join(f"{name:>24s}" for name in names))
    worst = dict.fromkeys([name for name in names if name.startswith("adaptive")], -np.inf)
    for rho, m in cells:
        errors: dict[str, list[float]] = {name: [] for name in names}
        for seed in range(seeds):
            parts = [
                make_mixed_dominance(rho, size, random_state=10 * seed + k) for k, size in enumerate((m, 1000, 1000))
            ]
            tables, ys = standardised(parts), [y for _, y in parts]
            rows = [rows_of(X) for X in tables]
            for name in names:
                candidates: list[tuple[float, float]] = []
                if name in LEARNERS:
                    for loss in LEARNERS[name]:
                        for C in STRENGTHS:
                            w = weights_of(loss, rows[0], ys[0], C)
                            candidates.append((error_of(w, rows[1], ys[1]), error_of(w, rows[2], ys[2])))
                else:
                    for C in STRENGTHS:
                        model = peers()[name](C).fit(tables[0], ys[0])
                        candidates.append(
                            tuple(
                                float(np.mean(model.predict(t) != y)) for t, y in zip(tables[1:], ys[1:], strict=True)
                            )
                        )
                errors[name].append(min(candidates, key=lambda pair: pair[0])[1])
        means = {name: 100 * float(np.mean(values)) for name, values in errors.items()}
        best = min([means[name] for name in ("log", "hinge", "hybrid") if name in means], default=np.nan)
        for name in worst:
            worst[name] = max(worst[name], means[name] - best)
        print(f"{rho:4.1f} {m:5d} " + " ".join(f"{means[name]:24.1f}" for name in names), flush=True)
        shown = {name: spread([100 * value for value in values], 1) for name, values in errors.items()}
        record(table, f"rho = {rho:g}, m = {m}", values=shown, sizes=f"{seeds} seeds")
    return worst


# ---------------------------------------------------------------------------------------------- CoNLL-2000

CRF_GRID = sized((1.0, 3.0), (1.0,))
HINGE_GRID = sized((0.03, 0.1), (0.1,))
HYBRID_ALPHAS = sized((0.1, 0.5), (0.5,))
SOME = sized(None, 60)


class NearlySmooth(LBFGS):
    """L-BFGS on a loss with kinks, from weights near its minimum."""

    def check(self, risk: Any, penalty: Any) -> None:
        """Take what the library refuses: it would fail from w = 0."""


class Cut:
    """Training, validation and test sentences, and taggers of the first."""

    def __init__(self, sentences: list[Any], seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(sentences))
        cuts = np.round(np.cumsum((0.2, 0.4)) * len(sentences)).astype(int)
        parts = [[sentences[i] for i in part] for part in np.split(order, cuts)]
        index, template = FeatureIndex(), Template.load("words+pos")
        tokens = [[[token[:-1] for token in sentence] for sentence in part] for part in parts]
        self.X = [index.learn(tokens[0], template), *(index.encode(part, template) for part in tokens[1:])]
        self.y = [[[token[-1] for token in sentence] for sentence in part] for part in parts]

    def fit(self, loss: str | Loss, C: float, tol: float | None) -> Tagger:
        return Tagger(loss=loss, C=C, tol=tol, random_state=0).fit(self.X[0], self.y[0])

    def from_log(self, tagger: Tagger, loss: Loss, steps: int) -> Tagger:
        """The blend of losses, from the weights of the log loss."""
        model = copy.copy(tagger).set_params(
            loss=loss, solver=NearlySmooth(), warm_start=True, max_iter=steps, tol=1e-5
        )
        return model.fit(self.X[0], self.y[0])

    def f1(self, model: Tagger, part: int) -> float:
        return 100 * span_report(self.y[part], model.predict(self.X[part])).f1

    def accuracy(self, model: Tagger, part: int) -> float:
        return 100 * span_report(self.y[part], model.predict(self.X[part])).accuracy


def basenp(args: argparse.Namespace) -> None:
    """Base noun phrases, 900 sentences."""
    with from_data("basenp"):
        protocol("basenp", [*load_basenp("train"), *load_basenp("test")][:SOME], args)


def conll2000(args: argparse.Namespace) -> None:
    """Chunks of all kinds, 10,948 sentences."""
    with from_data("conll2000"):
        protocol("conll2000", [*load_conll2000("train"), *load_conll2000("test")][:SOME], args)


def protocol(table: str, sentences: list[Any], args: argparse.Namespace) -> None:
    """F1 of chunks in the 20 / 40 / 40 protocol."""
    found: dict[str, list[tuple[float, float]]] = {}
    print(f"{'':24s} {'F1':>7s} {'accuracy':>9s}")
    for seed in range(args.seeds):
        begin = time.process_time()
        cut = Cut(sentences, seed)
        logs = {C: cut.fit("log", C, 1e-3) for C in CRF_GRID}
        C = max(logs, key=lambda C: cut.f1(logs[C], 1))
        print(f"  log: {time.process_time() - begin:.0f} s of the processor", flush=True)
        hinges = {C: cut.fit("hinge", C, 1e-2) for C in HINGE_GRID}
        print(f"  hinge: {time.process_time() - begin:.0f} s", flush=True)
        chosen_hinge = max(hinges, key=lambda C: cut.f1(hinges[C], 1))
        hybrids = {alpha: cut.from_log(logs[C], Hybrid(alpha), 10) for alpha in HYBRID_ALPHAS}
        print(f"  hybrid: {time.process_time() - begin:.0f} s", flush=True)
        alpha = max(hybrids, key=lambda alpha: cut.f1(hybrids[alpha], 1))
        final = logs[C]
        models = {
            "log": final,
            "hinge": hinges[chosen_hinge],
            "hybrid": cut.from_log(final, Hybrid(alpha), 20),
            "adaptive hybrid": cut.from_log(final, AdaptiveHybrid(floor=0.2), 20),
        }
        for name, model in models.items():
            values = cut.f1(model, 2), cut.accuracy(model, 2)
            found.setdefault(name, []).append(values)
            print(f"{name + f', seed {seed}':24s} {values[0]:7.2f} {values[1]:9.2f}", flush=True)
        print(f"  C = {C:g} (log), {chosen_hinge:g} (hinge), alpha = {alpha:g}; {time.process_time() - begin:.0f} s")
    for name, values in found.items():
        f1, accuracy = zip(*values, strict=True)
        print(f"{name + ', mean':24s} {np.mean(f1):7.2f} {np.mean(accuracy):9.2f}   ± {np.std(f1):.2f}")
        record(
            table,
            name,
            values={"F1": spread(f1, 2), "accuracy": spread(accuracy, 2)},
            sizes=f"{args.seeds} seeds",
        )


PARTS = {
    "thresholds": thresholds,
    "nondominant": nondominant,
    "coverage": coverage,
    "mixed": mixed,
    "grid": grid,
    "basenp": basenp,
    "conll2000": conll2000,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=5, help="training sets")
    parser.add_argument(
        "--learners", nargs="+", choices=[*LEARNERS, *peers()], help="of mixed; in a table of their own"
    )
    parser.add_argument("--rho", type=float, help="only these cells of mixed")
    parser.add_argument("--runs", type=int, default=2000, help="training sets of the coverage")
    args = parse(parser, seeds=1, runs=20)
    warnings.simplefilter("ignore")
    for part in args.parts:
        print(f"\n## {part}")
        PARTS[part](args)


if __name__ == "__main__":
    main()
