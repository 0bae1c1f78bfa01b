"""Chain layers: every verb and loss is its definition over all labellings, on ragged batches and under constraints."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install mercer[torch])")

from mercer.learning import Hybrid  # noqa: E402
from mercer.nn import CRF, ChainCRF, SemiMarkovCRF  # noqa: E402
from mercer.nn import _chain_core as core  # noqa: E402
from mercer.nn import _chain_torch as by_operations  # noqa: E402
from mercer.nn._chain_ops import CHAIN  # noqa: E402
from mercer.structures import Constraints  # noqa: E402
from mercer.tagging import Tagger  # noqa: E402

LOSSES = ("log", "hinge", "squared-hinge", "softmax-margin", "hybrid")
LENGTHS = [4, 1, 3]
RULES = Constraints([(0, 1), (2, 2)], forbidden_start=[1], forbidden_end=[0])


def layer(loss="log", constraints=None, seed=0, **options):
    """Three labels with random transitions, float64."""
    torch.manual_seed(seed)
    crf = ChainCRF(3, loss=loss, constraints=constraints, dtype=torch.float64, **options)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def problem(seed=1):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(3, 4, 3, generator=random, dtype=torch.float64), torch.tensor(
        [[2, 0, 2, 1], [2, 0, 0, 0], [0, 2, 1, 9]]
    )


def labellings(crf, emissions):
    """All labellings of one sequence and their scores, as tensors that have gradients."""
    rules = crf.constraints or Constraints()
    found = []
    for y in itertools.product(range(crf.n_labels), repeat=len(emissions)):
        if not rules.allows(list(y)):
            continue
        score = crf.start[y[0]] + crf.end[y[-1]] + sum(emissions[t, c] for t, c in enumerate(y))
        score = score + sum(crf.transitions[a, b] for a, b in itertools.pairwise(y))
        found.append((y, score))
    return found


def defined(crf, emissions, y):
    """The loss of known tags by its definition."""
    every = labellings(crf, emissions)
    truth = dict(every)[tuple(y)]
    scores = torch.stack([score for _, score in every])
    cost = torch.tensor([float(sum(a != b for a, b in zip(z, y, strict=True))) for z, _ in every], dtype=torch.float64)
    log = scores.logsumexp(0) - truth
    hinge = (scores + cost).max() - truth
    others = [score for z, score in every if z != tuple(y)]
    unit = (1.0 + torch.stack(others).max() - truth).clamp(min=0.0) if others else torch.zeros(())
    return {
        "log": log,
        "hinge": hinge,
        "squared-hinge": hinge**2,
        "softmax-margin": (scores + cost).logsumexp(0) - truth,
        "hybrid": 0.5 * log + 0.5 * unit,
    }[crf.loss.name]


@pytest.mark.parametrize("constraints", [None, RULES])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_gradients_are_their_definitions(loss, constraints):
    crf, (emissions, tags) = layer(loss, constraints), problem()
    expected = [defined(crf, emissions[i, :n], tags[i, :n].tolist()) for i, n in enumerate(LENGTHS)]
    given = emissions.clone().requires_grad_()
    for reduction, value in (("sum", sum(expected)), ("mean", sum(expected) / 3), ("token_mean", sum(expected) / 8)):
        crf.zero_grad()
        given.grad = None
        found = crf(given, tags, LENGTHS, reduction=reduction)
        torch.testing.assert_close(found, value)
        found.backward()
        wanted = torch.autograd.grad(value, list(crf.parameters()), retain_graph=True)
        for parameter, gradient in zip(crf.parameters(), wanted, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)
        assert not given.grad[1, 1:].any()
    torch.testing.assert_close(crf(given, tags, LENGTHS, reduction="none"), torch.stack(expected))


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_gradients_equal_finite_differences(loss, checkpoint):
    crf, (emissions, tags) = layer(loss, checkpoint=checkpoint), problem()

    def value(emissions, transitions, start, end):
        parameters = {"transitions": transitions, "start": start, "end": end}
        return torch.func.functional_call(crf, parameters, (emissions, tags, LENGTHS))

    given = [emissions.clone().requires_grad_(), *(p.detach().clone().requires_grad_() for p in crf.parameters())]
    assert torch.autograd.gradcheck(value, given)


@pytest.mark.parametrize("constraints", [None, RULES])
def test_verbs_are_their_definitions(constraints):
    crf, (emissions, _) = layer("log", constraints), problem()
    best, score, (ranked, log_p) = (
        crf.decode(emissions, LENGTHS),
        crf.best_score(emissions, LENGTHS),
        crf.k_best(emissions, 4, LENGTHS),
    )
    log_z, mu, entropy = (f(emissions, LENGTHS).detach() for f in (crf.log_partition, crf.marginals, crf.entropy))
    for i, n in enumerate(LENGTHS):
        every = [(y, s.item()) for y, s in labellings(crf, emissions[i, :n])]
        values = torch.tensor([s for _, s in every], dtype=torch.float64)
        p = values.softmax(0)
        order = sorted(range(len(every)), key=lambda k: -every[k][1])
        assert best[i].tolist() == [*every[order[0]][0], *[-1] * (4 - n)]
        torch.testing.assert_close(score[i], values.max())
        torch.testing.assert_close(log_z[i], values.logsumexp(0))
        torch.testing.assert_close(entropy[i], -(p * p.log()).sum())
        for t in range(4):
            for c in range(3):
                share = sum((p[k] for k, (y, _) in enumerate(every) if t < n and y[t] == c), torch.tensor(0.0).double())
                torch.testing.assert_close(mu[i, t, c], share)
        for k in range(4):
            if k < len(every):
                assert ranked[i, k, :n].tolist() == list(every[order[k]][0])
                torch.testing.assert_close(log_p[i, k], p[order[k]].log())
            else:
                assert (ranked[i, k] == -1).all()
                assert log_p[i, k] == -torch.inf


def test_samples_have_the_probabilities_of_their_labellings():
    crf, (emissions, _) = layer("log", RULES), problem()
    drawn = crf.sample(emissions, 4000, LENGTHS, random_state=0)
    assert torch.equal(drawn, crf.sample(emissions, 4000, LENGTHS, random_state=0))
    every = labellings(crf, emissions[2, :3])
    p = torch.stack([s.detach() for _, s in every]).softmax(0)
    for (y, _), share in zip(every, p, strict=True):
        assert abs(float((drawn[2, :, :3] == torch.tensor(y)).all(1).double().mean()) - float(share)) < 0.03
    assert (drawn[2, :, 3] == -1).all()


def test_unknown_tags_mean_all_labellings_that_agree():
    crf, (emissions, tags) = layer("log", RULES), problem()
    partial = tags.clone()
    partial[0, 1:3], partial[2, 0] = -100, -100
    expected = []
    for i, n in enumerate(LENGTHS):
        every = labellings(crf, emissions[i, :n])
        known = [t for t in range(n) if partial[i, t] >= 0]
        agreeing = [s for y, s in every if all(y[t] == partial[i, t] for t in known)]
        expected.append(torch.stack([s for _, s in every]).logsumexp(0) - torch.stack(agreeing).logsumexp(0))
    listed = [[None if y == -100 else y for y in row[:n].tolist()] for row, n in zip(partial, LENGTHS, strict=True)]
    for given in (partial, listed):
        torch.testing.assert_close(crf(emissions, given, LENGTHS, reduction="none"), torch.stack(expected))
        crf.zero_grad()
        crf(emissions, given, LENGTHS, reduction="sum").backward()
        wanted = torch.autograd.grad(sum(expected), crf.transitions, retain_graph=True)[0]
        torch.testing.assert_close(crf.transitions.grad, wanted)
    assert crf(emissions, torch.full((3, 4), -100), LENGTHS).item() == 0.0
    with pytest.raises(ValueError, match="unknown"):
        layer("hinge")(emissions, partial, LENGTHS)
    with pytest.raises(ValueError, match="unknown"):
        layer("softmax-margin")(emissions, partial, LENGTHS)


def test_one_allowed_path_has_probability_1():
    only = Constraints.allowing(range(3), [(0, 1), (1, 2)], start=[0], end=[2])
    crf, emissions = layer("log", only), torch.randn(1, 3, 3, dtype=torch.float64)
    assert crf.decode(emissions).tolist() == [[0, 1, 2]]
    assert abs(crf(emissions, torch.tensor([[0, 1, 2]])).item()) < 1e-12
    assert crf.entropy(emissions).item() == pytest.approx(0.0, abs=1e-12)
    hybrid = layer(Hybrid(alpha=0.3), only)
    assert abs(hybrid(emissions, torch.tensor([[0, 1, 2]])).item()) < 1e-12
    with pytest.raises(ValueError, match="tags of sequence 0 are forbidden"):
        crf(emissions, torch.tensor([[0, 0, 2]]))
    with pytest.raises(ValueError, match="no labelling of sequence 0"):
        crf.decode(emissions[:, :2])


def test_batches_masks_packed_and_nested_sequences_are_the_same():
    crf, (emissions, tags) = layer(), problem()
    expected = crf(emissions, tags, LENGTHS)
    mask = torch.arange(4) < torch.tensor(LENGTHS)[:, None]
    torch.testing.assert_close(crf(emissions, tags, mask=mask), expected)
    parts = [emissions[i, :n] for i, n in enumerate(LENGTHS)]
    packed = torch.nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
    listed = [row[:n].tolist() for row, n in zip(tags, LENGTHS, strict=True)]
    torch.testing.assert_close(crf(packed, listed), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor(parts)
        numbers = torch.nested.nested_tensor([torch.tensor(row) for row in listed])
    torch.testing.assert_close(crf(nested, listed), expected)
    torch.testing.assert_close(crf(nested, numbers), expected)
    numbers = torch.nn.utils.rnn.pack_sequence([torch.tensor(row) for row in listed], enforce_sorted=False)
    torch.testing.assert_close(crf(packed, numbers), expected)
    poisoned = emissions.clone()
    poisoned[~mask] = torch.nan
    torch.testing.assert_close(crf(poisoned, tags, LENGTHS), expected)
    alone = [crf(emissions[i : i + 1, :n], tags[i : i + 1, :n]) for i, n in enumerate(LENGTHS)]
    torch.testing.assert_close(sum(alone) / 3, expected)
    strided = emissions.transpose(0, 1).contiguous().transpose(0, 1)
    torch.testing.assert_close(crf(strided, tags, LENGTHS), expected)


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_operations_of_torch_are_the_core(scale):
    """What devices without kernels use; with scores that underflow as probabilities, too."""
    torch.manual_seed(3)
    emissions = scale * torch.randn(3, 6, 4, dtype=torch.float64)
    shared = scale * torch.randn(4, 4, dtype=torch.float64), torch.randn(4).double(), torch.randn(4).double()
    shared[0][1, 2], shared[1][0] = -torch.inf, -torch.inf
    lengths, weights = torch.tensor([6, 1, 4]), torch.tensor([1.0, 0.5, -2.0], dtype=torch.float64)
    here, there = (m.marginals(emissions, shared, lengths, weights) for m in (core, by_operations))
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(a, b)
    for verb in ("log_partition", "entropy"):
        torch.testing.assert_close(*(getattr(m, verb)(emissions, shared, lengths) for m in (core, by_operations)))
    for k in (1, 3):
        (a, p), (b, q) = (m.k_best(emissions, shared, lengths, k) for m in (core, by_operations))
        assert torch.equal(a, b)
        torch.testing.assert_close(p, q)
    (a, p), (b, q) = (m.decode(emissions, shared, lengths) for m in (core, by_operations))
    assert torch.equal(a, b)
    tags = a.clamp(min=0)
    torch.testing.assert_close(*(m.score(emissions, shared, tags, lengths) for m in (core, by_operations)))
    for one, other in zip(*(m.counts(tags, lengths, weights, emissions) for m in (core, by_operations)), strict=True):
        torch.testing.assert_close(one, other)
    drawn = by_operations.sample(emissions, shared, lengths, 3, 0)
    assert torch.isfinite(by_operations.score(emissions, shared, drawn[:, 0].clamp(min=0), lengths)).all()


@pytest.mark.parametrize(("steps", "bound"), [(512, 1e-6), (100_000, 1e-6)])
def test_single_and_half_precision_stay_near_double(steps, bound):
    torch.manual_seed(0)
    emissions, tags = torch.randn(1, steps, 3), torch.randint(0, 3, (1, steps))
    values = {}
    for kind in (torch.float64, torch.float32, torch.bfloat16):
        crf = ChainCRF(3, dtype=torch.float64 if kind == torch.float64 else torch.float32)
        theta = emissions.to(kind).clone().requires_grad_()
        loss = crf(theta, tags)
        loss.backward()
        assert theta.grad.dtype == kind
        assert loss.dtype == crf.transitions.dtype
        values[kind] = loss.item(), theta.grad.double()
    exact, single, half = values.values()
    assert abs(single[0] - exact[0]) < bound * exact[0]
    assert (single[1] - exact[1]).abs().max() < bound
    assert abs(half[0] - exact[0]) < 1e-3 * exact[0]
    assert (half[1] - exact[1]).abs().max() < 0.02


def test_compiled_without_a_graph_break_and_in_autocast():
    crf, (emissions, tags) = layer("log", RULES), problem()
    lengths = torch.tensor(LENGTHS)
    compiled = torch.compile(crf, fullgraph=True, backend="aot_eager")
    crf(emissions, tags, lengths).backward()
    expected = crf.transitions.grad.clone()
    crf.zero_grad()
    found = compiled(emissions, tags, lengths)
    found.backward()
    torch.testing.assert_close(crf.transitions.grad, expected)
    decode = torch.compile(crf.decode, fullgraph=True, backend="aot_eager")
    assert torch.equal(decode(emissions, lengths), crf.decode(emissions, lengths))
    network = torch.nn.Sequential(torch.nn.Linear(5, 3))
    small = ChainCRF(3)
    with torch.autocast("cpu", torch.bfloat16):
        theta = network(torch.randn(3, 4, 5))
        loss = small(theta, tags, LENGTHS)
    assert theta.dtype == torch.bfloat16
    assert loss.dtype == torch.float32
    loss.backward()
    assert small.transitions.grad.abs().sum() > 0


@pytest.mark.parametrize("make", [ChainCRF, lambda labels, **options: SemiMarkovCRF(labels, 2, **options)])
def test_every_verb_and_loss_is_compiled_without_a_graph_break(make):
    """By the tracer alone, which is where graphs break; the test above goes through autograd, too."""
    emissions, y, lengths = problem()[0].float(), torch.tensor([[2, 0, 2, 1], [2, 0, 0, 0], [0, 2, 1, 0]]), (4, 1, 3)
    lengths = torch.tensor(lengths)
    calls = [(make(3, loss=loss, reduction="none"), (emissions, y, lengths)) for loss in LOSSES]
    crf = make(3)
    for name, more in (("decode", ()), ("best_score", ()), ("marginals", ()), ("entropy", ()), ("log_partition", ())):
        calls.append((getattr(crf, name), (emissions, lengths, *more)))
    calls += [
        (crf.k_best, (emissions, 2, lengths)),
        (crf.sample, (emissions, 2, lengths, None, 0)),
        (crf.score, (emissions, y, lengths)),
    ]
    for call, given in calls:
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(call, fullgraph=True, backend="eager")(*given), call(*given))
    with pytest.raises(Exception, match="integer random_state"):
        torch.compile(crf.sample, fullgraph=True, backend="eager")(emissions, 2, lengths)


def test_the_operators_pass_the_checks_of_torch():
    crf, (emissions, tags) = layer(), problem()
    lengths, weights = torch.tensor(LENGTHS), torch.ones(3, dtype=torch.float64)
    given = [emissions.requires_grad_(), *(p.detach().requires_grad_() for p in crf.parameters())]
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(CHAIN.log_partition, (*given, lengths, None, True), test_utils=tests)
    torch.library.opcheck(CHAIN.log_partition, (*given, lengths, tags, True), test_utils=tests)
    torch.library.opcheck(CHAIN.log_loss, (*given, lengths, tags, weights, True, True, True), test_utils=tests)
    torch.library.opcheck(CHAIN.score, (*given, lengths, tags, True), test_utils=tests)
    values = [x.detach() for x in given]
    for operator, more in ((CHAIN.decode, (True,)), (CHAIN.k_best, (2,)), (CHAIN.sample, (2, 0, True))):
        torch.library.opcheck(operator, (*values, lengths, *more), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_second_derivatives_are_refused_by_name(loss, checkpoint):
    crf, (emissions, tags) = layer(loss, checkpoint=checkpoint), problem()
    given = emissions.requires_grad_()
    for value in (crf(given, tags, LENGTHS), crf.log_partition(given, LENGTHS).sum()):
        (slope,) = torch.autograd.grad(value, given, create_graph=True)
        with pytest.raises(NotImplementedError, match="second derivatives"):
            (slope * slope).sum().backward()
    for verb in (crf.marginals, crf.entropy):
        with pytest.raises(NotImplementedError, match="second derivatives"):
            verb(given, LENGTHS).sum().backward()


def test_onnx_is_refused_with_a_reason(monkeypatch):
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    monkeypatch.setattr(torch.jit, "is_tracing", lambda: True)
    with pytest.raises(NotImplementedError, match="export the network up to its emissions"):
        layer().decode(problem()[0])


def test_saved_copied_and_pickled_layers_are_the_same(tmp_path):
    crf, (emissions, tags) = layer("log", RULES), problem()
    torch.save(crf.state_dict(), tmp_path / "crf.pt")
    other = ChainCRF(3, constraints=RULES, dtype=torch.float64)
    other.load_state_dict(torch.load(tmp_path / "crf.pt", weights_only=True))
    for made in (other, copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        torch.testing.assert_close(made(emissions, tags, LENGTHS), crf(emissions, tags, LENGTHS))
    assert "constraints" in repr(crf)
    assert set(crf.state_dict()) == {"transitions", "start", "end"}


def test_names_of_labels_order_the_constraints():
    labels = ["O", "B-X", "I-X"]
    for crf in (
        ChainCRF(labels, constraints=Constraints.bio(labels)),
        ChainCRF(3, constraints=Constraints.bio(labels)),
    ):
        emissions = torch.tensor([[[0.0, 1.0, 9.0], [0.0, 1.0, 9.0]]])
        assert crf.decode(emissions).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="name 'B-X'"):
        ChainCRF(3, constraints=Constraints([("B-X", "O")]))


def test_moved_users_of_pytorch_crf_get_its_numbers():
    """log-likelihood with its four reductions, lists of tags, time first, its names in the state."""
    torch.manual_seed(0)
    crf, (emissions, tags) = CRF(3, batch_first=True).double(), problem()
    same = layer()
    same.load_state_dict({"transitions": crf.transitions, "start": crf.start_transitions, "end": crf.end_transitions})
    mask = torch.arange(4) < torch.tensor(LENGTHS)[:, None]
    for reduction in ("sum", "mean", "token_mean", "none"):
        expected = -same(emissions, tags, LENGTHS, reduction=reduction)
        torch.testing.assert_close(crf(emissions, tags, mask, reduction=reduction), expected)
    assert crf.decode(emissions, mask) == [
        row[:n] for row, n in zip(same.decode(emissions, LENGTHS).tolist(), LENGTHS, strict=True)
    ]
    turned = CRF(3).double()
    turned.load_state_dict(crf.state_dict())
    found = turned(emissions.transpose(0, 1), tags.T, mask.T)
    torch.testing.assert_close(found, crf(emissions, tags, mask))
    assert set(crf.state_dict()) == {"transitions", "start_transitions", "end_transitions"}
    assert turned.decode(emissions.transpose(0, 1), mask.T.byte()) == crf.decode(emissions, mask)


def test_the_layer_trains_the_model_that_the_tagger_trains():
    """½‖w‖² + Σ log loss: L-BFGS of torch and ours reach one objective; and there and back."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(n, 4)) for n in (5, 3, 6, 4, 5)]
    y = [["abc"[int(c)] for c in np.abs(x[:, 0] * 2).clip(0, 2)] for x in X]
    tagger = Tagger(C=1.0, tol=1e-9).fit(X, y)
    crf, linear = (
        ChainCRF(3, reduction="sum", dtype=torch.float64),
        torch.nn.Linear(4, 3, bias=False, dtype=torch.float64),
    )
    torch.nn.init.zeros_(linear.weight)
    padded = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(x) for x in X], batch_first=True)
    tags, lengths = [["abc".index(c) for c in row] for row in y], [len(x) for x in X]
    weights = [*linear.parameters(), *crf.parameters()]
    optimizer = torch.optim.LBFGS(weights, max_iter=300, line_search_fn="strong_wolfe", tolerance_change=1e-14)

    def objective():
        optimizer.zero_grad()
        value = crf(linear(padded), tags, lengths) + 0.5 * sum((w**2).sum() for w in weights)
        value.backward()
        return value

    optimizer.step(objective)
    assert objective().item() == pytest.approx(tagger.history_["objective"][-1], rel=1e-6)
    back = crf.to_tagger(tagger, linear)
    np.testing.assert_allclose(back.coef_, tagger.coef_, atol=1e-3)
    other, again = ChainCRF.from_tagger(tagger, dtype=torch.float64), ChainCRF.emissions_of(tagger, torch.float64)
    labels = other.decode(again(padded), lengths)
    assert [
        [other.labels[c] for c in row[:n]] for row, n in zip(labels.tolist(), lengths, strict=True)
    ] == tagger.predict(X)
    loss = other(again(padded), tags, lengths, reduction="none").detach().numpy()
    np.testing.assert_allclose(-loss, tagger.log_likelihood(X, y), rtol=1e-8)
    with pytest.raises(ValueError, match="not fitted"):
        ChainCRF.from_tagger(Tagger())
    with pytest.raises(ValueError, match="bias"):
        crf.to_tagger(tagger, torch.nn.Linear(4, 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_labels": 0}, "n_labels"),
        ({"loss": "circle"}, "StructuredLoss"),
        ({"reduction": "median"}, "reduction"),
        ({"dtype": torch.float16}, "dtype"),
        ({"loss": "hinge", "cost": "zero-one"}, "sum over positions"),
        ({"loss": Hybrid(margin="cost")}, "margin"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ChainCRF(**{"n_labels": 3, **arguments})


def test_bad_inputs_are_named():
    crf, (emissions, tags) = layer(), problem()
    broken = emissions.clone()
    broken[2, 1, 0] = torch.nan
    holes = torch.tensor([[True, False, True, True]] * 3)
    empty = torch.tensor([[True] * 4, [False] * 4, [True] * 4])
    wrong = tags.clone()
    wrong[1, 0] = 7
    for call, message in (
        (lambda: crf(emissions[0], tags), "batch, time, 3"),
        (lambda: crf(emissions.long(), tags), "floating-point"),
        (lambda: crf(emissions, tags, [4, 0, 3]), "length of sequence 1 is 0"),
        (lambda: crf(emissions, tags, [4, 5, 3]), "length of sequence 1 is 5"),
        (lambda: crf(emissions, tags, [4, 1]), "one number per sequence"),
        (lambda: crf(emissions, tags, torch.tensor([4.0, 1.0, 3.0])), "integers"),
        (lambda: crf(emissions, tags, LENGTHS, holes), "not both"),
        (lambda: crf(emissions, tags, mask=holes), "mask of sequence 0 has a hole"),
        (lambda: crf(emissions, tags, mask=empty), "mask of sequence 1 is empty"),
        (lambda: crf(broken, tags, LENGTHS), "emissions of sequence 2 are NaN"),
        *(
            (lambda ask=ask: ask(broken, lengths=LENGTHS), "emissions of sequence 2 are NaN")
            for ask in (crf.decode, crf.marginals, crf.entropy, crf.log_partition, crf.sample)
        ),
        (lambda: crf.k_best(broken, 2, LENGTHS), "emissions of sequence 2 are NaN"),
        (lambda: crf(emissions, wrong, LENGTHS), "tag 7 of sequence 1 at position 0"),
        (lambda: crf(emissions, tags.double(), LENGTHS), "integers"),
        (lambda: crf(emissions, tags[:2], LENGTHS), "batch, time"),
        (lambda: crf(emissions, tags[:, :2]), "batch, time"),
        (lambda: crf(emissions.to("meta"), tags, LENGTHS), "meta"),
        (lambda: crf(emissions[:, :0], tags[:, :0]), "no position"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="emissions"):
        crf([[1.0]], tags)
    torch.nn.init.constant_(crf.transitions, torch.nan)
    with pytest.raises(ValueError, match="transitions"):
        crf(emissions, tags, LENGTHS)
