"""The kernel of sign-circulant codes: its passes give the signs of the convolution; on a GPU the kernel itself."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from mercer.retrieval import CirculantEmbedding
from mercer.retrieval.circulant_source import plan_for, source, takes_ballots
from reference.gpu_codes import codes_by_passes

LENGTHS = [64, 105, 1001, 4096, 9240, 30000, 32768]


def problem(d: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d)
    x = rng.normal(size=(rows, d)).astype(np.float32)
    x[1] = 0  # sign(0) = +1, also beside another row
    r, signs = rng.normal(size=d), np.where(rng.random(d) < 0.5, -1, 1).astype(np.int8)
    exact = np.fft.ifft(np.fft.fft(r) * np.fft.fft(x * signs)).real
    exact[1] = 0
    return x, r, signs, exact


def on_gpu() -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return torch


def check_bits(codes: np.ndarray, exact: np.ndarray, n_bits: int) -> None:
    exact = exact[:, :n_bits]
    bits = np.unpackbits(codes, axis=1)
    assert not bits[:, n_bits:].any()
    wrong = bits[:, :n_bits] != (exact >= 0)
    assert (np.abs(exact[wrong]) < 1e-5 * np.sqrt(exact.shape[1])).all()
    assert bits[1, :n_bits].all()


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler c++ to run the passes with")
@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize("cut", [0, 13])
def test_passes_give_the_signs_of_the_convolution(d: int, cut: int) -> None:
    plan = plan_for(d)
    assert plan is not None
    assert plan.pairs == (d < 30000)
    x, r, signs, exact = problem(d, 3)
    codes, broken = codes_by_passes(plan, x, r, signs, d - cut)
    assert not broken
    check_bits(codes, exact, d - cut)


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler c++ to run the passes with")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_noticed(value: float) -> None:
    x, r, signs, _ = problem(64, 3)
    x[2, 63] = value
    plan = plan_for(64)
    assert plan is not None
    assert codes_by_passes(plan, x, r, signs, 64)[1]


@pytest.mark.parametrize("d", [17 * 64, 32, 62, 2**17])
def test_lengths_with_large_primes_or_out_of_range_have_no_plan(d: int) -> None:
    assert plan_for(d) is None


@pytest.mark.parametrize("d", [*LENGTHS, 25600])
def test_plans_fit_the_memory_of_a_block_and_their_radices_make_up_the_length(d: int) -> None:
    plan = plan_for(d)
    assert plan is not None
    assert np.prod(plan.radices) == plan.n
    assert max(plan.radices) <= 32
    assert plan.shared_bytes <= 227 * 1024
    assert plan.threads % 32 == 0
    ballots = takes_ballots(plan, d, d // 8)
    assert ("__ballot_sync" in source(plan, ballots)) == ballots


def test_the_long_codes_are_written_by_words() -> None:
    plan = plan_for(25600)
    assert plan is not None
    assert takes_ballots(plan, 25600, 3200)


@pytest.mark.parametrize("d", [*LENGTHS, 25600])
@pytest.mark.parametrize("rows", [2, 7])
def test_the_kernel_on_a_gpu_gives_the_signs_of_the_convolution(d: int, rows: int) -> None:
    torch = on_gpu()
    from mercer.retrieval._cuda import CodeTables

    x, r, signs, exact = problem(d, rows)
    plan = plan_for(d)
    assert plan is not None
    tables = CodeTables(plan, r, signs, torch.device("cuda"))
    for n_bits in (d, d - 13):
        out = torch.zeros(rows, -(-n_bits // 8), dtype=torch.uint8, device="cuda")
        tables.write(torch.from_numpy(x).cuda(), n_bits, out)
        check_bits(out.cpu().numpy(), exact, n_bits)
        assert tables.finite()
    x[0, 5] = np.nan
    tables.write(torch.from_numpy(x).cuda(), d - 13, out)
    assert not tables.finite()
    assert tables.finite()


@pytest.mark.parametrize(("d", "n_bits"), [(1000, 1000), (1000, 77), (25600, 25600), (32768, 20000), (17 * 64, 512)])
def test_embeddings_give_the_same_codes_on_a_gpu(d: int, n_bits: int) -> None:
    torch = on_gpu()
    X = np.random.default_rng(0).normal(size=(33, d)).astype(np.float32)
    model = CirculantEmbedding(n_bits, random_state=0).fit(X)
    here, there = model.transform(X), model.transform(torch.from_numpy(X).cuda())
    assert there.is_cuda
    assert np.unpackbits(here ^ there.cpu().numpy()).mean() < 1e-4
    strided = torch.from_numpy(np.asfortranarray(X)).cuda().T.contiguous().T
    assert torch.equal(model.transform(strided), there)


def test_embeddings_refuse_what_is_not_finite_on_a_gpu() -> None:
    torch = on_gpu()
    X = np.zeros((3, 256), np.float32)
    model = CirculantEmbedding(256, random_state=0).fit(X)
    X[1, 7] = np.inf
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.transform(torch.from_numpy(X).cuda())
