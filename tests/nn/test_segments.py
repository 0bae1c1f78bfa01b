"""Semi-Markov layers: every verb and loss is its definition over all segmentations."""

from __future__ import annotations

import copy
import itertools
import warnings

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install mercer[torch])")

from torch.nn.utils.rnn import pack_sequence  # noqa: E402

from mercer.nn import ChainCRF, SemiMarkovCRF  # noqa: E402
from mercer.structures import Constraints  # noqa: E402

LENGTHS = [5, 1, 3]
TAGS = torch.tensor([[1, -1, 0, 1, -1], [0, -1, -1, -1, -1], [0, 1, -1, 7, 7]])
RULES = Constraints([(0, 0)], forbidden_end=[0])


def layer(loss="log", constraints=None, **options):
    torch.manual_seed(0)
    crf = SemiMarkovCRF(2, 3, loss=loss, constraints=constraints, dtype=torch.float64, **options)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def emissions():
    return torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def segmentations(crf, theta):
    """All of one sequence, as rows, with scores that have gradients."""
    n, found = len(theta), []
    for cuts in itertools.product((False, True), repeat=n - 1):
        starts = [0, *(t + 1 for t, cut in enumerate(cuts) if cut)]
        stops = [*starts[1:], n]
        if max(b - a for a, b in zip(starts, stops, strict=True)) > crf.max_length:
            continue
        for labels in itertools.product(range(crf.n_labels), repeat=len(starts)):
            if crf.constraints is not None and not crf.constraints.allows(list(labels)):
                continue
            row = [-1] * n
            score = crf.start[labels[0]] + crf.end[labels[-1]]
            for a, b, c in zip(starts, stops, labels, strict=True):
                row[a] = c
                score = score + theta[a:b, c].sum() + crf.durations[b - a - 1, c]
            score = score + sum(crf.transitions[a, b] for a, b in itertools.pairwise(labels))
            found.append((tuple(row), score))
    return found


def frames(row):
    return list(itertools.accumulate(row, lambda before, now: now if now >= 0 else before))


def defined(crf, theta, y):
    every = segmentations(crf, theta)
    truth, scores = dict(every)[tuple(y)], torch.stack([score for _, score in every])
    wrong = [sum(a != b for a, b in zip(frames(z), frames(y), strict=True)) for z, _ in every]
    cost = torch.tensor(wrong, dtype=torch.float64)
    log, hinge = scores.logsumexp(0) - truth, (scores + cost).max() - truth
    others = [score for z, score in every if z != tuple(y)]
    unit = (1.0 + torch.stack(others).max() - truth).clamp(min=0.0) if others else 0.0
    return {
        "log": log,
        "hinge": hinge,
        "squared-hinge": hinge**2,
        "softmax-margin": (scores + cost).logsumexp(0) - truth,
        "hybrid": 0.5 * log + 0.5 * unit,
    }[crf.loss.name]


@pytest.mark.parametrize("loss", ["log", "hinge", "squared-hinge", "softmax-margin", "hybrid"])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_losses_and_gradients_are_their_definitions(loss, checkpoint):
    crf, theta = layer(loss, checkpoint=checkpoint), emissions().requires_grad_()
    expected = [defined(crf, theta[i, :n], TAGS[i, :n].tolist()) for i, n in enumerate(LENGTHS)]
    torch.testing.assert_close(crf(theta, TAGS, LENGTHS, reduction="none"), torch.stack(expected))
    value = crf(theta, TAGS, LENGTHS)
    torch.testing.assert_close(value, sum(expected) / 3)
    given = [theta, *crf.parameters()]
    for found, wanted in zip(*(torch.autograd.grad(v, given) for v in (value, sum(expected) / 3)), strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("constraints", [None, RULES])
def test_verbs_are_their_definitions(constraints):
    crf, theta = layer("log", constraints), emissions()
    lengths = [5, 1, 3]
    best, (ranked, log_p) = crf.decode(theta, lengths), crf.k_best(theta, 3, lengths)
    log_z, mu, entropy = (verb(theta, lengths).detach() for verb in (crf.log_partition, crf.marginals, crf.entropy))
    drawn = crf.sample(theta, 2000, lengths, random_state=0)
    for i, n in enumerate(lengths):
        every = [(row, score.item()) for row, score in segmentations(crf, theta[i, :n])]
        scores = torch.tensor([score for _, score in every], dtype=torch.float64)
        p = scores.softmax(0)
        order = scores.argsort(descending=True).tolist()
        assert best[i, :n].tolist() == list(every[order[0]][0])
        torch.testing.assert_close(log_z[i], scores.logsumexp(0))
        torch.testing.assert_close(entropy[i], -(p * p.log()).sum())
        for k in range(min(3, len(every))):  # segmentations may tie
            assert dict(every)[tuple(ranked[i, k, :n].tolist())] == pytest.approx(every[order[k]][1])
            torch.testing.assert_close(log_p[i, k], p[order[k]].log())
        for t, c in itertools.product(range(n), range(2)):
            share = sum(p[k] for k, (row, _) in enumerate(every) if frames(row)[t] == c)
            torch.testing.assert_close(mu[i, t, c], torch.as_tensor(share, dtype=torch.float64))
        share = (drawn[i, :, :n] == torch.tensor(every[order[0]][0])).all(1).double().mean()
        assert abs(share.item() - p[order[0]].item()) < 0.05


def agrees(row, known):
    """Whether a segmentation begins where it must and as it must, and nowhere else."""
    allowed = {-100: lambda y: True, -2: lambda y: y >= 0}
    return all(allowed.get(k, lambda y, k=k: y == k)(y) for y, k in zip(row, known, strict=True))


@pytest.mark.parametrize("constraints", [None, RULES])
def test_unknown_segments_mean_all_segmentations_that_agree(constraints):
    crf, theta = layer("log", constraints), emissions().requires_grad_()
    partial = torch.tensor([[-100, -100, -2, -100, -1], [1, -100, -100, -100, -100], [-2, 1, -1, 7, 7]])
    expected = []
    for i, n in enumerate(LENGTHS):
        every = segmentations(crf, theta[i, :n])
        agreeing = [score for row, score in every if agrees(row, partial[i, :n].tolist())]
        expected.append(torch.stack([s for _, s in every]).logsumexp(0) - torch.stack(agreeing).logsumexp(0))
    given = [theta, *crf.parameters()]
    wanted = torch.autograd.grad(sum(expected), given)
    for checkpoint in (False, True):
        crf.checkpoint = checkpoint
        torch.testing.assert_close(crf(theta, partial, LENGTHS, reduction="sum"), sum(expected))
        for found, slope in zip(
            torch.autograd.grad(crf(theta, partial, LENGTHS, reduction="sum"), given), wanted, strict=True
        ):
            torch.testing.assert_close(found, slope)
    crf.checkpoint = False
    listed = [[(0, 2, None), (2, 3, 0), (3, 5, 1)], [(0, 1, None)], [(0, 3, None)]]
    rows = torch.tensor([[-2, -100, 0, 1, -1], [-2, 0, 0, 0, 0], [-2, -100, -100, 0, 0]])
    torch.testing.assert_close(crf(theta, listed, LENGTHS), crf(theta, rows, LENGTHS))
    assert crf(theta, torch.full((3, 5), -100), LENGTHS).item() == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="unknown"):
        layer("hinge")(theta, partial, LENGTHS)
    with pytest.raises(ValueError, match="unknown"):
        crf.score(theta, partial, LENGTHS)


def test_segments_of_length_1_are_a_chain():
    """Where a chain's labels are the segments' labels."""
    torch.manual_seed(0)
    crf, chain = SemiMarkovCRF(3, 1, dtype=torch.float64), ChainCRF(3, dtype=torch.float64)
    torch.nn.init.normal_(chain.transitions)
    crf.load_state_dict({"durations": torch.zeros(1, 3), **chain.state_dict()})
    theta, tags = torch.randn(2, 6, 3, dtype=torch.float64), torch.randint(0, 3, (2, 6))
    torch.testing.assert_close(crf(theta, tags), chain(theta, tags))
    assert torch.equal(crf.decode(theta), chain.decode(theta))


def test_lists_tensors_names_and_compiled_layers_agree():
    torch.manual_seed(0)
    crf = SemiMarkovCRF(["up", "down"], 3)
    theta = torch.randn(2, 5, 2)
    listed = [[(0, 2, "down"), (2, 3, "up"), (3, 5, "down")], [(0, 3, "up")]]
    tags = torch.tensor([[1, -1, 0, 1, -1], [0, -1, -1, -1, -1]])
    expected = crf(theta, tags, [5, 3])
    torch.testing.assert_close(crf(theta, listed, [5, 3]), expected)
    assert crf.segments(tags, [5, 3]) == listed
    for pack in (lambda rows: torch.nested.nested_tensor(rows, layout=torch.jagged), lambda rows: pack_sequence(rows)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.testing.assert_close(crf(pack([theta[0], theta[1, :3]]), pack([tags[0], tags[1, :3]])), expected)
    compiled = torch.compile(crf, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(theta, tags, torch.tensor([5, 3])), expected)
    torch.testing.assert_close(copy.deepcopy(crf)(theta, tags, [5, 3]), expected)
    half = theta.bfloat16().requires_grad_()
    crf(half, tags, [5, 3]).backward()
    assert half.grad.dtype == torch.bfloat16
    assert "max_length=3" in repr(crf)


def test_bad_segments_are_named():
    crf, theta = layer(), emissions()
    broken = theta.clone()
    broken[0, 1, 1] = torch.inf
    for call, message in (
        (lambda: crf(theta, torch.tensor([[-1] * 5] * 3)), "sequence 0 omit its first position"),
        (lambda: crf(theta, torch.tensor([[5, -1, -1, 0, -1]] * 3)), "label of the segments of sequence 0"),
        (lambda: crf(theta, torch.tensor([[0] + [-1] * 4] * 3)), "segments of sequence 0 are forbidden"),
        (lambda: crf(broken, TAGS, LENGTHS), "emissions of sequence 0 are NaN"),
        (lambda: crf(theta, [[(0, 2, 0)], [(0, 5, 0)], [(0, 5, 0)]]), "sequence 0 end at 2"),
        (lambda: crf(theta, [[(1, 5, 0)]] * 3), "must follow each other"),
        (lambda: crf(theta, TAGS[:2], LENGTHS), "shape"),
        (lambda: SemiMarkovCRF(2, 0), "max_length"),
        (lambda: SemiMarkovCRF(2, 3, loss="slack"), "loss"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    given = theta.requires_grad_()
    (slope,) = torch.autograd.grad(crf(given, TAGS, LENGTHS), given, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        slope.sum().backward()
