"""Methods of registration: kernel components, motions and outliers for every method, bad input, symmetry, evidence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer.data import PointCloud
from mercer.datasets import make_mug
from mercer.manifolds import SE, SO, check_gradient
from mercer.registration import (
    ICP,
    CoherentPointDrift,
    FeatureMatching,
    KernelAlignment,
    KernelRegistration,
    MixtureRegistration,
    SoftAssign,
    UncertainPoseWarning,
    estimate_normals,
    register,
)
from mercer.registration._evidence import Judge
from mercer.registration.kernel import _NystromFeatures, kernel_components
from mercer.registration.matching import poses_of_matches
from mercer.registration.prepared import Cloud

LOCAL = {
    "icp": lambda: ICP("point"),
    "plane": lambda: ICP("plane"),
    "generalized": lambda: ICP(),
    "trimmed": lambda: ICP("point", overlap=0.9),
    "softassign": lambda: SoftAssign(cooling=0.8),
    "mixture": lambda: MixtureRegistration(max_iter=30),
    "drift": lambda: CoherentPointDrift(),
}
GLOBAL = {"kernel": lambda: KernelRegistration(), "matching": lambda: FeatureMatching()}


def motion(scale: float, points: np.ndarray, share: float = 1.0) -> np.ndarray:
    """Yaw, pitch and roll of scale · (30°, 5°, 5°) and a shift of scale standard deviations along each axis."""
    yaw, pitch, roll = np.deg2rad(share * scale * np.array([30.0, 5.0, 5.0]))
    group = SO(3)
    turn = group.Exp([0, 0, yaw]) @ group.Exp([0, pitch, 0]) @ group.Exp([roll, 0, 0])
    return SE(3).point(turn, scale * points.std(axis=0))


def moved(pose, points):
    return points @ pose[:-1, :-1].T + pose[:-1, -1]


def mean_error(model, pose, points) -> float:
    """Mean distance of known pairs in units of the root mean squared radius."""
    radius = np.sqrt(((points - points.mean(0)) ** 2).sum(1).mean())
    return float(np.linalg.norm(moved(model.transform_, points) - moved(pose, points), axis=1).mean() / radius)


def test_poses_of_matches_do_not_depend_on_the_unit():
    """Lengths are counted in spacings: eight times as large clouds (exact in binary) give the same rotations."""
    both = make_mug(800, random_state=0)
    source, target = both[:400], moved(motion(1.0, both), both[400:])
    small, large = (
        poses_of_matches(Judge(Cloud(unit * source), Cloud(unit * target)), 5.0, 1.5, mutual=True, wanted=5)
        for unit in (1.0, 8.0)
    )
    assert len(small) == len(large) > 0
    small[:, :3, 3] *= 8.0
    np.testing.assert_allclose(large, small, atol=1e-9)


# ------------------------------------------------------------------------------------------------ kernel components


def test_components_equal_those_of_explicit_features():
    """A wide Gaussian kernel is, to second order, a polynomial one: compare with its features, truncated."""
    points = np.random.default_rng(0).standard_normal((40, 2)) * 0.05
    weights = np.random.default_rng(1).dirichlet(np.ones(40))
    values, beta, scores = kernel_components(points, weights, 1.0, 4)
    x, y = points.T
    decay = np.exp(-(x * x + y * y) / 2)
    terms = [np.ones(40), x, y, x * x / np.sqrt(2), x * y, y * y / np.sqrt(2)]
    cubic = [x**3 / np.sqrt(6), x * x * y / np.sqrt(2), x * y * y / np.sqrt(2), y**3 / np.sqrt(6)]
    features = decay[:, None] * np.stack([*terms, *cubic], axis=1)
    centred = features - weights @ features
    expected = np.linalg.eigvalsh(centred.T @ (weights[:, None] * centred))[::-1][:4]
    np.testing.assert_allclose(values, expected, atol=1e-8)
    np.testing.assert_allclose(weights @ scores, 0, atol=1e-12)
    np.testing.assert_allclose(scores.T @ (weights[:, None] * scores), np.diag(values), atol=1e-10)
    assert beta.sum(axis=0) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_gradient_of_the_objective_equals_differences(d):
    rng = np.random.default_rng(d)
    x, y, rho = rng.standard_normal((12, d)), rng.standard_normal((9, d)), rng.standard_normal((12, 9))
    objective = KernelAlignment(x, rng.dirichlet(np.ones(12)), y, rho, 0.8)
    assert check_gradient(objective.value, objective.gradient, SE(d)) < 1e-6


def test_the_objective_is_that_of_feature_space():
    """O(P) is the mean of ⟨Ψ, Φ⟩ with explicit features, Ψ = U₂ s U₁ᵀ (φ(x) − μ₁) + μ₂ and Φ = φ(P x)."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((7, 2)) * 0.3, rng.standard_normal((8, 2)) * 0.3
    w, v, signs = np.full(7, 1 / 7), np.full(8, 1 / 8), np.array([1.0, -1.0])
    pose = SE(2).random(rng)
    _, beta_x, scores = kernel_components(x, w, 1.0, 2)
    _, beta_y, _ = kernel_components(y, v, 1.0, 2)
    rho = (scores * signs) @ beta_y.T + v
    both = np.vstack([x, y, moved(pose, x)])
    gram = np.exp(-((both[:, None] - both) ** 2).sum(axis=2) / 2)
    root = np.linalg.cholesky(gram + 1e-13 * np.eye(len(gram)))  # rows are features of all points involved
    fx, fy, fp = root[:7], root[7:15], root[15:]
    u1, u2 = fx.T @ beta_x, fy.T @ beta_y
    psi = ((fx - w @ fx) @ u1 * signs) @ u2.T + v @ fy
    np.testing.assert_allclose(u1.T @ u1, np.eye(2), atol=1e-6)
    expected = float((w * (psi * fp).sum(axis=1)).sum())
    assert -KernelAlignment(x, w, y, rho, 1.0).value(pose) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("scale", [1, 3, 6])
def test_kernel_registration_solves_every_motion_and_closest_points_do_not(scale):
    points = make_mug(300, random_state=scale)
    pose = motion(scale, points)
    target = moved(pose, points)[np.random.default_rng(0).permutation(300)]
    plain = KernelRegistration(n_points=300, polish=False, max_iter=100).fit(points, target)
    assert mean_error(plain, pose, points) < 0.02
    assert mean_error(KernelRegistration().fit(points, target), pose, points) < 1e-3
    if scale >= 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert mean_error(ICP("point", start="identity").fit(points, target), pose, points) > 0.3


def test_nystrom_features_with_all_landmarks_give_the_exact_components():
    points = make_mug(90, random_state=0)
    points = points / np.sqrt((points**2).sum(axis=1).mean())
    shares = np.full(90, 1 / 90)
    values, _, scores = kernel_components(points, shares, 1.0, 3)
    features = _NystromFeatures(points, 1.0, 90)
    mean, vectors = features.components(points, shares, 3)
    ours = (features(points) - mean) @ vectors
    np.testing.assert_allclose(np.abs(ours), np.abs(scores), atol=1e-5)
    np.testing.assert_allclose((ours**2).mean(axis=0), values, rtol=1e-5)


def test_nystrom_features_of_all_points_solve_what_means_solve():
    points = make_mug(2000, random_state=0)
    pose = motion(5, points)
    model = KernelRegistration(features="nystrom").fit(points[:1000], moved(pose, points[1000:]))
    assert mean_error(model, pose, points) < 0.02
    with pytest.raises(ValueError, match="features must be one of"):
        KernelRegistration(features="haar").fit(points, points)


def test_kernel_registration_survives_no_half_of_the_cloud_and_matching_does():
    points = make_mug(3000, random_state=0)
    pose = motion(4, points)
    source, target = points[:1500], moved(pose, points[1500:])
    kept = points[1500:, 2] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = KernelRegistration(polish=False).fit(source, target[kept])
    assert mean_error(kernel, pose, points) > 0.1
    assert mean_error(FeatureMatching().fit(target[kept], source), SE(3).inverse(pose), moved(pose, points)) < 0.05


# ------------------------------------------------------------------------------------------------ all methods


@pytest.mark.parametrize("name", [*LOCAL, *GLOBAL])
def test_small_motions_are_solved_by_every_method(name):
    points = make_mug(400, random_state=2)
    pose = motion(1, points, share=0.5)
    model = (LOCAL | GLOBAL)[name]().fit(points, moved(pose, points))
    assert mean_error(model, pose, points) < 0.01
    assert model.fitness_ == 1.0
    np.testing.assert_allclose(model.transform(points[:5]), moved(model.transform_, points[:5]))


@pytest.mark.parametrize("name", ["softassign", "drift", "kernel", "matching"])
def test_half_as_many_outliers_do_not_move_the_pose(name):
    rng = np.random.default_rng(1)
    n = 400 if name in LOCAL else 1000
    points = make_mug(n, random_state=3)
    pose = motion(0.5, points)
    outliers = rng.uniform(points.min(0), points.max(0), (n // 2, 3))
    source = np.vstack([points, outliers])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = (LOCAL | GLOBAL)[name]().fit(source, moved(pose, points))
    assert mean_error(model, pose, points) < 0.05


@pytest.mark.parametrize("model", [KernelRegistration(), ICP()], ids=["kernel", "icp"])
def test_copies_are_matched_exactly_among_outliers_and_as_points_under_noise(model):
    rng = np.random.default_rng(0)
    points = make_mug(300, random_state=0)
    pose = motion(1, points, 0.5)
    extra = rng.uniform(points.min(axis=0), points.max(axis=0), (120, 3))
    model.fit(np.vstack([points, extra]), moved(pose, points)[rng.permutation(300)])
    assert mean_error(model, pose, points) < 1e-9
    noisy = [rows + 0.02 * rng.standard_normal(rows.shape) for rows in (points, moved(pose, points))]
    by_points = mean_error(ICP("point").fit(*noisy), pose, points)
    assert mean_error(model.fit(*noisy), pose, points) < 1.5 * by_points


@pytest.mark.parametrize("name", ["icp", "softassign", "mixture", "drift", "kernel"])
def test_two_dimensions(name):
    rng = np.random.default_rng(0)
    letter = np.vstack([rng.random((150, 2)) * [0.3, 2], rng.random((80, 2)) * [1, 0.3] + [0, 1.7]])
    pose = SE(2).point(SO(2).Exp([0.3 if name != "kernel" else 2.5]), [0.2, -0.1])
    model = (LOCAL | GLOBAL)[name]().fit(letter, moved(pose, letter))
    np.testing.assert_allclose(model.transform_, pose, atol=0.02)


def outline(n: int, seed: int) -> np.ndarray:
    """A closed curve without symmetry, with bends of many sizes."""
    t = np.sort(np.random.default_rng(seed).random(n)) * 2 * np.pi
    r = 1 + 0.3 * np.cos(2 * t) + 0.2 * np.sin(3 * t) + 0.12 * np.cos(5 * t + 1) + 0.1 * np.sin(9 * t)
    return np.stack([r * np.cos(t), r * np.sin(t)], axis=1)


def test_parts_of_outlines_are_matched_in_the_plane():
    pose = SE(2).point(SO(2).Exp([2.5]), [3.0, -1.0])
    source, target = outline(900, 0), outline(900, 1)
    source, target = source[source[:, 0] > -0.5], moved(pose, target[target[:, 0] < 0.7])
    model = FeatureMatching().fit(source, target)
    np.testing.assert_allclose(model.transform_, pose, atol=0.05)
    np.testing.assert_allclose(register(source, target).transform, pose, atol=0.05)


def test_four_dimensions_and_a_factor():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((200, 4)) * [4, 3, 2, 1] + rng.random((200, 4)) ** 3 * 4
    pose = SE(4).random(rng)
    target = moved(pose, points)
    np.testing.assert_allclose(register(points, target).transform, pose, atol=1e-6)
    result = register(points, 2.5 * target, scale=True)
    assert result.scale == pytest.approx(2.5)
    np.testing.assert_allclose(result.rotation, pose[:4, :4], atol=1e-6)
    with pytest.raises(ValueError, match="2 or 3 dimensions"):
        ICP().fit(points, target)


def test_factors_and_affine_maps():
    points = make_mug(500, random_state=0)
    pose = motion(0.5, points)
    target = 1.5 * moved(pose, points)
    assert abs(CoherentPointDrift("similarity").fit(points, target).result_.scale - 1.5) < 0.01
    assert (
        abs(ICP("point", scale=True).fit(points, 1.02 * moved(motion(0.1, points), points)).result_.scale - 1.02) < 1e-3
    )
    assert abs(SoftAssign(scale=True, cooling=0.8).fit(points, 1.1 * target / 1.5).result_.scale - 1.1) < 0.01
    linear = np.eye(3) + 0.1 * np.random.default_rng(0).standard_normal((3, 3))
    affine = CoherentPointDrift("affine").fit(points, points @ linear.T)
    np.testing.assert_allclose(affine.transform_[:3, :3], linear, atol=0.01)
    rigid = CoherentPointDrift().fit(points, moved(pose, points))
    assert rigid.result_.scale == pytest.approx(1, abs=1e-9)  # no factor unless asked for


@pytest.mark.parametrize("overlap", [1.0, 0.8, pytest.param(0.65, marks=pytest.mark.slow)])
def test_partial_overlap_is_solved_from_any_rotation(overlap):
    both = make_mug(4000, random_state=5)
    source, target = both[:2000], both[2000:]
    pose = SE(3).point(SO(3).Exp([2.0, 2.0, 0.5]), [1.0, 2.0, 3.0])
    cut = 1 - overlap
    u = np.array([0.1, 0.3, 1.0])
    source = source[source @ u <= np.quantile(source @ u, 1 - cut / 2)]
    target = moved(pose, target[target @ u >= np.quantile(target @ u, cut / 2)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertainPoseWarning)
        result = register(source, target)
    np.testing.assert_allclose(result.rotation, pose[:3, :3], atol=0.05)


def test_weights_leave_points_out():
    points = make_mug(400, random_state=0)
    pose = motion(0.3, points)
    source = np.vstack([points, np.random.default_rng(0).uniform(-1, 1, (100, 3))])
    weights = np.r_[np.ones(400), np.zeros(100)]
    model = ICP("point").fit(source, moved(pose, points), weights)
    assert mean_error(model, pose, points) < 1e-3


def test_given_normals_are_used():
    points = make_mug(500, random_state=0)
    pose = motion(0.3, points)
    source, target = PointCloud(points, estimate_normals(points)), PointCloud(moved(pose, points))
    assert mean_error(ICP("plane").fit(source, target), pose, points) < 1e-3
    assert isinstance(ICP().fit(source, target).transform(source), PointCloud)


# ------------------------------------------------------------------------------------------------ evidence


def test_symmetric_shapes_have_alternatives_and_no_certificate():
    box = PointCloud(
        np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 4)], float),
        faces=[[0, 1, 3], [0, 3, 2], [4, 5, 7], [4, 7, 6], [0, 1, 5], [0, 5, 4], [2, 3, 7], [2, 7, 6], [0, 2, 6],
               [0, 6, 4], [1, 3, 7], [1, 7, 5]],
    )  # fmt: skip
    source, target = box.sample(1500, 0).points, box.sample(1500, 1).points @ SO(3).Exp([1.0, 1.0, 0.0]).T
    with pytest.warns(UncertainPoseWarning, match="another pose fits nearly as well"):
        result = register(source, target, effort=1)
    assert not result.certified
    assert result.fitness > 0.99
    assert len(result.alternatives) >= 1
    for pose in result.alternatives:
        moved_box = moved(pose, source)
        assert np.sqrt(((moved_box[:, None] - target) ** 2).sum(axis=2).min(axis=1)).mean() < 0.15


def test_clouds_that_have_nothing_in_common_are_not_certified():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((800, 3))
    with pytest.warns(UncertainPoseWarning):
        result = register(make_mug(800), noise, effort=1)
    assert not result.certified
    with pytest.warns(UserWarning, match="come near the target"):
        far = ICP(max_distance=1.0, start="identity").fit(make_mug(300), make_mug(300) + 100)
    assert far.fitness_ == 0


def test_reports_say_what_was_found():
    points = make_mug(800, random_state=0)
    pose = SE(3).point(SO(3).Exp([3.0, 0.1, 0.0]), [5.0, 0.0, 0.0])
    result = register(points, moved(pose, points))
    assert result.fitness == 1.0
    assert result.rmse < 1e-6
    np.testing.assert_array_equal(result.correspondences, np.tile(np.arange(800)[:, None], 2))
    np.testing.assert_allclose(result.transform, pose, atol=1e-6)
    np.testing.assert_allclose(result.apply(points), moved(pose, points), atol=1e-6)
    assert {"overlap", "contact", "normals", "margin"} <= set(result.evidence)
    again = register(points, moved(pose, points), n_jobs=2)
    np.testing.assert_array_equal(again.transform, result.transform)
    with pytest.raises(ValueError, match="3 coordinates"):
        result.apply(points[:, :2])


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_and_offsets_do_not_matter(unit):
    points = make_mug(500, random_state=0)
    pose = SE(3).point(SO(3).Exp([2.0, 1.0, 0.0]), [0.0, 0.0, 0.0])
    target = moved(pose, points)
    result = register(points * unit + 100 * unit, target * unit - 50 * unit)
    np.testing.assert_allclose(result.rotation, pose[:3, :3], atol=1e-6)


# ------------------------------------------------------------------------------------------------ bad input

FIVE = np.random.default_rng(0).random((50, 5))
BAD = [
    ((np.zeros((3, 3)), make_mug(20)), "source must have at least 4 points in 3 dimensions, got 3"),
    ((np.ones((30, 3)), make_mug(20)), "all points of source are equal"),
    ((make_mug(20), np.outer(np.arange(30.0), [1, 2, 3])), "points of target lie on a line"),
    ((np.where(np.eye(20, 3) > 0, np.nan, 1.0), make_mug(20)), "source must not hold NaN .* point 0"),
    ((make_mug(20), np.zeros((20, 2))), "source has 3 coordinates and target 2"),
    ((make_mug(20)[:, 0], make_mug(20)), "one point a row"),
    ((np.zeros((0, 3)), make_mug(20)), "at least 1 points"),
    (([["a", "b", "c"]], make_mug(20)), "array of numbers"),
    ((make_mug(20)[:, :1], make_mug(20)), "at least 2 coordinates"),
]


@pytest.mark.parametrize(("clouds", "message"), BAD)
@pytest.mark.parametrize("call", [register, lambda x, y: ICP().fit(x, y), lambda x, y: KernelRegistration().fit(x, y)])
def test_bad_clouds_are_named(clouds, message, call):
    with pytest.raises(ValueError, match=message):
        call(*clouds)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: register(x, x, method="magic"), "method must be one of"),
        (lambda x: register(x, x, start=np.eye(3)), "start must be a finite matrix"),
        (lambda x: register(x, x, start="middle"), "start must be 'centroid'"),
        (lambda x: register(x, x, start=np.zeros((4, 4))), "invertible"),
        (lambda x: register(x, x, weights=-np.ones(len(x))), "weights must be"),
        (lambda x: register(FIVE, FIVE, method="matching"), "2 or 3 dimensions"),
        (lambda x: register(x, x, start="identity", reflection=True), "reflection=True cannot be combined"),
        (lambda x: register(x, x, reflection=1), "reflection must be"),
        (lambda x: ICP("line").fit(x, x), "kind must be one of"),
        (lambda x: ICP(overlap=1.5).fit(x, x), "overlap must be a share"),
        (lambda x: ICP(max_distance=0).fit(x, x), "max_distance must be a positive"),
        (lambda x: ICP(scale=True).fit(x, x), "scale=True needs kind='point'"),
        (lambda x: KernelRegistration(sigma=0).fit(x, x), "sigma must be a positive"),
        (lambda x: SoftAssign(cooling=1.0).fit(x, x), "below 1"),
        (lambda x: CoherentPointDrift("elastic").fit(x, x), "kind must be one of"),
        (lambda x: FeatureMatching().fit(FIVE, FIVE), "2 or 3 dimensions"),
        (lambda x: estimate_normals(x[:2]), "more than 3 points"),
    ],
)
def test_bad_settings_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(make_mug(50))


def test_reflections_are_not_used():
    points = make_mug(500, random_state=0)
    mirrored = points * [1, -1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = register(points, mirrored)
    assert np.linalg.det(result.rotation) == pytest.approx(1)


def test_reflections_are_found_where_they_are_asked_for():
    def bent(seed):  # a mug with a dent: no mirror symmetry
        points = make_mug(800, random_state=seed)
        return points + (points[:, 1:2] > 0.0) * np.array([0.5, 1.0, 0.5])

    pose = SE(3).point(SO(3).Exp([2.0, 1.0, 0.0]), [1.0, 0.0, 0.0])
    result = register(bent(0), moved(pose, bent(1) * [1, -1, 1]), reflection=True)
    assert result.certified
    np.testing.assert_allclose(result.rotation, pose[:3, :3] * [1, -1, 1], atol=0.05)
    plain = register(bent(0), moved(pose, bent(1)), reflection=True)
    np.testing.assert_allclose(plain.rotation, pose[:3, :3], atol=0.05)
    with pytest.warns(UncertainPoseWarning):
        result = register(make_mug(800, random_state=0), moved(pose, make_mug(800, random_state=1)), reflection=True)
    assert not result.certified
    assert {round(float(np.linalg.det(p[:3, :3]))) for p in [result.transform, *result.alternatives]} == {-1, 1}


def test_few_iterations_are_said():
    points = make_mug(300, random_state=0)
    with pytest.warns(UserWarning, match="before it converged"):
        ICP("point", max_iter=1).fit(points, moved(motion(1, points), points))


def test_copies_take_no_more_iterations_than_were_given():
    random = np.random.default_rng(0)
    cloud = random.normal(size=(200, 3)) * [3.0, 2.0, 1.0]
    target = moved(motion(0.3, cloud), cloud) + 0.01 * random.normal(size=cloud.shape)
    for most in (1, 2, 5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert ICP(max_iter=most).fit(cloud, target).n_iter_ <= most
