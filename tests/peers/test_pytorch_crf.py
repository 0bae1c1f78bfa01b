"""The layer with pytorch-crf's names beside pytorch-crf: values, gradients and paths of the same weights."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install mercer[torch])")
torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf: not installed")

from mercer.nn import CRF  # noqa: E402


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("reduction", ["sum", "mean", "token_mean", "none"])
def test_values_gradients_and_paths_are_the_same(batch_first, reduction):
    torch.manual_seed(0)
    theirs, ours = (made(7, batch_first=batch_first).double() for made in (torchcrf.CRF, CRF))
    ours.load_state_dict(theirs.state_dict())  # the names of the parameters are the same
    emissions = torch.randn(4, 9, 7, dtype=torch.float64)
    tags, lengths = torch.randint(7, (4, 9)), torch.tensor([9, 1, 5, 8])
    mask = torch.arange(9) < lengths[:, None]
    if not batch_first:
        emissions, tags, mask = emissions.transpose(0, 1), tags.T, mask.T
    slopes = []
    for crf in (theirs, ours):
        given = emissions.detach().clone().requires_grad_()
        value = crf(given, tags, mask=mask, reduction=reduction)
        slopes.append((value, *torch.autograd.grad(value.sum(), [given, *crf.parameters()])))
    named = [[name for name, _ in crf.named_parameters()] for crf in (theirs, ours)]
    assert named[0] == named[1]
    for expected, found in zip(*slopes, strict=True):
        torch.testing.assert_close(found, expected)
    assert ours.decode(emissions, mask=mask) == theirs.decode(emissions, mask=mask)
    assert ours.decode(emissions) == theirs.decode(emissions)
    torch.testing.assert_close(ours(emissions, tags), theirs(emissions, tags))


def test_its_mistakes_are_mistakes_here():
    emissions, tags = torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64)
    for made in (torchcrf.CRF, CRF):
        crf = made(4, batch_first=True)
        for call in (
            lambda crf=crf: crf(emissions[..., :3], tags),
            lambda crf=crf: crf(emissions, tags[:1]),
            lambda crf=crf: crf(emissions, tags, mask=torch.zeros(2, 3, dtype=torch.bool)),
            lambda crf=crf: crf(emissions, tags, reduction="median"),
        ):
            with pytest.raises(ValueError, match=r".+"):
                call()
    with pytest.raises(ValueError, match=r".+"):
        CRF(0)
