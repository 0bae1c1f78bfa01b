"""A loss over the part scores of any structure is the library's loss, and its gradient that of finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install mercer[torch])")

from mercer.data import Segmentations  # noqa: E402
from mercer.data.labels import TagSequences  # noqa: E402
from mercer.learning.losses import resolve_loss  # noqa: E402
from mercer.nn import StructuredLoss  # noqa: E402
from mercer.structures import Chain, GraphInputs, GraphLabels, Labels, Segments  # noqa: E402
from mercer.structures.chain import ChainScores  # noqa: E402
from mercer.structures.segment_parts import SegmentScores  # noqa: E402


def random(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


def cases():
    offsets = np.array([0, 3, 4])
    chain = ChainScores(random(4, 3), random(3, 3), random(3), random(3), offsets)
    yield Chain(3, 0), chain, TagSequences(np.array([2, 0, 1, 1], np.int32), offsets)
    segments = SegmentScores(random(2, 3), random(3, 3), random(3), random(3), offsets, frames=random(4, 3))
    yield Segments(3, 0, max_length=2), segments, Segmentations([2, 1, 1], [0, 2, 1], [0, 2, 3], offsets)
    graphs = GraphInputs.from_list([(np.eye(3), [(0, 1), (1, 2)])])
    graph = GraphLabels(n_labels=2, n_features=3)
    theta = graph.scores(random(graph.n_weights), graphs)
    yield graph, theta, TagSequences(np.array([0, 1, 1], np.int32), np.array([0, 3]))
    yield Labels(3, 0), random(4, 3), np.array([0, 2, 1, 1])


@pytest.mark.parametrize("loss", ["log", "hinge", "softmax-margin"])
@pytest.mark.parametrize("case", range(4))
def test_losses_and_gradients_are_those_of_the_library(case, loss):
    structure, theta, y = list(cases())[case]
    expected = resolve_loss(loss).value_and_gradient(structure, theta, y)[0]
    layer = StructuredLoss(structure, loss)
    if isinstance(theta, np.ndarray):
        names, tensors = (), [torch.tensor(theta, requires_grad=True)]
    else:
        names = [name for name, x in vars(theta).items() if isinstance(x, np.ndarray) and x.dtype == float]
        tensors = [torch.tensor(getattr(theta, name), requires_grad=True) for name in names]

    def value(*given):
        return layer(replace(theta, **dict(zip(names, given, strict=True))) if names else given[0], y)

    torch.testing.assert_close(value(*tensors).item(), float(expected.mean()))
    if loss != "hinge":
        assert torch.autograd.gradcheck(value, tensors)
    else:
        value(*tensors).backward()
        assert sum(float(x.grad.abs().sum()) for x in tensors) > 0


def test_plain_labels_and_bad_inputs():
    theta = torch.tensor([[2.0, 0.0, 0.0]], requires_grad=True)
    layer = StructuredLoss(Labels(3, 0), loss="hinge", reduction="sum")
    assert layer(theta, [1]).item() == layer(theta, torch.tensor([1])).item() == 3.0
    assert "hinge" in repr(layer)
    chain = ChainScores(torch.zeros(2, 3), torch.zeros(3, 3), torch.zeros(3), torch.zeros(3), np.array([0, 2]))
    assert StructuredLoss(Chain(3, 0))(chain, [0, 1]).item() == pytest.approx(2 * np.log(3))
    with pytest.raises(TypeError, match="Structure"):
        StructuredLoss("chain")
    with pytest.raises(TypeError, match="no tensor"):
        layer(replace(chain, **{name: np.zeros(1) for name in ("nodes", "transitions", "start", "end")}), [0])
    with pytest.raises(ValueError, match="NaN"):
        layer(theta * torch.nan, [1])
    with pytest.raises(ValueError, match="meta"):
        layer(theta.to("meta"), [1])
    (slope,) = torch.autograd.grad(layer(theta.detach().clone().requires_grad_(), [1]), theta, allow_unused=True)
    assert slope is None
    given = theta.detach().clone().requires_grad_()
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(layer(given, [1]), given, create_graph=True)
