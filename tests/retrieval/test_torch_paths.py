"""Codes and search on tensors of torch: the same kind and device out, and the same codes as from NumPy arrays.

Runs without the compiled core. "elsewhere" sends tensors of the processor down the path of those on a device, so that
it is tested where there is none; "cuda" runs where there is one.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from mercer import _arrays  # noqa: E402
from mercer.retrieval import (  # noqa: E402
    BilinearEmbedding,
    CirculantEmbedding,
    HammingIndex,
    SignProjection,
    _codes,
    hamming_distances,
    index,
    pack_codes,
    unpack_codes,
)

torch.set_num_threads(1)
DEVICES = ["cpu", "elsewhere", *(["cuda"] if torch.cuda.is_available() else [])]
EMBEDDINGS = [
    CirculantEmbedding(40, random_state=0),
    CirculantEmbedding(30, sign_flip=False, random_state=0),
    CirculantEmbedding(40, "learned", max_iter=4, random_state=0),
    CirculantEmbedding(100, random_state=0),
    BilinearEmbedding(40, random_state=0),
    BilinearEmbedding(41, "learned", max_iter=4, random_state=0),
    SignProjection(43, random_state=0),
]
NAMES = [f"{type(e).__name__}-{e.n_bits}-{getattr(e, 'method', '')}" for e in EMBEDDINGS]


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    if request.param == "elsewhere":
        for module in (_codes, index):
            monkeypatch.setattr(module, "on_device", _arrays.is_tensor)
        return "cpu"
    return request.param


def rows(n=37, d=42, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def bits(n, n_bits, seed=0):
    return np.random.default_rng(seed).random((n, n_bits)) < 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 21, 42, 64])
@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=NAMES)
def test_codes_of_tensors_are_those_of_arrays(embedding, d, dtype, device):
    X = rows(d=d, dtype=dtype)
    tensor = torch.from_numpy(X).to(device)
    expected = embedding.fit(X).project(X)
    projected = embedding.project(tensor)
    assert projected.dtype == tensor.dtype
    assert projected.device == tensor.device
    scale = np.abs(expected).max()
    tolerance = (1e-4 if dtype == np.float32 else 1e-9) * scale
    np.testing.assert_allclose(projected.cpu().numpy(), expected, atol=tolerance)
    codes = embedding.transform(tensor)
    assert codes.dtype == torch.uint8
    assert codes.device == tensor.device
    np.testing.assert_array_equal(codes.cpu().numpy(), np.packbits(projected.cpu().numpy() >= 0, axis=1))
    signs = embedding.transform(tensor, packed=False)
    assert signs.dtype == torch.int8
    np.testing.assert_array_equal(signs.cpu().numpy(), np.where(projected.cpu().numpy() >= 0, 1, -1))
    scores = embedding.asymmetric_scores(tensor, codes)
    assert (scores.dtype, scores.device) == (tensor.dtype, tensor.device)
    wanted = projected.double() @ signs.double().T
    np.testing.assert_allclose(scores.cpu().numpy(), wanted.cpu().numpy(), rtol=1e-3, atol=1e-3 * scale)
    distances = embedding.asymmetric_distances(tensor, codes)
    assert bool((distances >= 0).all())
    assert bool((distances.diagonal() <= 1e-3 * embedding.n_bits * scale).all())
    back = embedding.inverse_transform(codes)
    assert back.device == tensor.device
    np.testing.assert_allclose(back.norm(dim=1).cpu().numpy(), 1, rtol=1e-6)


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=NAMES)
@pytest.mark.parametrize("d", [42, 31])
def test_fitting_to_a_tensor_is_fitting_to_its_array(embedding, d, device):
    X = rows(90, d)
    expected = embedding.fit(X).project(X)
    history = np.ravel(getattr(embedding, "history_", []))
    found = embedding.fit(torch.from_numpy(X).to(device)).project(X)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(np.ravel(getattr(embedding, "history_", [])), history)


def test_pairs_of_rows_of_a_tensor_are_those_of_its_array(device):
    X, pairs = rows(60, 24), {"similar": [[0, 1], [2, 3]], "dissimilar": [[4, 5], [6, 7], [0, 9]]}
    model = CirculantEmbedding(24, "learned", random_state=0)
    expected = model.fit(X, **pairs).r_
    np.testing.assert_allclose(model.fit(torch.from_numpy(X).to(device), **pairs).r_, expected, atol=1e-10)


def test_batches_of_tensors_teach_what_batches_of_arrays_do(device):
    X = rows(120, 30)
    arrays, tensors = (CirculantEmbedding(45, "learned", random_state=0) for _ in range(2))
    for start in range(0, 120, 40):
        arrays.partial_fit(X[start : start + 40])
        tensors.partial_fit(torch.from_numpy(X[start : start + 40]).to(device))
    np.testing.assert_allclose(tensors.r_, arrays.r_, atol=1e-10)


@pytest.mark.parametrize("n_bits", [1, 7, 8, 64, 65, 256, 2047, 2048, 2049, 5000])
def test_neighbours_on_a_device_are_those_of_brute_force_with_ties_by_place(n_bits, device):
    base, asked = bits(70, n_bits), bits(6, n_bits, seed=1)
    base[30:50] = base[:20]  # ties
    index_ = HammingIndex(torch.from_numpy(pack_codes(base)).to(device), n_bits=n_bits)
    queries = torch.from_numpy(pack_codes(asked)).to(device)
    truth = (asked[:, None, :] != base[None, :, :]).sum(axis=2)
    for k in (1, 9, 70, 75):
        distances, ids = index_.search(queries, k=k)
        assert (distances.dtype, ids.dtype) == (torch.int32, torch.int64)
        assert distances.device == ids.device == queries.device
        order = np.argsort(truth, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(ids.cpu().numpy()[:, :70], order)
        np.testing.assert_array_equal(distances.cpu().numpy()[:, :70], np.take_along_axis(truth, order, axis=1))
        assert bool((ids[:, 70:] == -1).all())
        assert bool((distances[:, 70:] == n_bits + 1).all())
    radius = int(np.median(truth))
    for row, (near, ids) in enumerate(zip(*index_.search_radius(queries, radius), strict=True)):
        order = np.argsort(truth[row], kind="stable")[: (truth[row] <= radius).sum()]
        np.testing.assert_array_equal(ids.cpu().numpy(), order)
        np.testing.assert_array_equal(near.cpu().numpy(), truth[row][order])


def test_ids_filters_additions_and_removals_reach_the_device(device):
    base, names = bits(50, 20), 500 - np.arange(50)
    plain = HammingIndex(pack_codes(base), n_bits=20, ids=names)
    queries = pack_codes(bits(8, 20, seed=3))
    asked = torch.from_numpy(queries).to(device)
    for _ in range(3):
        for chosen in (None, plain.ids[::3], plain.ids % 2 == 0, torch.from_numpy(plain.ids[::4]).to(device), []):
            array = chosen.cpu().numpy() if isinstance(chosen, torch.Tensor) else chosen
            expected, found = plain.search(queries, 5, filter=array), plain.search(asked, 5, filter=chosen)
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_array_equal(b.cpu().numpy(), a)
            expected, found = plain.search_radius(queries, 7, array), plain.search_radius(asked, 7, chosen)
            for a, b in zip([*expected[0], *expected[1]], [*found[0], *found[1]], strict=True):
                np.testing.assert_array_equal(b.cpu().numpy(), a)
        plain.remove(plain.ids[::5])
        plain.add(torch.from_numpy(pack_codes(bits(9, 20, seed=len(plain)))).to(device))


def test_blocks_do_not_change_what_is_found(device, monkeypatch):
    from mercer.retrieval import _tensors

    base, asked = pack_codes(bits(500, 12)), pack_codes(bits(30, 12, seed=1))
    index_ = HammingIndex(base, n_bits=12)
    expected, within = index_.search(asked, 40), index_.search_radius(asked, 4)
    monkeypatch.setattr(_tensors, "_stretches", lambda codes, n_queries, n_bits: 17)
    monkeypatch.setattr(_tensors, "MOST_QUERIES", 7)
    queries = torch.from_numpy(asked).to(device)
    for a, b in zip(expected, index_.search(queries, 40), strict=True):
        np.testing.assert_array_equal(b.cpu().numpy(), a)
    for a, b in zip(within, index_.search_radius(queries, 4), strict=True):
        np.testing.assert_array_equal(torch.cat(b).cpu().numpy(), np.concatenate(a))


def test_an_empty_index_and_no_queries_are_no_special_case(device):
    none = torch.zeros((0, 4), dtype=torch.uint8, device=device)
    full, empty = HammingIndex(pack_codes(bits(5, 30)), n_bits=30), HammingIndex(n_bits=30)
    assert full.search(none, k=3)[1].shape == (0, 3)
    assert full.search_radius(none, 3) == ([], [])
    one = torch.from_numpy(pack_codes(bits(2, 30))).to(device)
    assert bool((empty.search(one, k=3)[1] == -1).all())
    assert [len(found) for found in empty.search_radius(one, 30)[1]] == [0, 0]


@pytest.mark.parametrize("n_bits", [1, 8, 13, 64, 77])
def test_packing_and_distances_of_tensors(n_bits, device):
    values = np.where(bits(9, n_bits), 0.0, -1e-30)
    packed = pack_codes(torch.from_numpy(values).to(device))
    np.testing.assert_array_equal(packed.cpu().numpy(), pack_codes(values))
    assert torch.equal(pack_codes(torch.from_numpy(values >= 0).to(device)), packed)
    np.testing.assert_array_equal(unpack_codes(packed, n_bits).cpu().numpy(), unpack_codes(pack_codes(values), n_bits))
    np.testing.assert_array_equal(hamming_distances(packed).cpu().numpy(), hamming_distances(pack_codes(values)))


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=NAMES)
def test_bad_tensors_are_named(embedding, device):
    X = torch.from_numpy(rows()).to(device)
    model = embedding.fit(X)
    with pytest.raises(TypeError, match="sparse"):
        model.transform(X.to_sparse())
    for wrong, message in (
        (X.half().to(torch.complex64), "omplex|float32, float64"),
        (X[:, :-1], "41 features"),
        (X[:0], "at least one row|0 sample"),
        (X[0], "2D"),
        (X * float("nan"), "NaN"),
        (X / 0, "infinity|NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            model.transform(wrong)
    whole = torch.arange(84, device=device).reshape(2, 42)
    assert torch.equal(model.transform(whole), model.transform(whole.double()))
    wide = torch.zeros((37, 84), dtype=torch.float64, device=device)
    wide[:, ::2] = X
    assert torch.equal(model.transform(wide[:, ::2]), model.transform(X))
    assert torch.equal(model.transform(X.T.contiguous().T), model.transform(X))
    assert torch.equal(model.transform(X.clone().requires_grad_()), model.transform(X))
    zeros = torch.zeros_like(X)
    assert bool((model.transform(zeros, packed=False) == 1).all())  # sign(0) = +1
    with pytest.raises(ValueError, match="packed codes"):
        model.asymmetric_scores(X, X)
    with pytest.raises(TypeError, match="toarray"):
        model.transform(sp.csr_matrix(rows()))


@pytest.mark.parametrize(("codes", "message"), [
    (torch.zeros((2, 3)), "packed codes"),
    (torch.zeros((2, 3), dtype=torch.uint8), "2 bytes"),
    (torch.zeros(2, dtype=torch.uint8), "packed codes|matrix with a code"),
    (torch.full((1, 2), 255, dtype=torch.uint8), "bits after bit 10"),
])  # fmt: skip
def test_tensors_that_are_no_codes_are_refused(codes, message, device):
    index_ = HammingIndex(n_bits=10)
    for call in (index_.add, index_.search):
        with pytest.raises(ValueError, match=message):
            call(codes.to(device))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_vectors_and_codes_on_different_devices_are_refused():
    X = torch.from_numpy(rows())
    model = CirculantEmbedding(40, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X is on cuda:0 and codes on cpu"):
        model.asymmetric_scores(X.cuda(), model.transform(X))
    with pytest.raises(ValueError, match="move one"):
        hamming_distances(model.transform(X), model.transform(X.cuda()))


@pytest.mark.parametrize("device", DEVICES[1:], indirect=True)
def test_where_memory_runs_out_fewer_rows_are_taken_and_then_a_word_on_batches(device, monkeypatch):
    X = torch.from_numpy(rows(50)).to(device)
    model = CirculantEmbedding(40, random_state=0).fit(X)
    expected, project, most = model.transform(X), CirculantEmbedding._project, 6

    def tight(self, block):
        if block.shape[0] > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return project(self, block)

    monkeypatch.setattr(CirculantEmbedding, "_project", tight)
    assert torch.equal(model.transform(X), expected)
    most = 0
    with pytest.raises(MemoryError, match=r"50 rows.*in batches"):
        model.transform(X)


def test_codes_and_search_of_arrays_run_without_the_compiled_core_and_do_not_import_torch():
    code = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "mercer._core":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import numpy as np
from mercer.retrieval import BilinearEmbedding, CirculantEmbedding, HammingIndex, SignProjection, pack_codes
X = np.random.default_rng(0).normal(size=(30, 16)).astype(np.float32)
for method in ("scan", "multi-index"):
    for model in (CirculantEmbedding(24), CirculantEmbedding(16, "learned"), BilinearEmbedding(24), SignProjection(24)):
        codes = model.fit(X).transform(X)
        assert (codes == pack_codes(model.project(X))).all()
        distances, ids = HammingIndex(codes, n_bits=model.n_bits, method=method).search(codes, k=3)
        assert (distances[:, 0] == 0).all()
        assert HammingIndex(codes, n_bits=model.n_bits).search_radius(codes[:2], 3, filter=[1])[1][1].tolist() == [1]
print("mercer._core" in sys.modules, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False False", done.stderr
