"""The kernel of Hamming distances: its counting is right for every layout; on a GPU the kernel itself."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from mercer.retrieval import HammingIndex
from mercer.retrieval._cuda_hamming import layout_for, source
from reference.gpu_distances import distances_by_lanes

WIDTHS = [1, 3, 8, 32, 33, 128, 144, 1000, 3200]


def drawn(width: int, *rows: int) -> list[np.ndarray]:
    rng = np.random.default_rng(width)
    return [rng.integers(0, 256, (n, width), dtype=np.uint8) for n in rows]


def exact(queries: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.unpackbits(queries[:, None, :] ^ codes[None, :, :], axis=2).sum(axis=2)


def on_gpu() -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return torch


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler c++ to run the counting with")
@pytest.mark.parametrize("width", WIDTHS)
def test_lanes_count_the_bits_that_differ(width: int) -> None:
    queries, codes = drawn(width, 2, 3)
    found = distances_by_lanes(layout_for(width, 16), queries, codes)
    np.testing.assert_array_equal(found, exact(queries, codes))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("aligned", [1, 4, 16])
def test_layouts_read_whole_units_that_lie_right(width: int, aligned: int) -> None:
    layout = layout_for(width, aligned)
    assert width % layout.unit == 0
    assert aligned % layout.unit == 0
    assert layout.lanes in (1, 2, 4, 8, 16, 32)
    assert layout.queries * width <= 48 * 1024
    assert ("own[EACH]" in source(layout)) == (width <= 8 * layout.unit * layout.lanes)


def test_codes_too_long_for_shared_memory_have_no_layout_for_a_query() -> None:
    assert layout_for(1 << 16, 16).queries == 0


@pytest.mark.parametrize("shift", [None, 3])
def test_keys_hold_distance_and_place(shift: int | None) -> None:
    torch = pytest.importorskip("torch")
    from mercer.retrieval._tensors import distances

    queries, codes = drawn(5, 4, 7)
    found = distances(torch.from_numpy(queries), torch.from_numpy(codes), 40, shift).numpy()
    wanted = exact(queries, codes)
    np.testing.assert_array_equal(found, wanted if shift is None else wanted * 2**shift + np.arange(7))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [1, 255, 1025])
@pytest.mark.parametrize("n_queries", [1, 70])
def test_the_kernel_counts_as_products_do(width: int, n: int, n_queries: int) -> None:
    torch = on_gpu()
    from mercer.retrieval import _cuda_hamming
    from mercer.retrieval._tensors import by_products

    queries, codes = (torch.from_numpy(a).cuda() for a in drawn(width, n_queries, n))
    wanted = by_products(queries, codes, 8 * width)
    assert torch.equal(_cuda_hamming.distances(queries, codes), wanted)
    places = torch.arange(n, dtype=torch.int32, device="cuda")
    assert torch.equal(_cuda_hamming.distances(queries, codes, 11), (wanted << 11) + places)
    shifted = torch.cat([codes.new_zeros(1), codes.reshape(-1)])[1:].view(n, width)  # begins at an odd place
    assert torch.equal(_cuda_hamming.distances(queries, shifted), wanted)


def test_long_codes_fall_back_to_products_on_a_gpu() -> None:
    torch = on_gpu()
    from mercer.retrieval._tensors import distances

    queries, codes = drawn(1 << 16, 2, 3)
    found = distances(torch.from_numpy(queries).cuda(), torch.from_numpy(codes).cuda(), 8 << 16)
    np.testing.assert_array_equal(found.cpu().numpy(), exact(queries, codes))


@pytest.mark.parametrize("width", [4, 32, 200])
def test_an_index_finds_the_same_on_a_gpu(width: int) -> None:
    torch = on_gpu()
    queries, codes = drawn(width, 9, 3000)
    index = HammingIndex(codes)
    here, there = index.search(queries, k=12), index.search(torch.from_numpy(queries).cuda(), k=12)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b.cpu().numpy())
