"""Circulant layers are their dense matrices, forwards and backwards."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install mercer[torch])")

from mercer.nn import CirculantLinear  # noqa: E402

WIDTHS = [(1, 1), (1, 4), (5, 1), (8, 8), (7, 7), (9, 4), (4, 9), (16, 16)]


@pytest.mark.parametrize(("d", "k"), WIDTHS)
@pytest.mark.parametrize("flip", [True, False])
def test_forward_is_the_dense_matrix(d, k, flip):
    torch.manual_seed(0)
    layer = CirculantLinear(d, k, sign_flip=flip, dtype=torch.float64)
    with torch.no_grad():
        layer.bias.normal_()
    x = torch.randn(3, 2, d, dtype=torch.float64)
    expected = x @ layer.dense_weight().T + layer.bias
    torch.testing.assert_close(layer(x), expected)
    dense = layer.dense_weight().numpy() * (layer.signs.numpy() if flip else 1.0)
    n = max(d, k)
    for i in range(k):
        for j in range(d):
            assert dense[i, j] == layer.weight.detach().numpy()[(i - j) % n]


@pytest.mark.parametrize(("d", "k"), WIDTHS)
def test_gradients_equal_finite_differences(d, k):
    """Of r, x and the bias, with random signs, for k < d, k = d and k > d."""
    torch.manual_seed(1)
    layer = CirculantLinear(d, k, dtype=torch.float64)
    x = torch.randn(4, d, dtype=torch.float64, requires_grad=True)

    def loss(x, weight, bias):
        return torch.tanh(torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))).sum()

    assert torch.autograd.gradcheck(loss, (x, layer.weight, layer.bias), atol=1e-7)


def test_a_fixed_layer_has_no_gradient_and_a_seed_repeats():
    layers = [CirculantLinear(6, 6, trainable=False, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    torch.testing.assert_close(layers[0].dense_weight(), layers[1].dense_weight())
    x = torch.randn(2, 6, requires_grad=True)
    layers[0](x).sum().backward()
    assert layers[0].weight.grad is None
    assert x.grad is not None


def test_saved_and_copied_layers_are_the_same(tmp_path):
    layer = CirculantLinear(5, 7)
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    other = CirculantLinear(5, 7)
    other.load_state_dict(torch.load(tmp_path / "layer.pt", weights_only=True))
    x = torch.randn(3, 5)
    torch.testing.assert_close(other(x), layer(x))
    torch.testing.assert_close(copy.deepcopy(layer)(x), layer(x))
    assert "in_features=5" in repr(layer)


def test_from_linear_is_the_nearest_circulant_matrix():
    torch.manual_seed(0)
    for d, k in ((6, 6), (4, 7), (7, 4)):
        dense = torch.nn.Linear(d, k, dtype=torch.float64)
        layer = CirculantLinear.from_linear(dense)
        best = (layer.dense_weight() - dense.weight).square().sum()
        for _ in range(20):
            moved = copy.deepcopy(layer)
            with torch.no_grad():
                moved.weight.add_(0.01 * torch.randn_like(moved.weight))
            assert (moved.dense_weight() - dense.weight).square().sum() >= best
        again = CirculantLinear.from_linear(torch.nn.Linear(d, k, bias=False))
        assert again.bias is None


def test_half_precision_and_batches_of_any_shape():
    layer = CirculantLinear(6, 3)
    x = torch.randn(2, 5, 6)
    out = layer(x.to(torch.bfloat16))
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), layer(x), atol=0.05, rtol=0.05)
    assert layer(x[0, 0]).shape == (3,)
    assert layer(x[:0]).shape == (0, 5, 3)
    strided = torch.randn(6, 4).T
    torch.testing.assert_close(layer(strided), layer(strided.contiguous()))


@pytest.fixture
def one_thread():
    """Small batches on several threads mostly wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def digits_error(hidden, rows=1200, seed=0):
    """Test error of hidden → ReLU → linear after 150 steps of Adam."""
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16.0, dtype=torch.float32), torch.tensor(y)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    train, test = order[seed * 100 : seed * 100 + rows] if rows < 800 else order[:rows], order[1200:]
    torch.manual_seed(seed)
    network = torch.nn.Sequential(*hidden(), torch.nn.ReLU(), torch.nn.LazyLinear(10))
    network(X[:1])
    optimizer = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(X[train]), y[train]).backward()
        optimizer.step()
    with torch.no_grad():
        return float((network(X[test]).argmax(dim=1) != y[test]).float().mean())


@pytest.mark.usefixtures("one_thread")
def test_a_network_of_circulant_layers_learns_digits():
    """Near a dense network, better than a dense one of the same size."""
    circulant = digits_error(lambda: [CirculantLinear(64, 64)])
    dense = digits_error(lambda: [torch.nn.Linear(64, 64)])
    reduced = digits_error(lambda: [torch.nn.Linear(64, 2)])  # 130 numbers; the circulant layer has 128
    assert circulant <= dense + 0.02
    assert circulant < reduced


@pytest.mark.usefixtures("one_thread")
def test_random_circulant_layers_are_as_good_as_random_dense_ones():
    """Only the last layer learns; 10 seeds."""

    def dense():
        layer = torch.nn.Linear(64, 64, bias=False)
        torch.nn.init.normal_(layer.weight, std=1 / 8)
        layer.weight.requires_grad_(False)
        return [layer]

    means = [
        np.mean([digits_error(make, seed=s) for s in range(10)])
        for make in (lambda: [CirculantLinear(64, 64, bias=False, trainable=False)], dense)
    ]
    assert abs(means[0] - means[1]) < 0.02


@pytest.mark.usefixtures("one_thread")
def test_on_few_rows_circulant_networks_stay_near_dense_ones():
    """50 … 400 rows. The source has circulant ones ahead on the smallest sets; on digits they are not."""
    curves = []
    for make in (lambda: [CirculantLinear(64, 64)], lambda: [torch.nn.Linear(64, 64)]):
        curves.append([np.mean([digits_error(make, rows, s) for s in range(4)]) for rows in (50, 100, 400)])
    circulant, dense = np.array(curves)
    assert (np.diff(circulant) < 0).all()
    assert (circulant - dense < 0.05).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_features": 0}, "in_features"),
        ({"out_features": 2.5}, "out_features"),
        ({"dtype": torch.float16}, "dtype"),
    ],
)
def test_bad_widths_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CirculantLinear(**{"in_features": 3, "out_features": 3, **arguments})


def test_bad_inputs_are_refused():
    layer = CirculantLinear(3, 3)
    with pytest.raises(ValueError, match="width 3"):
        layer(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="floating-point"):
        layer(torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="meta"):
        layer(torch.zeros(2, 3, device="meta"))


def test_importing_mercer_nn_does_not_import_torch():
    code = "import sys, mercer.nn; assert 'torch' not in sys.modules; assert 'ChainCRF' in mercer.nn.__all__"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize(
    ("width", "out", "rows"), [(2048, 2048, 7), (1000, 600, 5), (700, 1000, 6), (4096, 4096, 1500), (16384, 16384, 3)]
)
@pytest.mark.parametrize("trainable", [True, False])
def test_kernels_on_a_gpu_give_values_and_gradients_of_double_precision(width, out, rows, trainable):
    torch.manual_seed(width)
    layer = CirculantLinear(width, out, trainable=trainable).cuda()
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(rows, width, device="cuda", requires_grad=True)
    delta = torch.randn(rows, out, device="cuda")
    exact = CirculantLinear(width, out, trainable=trainable, dtype=torch.float64)
    exact.load_state_dict({name: value.double() for name, value in layer.state_dict().items()})
    given = x.detach().double().cpu().requires_grad_()
    found, expected = layer(x), exact(given)
    parts = [(x, given), *zip(layer.parameters(), exact.parameters(), strict=True)]
    parts = [pair for pair in parts if pair[0].requires_grad]
    slopes = torch.autograd.grad(found, [a for a, _ in parts], delta)
    wanted = torch.autograd.grad(expected, [b for _, b in parts], delta.double().cpu())
    for a, b in zip((found, *slopes), (expected, *wanted), strict=True):
        assert (a.double().cpu() - b).norm() <= 2e-6 * b.norm()
    assert torch.equal(layer(x), found)
    again = torch.autograd.grad(layer(x), [a for a, _ in parts], delta)
    assert all(torch.equal(a, b) for a, b in zip(slopes, again, strict=True))
