"""Maps of tensors of torch: the same kind, type and device out, and the features of NumPy arrays; learning there too.

Runs without the compiled core. "elsewhere" sends tensors of the processor down the path of those on a device, so that
it is tested where there is none; "cuda" runs where there is one.
"""

from __future__ import annotations

import array_api_compat
import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch")

from mercer.maps import (  # noqa: E402
    CirculantProjection,
    CompactNonlinearMap,
    FourierFeatures,
    PolynomialSketch,
    circulant,
    compact,
    fourier,
    sketches,
)
from mercer.maps.fourier import hadamard, sylvester  # noqa: E402

torch.set_num_threads(1)
DEVICES = ["cpu", "elsewhere", *(["cuda"] if torch.cuda.is_available() else [])]
MAPS = {
    "fourier-iid": FourierFeatures(50, variant="iid", random_state=0),
    "fourier-orthogonal": FourierFeatures(50, variant="orthogonal", random_state=0),
    "fourier-structured": FourierFeatures(50, variant="structured", random_state=0),
    "fourier-circulant": FourierFeatures(50, variant="circulant", random_state=0),
    "fourier-phases": FourierFeatures(31, "laplacian", variant="circulant", pairs=False, random_state=0),
    "fourier-matern": FourierFeatures(300, "matern", gamma="neighbours", random_state=0),
    "sketch": PolynomialSketch(64, degree=3, coef0=1.0, random_state=0),
    "sketch-linear": PolynomialSketch(33, degree=1, random_state=0),
    "circulant": CirculantProjection(9, random_state=0),
    "circulant-more": CirculantProjection(50, sign_flip="blocks", random_state=0),
    "circulant-pad": CirculantProjection(50, expand="pad", random_state=0),
    "compact": CompactNonlinearMap(11, "kernel", max_iter=2, steps=10, random_state=0),
    "compact-circulant": CompactNonlinearMap(29, "kernel", circulant=True, max_iter=2, steps=10, random_state=0),
}  # fmt: skip


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    if request.param == "elsewhere":
        for module in (circulant, compact, fourier, sketches):
            monkeypatch.setattr(module, "on_processor", lambda X: False)
        return "cpu"
    return request.param


def rows(n=60, d=13, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 13, 40])
@pytest.mark.parametrize("name", MAPS)
def test_features_of_tensors_are_those_of_arrays(name, d, dtype, device):
    X = rows(d=d, dtype=dtype)
    map_ = clone(MAPS[name]).fit(X)
    found = map_.transform(torch.from_numpy(X).to(device))
    assert found.dtype == getattr(torch, np.dtype(dtype).name)
    assert found.device.type == device
    expected = map_.transform(X)
    # float32: angles of a Cauchy wave may be large, and so is their rounding
    tolerance = 1e-9 if dtype == np.float64 else 2e-3 if "phases" in name else 2e-4
    assert np.allclose(found.cpu().numpy(), expected, atol=tolerance * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", MAPS)
def test_fitting_to_a_tensor_is_fitting_to_its_array(name, device):
    X = rows(130, 13)
    expected = clone(MAPS[name]).fit(X).transform(X)
    found = clone(MAPS[name]).fit(torch.from_numpy(X).to(device)).transform(X)
    assert np.allclose(found, expected, atol=1e-7 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize(("k", "expand"), [(13, "concat"), (7, "concat"), (30, "concat"), (17, "pad")])
def test_a_fitted_vector_is_found_where_the_rows_lie(k, expand, device):
    X, Y = rows(50), rows(50, k, seed=1)
    expected = CirculantProjection(k, vector="fitted", expand=expand, random_state=0).fit(X, Y)
    found = clone(expected).fit(torch.from_numpy(X).to(device), torch.from_numpy(Y).to(device))
    assert np.allclose(found.vectors_, expected.vectors_, atol=1e-8)
    assert isinstance(found.vectors_, np.ndarray)
    mixed = clone(expected).fit(torch.from_numpy(X).to(device), Y)
    assert np.allclose(mixed.vectors_, expected.vectors_, atol=1e-8)


@pytest.mark.parametrize("circulant", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_labels_are_learnt_on_a_device_as_in_numpy(n_classes, circulant, device):
    X = rows(300, 6)
    y = (np.hypot(X[:, 0], X[:, 1]) * n_classes / 2.5).astype(int).clip(0, n_classes - 1)
    expected = CompactNonlinearMap(16, circulant=circulant, max_iter=2, steps=10, random_state=0).fit(X, y)
    tensors = torch.from_numpy(X).to(device), torch.from_numpy(y).to(device)
    found = clone(expected).fit(*tensors)
    assert np.allclose(found.frequencies_, expected.frequencies_, atol=1e-6)
    assert np.allclose(found.history_, expected.history_, atol=0.02)
    assert found.transform(tensors[0]).device.type == device
    batches = clone(expected)
    for start in range(0, 300, 100):
        batches.partial_fit(tensors[0][start : start + 100], tensors[1][start : start + 100], classes=range(n_classes))
    assert len(batches.history_) == 3
    assert batches.coef_.shape == expected.coef_.shape


@pytest.mark.parametrize("name", MAPS)
def test_bad_tensors_are_named(name, device):
    X = torch.from_numpy(rows()).to(device)
    map_ = clone(MAPS[name]).fit(X)
    for wrong, message in (
        (X.half(), "float32, float64"), (X.to(torch.complex64), "float32, float64"), (X[:, :-1], "12 features"),
        (X[:0], "at least one row"), (X[0], "2D"), (X * float("nan"), "NaN"), (X / 0, "NaN or infinity"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            map_.transform(wrong)
    with pytest.raises(TypeError, match="sparse tensor"):
        map_.transform(X.to_sparse())
    whole = torch.arange(26, device=device).reshape(2, 13)
    assert map_.transform(whole).dtype == torch.float64
    wide = torch.zeros((60, 26), dtype=torch.float64, device=device)
    wide[:, ::2] = X
    for same in (wide[:, ::2], X.T.contiguous().T):
        assert torch.allclose(map_.transform(same), map_.transform(X), atol=1e-12)


def test_targets_on_another_device_are_refused():
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    X, Y = torch.from_numpy(rows()), torch.from_numpy(rows(seed=1))
    with pytest.raises(ValueError, match="same device, got cuda:0 and cpu"):
        CirculantProjection(13, vector="fitted").fit(X.cuda(), Y)
    map_ = CompactNonlinearMap(4, "kernel").partial_fit(X)
    with pytest.raises(ValueError, match="learning began on cpu"):
        map_.partial_fit(X.cuda())


@pytest.mark.parametrize("device", DEVICES[1:], indirect=True)
@pytest.mark.parametrize("name", MAPS)
def test_where_memory_runs_out_fewer_rows_are_taken_and_then_a_word_on_batches(name, device, monkeypatch):
    X = torch.from_numpy(rows()).to(device)
    map_ = clone(MAPS[name]).fit(X)
    expected, most = map_.transform(X), 7
    step = next(m for m in ("_angles", "_sketch", "_project", "_features") if hasattr(map_, m))
    work = getattr(map_, step)

    def tight(block):
        if block.shape[0] > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return work(block)

    monkeypatch.setattr(map_, step, tight)
    assert torch.allclose(map_.transform(X), expected, atol=1e-12)
    most = 0
    with pytest.raises(MemoryError, match=r"60 rows.*in batches"):
        map_.transform(X)


@pytest.mark.parametrize("size", [1, 2, 64, 128, 1024])
def test_products_of_small_matrices_are_the_hadamard_transform(size, device):
    X = torch.from_numpy(rows(3, size)).to(device)
    found = hadamard(array_api_compat.array_namespace(X), X).cpu().numpy()
    assert np.allclose(found, X.cpu().numpy() @ sylvester(size), atol=1e-9)
