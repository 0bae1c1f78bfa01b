"""Bounds have their constants, hold in simulations, and take every linear model there is."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import mercer
from mercer.alignment import Aligner
from mercer.clustering import SupervisedClusterer
from mercer.data import Segmentations, Sequences, SpanSequences
from mercer.kernel_methods import KernelSVC
from mercer.kernels import Linear
from mercer.parsing import read_trees
from mercer.structured import CustomStructure, StructuredPredictor
from mercer.structures import Chain, Segments, correlation
from mercer.structures.joint import Examples, Joint
from mercer.structures.partitions import Partitions
from mercer.structures.row_sets import Queries, RowSets
from mercer.theory import pac_bayes
from mercer.theory._models import linear_view, radius_of

TOKENS = [["the", "dog", "ran"], ["a", "cat", "sat", "there"], ["the", "cat", "ran"], ["dogs", "sat"]]
TAGS = [["D", "N", "V"], ["D", "N", "V", "A"], ["D", "N", "V"], ["N", "V"]]


class Order(CustomStructure):
    """Orders of the rows of x."""

    def features(self, x, y):
        return np.linspace(1, -1, len(y)) @ x[list(y)]

    def _ranked(self, w, x, cost_to=None):
        def value(y):
            return w @ self.features(x, y) + (0 if cost_to is None else self.cost(cost_to, y))

        return sorted(itertools.permutations(range(len(x))), key=value, reverse=True)

    def argmax(self, w, x, cost_to=None):
        return self._ranked(w, x, cost_to)[0]

    def k_best(self, w, x, k):
        return [(y, float(w @ self.features(x, y))) for y in self._ranked(w, x)[:k]]

    def log_cardinality(self, x):
        return math.lgamma(len(x) + 1)


def blobs(n: int, seed: int = 0, noise: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.eye(3)[y] + noise * rng.normal(size=(n, 3))
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None], y


# ---------------------------------------------------------------------------------- inequalities


@pytest.mark.parametrize(("m", "wanted"), [(10**3, 0.46), (10**4, 0.162), (10**5, 0.056)])
def test_the_margin_bound_has_its_constants(m, wanted):
    value = pac_bayes.margin_bound(0.0, 1.0, math.log(5), 1.0, m, 0.05, 0.3)
    assert value == pytest.approx(wanted, abs=5e-4)
    inner = 4 * math.log(2 * m * 5) / 0.09 + math.log((m + 1) / 0.05)
    assert value == pytest.approx(2 / m + math.sqrt(inner / (2 * m)), rel=1e-12)


def test_the_margin_bound_falls_with_examples_and_margin_and_takes_huge_output_spaces():
    values = [pac_bayes.margin_bound(0.1, 2.0, 1000 * math.log(5), 1.0, m, gamma=1.0) for m in (10**5, 10**6, 10**7)]
    assert values[0] > values[1] > values[2] > 0.1
    by_gamma = [pac_bayes.margin_bound(0.0, 1.0, 2.0, 1.0, 10**5, gamma=gamma) for gamma in (0.2, 0.5, 1.0)]
    assert by_gamma[0] > by_gamma[1] > by_gamma[2]


def test_kl_inverse_is_the_inverse_and_seeger_is_never_above_mcallester():
    for q in (0.0, 0.1, 0.5, 0.99, 1.0):
        for c in (0.0, 0.01, 0.3, 2.0):
            p = pac_bayes.kl_inverse(q, c)
            assert q - 1e-12 <= p <= 1
            assert pac_bayes._kl(q, min(p, 1 - 1e-15)) <= c + 1e-6 or p == pytest.approx(1.0)
            risk = pac_bayes.seeger_bound(q, 100 * c, 500)
            assert risk <= pac_bayes.gibbs_bound(q, 100 * c, 500) + 1e-9
    assert pac_bayes.kl_inverse(0.0, 0.5) == pytest.approx(1 - math.exp(-0.5))


def test_the_divergence_of_two_normal_distributions_is_half_the_squared_distance():
    rng = np.random.default_rng(0)
    mean = np.array([0.5, -1.0, 0.2])
    draws = mean + rng.standard_normal((200_000, 3))
    log_ratio = draws @ mean - 0.5 * mean @ mean
    model = mercer.LinearClassifier().fit(*blobs(30))
    assert log_ratio.mean() == pytest.approx(0.5 * mean @ mean, abs=0.02)
    assert pac_bayes.gibbs_classifier(model, scale=2.0).kl == 2.0


# ---------------------------------------------------------------------------------- Gibbs classifiers


def test_the_model_errs_at_most_twice_as_often_as_its_gibbs_classifier_at_every_point():
    X, y = blobs(60, seed=1, noise=1.0)
    model = mercer.LinearClassifier(C=1.0, fit_intercept=False).fit(X, y)
    wrong = model.predict(X) != y
    rng = np.random.default_rng(0)
    scores = X @ model.coef_.T
    noise = rng.standard_normal((4000, *model.coef_.shape))
    drawn = np.einsum("dkf,nf->ndk", noise, X) + scores[:, None]
    share = (drawn.argmax(axis=2) != y[:, None]).mean(axis=1)
    assert (share[wrong] >= 0.5 - 4 * np.sqrt(0.25 / 4000)).all()
    view = linear_view(model)
    gibbs = pac_bayes.gibbs_classifier(model, random_state=0)
    assert gibbs.scale == view.norm
    risk = gibbs.risk(X, y, n_draws=60)
    assert abs(risk.value - share.mean()) < 5 * risk.error + 0.02
    assert wrong.mean() <= 2 * share.mean()
    assert risk.upper > risk.value


def test_gibbs_classifiers_predict_outputs_of_every_kind():
    tagger = mercer.Tagger(C=10.0).fit(TOKENS, TAGS)
    loud = pac_bayes.gibbs_classifier(tagger, scale=1000.0, random_state=0).predict(TOKENS)
    assert [list(tags) for tags in loud] == [list(tags) for tags in tagger.predict(TOKENS)]
    quiet = pac_bayes.gibbs_classifier(tagger, scale=0.0, random_state=0).predict(TOKENS * 5)
    assert quiet != [*tagger.predict(TOKENS * 5)]
    trees = read_trees("(S (N dogs) (V ran)) (S (N cats) (V (V sat) (N dogs)))")
    parser = mercer.Parser(C=10.0, random_state=0).fit(None, trees)
    assert pac_bayes.gibbs_classifier(parser, scale=1e4, random_state=0).predict([trees[1].leaves()]) == [trees[1]]
    aligner = Aligner(C=1.0).fit([("abc", "abc"), ("ab", "abb")], [[(0, 0), (1, 1), (2, 2)], [(0, 0), (1, 1)]])
    drawn = pac_bayes.gibbs_classifier(aligner, scale=1e4, random_state=0).predict([("abc", "abc")])
    assert drawn[0].pairs.tolist() == aligner.predict([("abc", "abc")])[0].pairs.tolist()
    X, y = blobs(40)
    model = mercer.LinearClassifier(C=10.0).fit(X, y)
    assert pac_bayes.gibbs_classifier(model, scale=1e6, random_state=0).predict(X) == model.predict(X).tolist()
    machine = KernelSVC(Linear(), C=10.0).fit(X[y < 2], y[y < 2])
    answers = pac_bayes.gibbs_classifier(machine, scale=1e4, random_state=0).predict(X[y < 2])
    assert np.mean(np.array(answers) == machine.predict(X[y < 2])) > 0.95


# ---------------------------------------------------------------------------------- coverage


def test_bounds_hold_for_fitted_models():
    X_test, y_test = blobs(5000, seed=999)
    failed = 0
    for seed in range(6):
        X, y = blobs(600, seed=seed)
        model = mercer.LinearClassifier(C=10.0, fit_intercept=False).fit(X, y)
        bounds = pac_bayes.bound(model, X, y, B=math.sqrt(2), n_draws=50, random_state=seed)
        error = np.mean(model.predict(X_test) != y_test)
        failed += bounds.margin < error or bounds.average < error
        assert bounds.seeger <= bounds.mcallester + 1e-9
    assert failed == 0


def test_bounds_without_a_divergence_fail_rarely_and_not_never_at_a_large_delta():
    rng = np.random.default_rng(0)
    m, risk, delta = 200, 0.2, 0.05
    shares = rng.binomial(m, risk, size=400) / m
    failures = np.mean([pac_bayes.seeger_bound(share, 0.0, m, delta) < risk for share in shares])
    assert failures <= delta
    tight = [pac_bayes.kl_inverse(share, math.log(1 / 0.5) / m) < risk for share in shares]
    assert 0.0 < np.mean(tight) <= 0.5


# ---------------------------------------------------------------------------------- models


def test_the_best_margin_is_at_least_as_good_as_any_grid():
    X, y = blobs(3000)
    model = mercer.LinearClassifier(C=10.0, fit_intercept=False).fit(X, y)
    bounds = pac_bayes.bound(model, X, y, B=math.sqrt(2), n_draws=20)
    leads = linear_view(model).leads(linear_view(model).read(X, y))
    for gamma in np.linspace(0.05, leads.max(), 30):
        share = float(np.mean(leads <= gamma))
        assert bounds.margin <= pac_bayes.margin_bound(
            share, bounds.w_norm, math.log(3), math.sqrt(2), 3000, 0.05, float(gamma)
        )
    assert bounds.margin < 1.0
    assert not bounds.vacuous
    assert "margin bound" in str(bounds)


def test_taggers_count_their_labellings():
    model = mercer.Tagger(C=1.0).fit(TOKENS, TAGS)
    bounds = pac_bayes.bound(model, TOKENS, TAGS, B="data", n_draws=4)
    assert bounds.log_cardinality == pytest.approx(4 * math.log(4))
    assert bounds.m == 4
    assert bounds.vacuous
    assert "vacuous" in str(bounds)


def test_radii_are_bounds_that_constant_labellings_reach():
    rng = np.random.default_rng(0)
    from mercer.data import Sequences
    from mercer.data.labels import TagSequences
    from mercer.theory._models import _of_chain

    X = Sequences(rng.random((9, 4)), np.array([0, 4, 9]))
    chain = Chain(3, 4)
    radius = _of_chain(chain, X)
    pairs = [TagSequences(np.full(9, c, np.int32), X.offsets, partial=False) for c in (0, 1)]
    longest = np.sqrt(chain.difference(X, *pairs).power(2).sum(axis=1)).max()
    assert radius == pytest.approx(longest)
    for _ in range(50):
        y, z = (TagSequences(rng.integers(0, 3, 9).astype(np.int32), X.offsets, partial=False) for _ in range(2))
        assert np.sqrt(chain.difference(X, y, z).power(2).sum(axis=1)).max() <= radius + 1e-9


def test_alignments_graphs_and_kernels_have_bounds():
    pairs = [("abc", "abc"), ("ab", "abb"), ("cab", "ca")]
    truth = [[(0, 0), (1, 1), (2, 2)], [(0, 0), (1, 1)], [(0, 0), (1, 1)]]
    aligner = Aligner(C=1.0).fit(pairs, truth)
    bounds = pac_bayes.bound(aligner, pairs, truth, B="data", n_draws=3)
    assert bounds.log_cardinality == pytest.approx(math.log(math.comb(6, 3)))
    assert pytest.approx(math.sqrt(2) * 6) == bounds.B
    graphs = [(np.eye(3), [(0, 1), (1, 2)]), (np.eye(3), [(0, 2)])]
    labels = [[0, 1, 1], [0, 1, 0]]
    labeler = mercer.GraphLabeler().fit(graphs, labels)
    counted = pac_bayes.bound(labeler, graphs, labels, B="data", n_draws=2).log_cardinality
    assert counted == pytest.approx(3 * math.log(2))
    X, y = blobs(400)
    X, y = X[y < 2], y[y < 2]
    machine = KernelSVC(Linear(), C=1.0).fit(X, y)
    found = pac_bayes.bound(machine, X, y, B="data")
    assert found.log_cardinality == pytest.approx(math.log(2))
    assert math.sqrt(2.0) + 1e-9 >= found.B
    assert found.error == pytest.approx(np.mean(machine.predict(X) != y))


def test_trees_have_bounds_and_count_what_the_grammar_cannot_derive_as_wrong():
    trees = read_trees("(S (N dogs) (V ran)) (S (N cats) (V (V sat) (N dogs))) (S (N cats) (V ran))")
    parser = mercer.Parser(C=10.0, random_state=0).fit(None, trees)
    bounds = pac_bayes.bound(parser, None, trees, B="data", n_draws=3)
    assert bounds.error == 0.0
    unknown = read_trees("(S (N fish) (V swam))")
    bounds = pac_bayes.bound(parser, None, [*trees, *unknown], B="data", n_draws=3)
    assert bounds.error == pytest.approx(0.25)
    assert bounds.m == 4
    with pytest.raises(ValueError, match="no tree of the grammar"):
        pac_bayes.bound(parser, None, unknown, B="data")
    ruled = mercer.Parser(method="pcfg", grammar=mercer.parsing.Grammar.from_trees([*trees, *unknown])).fit(None, trees)
    with pytest.raises(TypeError, match="Parser has weights of −inf"):
        pac_bayes.bound(ruled, None, trees, B="data")


def test_effective_labels_lie_between_one_and_all():
    assert pac_bayes.effective_labels([0.0, 1.0, 0.0]) == 1.0
    assert pac_bayes.effective_labels(np.full(7, 1 / 7)) == pytest.approx(7.0)
    assert pac_bayes.effective_labels(np.array([[0.5, 0.5], [1.0, 0.0]])) == pytest.approx([2.0, 1.0])
    assert pac_bayes.effective_labels([0.5, 0.3, 0.2], mass=0.8) == 2
    model = mercer.Tagger(C=10.0).fit(TOKENS, TAGS)
    counts = pac_bayes.effective_labels(model, TOKENS)
    assert ((counts >= 1) & (counts <= 4.0 ** np.array([3, 4, 3, 2]))).all()


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, np.nan, "small", None])
def test_delta_must_lie_between_0_and_1(delta):
    X, y = blobs(20)
    model = mercer.LinearClassifier().fit(X, y)
    for call in (
        lambda: pac_bayes.bound(model, X, y, delta, B=1.0),
        lambda: pac_bayes.margin_bound(0.1, 1.0, 1.0, 1.0, 100, delta, 1.0),
        lambda: pac_bayes.gibbs_bound(0.1, 1.0, 100, delta),
        lambda: pac_bayes.seeger_bound(0.1, 1.0, 100, delta),
        lambda: pac_bayes.gibbs_classifier(model).risk(X, y, delta=delta),
    ):
        with pytest.raises(ValueError, match="delta must be a number between 0 and 1"):
            call()


def test_bounds_ask_for_b():
    X, y = blobs(20)
    model = mercer.LinearClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"B must be given.*B='data'"):
        pac_bayes.bound(model, X, y)
    with pytest.raises(ValueError, match="B must be a number or 'data'"):
        pac_bayes.bound(model, X, y, B="guess")
    with pytest.raises(ValueError, match="B must be"):
        pac_bayes.bound(model, X, y, B=-1.0)


def segmentations(n: int, structure: Segments) -> Iterator[Segmentations]:
    """All outputs of one sequence of n positions."""
    for cuts in itertools.product((0, 1), repeat=n - 1):
        starts = np.flatnonzero([1, *cuts])
        lengths = np.diff([*starts, n])
        for labels in itertools.product(range(structure.n_labels), repeat=len(starts)):
            bounds = structure.shortest[list(labels)], structure.longest[list(labels)]
            if (lengths >= bounds[0]).all() and (lengths <= bounds[1]).all():
                length, label = np.zeros(n, np.int32), np.zeros(n, np.int32)
                length[starts], label[starts] = lengths, labels
                yield Segmentations.from_marks(length, label, np.array([0, n]))


@pytest.mark.parametrize("n_labels", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lengths": "poisson"},
        {"statistics": ("mean", "variance"), "lengths": None},
        {"statistics": ("sum",), "neighbours": ("boundary", "mean", "variance"), "lengths": "constant"},
        {"n_span_features": 2, "min_length": 2, "lengths": "log-normal"},
    ],
    ids=str,
)
def test_the_radius_of_segments_bounds_every_pair_of_segmentations(n_labels, options):
    n, rng = 5, np.random.default_rng(n_labels)
    structure = Segments(n_labels, 2, 2, max_length=4, **options)
    rows, edges = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    if options.get("n_span_features"):
        spans = rng.normal(size=(n, structure.K, 2))
        X = SpanSequences(rows, np.array([0, n]), edges=edges, spans=spans)
    else:
        X = Sequences(rows, np.array([0, n]), edges=edges)
    features = []
    for y in segmentations(n, structure):
        mu, out = structure.zeros(structure.scores(np.zeros(structure.n_weights), X)), np.zeros(structure.n_weights)
        structure.add_output(mu, y, np.ones(1))
        structure.backward(X, mu, out)
        features.append(out)
    Phi = np.array(features)
    largest = np.sqrt(((Phi[:, None] - Phi) ** 2).sum(axis=2)).max()
    radius = radius_of(structure, X)
    assert largest <= radius + 1e-9
    assert radius <= 6.0 * largest


def test_segmenters_structures_of_ones_own_and_partitions_have_bounds():
    segmenter = mercer.Segmenter(max_length=3).fit([np.eye(4)], [[(0, 2, "a"), (2, 4, "b")]])
    bounds = pac_bayes.bound(segmenter, [np.eye(4)], [[(0, 2, "a"), (2, 4, "b")]], B="data", n_draws=2)
    assert np.isfinite(bounds.B)
    assert bounds.m == 1
    rng = np.random.default_rng(0)
    orders = list(itertools.permutations(range(3)))
    X = [rng.normal(size=(3, 2)) for _ in range(6)]
    y = [tuple(np.argsort(-x[:, 0]).tolist()) for x in X]
    own = StructuredPredictor(Order(), C=1.0, random_state=0).fit(X, y)
    bounds = pac_bayes.bound(own, X, y, B="data", n_draws=3)
    assert bounds.log_cardinality == pytest.approx(math.log(6))
    features = [np.array([Order().features(x, order) for order in orders]) for x in X]
    largest = max(np.sqrt(((Phi[:, None] - Phi) ** 2).sum(axis=2)).max() for Phi in features)
    assert largest <= bounds.B <= 2.0 * largest
    with pytest.raises(ValueError, match=r"B='data' would call Order.argmax 2,002 times"):
        radius_of(Joint(Order(), 1001), Examples(X))


def test_partitions_have_their_exact_second_best():
    rng = np.random.default_rng(3)
    sets = [rng.normal(size=(4, 2)) for _ in range(5)]
    clusters = [[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 2, 0], [0, 0, 0, 0], [0, 1, 0, 1]]
    model = SupervisedClusterer(decode="exact", C=1.0, random_state=0).fit(sets, clusters)
    view = linear_view(model)
    data = view.read(sets, clusters)
    partitions = {tuple(correlation.canonical(c).tolist()) for c in itertools.product(range(4), repeat=4)}
    every = np.array([correlation.together(np.array(c)) for c in sorted(partitions)])
    assert view.log_cardinality(data) == pytest.approx(math.log(len(every)))
    radius = 0.0
    for x, y, lead in zip(*data, view.leads(data), strict=True):
        Phi = np.array([Partitions("exact", "pairs").features(x, z) for z in every])
        scores, same = Phi @ view.w, (every == y).all(axis=1)
        assert lead == pytest.approx(scores[same][0] - scores[~same].max())
        radius = max(radius, np.sqrt(((Phi[:, None] - Phi) ** 2).sum(axis=2)).max())
    assert radius <= view.radius(data) + 1e-9
    bounds = pac_bayes.bound(model, sets, clusters, B="data", n_draws=3)
    assert bounds.error == pytest.approx(np.mean(view.leads(data) <= 0))
    drawn = pac_bayes.gibbs_classifier(model, scale=1e6, random_state=0).predict(sets)
    assert [labels.tolist() for labels in drawn] == [labels.tolist() for labels in model.predict(sets)]
    with pytest.raises(TypeError, match="decode='exact'"):
        linear_view(SupervisedClusterer(random_state=0).fit(sets, clusters))


def test_sets_of_rows_have_a_radius():
    rng = np.random.default_rng(0)
    Z, members = rng.normal(size=(4, 2)), np.array([[1.0, 0.0], [1.0, 1.0]])
    structure, X = RowSets(Z, 2), Queries(members)
    every = np.array(list(itertools.product((0, 1), repeat=4)))
    largest = 0.0
    for i in range(2):
        sums = np.array([np.outer(members[i], y @ Z).ravel() for y in every])
        largest = max(largest, np.sqrt(((sums[:, None] - sums) ** 2).sum(axis=2)).max())
    assert largest <= radius_of(structure, X) + 1e-9


def test_models_without_a_norm_are_refused_by_name():
    X, y = blobs(30)
    with pytest.raises(NotFittedError):
        pac_bayes.bound(mercer.LinearClassifier(), X, y, B=1.0)
    for model in (mercer.HiddenMarkovModel(2), mercer.HashedClassifier(), object()):
        with pytest.raises(TypeError, match=f"{type(model).__name__} is not a linear model"):
            pac_bayes.bound(model, X, y, B=1.0)
        with pytest.raises(TypeError, match=f"{type(model).__name__} is not a linear model"):
            pac_bayes.gibbs_classifier(model)
    with pytest.raises(TypeError, match="no single norm"):
        pac_bayes.bound(KernelSVC(Linear()).fit(X, y), X, y, B=1.0)


def test_wrong_numbers_are_named():
    with pytest.raises(ValueError, match="error must be a share"):
        pac_bayes.margin_bound(1.5, 1.0, 1.0, 1.0, 100)
    for name, arguments in {
        "w_norm": (0.1, -1.0, 1.0, 1.0, 100),
        "log_cardinality": (0.1, 1.0, np.inf, 1.0, 100),
        "B": (0.1, 1.0, 1.0, 0.0, 100),
        "m": (0.1, 1.0, 1.0, 1.0, 0),
        "gamma": (0.1, 1.0, 1.0, 1.0, 100, 0.05, 0.0),
    }.items():
        with pytest.raises(ValueError, match=f"^{name} must"):
            pac_bayes.margin_bound(*arguments)
    X, y = blobs(20)
    model = mercer.LinearClassifier().fit(X, y)
    with pytest.raises(ValueError, match="scale"):
        pac_bayes.gibbs_classifier(model, scale=-1.0)
    with pytest.raises(ValueError, match="n_draws"):
        pac_bayes.bound(model, X, y, B=1.0, n_draws=1)
    with pytest.raises(ValueError, match=r"label .*9"):
        pac_bayes.bound(model, X, np.full(20, 9), B=1.0)
    with pytest.raises(ValueError, match="sum to 1"):
        pac_bayes.effective_labels([0.5, 0.6])
    with pytest.raises(TypeError, match="no distribution"):
        pac_bayes.effective_labels(KernelSVC(Linear()).fit(X[y < 2], y[y < 2]), X)
    with pytest.raises(ValueError, match="mass needs arrays"):
        pac_bayes.effective_labels(mercer.Tagger().fit(TOKENS, TAGS), TOKENS, mass=0.9)


def test_approximate_inference_has_no_exact_margin():
    rng = np.random.default_rng(0)
    graphs = [(rng.normal(size=(6, 2)), [(i, j) for i in range(6) for j in range(i)])]
    labeler = mercer.GraphLabeler(inference="bp", max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labeler.fit(graphs, [[0, 1, 2, 0, 1, 2]])
    with pytest.raises(ValueError, match="not exact"):
        pac_bayes.bound(labeler, graphs, [[0, 1, 2, 0, 1, 2]], B=1.0)


def test_large_features_stay_finite():
    X, y = blobs(100)
    model = mercer.LinearClassifier(C=1e-6).fit(1e6 * X, y)
    bounds = pac_bayes.bound(model, 1e6 * X, y, B="data", n_draws=5)
    assert np.isfinite([bounds.margin, bounds.seeger, bounds.B]).all()
