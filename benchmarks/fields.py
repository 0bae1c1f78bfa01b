"""Random fields learned by sampling: speed beside other packages, and the published tables beside ours.

    python benchmarks/fields.py [--parts speed topics vbm scene grid defaults equal ten] [--repeats 3]
        [--particles 200] [--solvers cd pcd parallel-tempering] [--learners exact:10000 pcd:300000]

speed     MNIST (MERCER_DATA/mnist; random bits of the same density without it), 500 hidden units, one thread: an epoch
          of CD-1 and PCD-1 with batches of 200, a sweep of 200 chains, annealing of 100 chains over 1,000 temperatures;
          "sweep" alone leaves out the epochs
topics    collapsed Gibbs sampling of latent Dirichlet allocation: tokens a second
vbm       fully visible machines of 10 units, 200 rows, three schedules, five draws: mean log-likelihood of every
          learner beside the exact gradient, and the published figures [Xiong2014]_
scene     label sets of scene (MERCER_DATA/multilabel/scene): precision, recall and F1 of every learner, beside the
          exact field and the published figures
grid      figure against ground of horses (MERCER_DATA/weizmann-horses): sampling learners beside the exact gradient's
          approximations
defaults  held-out log-likelihood of `RBM` and scikit-learn's BernoulliRBM, both as they come, on sets of bits
equal     held-out log-likelihood on MNIST after equal training time: `RBM`, BernoulliRBM and rbms, the same units,
          batches and constant rate, each from its own start; as many epochs as fit into the seconds
ten       MNIST, ten hidden units, steps of 1 / (100 + t), batches of 200: likelihoods with the exact normalising
          constant, beside those of ``fields_gpu``; not among the parts by default, since 300,000 steps take minutes

Seconds of the processor, medians of runs in turn. There is no ratio without the peer in the same run.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _timing import Row, from_data, interleaved, missing, parse, peer, record, sized, table

from mercer import _core
from mercer.fields import RBM, BoltzmannMachine, learners, log_partition
from mercer.fields._units import HiddenUnits
from mercer.fields.partition import estimate
from mercer.learning.learners import Chains, Keys

HIDDEN, BATCH = 500, 200


def home(*parts: str) -> Path:
    path = Path(os.environ.get("MERCER_DATA", "no-such-folder"), *parts)
    if not path.exists():
        raise FileNotFoundError(f"{'/'.join(parts)} is not in MERCER_DATA")
    return path


def mnist(name: str = "train") -> np.ndarray:
    with gzip.open(home("mnist", f"{name}-images-idx3-ubyte.gz")) as file:
        raw = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    return (raw > 127).astype(np.uint8)


def bits(n: int) -> np.ndarray:
    try:
        return mnist()[:n]
    except FileNotFoundError:
        return (np.random.default_rng(0).random((n, 784)) < 0.13).astype(np.uint8)


# ------------------------------------------------------------------------------------------------ speed


def speed(args: argparse.Namespace) -> None:
    X = bits(sized(60_000, 400))
    hidden = sized(HIDDEN, 16)
    table(_epochs(X, hidden, args.repeats))
    table(_sweeps(X, hidden, args.repeats))


def sweep(args: argparse.Namespace) -> None:
    """Of the part speed, what needs no epoch of another package."""
    table(_sweeps(bits(sized(60_000, 400)), sized(HIDDEN, 16), args.repeats))


def _sweeps(X: np.ndarray, hidden: int, repeats: int) -> Any:
    random = np.random.default_rng(0)
    field = HiddenUnits(784, hidden)
    model = RBM(hidden, max_iter=1, batch_size=BATCH, random_state=0).fit(X[: sized(20_000, 400)])
    theta = model._theta(X)
    W, b, c = (np.array(part, np.float64) for part in field.parts(theta))
    v = X[:200]
    keys = Keys(0)

    def numpy_sweep() -> None:
        h = random.random((len(v), hidden)) < 1 / (1 + np.exp(-(v @ W + b)))
        _ = random.random((len(v), 784)) < 1 / (1 + np.exp(-(h @ W.T + c)))

    single = [part.astype(np.float32) for part in (W, b, c)]

    def numpy_single() -> None:
        w, b, c = single
        h = random.random((len(v), hidden), np.float32) < 1 / (1 + np.exp(-(v.astype(np.float32) @ w + b)))
        _ = random.random((len(v), 784), np.float32) < 1 / (1 + np.exp(-(h.astype(np.float32) @ w.T + c)))

    ours, double, simple = interleaved(sized(20, 2), lambda: field.sweep(v, theta, keys), numpy_sweep, numpy_single)
    yield Row("a sweep of 200 chains", "numpy, float64", double, ours, "≥ 5", 5.0)
    yield Row("a sweep of 200 chains", "numpy, float32", simple, ours, "≥ 5", 5.0)
    yield from _annealing(field, theta, (W, b, c), model.feature_means_, repeats)


def _epochs(X: np.ndarray, hidden: int, repeats: int) -> Any:
    from sklearn.neural_network import BernoulliRBM

    test = X[-sized(2000, 50) :]
    double, single = X.astype(np.float64), X.astype(np.float32)
    settings = {"batch_size": BATCH, "max_iter": 1, "random_state": 0, "learning_rate": 0.05}
    calls = {
        "cd": lambda: RBM(hidden, "cd", **settings).fit(X),
        "pcd": lambda: RBM(hidden, "pcd", **settings).fit(X),
        "scikit-learn": lambda: BernoulliRBM(
            hidden, learning_rate=0.05, batch_size=BATCH, n_iter=1, random_state=0
        ).fit(double),
        "scikit-learn, float32": lambda: BernoulliRBM(
            hidden, learning_rate=0.05, batch_size=BATCH, n_iter=1, random_state=0
        ).fit(single),
        **_torch_epochs(single, hidden),
    }
    times = dict(zip(calls, interleaved(repeats, *calls.values()), strict=True))
    ours, theirs = calls["pcd"](), calls["scikit-learn"]()
    other = RBM(hidden, max_iter=0).fit(X[:10])
    other._keep(_theta_of(theirs))
    other.feature_means_ = ours.feature_means_
    found = [
        float(-m.free_energy(test).mean()) - log_partition(m, n_temperatures=sized(3000, 20), random_state=0).lower
        for m in (ours, other)
    ]
    note = f"test log-likelihood by annealing: ours {found[0]:.1f}, scikit-learn {found[1]:.1f}"
    for name in calls:
        if name in ("cd", "pcd"):
            continue
        least = 2.0 if name.startswith("scikit") else None
        yield Row("an epoch of PCD-1", name, times[name], times["pcd"], "≥ 2" if least else "", least, note=note)
        yield Row("an epoch of CD-1", name, times[name], times["cd"], "≥ 2" if least else "", least)
        note = ""


def _theta_of(theirs: Any) -> np.ndarray:
    parts = [theirs.components_.T.ravel(), theirs.intercept_hidden_, theirs.intercept_visible_]
    return np.concatenate(parts).astype(np.float32)


def _torch_epochs(X: np.ndarray, hidden: int) -> dict[str, Any]:
    """An epoch of the two packages on torch, as their own examples train."""
    found: dict[str, Any] = {}
    if missing("torch"):
        return found
    import torch

    torch.set_num_threads(1)
    if not missing("rbms"):
        from rbms.bernoulli_bernoulli.classes import BBRBM

        found["rbms"] = lambda: _rbms_epoch(torch, BBRBM, X, hidden)
    if not missing("learnergy"):
        from learnergy.models.bernoulli import RBM as Learnergy

        data = torch.utils.data.TensorDataset(torch.tensor(X), torch.zeros(len(X)))

        def run() -> None:
            model = Learnergy(784, hidden, steps=1, learning_rate=0.05, use_gpu=False)
            model.fit(data, batch_size=BATCH, epochs=1)

        found["learnergy"] = run
    return found


def _rbms_epoch(torch: Any, BBRBM: Any, X: np.ndarray, hidden: int, model: Any = None) -> Any:
    if model is None:
        random = torch.Generator().manual_seed(0)
        share = X.mean(axis=0).clip(1e-4, 1 - 1e-4)  # visible offsets begin at those of the data, as in the package
        start = torch.tensor(np.log(share / (1 - share)), dtype=torch.float32)
        model = BBRBM(0.01 * torch.randn((784, hidden), generator=random), start, torch.zeros(hidden))
    data = torch.tensor(X)
    chains = model.init_chains(BATCH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, maximize=True)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)  # which the package fills in place
    for first in range(0, len(data) - BATCH + 1, BATCH):
        batch = {"visible": data[first : first + BATCH], "weights": torch.ones((BATCH, 1))}
        batch["visible_mag"] = batch["visible"]
        batch = model.sample_hiddens(batch)
        chains = model.sample_state(chains=chains, n_steps=1)
        model.compute_gradient(batch, chains)
        optimizer.step()
    return model


def _annealing(field: HiddenUnits, theta: Any, parts: Any, means: np.ndarray, repeats: int) -> Any:
    W, b, c = (part.astype(np.float32) for part in parts)
    random = np.random.default_rng(0)
    count, chains = sized(1000, 10), 100
    base = np.log(np.clip(means, 0.005, 0.995) / (1 - np.clip(means, 0.005, 0.995))).astype(np.float32)

    def numpy_ais() -> float:
        v = (random.random((chains, 784), np.float32) < 1 / (1 + np.exp(-base))).astype(np.float32)
        total, betas = np.zeros(chains), np.linspace(0, 1, count + 1, dtype=np.float32)
        for before, after in pairwise(betas):
            a = v @ W + b
            total += (after - before) * (v @ (c - base))
            total += (np.logaddexp(0, after * a) - np.logaddexp(0, before * a)).sum(axis=1)
            h = (random.random(a.shape, np.float32) < 1 / (1 + np.exp(-after * a))).astype(np.float32)
            f = after * (h @ W.T) + (1 - after) * base + after * c
            v = (random.random(f.shape, np.float32) < 1 / (1 + np.exp(-f))).astype(np.float32)
        return float(np.logaddexp.reduce(total) - np.log(chains))

    def ours() -> Any:
        return estimate(field, theta, "ais", count, chains, Keys(1), means)

    times = interleaved(repeats, ours, numpy_ais)
    result = ours()
    note = f"effective sample size {result.ess:.1f} of {chains}"
    yield Row(f"annealing, {count} temperatures × {chains} chains", "numpy", times[1], times[0], "≥ 2", 2.0, note=note)


# ------------------------------------------------------------------------------------------------ topics


def topics(args: argparse.Namespace) -> None:
    random = np.random.default_rng(0)
    k, words, documents, length = 50, sized(5000, 200), sized(2000, 20), 100
    shares = random.dirichlet(np.full(words, 0.05), k)
    corpus = [
        random.choice(words, length, p=random.dirichlet(np.full(k, 0.1)) @ shares).astype(np.int32)
        for _ in range(documents)
    ]
    flat, offsets = np.concatenate(corpus), np.arange(0, documents * length + 1, length)
    sweeps = sized(20, 2)
    parts = random.integers(0, k, len(flat)).astype(np.int32)
    alpha = np.full(k, 0.1, np.float32)
    calls = [lambda: _core.fields.topic_sweeps(offsets, flat, parts, words, alpha, 0.01, 1, sweeps)]
    tomotopy = peer("tomotopy")
    if tomotopy is not None:
        model = tomotopy.LDAModel(k=k, alpha=0.1, eta=0.01, seed=0)
        for document in corpus:
            model.add_doc([str(word) for word in document])
        model.optim_interval = 0
        model.train(1, workers=1)
        calls.append(lambda: model.train(sweeps, workers=1))
    times = interleaved(args.repeats, *calls)
    rates = [len(flat) * sweeps / seconds / 1e6 for seconds in times]
    print(f"topics: {len(flat)} tokens, {k} topics: mercer {rates[0]:.2f} million tokens/s", end="")
    print(f", tomotopy {rates[1]:.2f}, ratio {rates[0] / rates[1]:.2f}" if len(rates) > 1 else "")
    record(
        "topics", f"collapsed Gibbs, {k} topics", ours=rates[0], theirs=rates[1] if len(rates) > 1 else None,
        peer="tomotopy", unit="million tokens/s",
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ published tables

SCHEDULES = {  # learning rate, decay, epochs; the published figures of PCD-1, PCD-H, PT, TT, SMC, PSMC
    "1/(100+t)": ((0.01, 0.01), 500, (-1.693, -1.691, -1.689, -1.692, -1.692, -1.691)),
    "1/(20+0.5t)": ((0.05, 0.025), 100, (-7.046, -2.612, -1.995, -2.227, -2.069, -1.891)),
    "1/(10+0.1t)": ((0.1, 0.01), 40, (-25.179, -3.714, -2.118, -4.329, -2.224, -1.976)),
}
LEARNERS = {
    "exact": learners.Exact(), "CD-1": learners.CD(), "PCD-1": learners.PCD(), "PCD-10": learners.PCD(10),
    "PT": learners.ParallelTempering(), "TT": learners.TemperedTransitions(), "SMC": learners.SMC(),
    "PSMC": learners.PSMC(), "MCMCML": learners.MCMCML(), "particle filter": learners.ParticleFilter(),
    "pseudo-likelihood": learners.PseudoLikelihood(),
}  # fmt: skip
PUBLISHED = ("PCD-1", "PCD-10", "PT", "TT", "SMC", "PSMC")


class FromSmallWeights(BoltzmannMachine):
    """A machine whose biases start at zero, as published; the default are those of independent columns."""

    def _first(self, *given: Any) -> np.ndarray:
        theta = super()._first(*given)
        theta[len(self.edges_) :] = 0.0
        return theta


def vbm(args: argparse.Namespace) -> None:
    """As published: weights N(0, 1) of ten ±1 units, 200 draws, one step an epoch; from small weights."""
    from mercer.fields._pairs import PairField

    print("fully visible machines of 10 units: mean log-likelihood of 200 rows, 5 draws (published)")
    for name, (rate, epochs, published) in SCHEDULES.items():
        found: dict[str, list[float]] = {learner: [] for learner in LEARNERS}
        count = []
        for seed in range(sized(5, 1)):
            random = np.random.default_rng(seed)
            field = PairField(10, np.stack(np.triu_indices(10, 1), axis=1), -1.0, 1.0)
            truth = random.normal(size=field.n_weights)
            X = 2 * field.exact_draws(200, truth, Keys(seed)) - 1
            for learner, made in LEARNERS.items():
                model = FromSmallWeights(
                    learner=made, max_iter=sized(epochs, 3), learning_rate=rate, batch_size=200, random_state=seed
                ).fit(X)
                found[learner].append(model.score(X))
                if learner == "PSMC":
                    count.append(np.mean(model.history_["n_temperatures"]))
        printed = dict(zip(PUBLISHED, published, strict=True))
        for learner, values in found.items():
            mean = float(np.mean(values))
            shown = f" ({printed[learner]})" if learner in printed else ""
            temperatures = f", {np.mean(count):.1f} temperatures" if learner == "PSMC" else ""
            print(f"{name:12} {learner:18} {mean:8.3f}{shown}{temperatures}", flush=True)
            columns = {"log-likelihood": mean, "published": printed.get(learner, "")}
            if learner == "PSMC":
                columns["temperatures"] = float(np.mean(count))
            record("visible machines", f"{name}, {learner}", values=columns)


SCENE = {  # published precision, recall and F1
    "PCD-1": (57.7, 59.3, 58.5), "PCD-5": (70.3, 72.6, 71.4), "TT": (70.0, 67.5, 68.7), "PT": (72.2, 77.1, 74.6),
    "SMC": (71.7, 75.1, 73.4), "PSMC": (71.9, 78.5, 75.1),
}  # fmt: skip


def scene(args: argparse.Namespace) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.preprocessing import StandardScaler

    from mercer.datasets import load_multilabel
    from mercer.multilabel import MultiLabelCRF

    home("multilabel", "scene")
    train, held = load_multilabel("scene"), load_multilabel("scene", "test")
    X, X_test = np.asarray(train.X)[: sized(None, 60)], np.asarray(held.X)
    Y, Y_test = train.Y.toarray().astype(int)[: sized(None, 60)], held.Y.toarray().astype(int)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    strength = _chosen_strength(X, Y)
    print(f"scene: precision, recall, F1 in %, averaged over all labels; C = {strength:g} by 4-fold cross-validation")

    def show(name: str, predicted: np.ndarray, seconds: float, published: Any = None) -> None:
        right = float((predicted & Y_test).sum())
        precision, recall = right / max(1, predicted.sum()), right / Y_test.sum()
        f1 = 2 * precision * recall / max(precision + recall, 1e-9)
        figures = [round(100 * x, 1) for x in (precision, recall, f1)]
        print(
            f"{name:28} {figures[0]:6.1f} {figures[1]:6.1f} {figures[2]:6.1f} {seconds:8.1f} s  {published or ''}",
            flush=True,
        )
        columns = dict(zip(("P", "R", "F1"), figures, strict=True))
        record("scene", name, values={**columns, "published F1": published[2] if published else "", "fit, s": seconds})

    start = time.process_time()
    alone = MultiOutputClassifier(LogisticRegression(C=strength, max_iter=1000)).fit(X, Y)
    show("one logistic regression each", alone.predict(X_test).astype(int), time.process_time() - start)
    five = {
        "exact": "exact", "pseudo-likelihood": "pseudo-likelihood", "CD-1": learners.CD(), "PCD-1": learners.PCD(),
        "PCD-5": learners.PCD(5), "TT": learners.TemperedTransitions(5), "PT": learners.ParallelTempering(5),
        "SMC": learners.SMC(), "PSMC": learners.PSMC(), "MCMCML": learners.MCMCML(),
        "particle filter": learners.ParticleFilter(),
    }  # fmt: skip
    for name, learner in five.items():
        start = time.process_time()
        model = MultiLabelCRF(learner, strength, n_particles=args.particles, max_iter=sized(100, 2), random_state=0)
        model.fit(X, Y)
        show(name, model.predict(X_test), time.process_time() - start, SCENE.get(name))


def _chosen_strength(X: np.ndarray, Y: np.ndarray) -> float:
    from mercer.multilabel import MultiLabelCRF

    folds = np.arange(len(X)) % 4
    grid = sized((0.001, 0.003, 0.01, 0.03, 0.1), (0.01,))

    def score(C: float) -> float:
        held = [folds == fold for fold in range(sized(4, 1))]
        return float(np.mean([MultiLabelCRF("exact", C).fit(X[~h], Y[~h]).score(X[h], Y[h]) for h in held]))

    return max(grid, key=score)


def grid(args: argparse.Namespace) -> None:
    from labeling import load_horses
    from mercer.labeling import GridLabeler
    from mercer.metrics import mean_iou

    home("weizmann-horses")
    X, y = load_horses()
    n_train, n_test = sized((40, 60), (4, 4))
    test = slice(len(X) - n_test, len(X))
    print(
        f"horses, {n_train} / {n_test} images, blocks of 16: pixels right and IoU, of the best labelling, of the best"
    )
    print("label of each pixel; seconds of fit")
    for name, options in {
        "blocks one by one": {"edge_weights": "none"},
        "lbfgs, approximate sums": {"max_iter": 25},
        "pseudo-likelihood": {"training": "pseudo-likelihood"},
        **{name: {"solver": name, "max_iter": sized(400, 3)} for name in args.solvers},
    }.items():
        start = time.process_time()
        model = GridLabeler(block=16, C=1.0, random_state=0, **options).fit(X[:n_train], y[:n_train])
        seconds = time.process_time() - start
        best = model.predict(X[test])
        each = [P.argmax(axis=-1) for P in model.predict_marginals(X[test])]
        right = [
            100 * np.concatenate([(a == b).ravel() for a, b in zip(given, y[test], strict=True)]).mean()
            for given in (best, each)
        ]
        iou = [mean_iou(y[test], given, label=1) for given in (best, each)]
        print(f"{name:28} {right[0]:6.2f} {iou[0]:7.4f} {right[1]:6.2f} {iou[1]:7.4f} {seconds:8.1f} s", flush=True)
        values = {"pixels right, %": right[0], "IoU": iou[0], "by marginals, %": right[1], "its IoU": iou[1]}
        record("grid", name, values=values | {"fit, s": seconds})


# ------------------------------------------------------------------------------------------------ defaults


def defaults(args: argparse.Namespace) -> None:
    from sklearn.neural_network import BernoulliRBM

    print("held-out log-likelihood, both as they come: ours, scikit-learn's, independent columns; seconds")
    for name, (train, test) in _bit_sets().items():
        start = time.process_time()
        ours = RBM(random_state=0, **sized({}, {"max_iter": 3})).fit(train)
        middle = time.process_time()
        theirs = BernoulliRBM(random_state=0).fit(train.astype(np.float64))
        taken = middle - start, time.process_time() - middle
        other = RBM(max_iter=0).fit(train[:2])
        other._keep(_theta_of(theirs))
        other.feature_means_ = ours.feature_means_
        found = [_bracket(model, test) for model in (ours, other)]
        share = (train.sum(axis=0) + 0.5) / (len(train) + 1.0)
        alone = float((test * np.log(share) + (1 - test) * np.log(1 - share)).sum(axis=1).mean())
        print(f"{name:14} {found[0]:>22} {found[1]:>22} {alone:9.2f}  {taken[0]:.1f} s, {taken[1]:.1f} s", flush=True)
        columns = {"ours": found[0], "scikit-learn": found[1], "independent": alone}
        record("defaults", name, values={**columns, "ours, s": taken[0], "theirs, s": taken[1]})


def _bracket(model: Any, test: np.ndarray) -> str:
    """Log-likelihood by annealing from the model's side and from the data's; the truth lies between them."""
    found = log_partition(model, "reverse-ais", n_temperatures=sized(3000, 10), random_state=0)
    score = float(-model.free_energy(test).mean())
    return f"{score - found.upper:.2f} … {score - found.lower:.2f}"


def equal(args: argparse.Namespace) -> None:
    """Test log-likelihood after so many seconds of training, in whole epochs: PCD-1 at a constant rate."""
    from sklearn.neural_network import BernoulliRBM

    X, test = (mnist(), mnist("t10k")[:2000]) if sized(True, False) else (bits(400), bits(60))
    hidden, rate = sized(HIDDEN, 16), 0.05
    single = X.astype(np.float32)
    settings = {"batch_size": BATCH, "learning_rate": rate, "random_state": 0}
    ours = RBM(hidden, "pcd", **settings)
    theirs = BernoulliRBM(hidden, n_iter=1, **settings)

    def one_more() -> np.ndarray:
        ours.partial_fit(X)
        return ours._theta(X)

    calls: dict[str, Any] = {"ours": one_more, "scikit-learn": _epochs_of(theirs, single)}
    if not missing("torch") and not missing("rbms"):
        calls["rbms"] = _epochs_of_rbms(single, hidden)
    print(f"test log-likelihood after {args.seconds:g} s, {hidden} hidden units, rate {rate}: epochs, seconds, bracket")
    for name, epoch in calls.items():
        spent, epochs, theta = 0.0, 0, None
        while epochs == 0 or spent * (epochs + 1) / epochs <= args.seconds:
            start = time.process_time()
            theta = epoch()
            spent, epochs = spent + time.process_time() - start, epochs + 1
        judged = RBM(hidden, max_iter=0).fit(X[:10])
        judged._keep(theta)
        judged.feature_means_ = np.asarray(X.mean(axis=0), np.float64)
        found = _bracket(judged, test)
        print(f"{name:14} {epochs:4d} {spent:6.1f} s  {found}", flush=True)
        record("equal time", name, values={"log-likelihood": found, "epochs": epochs, "seconds": spent})


def _epochs_of(model: Any, X: np.ndarray) -> Any:
    """Epochs of BernoulliRBM one by one: `fit` starts anew, so its batches are given to `partial_fit`."""
    random = np.random.RandomState(0)

    def epoch() -> np.ndarray:
        order = random.permutation(len(X))
        for at in range(0, len(X), BATCH):
            model.partial_fit(X[order[at : at + BATCH]])
        return _theta_of(model)

    return epoch


def _epochs_of_rbms(X: np.ndarray, hidden: int) -> Any:
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM

    torch.set_num_threads(1)
    kept: list[Any] = [None]

    def epoch() -> np.ndarray:
        kept[0] = model = _rbms_epoch(torch, BBRBM, X, hidden, kept[0])
        parts = [model.weight_matrix.numpy().ravel(), model.hbias.numpy(), model.vbias.numpy()]
        return np.concatenate(parts).astype(np.float32)

    return epoch


TEN = {
    "exact": ("exact", learners.Exact()),
    "pcd": ("PCD-1", learners.PCD()),
    "psmc": ("PSMC", learners.PSMC()),
}


def ten(args: argparse.Namespace) -> None:
    """Rows of the published table 1 for ten hidden units, by the compiled core."""
    train, test = mnist(), mnist("t10k")
    share = np.clip(train.mean(axis=0), 0.005, 0.995)
    order = np.random.default_rng(0).permutation(len(train))
    for wanted in args.learners:
        name, steps = wanted.split(":")
        title, learner = TEN[name]
        units, keys = HiddenUnits(784, 10), Keys(1)
        first = [0.01 * np.random.default_rng(0).standard_normal(7840), np.zeros(10), np.log(share / (1 - share))]
        theta = np.concatenate(first).astype(np.float32)
        chains = Chains(units, keys, 200)
        learner.start(chains, theta)
        temperatures = []
        for done in range(int(steps)):
            at = (done * BATCH) % (len(train) - BATCH + 1)
            theta = theta + learner.gradient(chains, theta, train[order[at : at + BATCH]]) / np.float32(100 + done)
            temperatures.append(chains.figures.get("n_temperatures", np.nan))
        log_z = estimate(units, theta, "exact", 1, 2, keys).value
        found = estimate(units, theta, "reverse-ais", 1000, 500, keys, train.mean(axis=0))
        scores = [float(units.log_density(rows, theta).mean()) for rows in (train[:10_000], test)]
        values = {"steps": int(steps), "train": scores[0] - log_z, "test": scores[1] - log_z,
                  "test, reverse": scores[1] - found.upper, "effective size": found.ess}  # fmt: skip
        if np.isfinite(temperatures).all():
            values["temperatures"] = float(np.mean(temperatures))
        long = ", long" if int(steps) > 10_000 else ""
        print(f"ten: {title}{long}: {values}", flush=True)
        published = {"pcd": -207.7464, "psmc": -201.0794}.get(name, "")
        record(
            "table 1", f"784 × 10, {title}{long}", values=values | {"published test": published}, script="fields_gpu"
        )


def _bit_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    from sklearn.datasets import load_digits

    digits = (load_digits().data > 7).astype(np.uint8)
    found = {"digits": (digits[:1200], digits[1200:])}
    if sized(False, True):
        return {"digits": (digits[:100], digits[100:150])}
    with from_data("MNIST"):
        found["MNIST"] = mnist()[:10_000], mnist("t10k")[:2000]
    with from_data("fashion"):
        names = [home("fashion-mnist") / file for file in sorted(os.listdir(home("fashion-mnist"))) if "images" in file]
        raw = [
            np.frombuffer(gzip.decompress(n.read_bytes()), np.uint8, offset=16).reshape(-1, 784) > 127 for n in names
        ]
        test, train = (part.astype(np.uint8) for part in raw)
        found["fashion"] = train, test[:2000]
    with from_data("words"):
        from scipy.io import loadmat

        words = loadmat(home("20news-w100", "20news_w100.mat"))["documents"].T
        words = np.asarray(words.todense() if hasattr(words, "todense") else words, np.uint8)
        words = words[np.random.default_rng(0).permutation(len(words))]
        found["words"] = words[:12_000], words[12_000:]
    with from_data("objects"):
        sets = [
            np.loadtxt(home("sun09-presence", f"SUN09{part}_presence.csv"), delimiter=",") for part in ("train", "test")
        ]
        found["objects"] = tuple((part > 0).astype(np.uint8) for part in sets)  # type: ignore[assignment]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["speed", "topics", "vbm", "scene", "grid", "defaults", "equal"])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--solvers", nargs="+", default=["cd", "pcd", "parallel-tempering"], help="of fields on grids")
    parser.add_argument("--particles", type=int, default=200, help="of a row, on scene")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--learners", nargs="+", default=["exact:10000", "pcd:300000"], help="and steps, of ten")
    args = parse(parser, repeats=1, seconds=0.01, particles=4, parts=["speed", "topics", "vbm", "defaults", "equal"])
    warnings.simplefilter("ignore")
    for part in args.parts:
        with from_data(part):
            globals()[part](args)


if __name__ == "__main__":
    main()
