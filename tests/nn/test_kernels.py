"""The kernels of the layers: on the CPU letter for letter, threads as coroutines; on a GPU where there is one."""

from __future__ import annotations

import shutil

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install mercer[torch])")

from mercer._nvrtc import KernelError  # noqa: E402
from mercer.nn import ChainCRF, SemiMarkovCRF  # noqa: E402
from mercer.nn import _chain_cuda as chains  # noqa: E402
from mercer.nn import _chain_torch as by_operations  # noqa: E402
from mercer.nn import _operators as operators  # noqa: E402
from mercer.nn import _segment_core as segment_core  # noqa: E402
from mercer.nn import _segment_cuda as segments  # noqa: E402
from mercer.nn._chain_ops import CHAIN  # noqa: E402
from reference.gpu_threads import run_kernel  # noqa: E402

needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler c++ to run kernels with")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture
def on_coroutines(monkeypatch):
    """Kernels run on the CPU, whose tensors they are given."""
    for module in (chains, segments):

        class Emulated:
            names = module._NAMES

            def __init__(self, text, name, device, shared_bytes=0):
                self.text, self.name = text, name

            def start(self, blocks, threads, arguments, stream=None):
                names = ("ranks",) if self.name == "ranks" else self.names
                run_kernel(self.text, names, self.name, blocks[0], threads, arguments)

        monkeypatch.setattr(module, "Kernel", Emulated)
        monkeypatch.setattr(module, "available", lambda: True)
        forget(module)
    yield
    for module in (chains, segments):
        forget(module)


def forget(module):
    module._kernels.cache_clear()
    module._ranks.cache_clear()


def chain_problem(labels, time, kind, scale):
    torch.manual_seed(labels)
    real = torch.float64 if kind == torch.float64 else torch.float32
    emissions = (scale * torch.randn(3, time, labels)).to(kind)
    shared = scale * torch.randn(labels, labels).to(real), torch.randn(labels).to(real), torch.randn(labels).to(real)
    shared[0][0, 1], shared[1][0], shared[2][1] = -torch.inf, -torch.inf, -torch.inf
    tags = torch.randint(2, labels, (3, time))
    return (
        emissions,
        shared,
        torch.tensor([time, 1, time - 1]),
        tags,
        torch.tensor([1.0, 0.3, 2.5], dtype=torch.float64),
    )


@needs_compiler
@pytest.mark.usefixtures("on_coroutines")
@pytest.mark.parametrize(
    ("labels", "time", "kind", "scale"),
    [
        (3, 20, torch.float32, 1.0),
        (5, 9, torch.float64, 1.0),
        (33, 5, torch.bfloat16, 1.0),
        (4, 30, torch.float16, 40.0),  # as probabilities these underflow: the log domain
        (140, 3, torch.float32, 1.0),  # columns that do not fit into registers
    ],
)
def test_kernels_of_chains_are_the_definitions(labels, time, kind, scale):
    emissions, shared, lengths, tags, weights = chain_problem(labels, time, kind, scale)
    exact = emissions.double(), tuple(x.double() for x in shared)
    close = 1e-10 if kind == torch.float64 else 3e-6
    log_z, *parts = chains.marginals(emissions, shared, lengths, weights)
    expected, *others = by_operations.marginals(*exact, lengths, weights)
    torch.testing.assert_close(log_z, expected, rtol=1e-6, atol=close)
    for part, other in zip(parts, others, strict=True):
        torch.testing.assert_close(part.double(), other, rtol=0, atol=10 * close)
    value, gradients, flat = chains.log_loss(emissions, shared, tags, lengths, weights, True, True, True)
    assert (flat is None) == (emissions.dtype != shared[0].dtype)
    if flat is not None:
        gradients = operators._split(flat, [x.shape for x in (emissions, *shared)])
    wanted, slopes, _ = operators.log_loss_by_verbs(
        CHAIN, by_operations, *exact, tags, lengths, weights, True, True, True
    )
    torch.testing.assert_close(value.double(), wanted, rtol=1e-5, atol=10 * close)
    halved, _, _ = chains.log_loss(emissions, shared, tags, lengths, 0.5, False, True, True)
    torch.testing.assert_close(
        halved.double(), 0.5 * (expected - by_operations.score(*exact, tags, lengths)).sum(), rtol=1e-5, atol=10 * close
    )
    for k, (part, other) in enumerate(zip(gradients, slopes, strict=True)):
        rough = 0.02 if k == 0 and kind in (torch.bfloat16, torch.float16) else 10 * close
        torch.testing.assert_close(part.double(), other, rtol=0, atol=rough)
    labels_found, score = chains.decode(emissions, shared, lengths)
    best, best_score = by_operations.decode(*exact, lengths)
    assert torch.equal(labels_found, best)
    torch.testing.assert_close(score, best_score, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(chains.log_partition(emissions, shared, lengths), expected, rtol=1e-6, atol=close)
    torch.testing.assert_close(
        chains.score(emissions, shared, tags, lengths), by_operations.score(*exact, tags, lengths)
    )
    torch.testing.assert_close(
        chains.entropy(emissions, shared, lengths), by_operations.entropy(*exact, lengths), rtol=1e-5, atol=30 * close
    )
    k = 3 if labels > 5 else 10
    (ranked, scores), (others, wanted) = (
        chains.k_best(emissions, shared, lengths, k),
        by_operations.k_best(*exact, lengths, k),
    )
    torch.testing.assert_close(scores, wanted, rtol=1e-12, atol=1e-10)
    assert torch.equal(ranked, others)


@needs_compiler
@pytest.mark.usefixtures("on_coroutines")
@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_drawn_labellings_are_possible_ones(scale):
    """In the log domain, too; their shares are tested on a GPU, where draws cost nothing."""
    emissions, shared, lengths, _, _ = chain_problem(3, 5, torch.float32, scale)
    drawn = chains.sample(emissions, shared, lengths, 12, 7)
    assert torch.equal(drawn[:1], chains.sample(emissions[:1], shared, lengths[:1], 12, 7))
    assert torch.isfinite(by_operations.score(emissions, shared, drawn[:, 0].clamp(min=0), lengths)).all()
    _, mu, _, _, _ = by_operations.marginals(emissions, shared, lengths, torch.ones(3))
    for i, n in enumerate(lengths.tolist()):
        share = torch.stack([(drawn[i, :, :n] == c).double().mean(0) for c in range(3)], 1)
        assert (share - mu[i, :n]).abs().max() < 0.45
        assert (drawn[i, :, n:] == -1).all()


@needs_compiler
@pytest.mark.usefixtures("on_coroutines")
def test_kernels_of_chains_notice_what_is_wrong():
    emissions, shared, lengths, tags, weights = chain_problem(4, 6, torch.float32, 1.0)
    arguments = shared, tags, lengths, weights, True, True, True
    broken = emissions.clone()
    broken[2, 3, 1] = torch.nan
    with pytest.raises(ValueError, match="sequence 2"):
        chains.log_loss(broken, *arguments)
    wrong = tags.clone()
    wrong[0, 1] = 9
    with pytest.raises(ValueError, match="tag of sequence 0"):
        chains.log_loss(emissions, shared, wrong, *arguments[2:])
    forbidden = tags.clone()
    forbidden[1, 0] = 0
    with pytest.raises(ValueError, match="sequence 1 are forbidden"):
        chains.log_loss(emissions, shared, forbidden, *arguments[2:])
    with pytest.raises(ValueError, match="unknown"):
        chains.log_loss(emissions, shared, torch.full_like(tags, -100), lengths, weights, True, False, True)
    for found in (
        chains.log_partition(broken, shared, lengths),
        chains.marginals(broken, shared, lengths, weights)[0],
        chains.decode(broken, shared, lengths)[1],
        chains.entropy(broken, shared, lengths),
    ):
        assert torch.isnan(found).tolist() == [False, False, True]


@needs_compiler
@pytest.mark.usefixtures("on_coroutines")
@pytest.mark.parametrize(
    ("labels", "longest", "time", "kind"),
    [(3, 4, 11, torch.float32), (2, 2100, 6, torch.float64), (33, 2, 3, torch.bfloat16)],
)
def test_kernels_of_segments_are_the_definitions(labels, longest, time, kind):
    torch.manual_seed(labels)
    real = torch.float64 if kind == torch.float64 else torch.float32
    emissions = torch.randn(2, time, labels).to(kind)
    shapes = (longest, labels), (labels, labels), (labels,), (labels,)
    shared = tuple(torch.randn(shape, dtype=real) for shape in shapes)
    if labels == 3:
        emissions[0, 4, 1], shared[1][0, 1], shared[0][2, 2] = -torch.inf, -torch.inf, -torch.inf
    lengths, weights = torch.tensor([time, time // 2]), torch.tensor([1.0, 0.3], dtype=torch.float64)
    found, expected = (m.marginals(emissions, shared, lengths, weights) for m in (segments, segment_core))
    for part, other in zip(found, expected, strict=True):
        torch.testing.assert_close(part.double(), other, rtol=1e-6, atol=1e-10 if kind == torch.float64 else 1e-5)
    torch.testing.assert_close(*(m.log_partition(emissions, shared, lengths) for m in (segments, segment_core)))
    (tags, score), (best, best_score) = (m.decode(emissions, shared, lengths) for m in (segments, segment_core))
    assert torch.equal(tags, best)
    torch.testing.assert_close(score, best_score)
    torch.testing.assert_close(segments.score(emissions, shared, tags, lengths), best_score)
    torch.testing.assert_close(
        *(m.entropy(emissions, shared, lengths) for m in (segments, segment_core)), atol=1e-4, rtol=0
    )
    k = 4 if labels == 3 else 2
    (ranked, scores), (others, wanted) = (m.k_best(emissions, shared, lengths, k) for m in (segments, segment_core))
    torch.testing.assert_close(scores, wanted)
    assert torch.equal(ranked, others)
    known = tags.clone()
    known[0, 1:3], known[1, 0] = -100, -2
    found, expected = (m.marginals(emissions, shared, lengths, weights, known) for m in (segments, segment_core))
    for part, other in zip(found, expected, strict=True):
        torch.testing.assert_close(part.double(), other, rtol=1e-6, atol=1e-10 if kind == torch.float64 else 1e-5)


@needs_compiler
@pytest.mark.usefixtures("on_coroutines")
def test_drawn_segmentations_are_possible_ones():
    torch.manual_seed(1)
    emissions, shapes = torch.randn(2, 6, 2), ((3, 2), (2, 2), (2,), (2,))
    shared = tuple(0.3 * torch.randn(shape) for shape in shapes)
    emissions[0, 2, 1] = -torch.inf
    lengths = torch.tensor([6, 4])
    drawn = segments.sample(emissions, shared, lengths, 12, 3)
    for k in range(12):
        assert torch.isfinite(segments.score(emissions, shared, drawn[:, k], lengths)).all()
    assert len({tuple(row) for row in drawn[0].tolist()}) > 3
    assert (drawn[1, :, 4:] == -1).all()


def test_without_kernels_operations_of_torch_are_used_and_that_is_said_once(monkeypatch):
    monkeypatch.setattr(operators, "_said", [])

    def none(layout, device):
        raise KernelError("NVRTC failed")

    monkeypatch.setattr(chains, "_kernels", none)
    monkeypatch.setattr(segments, "available", lambda: False)
    emissions, shared, lengths, tags, weights = chain_problem(4, 6, torch.float32, 1.0)
    with pytest.warns(RuntimeWarning, match="slow torch operations"):
        found = chains.log_partition(emissions, shared, lengths)
    torch.testing.assert_close(found, by_operations.log_partition(emissions, shared, lengths))
    value, _, _ = chains.log_loss(emissions, shared, tags, lengths, weights, True, True, True)  # not said again
    assert torch.isfinite(value)
    with pytest.warns(RuntimeWarning, match="CPU"):
        found = segments.log_partition(emissions, (shared[0][:3], *shared), lengths)
    torch.testing.assert_close(found, segment_core.log_partition(emissions, (shared[0][:3], *shared), lengths))


@needs_gpu
@pytest.mark.parametrize("labels", [2, 31, 32, 50, 128, 129, 300])
def test_layers_on_a_gpu_are_those_of_the_processor(labels):
    torch.manual_seed(labels)
    crf = ChainCRF(labels)
    torch.nn.init.normal_(crf.transitions)
    emissions, tags = torch.randn(5, 40, labels), torch.randint(0, labels, (5, 40))
    lengths = torch.tensor([40, 1, 7, 39, 40])
    found = []
    for device in ("cpu", "cuda", "cuda"):
        there = ChainCRF(labels).to(device)
        there.load_state_dict(crf.state_dict())
        theta = emissions.detach().clone().to(device).requires_grad_()
        loss = there(theta, tags.to(device), lengths)
        loss.backward()
        parts = (
            loss.detach(),
            theta.grad,
            *(p.grad for p in there.parameters()),
            there.marginals(theta.detach(), lengths),
        )
        found.append([*(x.cpu() for x in parts), there.decode(theta.detach(), lengths).cpu()])
    for here, there, again in zip(*found, strict=True):
        torch.testing.assert_close(here, there, rtol=1e-4, atol=1e-6)
        assert torch.equal(there, again)


@needs_gpu
@pytest.mark.parametrize(("labels", "scale"), [(3, 1.0), (12, 30.0), (70, 1.0), (200, 1.0)])
def test_ranked_entropy_and_drawn_on_a_gpu_are_those_of_the_processor(labels, scale):
    torch.manual_seed(labels)
    crf = ChainCRF(labels)
    torch.nn.init.normal_(crf.transitions)
    emissions, lengths = scale * torch.randn(4, 30, labels), torch.tensor([30, 1, 7, 29])
    there = ChainCRF(labels).cuda()
    there.load_state_dict(crf.state_dict())
    torch.testing.assert_close(
        there.entropy(emissions.cuda(), lengths).cpu(), crf.entropy(emissions, lengths), rtol=1e-4, atol=1e-4
    )
    for k in (1, 5, 40):
        (ranked, scores), (found, values) = (
            crf.k_best(emissions, k, lengths),
            there.k_best(emissions.cuda(), k, lengths),
        )
        torch.testing.assert_close(values.cpu(), scores, rtol=1e-5, atol=1e-4)
        assert (found.cpu() == ranked).double().mean() > 0.98  # scores that are equal as float32 may change places
    drawn = there.sample(emissions.cuda(), 20_000, lengths, random_state=0)
    assert torch.equal(drawn, there.sample(emissions.cuda(), 20_000, lengths, random_state=0))
    mu = there.marginals(emissions.cuda(), lengths)
    for i, n in enumerate(lengths.tolist()):
        share = torch.stack([(drawn[i, :, :n] == c).double().mean(0) for c in range(labels)], 1)
        assert (share - mu[i, :n]).abs().max() < 0.02
        assert (drawn[i, :, n:] == -1).all()
    pairs = (drawn[0, :, :-1] == 0) & (drawn[0, :, 1:] == 1)
    theta = emissions.clone().requires_grad_()
    crf(theta[:1], torch.zeros(1, 30, dtype=torch.int64), [30], reduction="sum").backward()
    assert abs(float(pairs.double().mean(0).sum()) - float(crf.transitions.grad[0, 1])) < 0.05


@needs_gpu
def test_segments_of_all_verbs_on_a_gpu_are_those_of_the_processor():
    torch.manual_seed(3)
    crf = SemiMarkovCRF(4, 6)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    emissions, lengths = torch.randn(3, 40, 4), torch.tensor([40, 1, 17])
    emissions[0, 5, 2] = -torch.inf
    there = SemiMarkovCRF(4, 6).cuda()
    there.load_state_dict(crf.state_dict())
    torch.testing.assert_close(
        there.entropy(emissions.cuda(), lengths).cpu(), crf.entropy(emissions, lengths), rtol=1e-4, atol=1e-4
    )
    for k in (1, 4, 60):
        (ranked, scores), (found, values) = (
            crf.k_best(emissions, k, lengths),
            there.k_best(emissions.cuda(), k, lengths),
        )
        torch.testing.assert_close(values.cpu(), scores, rtol=1e-5, atol=1e-4)
        assert (found.cpu() == ranked).double().mean() > 0.98
    drawn = there.sample(emissions.cuda(), 20_000, lengths, random_state=0)
    frames = drawn.clone()
    for t in range(1, 40):
        frames[:, :, t] = torch.where(drawn[:, :, t] >= 0, drawn[:, :, t], frames[:, :, t - 1])
    mu = crf.marginals(emissions, lengths)
    for i, n in enumerate(lengths.tolist()):
        share = torch.stack([(frames[i, :, :n] == c).double().mean(0) for c in range(4)], 1).cpu()
        assert (share - mu[i, :n]).abs().max() < 0.02
    partial = crf.decode(emissions, lengths)
    partial[0, 3:9], partial[2, 0] = -100, -2
    values = []
    for layer, device in ((crf, "cpu"), (there, "cuda")):
        theta = emissions.detach().clone().to(device).requires_grad_()
        loss = layer(theta, partial.to(device), lengths)
        loss.backward()
        values.append([loss.detach().cpu(), theta.grad.cpu(), *(p.grad.cpu() for p in layer.parameters())])
    for here, other in zip(*values, strict=True):
        torch.testing.assert_close(here, other, rtol=1e-4, atol=1e-5)


@needs_gpu
def test_unknown_tags_and_compiled_layers_on_a_gpu():
    torch.manual_seed(0)
    crf = ChainCRF(5)
    torch.nn.init.normal_(crf.transitions)
    emissions, tags = torch.randn(3, 12, 5), torch.randint(0, 5, (3, 12))
    tags[0, 2:5], tags[2, 0] = -100, -100
    there = ChainCRF(5).cuda()
    there.load_state_dict(crf.state_dict())
    torch.testing.assert_close(there(emissions.cuda(), tags.cuda()).cpu(), crf(emissions, tags), rtol=1e-5, atol=1e-5)
    compiled = torch.compile(there, fullgraph=True)
    torch.testing.assert_close(
        compiled(emissions.cuda(), tags.cuda()).cpu(), crf(emissions, tags), rtol=1e-5, atol=1e-5
    )


@needs_gpu
def test_segments_on_a_gpu_are_those_of_the_processor():
    torch.manual_seed(0)
    crf = SemiMarkovCRF(5, 9)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    emissions, lengths = torch.randn(3, 60, 5), torch.tensor([60, 1, 33])
    tags = crf.sample(emissions, 1, lengths, random_state=0)[:, 0]
    found = []
    for device in ("cpu", "cuda"):
        there = SemiMarkovCRF(5, 9).to(device)
        there.load_state_dict(crf.state_dict())
        theta = emissions.detach().clone().to(device).requires_grad_()
        loss = there(theta, tags.to(device), lengths)
        loss.backward()
        found.append(
            [loss.detach(), theta.grad, *(p.grad for p in there.parameters()), there.decode(theta.detach(), lengths)]
        )
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(here, there.cpu(), rtol=1e-4, atol=1e-5)


@needs_gpu
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("make", [lambda: ChainCRF(4), lambda: SemiMarkovCRF(4, 3)])
def test_every_verb_names_a_broken_sequence_on_a_gpu(make, value):
    crf = make().cuda()
    emissions, lengths = torch.randn(3, 9, 4, device="cuda"), torch.tensor([9, 4, 7])
    emissions[1, 5, 0] = torch.nan  # past the end of its sequence
    crf.entropy(emissions, lengths)
    emissions[2, 3, 1] = value
    for ask in (
        lambda: crf(emissions, torch.zeros(3, 9, dtype=torch.int64, device="cuda"), lengths),
        lambda: crf.decode(emissions, lengths),
        lambda: crf.marginals(emissions, lengths),
        lambda: crf.entropy(emissions, lengths),
        lambda: crf.log_partition(emissions, lengths),
        lambda: crf.k_best(emissions, 2, lengths),
        lambda: crf.sample(emissions, 2, lengths, random_state=0),
    ):
        with pytest.raises(ValueError, match="sequence 2 are NaN"):
            ask()
