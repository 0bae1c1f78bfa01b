"""Minimisers of conditional risks carry certificates; the printed threshold of the hybrid loss is unsafe."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.learning import AdaptiveHybrid, Circle, Hinge, Hybrid, Log, RelativeMargin
from mercer.learning.dominance import threshold_of_two
from mercer.structures import CostMatrix
from mercer.theory import consistency
from mercer.theory.consistency import hybrid_threshold, is_aligned, is_consistent, minimize_risk

COUNTEREXAMPLE = [0.4, 0.15, 0.15, 0.15, 0.15]


def distributions(n: int, seed: int = 0, largest: int = 6):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield rng.dirichlet(np.full(rng.integers(2, largest), rng.choice([0.5, 1.0, 4.0])))


def by_bundle(loss, D) -> consistency.ConditionalMinimum:
    return consistency._bundle(consistency._Conditional(loss, np.asarray(D)), len(D), 1e-8, 20.0, 400)


# ---------------------------------------------------------------------------------- minimisers and certificates


def test_dual_values_of_the_hybrid_loss_equal_its_risk():
    rng = np.random.default_rng(1)
    for D in distributions(200):
        found = minimize_risk(Hybrid(float(rng.choice([0.0, 1.0, *rng.random(3)]))), D)
        assert abs(found.gap) < 1e-12
        assert found.probabilities.sum() == pytest.approx(1.0)


def test_a_bundle_of_planes_finds_the_minimum_of_the_dual():
    rng = np.random.default_rng(2)
    for D in distributions(12, seed=3):
        loss = Hybrid(float(rng.uniform(0.05, 0.95)))
        exact, found = minimize_risk(loss, D), by_bundle(loss, D)
        assert found.bound - 1e-12 <= exact.value <= found.value + 1e-12
        assert found.gap < 1e-5
        np.testing.assert_allclose(found.probabilities, exact.probabilities, atol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "slack", "relative-margin", RelativeMargin(B=0.4)])
def test_no_scores_have_a_lower_risk_than_a_closed_form(loss):
    rng = np.random.default_rng(0)
    for D in distributions(10, seed=4):
        found = minimize_risk(loss, D)
        assert abs(found.gap) < 1e-12
        bound = loss.B if isinstance(loss, RelativeMargin) else np.inf
        for f in rng.normal(size=(50, len(D))):
            f *= min(1.0, bound / np.ptp(f))
            assert consistency.conditional_risk(loss, f, D) >= found.bound - 1e-12


def test_the_circle_loss_has_its_minimum_at_the_geometric_median():
    for D in distributions(10, seed=5, largest=5):
        found = minimize_risk("circle", D)
        assert 0 <= found.gap < 1e-10

        def risk(f, D=D):
            p = np.exp(f - f.max())
            p /= p.sum()
            return sum(d * np.linalg.norm(p - e) for d, e in zip(D, np.eye(len(D)), strict=True))

        assert minimize(risk, np.log(D), method="Nelder-Mead", options={"maxiter": 4000}).fun >= found.value - 1e-7
        assert risk(np.maximum(found.scores, -700.0)) == pytest.approx(found.value, abs=1e-9)


def test_the_softmax_margin_and_other_costs_are_minimised_by_a_bundle():
    for loss in ("softmax-margin", Hinge(CostMatrix([[0, 2, 1], [1, 0, 1], [1, 3, 0]]))):
        found = minimize_risk(loss, [0.45, 0.3, 0.25])
        assert found.method == "bundle"
        assert 0 <= found.gap < 1e-6


def test_a_function_is_a_loss():
    def squared(f, y):
        residual = f - np.eye(len(f))[y]
        return float(residual @ residual), 2 * residual

    D = np.array([0.45, 0.35, 0.2])
    found = minimize_risk(squared, D)
    np.testing.assert_allclose(found.scores, D, atol=1e-5)
    assert found.gap < 1e-7
    assert is_consistent(squared, D)


def test_a_function_that_is_not_convex_gets_no_bound():
    def inverted(f, y):
        return float(-(f @ f)), -2 * f

    with pytest.raises(ValueError, match="not convex"):
        minimize_risk(inverted, [0.5, 0.3, 0.2])


# ---------------------------------------------------------------------------------- consistency


def test_the_log_loss_and_the_circle_loss_are_aligned_with_every_distribution():
    for D in distributions(30, seed=6, largest=9):
        assert is_consistent("log", D)
        assert is_consistent(Circle(), D)
        assert is_consistent("adaptive-hybrid", D)


def test_the_hinge_loss_is_aligned_where_a_label_dominates_and_only_there():
    for D in distributions(200, seed=7):
        for loss in ("hinge", "squared-hinge", Hybrid(0.0)):
            assert is_consistent(loss, D) == (D.max() > 0.5)


@pytest.mark.parametrize("k", range(3, 11))
def test_without_a_dominant_label_log_and_hybrid_find_the_first_and_the_hinge_does_not(k):
    D = np.array([0.46, *np.full(k - 1, 0.54 / (k - 1))])
    assert is_consistent(Log(), D)
    assert is_consistent(Hybrid(0.5), D)
    assert not is_consistent(Hinge(), D)


def test_a_tie_is_not_alignment_unless_the_probabilities_tie():
    assert not is_aligned([1.0, 1.0, 0.0], [0.5, 0.3, 0.2])
    assert is_aligned([1.0, 1.0, 0.0], [0.4, 0.4, 0.2])


# ---------------------------------------------------------------------------------- the threshold of the hybrid loss


def test_the_counterexample_needs_more_than_one_half():
    assert hybrid_threshold(COUNTEREXAMPLE) == pytest.approx(0.5, abs=1e-12)
    assert hybrid_threshold(COUNTEREXAMPLE, "printed") == pytest.approx(-0.25)
    assert not is_consistent(Hybrid(0.3), COUNTEREXAMPLE)
    assert not is_consistent(Hybrid(0.4999), COUNTEREXAMPLE)
    assert is_consistent(Hybrid(0.5001), COUNTEREXAMPLE)


@pytest.mark.parametrize(("first", "k", "wanted"), [(0.46, 3, 0.387), (0.46, 10, 0.182), (0.4, 5, 0.5)])
def test_with_equal_others_the_threshold_has_a_closed_form(first, k, wanted):
    D = [first, *[(1 - first) / (k - 1)] * (k - 1)]
    closed = (1 - 2 * first) / ((1 - 2 * first) + (first - 1 / k))
    assert hybrid_threshold(D) == pytest.approx(closed, abs=1e-12)
    assert closed == pytest.approx(wanted, abs=5e-4)


def test_the_exact_rule_agrees_with_bisection_over_bundles():
    for D in ([0.4, 0.25, 0.2, 0.15], [0.35, 0.33, 0.32], [0.48, 0.47, 0.05]):
        assert hybrid_threshold(D, "numeric") == pytest.approx(hybrid_threshold(D), abs=1e-2)


def test_minimisers_change_sides_at_the_exact_threshold():
    for D in distributions(100, seed=8):
        alpha = hybrid_threshold(D)
        ordered = np.sort(D)
        if D.max() >= 0.5 or ordered[-1] - ordered[-2] < 1e-3:
            continue
        assert is_consistent(Hybrid(min(1.0, alpha + 1e-6)), D)
        assert not is_consistent(Hybrid(alpha - 1e-6), D)


def random_check(n: int, seed: int = 0) -> dict[str, int]:
    """How often the printed condition holds or fails, and the minimiser is aligned or not."""
    rng = np.random.default_rng(seed)
    counts = {"holds": 0, "holds, not aligned": 0, "fails": 0, "fails, aligned": 0}
    while counts["holds"] + counts["fails"] < n:
        D = rng.dirichlet(np.ones(rng.integers(3, 6)))
        ordered, alpha = np.sort(D)[::-1], float(rng.random())
        if ordered[0] >= 0.5 or ordered[0] - ordered[1] <= 0.02:
            continue
        aligned = is_consistent(Hybrid(alpha), D)
        if alpha > hybrid_threshold(D, "printed"):
            counts["holds"] += 1
            counts["holds, not aligned"] += not aligned
        else:
            counts["fails"] += 1
            counts["fails, aligned"] += aligned
    return counts


def test_the_printed_condition_is_necessary_and_not_sufficient():
    counts = random_check(442)
    assert counts["holds, not aligned"] > 0.2 * counts["holds"]
    assert counts["fails"] > 100
    assert counts["fails, aligned"] == 0


def test_two_probabilities_are_enough_for_a_safe_threshold():
    for D in distributions(300, seed=9, largest=9):
        first, second = np.sort(D)[::-1][:2]
        assert threshold_of_two(first, second) >= hybrid_threshold(D) - 1e-12
    assert threshold_of_two(0.4, 0.15) == pytest.approx(0.5)
    assert threshold_of_two(0.7, 0.2) == 0.0


def test_where_a_label_dominates_every_share_will_do():
    for rule in ("exact", "numeric", "printed"):
        assert hybrid_threshold([0.6, 0.3, 0.1], rule) == 0.0


# ---------------------------------------------------------------------------------- maps


def test_maps_show_where_losses_are_aligned():
    maps = {name: consistency.map(name, resolution=24) for name in ("log", "hinge", "adaptive-hybrid")}
    maps["hybrid"] = consistency.map(Hybrid(0.5), resolution=24)
    assert maps["log"].share == maps["adaptive-hybrid"].share == 1.0
    hinge = maps["hinge"]
    assert (hinge.aligned == (hinge.points.max(axis=1) > 0.5)).all()
    assert hinge.share < maps["hybrid"].share < 1.0
    np.testing.assert_allclose(hinge.points.sum(axis=1), 1.0)
    assert consistency.map("hinge", n_labels=4, resolution=8).points.shape[1] == 4


def test_maps_of_three_labels_have_a_picture():
    plt = pytest.importorskip("matplotlib.pyplot")
    ax = consistency.map("hinge", resolution=12).plot()
    assert "hinge" in ax.get_title()
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="three labels"):
        consistency.map("hinge", n_labels=4, resolution=6).plot()


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("D", "message"),
    [
        ([0.5, 0.6], "sum to 1"),
        ([1.2, -0.2], "at least 0"),
        ([np.nan, 1.0], "finite"),
        ([1.0], "at least two labels"),
        ([], "at least two labels"),
        ([[0.5, 0.5]], "one dimension"),
        (["a", "b"], "numbers"),
    ],
)
def test_what_is_no_distribution_is_named(D, message):
    for call in (
        lambda: minimize_risk("log", D),
        lambda: is_consistent("log", D),
        lambda: hybrid_threshold(D),
        lambda: is_aligned([0.0, 1.0], D),
        lambda: consistency.conditional_risk("log", [0.0, 1.0], D),
    ):
        with pytest.raises(ValueError, match=f"D must.*{message}"):
            call()


def test_wrong_losses_and_scores_are_named():
    with pytest.raises(ValueError, match="unknown loss"):
        minimize_risk("zero-one", [0.5, 0.5])
    with pytest.raises(ValueError, match="loss must be a name"):
        minimize_risk(3.0, [0.5, 0.5])
    with pytest.raises(ValueError, match=r"\(value, subgradient\)"):
        minimize_risk(lambda f, y: 1.0, [0.5, 0.5])
    with pytest.raises(ValueError, match="subgradient of length 2"):
        minimize_risk(lambda f, y: (1.0, np.zeros(3)), [0.5, 0.5])
    with pytest.raises(ValueError, match="2 labels of D"):
        consistency.conditional_risk("log", [0.0], [0.5, 0.5])
    with pytest.raises(ValueError, match="2 labels of D"):
        is_aligned([0.0, np.nan], [0.5, 0.5])
    with pytest.raises(ValueError, match="n_labels"):
        consistency.map("log", n_labels=1)
    with pytest.raises(ValueError, match="tol"):
        minimize_risk("log", [0.5, 0.5], tol=-1.0)
    with pytest.raises(ValueError, match="rule"):
        hybrid_threshold([0.5, 0.5], "thesis")
    with pytest.raises(ValueError, match="was a function"):
        minimize_risk(AdaptiveHybrid("function"), [0.4, 0.3, 0.3])


def test_a_label_of_probability_zero_is_no_trouble():
    found = minimize_risk("log", [0.5, 0.5, 0.0])
    assert found.probabilities.tolist() == [0.5, 0.5, 0.0]
    for loss in ("hinge", Hybrid(0.5), Hybrid(0.7), "circle"):
        assert np.isfinite(minimize_risk(loss, [0.55, 0.45, 0.0]).value)
