"""Layers among several devices and processes: the gradient of two halves is that of the whole batch."""

from __future__ import annotations

import multiprocessing
import os

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install mercer[torch])")

from mercer.nn import ChainCRF, SemiMarkovCRF  # noqa: E402


class Model(torch.nn.Module):
    """A linear layer and a field on top of it, whose forward pass is the loss."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 3)
        self.crf = ChainCRF(3) if kind == "chain" else SemiMarkovCRF(3, 2)
        for parameter in self.crf.parameters():
            torch.nn.init.normal_(parameter)

    def forward(self, x, y, lengths):
        return self.crf(self.linear(x), y, lengths)


def problem():
    random = torch.Generator().manual_seed(1)
    x, y = torch.randn(4, 5, 4, generator=random), torch.randint(0, 3, (4, 5), generator=random)
    return x, y, torch.tensor([5, 1, 3, 4])


def gradients(model, rows):
    model(*(part[rows] for part in problem())).mean().backward()
    return [p.grad.clone() for p in model.parameters()]


def one_of_two(rank, kind, path, found):
    """A process of two, with half of the batch."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # no network is needed
    distributed = torch.distributed
    distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(Model(kind))
    found.put((rank, [g.tolist() for g in gradients(model, slice(2 * rank, 2 * rank + 2))]))
    distributed.barrier()
    distributed.destroy_process_group()
    found.close()
    found.join_thread()
    os._exit(0)  # what was forked holds locks of autograd's threads, which are waited for at a usual end


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without its distributed package")
@pytest.mark.skipif(torch.cuda.is_available(), reason="processes are forked, which autograd's threads of a GPU prevent")
@pytest.mark.parametrize("kind", ["chain", "segments"])
def test_two_processes_have_the_gradient_of_the_whole_batch(kind, tmp_path):
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    processes = [
        context.Process(target=one_of_two, args=(rank, kind, tmp_path / "store", found), daemon=True) for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    answers = dict(found.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(20)
    assert answers[0] == answers[1]
    for found_one, expected in zip(answers[0], gradients(Model(kind), slice(None)), strict=True):
        torch.testing.assert_close(torch.tensor(found_one), expected)


@pytest.mark.parametrize("kind", ["chain", "segments"])
def test_data_parallel_takes_the_layer(kind):
    """Without a GPU it is the module itself; with GPUs, copies of it on all of them."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model(kind).to(device)
    wrapped = torch.nn.DataParallel(model)
    given = [part.to(device) for part in problem()]
    loss = wrapped(*given).mean()
    loss.backward()
    whole = Model(kind).to(device)
    if torch.cuda.device_count() < 2:
        torch.testing.assert_close(loss, whole(*given))
    for found, expected in zip(model.parameters(), gradients(Model(kind), slice(None)), strict=True):
        torch.testing.assert_close(found.grad.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_replicas_of_a_layer_share_nothing_that_is_written():
    """What DataParallel does on several GPUs, on one: shallow copies with parameters as plain tensors, in threads."""
    import copy
    from concurrent.futures import ThreadPoolExecutor

    crf = ChainCRF(3)
    copies = [copy.copy(crf) for _ in range(2)]
    random = torch.Generator().manual_seed(1)
    theta, y = torch.randn(4, 5, 3, generator=random), torch.randint(0, 3, (4, 5), generator=random)
    with ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(lambda k: copies[k](theta[2 * k : 2 * k + 2], y[2 * k : 2 * k + 2]), range(2)))
    torch.testing.assert_close(sum(halves) / 2, crf(theta, y))
