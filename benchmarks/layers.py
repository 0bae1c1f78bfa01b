"""CRF layers for PyTorch beside pytorch-crf, torch-struct and flash-semicrf, on a GPU or on one thread of the CPU.

    python benchmarks/layers.py [--parts check chain segments long verbs cpu conll tutorial] [--repeats 30]

check     largest errors of loss and gradients in float32 and bfloat16 against float64, 512 and 100,000 positions (GPU)
chain     training steps (loss and gradients) and decoding of 64 × 512 positions, 10, 50 and 128 labels; memory (GPU)
segments  training steps of semi-Markov layers, 8 × 4,096 positions, 32 lengths, 24 labels (GPU)
long      the same with 2 × 50,000 positions, 100 lengths, 12 labels: flash-semicrf takes most of a minute (GPU)
cpu       steps of 64 × 512 positions with 50 labels on one thread; semi-Markov steps
conll     chunks of CoNLL-2000 on one thread: `NeuralTagger` with its defaults beside `Tagger`; nothing is held out
tutorial  the same by the code of docs/tutorials/networks.md
verbs     k best, samples and entropy of chains and segments on a GPU, beside the operations of torch and the core (GPU)

Times are medians of wall-clock seconds that wait for the device, for cpu and conll of seconds of the processor; peers
and ours take turns. Parts for a GPU are left out where there is none, parts for the CPU where the compiled core is
missing. Needs PyTorch, without which the script only says so.
"""

from __future__ import annotations

import argparse
import gc
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from _timing import SMOKE, from_data, parse, peer, record, required, sized

torch = required("torch")
try:
    import mercer._core  # noqa: F401
except ImportError:  # the kernels of a GPU do not need it
    sys.modules["mercer._core"] = MagicMock()
HAS_CORE = not isinstance(sys.modules["mercer._core"], MagicMock)

from mercer.nn import ChainCRF, SemiMarkovCRF  # noqa: E402
from mercer.nn import _chain_torch as by_operations  # noqa: E402

GPU = torch.cuda.is_available()


BLOCK = 10  # calls in a row: a training loop does not change its layers from step to step


def wait() -> None:
    if GPU:
        torch.cuda.synchronize()


def medians(
    repeats: int, calls: dict[str, Callable[[], Any]], slow: int = 3, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds, blocks of each call in turn; what takes more than 0.1 seconds is done ``slow`` times."""
    first: dict[str, float] = {}
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in calls.items():  # warm up: compilers, memory
        call()
        wait()
        start = clock()
        call()
        wait()
        first[name] = clock() - start
        if first[name] > 10:  # seconds: once will do
            taken[name].append(first[name])
    gc.collect()
    gc.disable()
    for done in range(0, repeats, BLOCK):
        for name, call in calls.items():
            most = 0 if first[name] > 10 else slow if first[name] > 0.1 else repeats
            for _ in range(min(BLOCK, most - done, repeats - done)):
                wait()
                start = clock()
                call()
                wait()
                taken[name].append(clock() - start)
    gc.enable()
    return {name: statistics.median(times) for name, times in taken.items()}


def shown(table: str, measure: str, ours: str, found: dict[str, float], note: str = "") -> None:
    """Print and record a measure: ours beside every peer."""
    print(f"{measure}: " + ", ".join(f"{name} {1e3 * t:.4g} ms" for name, t in found.items()), flush=True)
    peers = [name for name in found if name != ours]
    for name in peers:
        record(table, measure, ours=found[ours], theirs=found[name], peer=name, note=note)
    if not peers:
        record(table, measure, ours=found[ours], note=note)


# ---------------------------------------------------------------------------------------------------------- chains


def chain_problem(batch: int, steps: int, labels: int, device: str, seed: int = 0) -> tuple[Any, Any, Any]:
    random = torch.Generator().manual_seed(seed)
    emissions = torch.randn(batch, steps, labels, generator=random).to(device)
    tags = torch.randint(0, labels, (batch, steps), generator=random).to(device)
    return emissions, tags, torch.randn(labels, labels, generator=random).to(device)


def our_step(emissions: Any, tags: Any, transitions: Any, **options: Any) -> tuple[Callable[[], Any], Any]:
    crf = ChainCRF(emissions.shape[2], reduction="sum", **options).to(emissions.device)
    with torch.no_grad():
        crf.transitions.copy_(transitions)
    theta = emissions.clone().requires_grad_()

    def step() -> Any:
        theta.grad = None
        crf.zero_grad()
        loss = crf(theta, tags)
        loss.backward()
        return loss

    return step, crf


def as_graph(*problem: Any) -> Callable[[], None]:
    """A step recorded as a CUDA graph: the kernels without Python."""
    crf = ChainCRF(problem[0].shape[2], reduction="sum", check=False).to(problem[0].device)
    with torch.no_grad():
        crf.transitions.copy_(problem[2])
    theta = problem[0].clone().requires_grad_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            crf(theta, problem[1]).backward()
    torch.cuda.current_stream().wait_stream(stream)
    crf.zero_grad(set_to_none=True)
    theta.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        crf(theta, problem[1]).backward()
    replay: Callable[[], None] = graph.replay
    return replay


def pytorch_crf_step(emissions: Any, tags: Any, transitions: Any) -> tuple[Callable[[], Any], Any] | None:
    module = peer("torchcrf")
    if module is None:
        return None
    crf = module.CRF(emissions.shape[2], batch_first=True).to(emissions.device)
    with torch.no_grad():
        crf.transitions.copy_(transitions)
        crf.start_transitions.zero_()
        crf.end_transitions.zero_()
    theta = emissions.clone().requires_grad_()

    def step() -> Any:
        theta.grad = None
        crf.zero_grad()
        loss = -crf(theta, tags, reduction="sum")
        loss.backward()
        return loss

    return step, crf


def torch_struct_step(emissions: Any, tags: Any, transitions: Any) -> Callable[[], Any] | None:
    module = peer("torch_struct")
    if module is None:
        return None
    theta, weights = emissions.clone().requires_grad_(), transitions.clone().requires_grad_()
    batch = torch.arange(len(tags), device=tags.device)[:, None]
    at = torch.arange(tags.shape[1] - 1, device=tags.device)[None, :]

    def step() -> Any:
        theta.grad = weights.grad = None
        edges = theta[:, 1:, :, None] + weights.T  # (next, previous)
        edges = torch.cat([edges[:, :1] + theta[:, :1, None, :], edges[:, 1:]], 1)
        truth = edges[batch, at, tags[:, 1:], tags[:, :-1]].sum()
        loss = module.LinearChainCRF(edges).partition.sum() - truth
        loss.backward()
        return loss

    return step


def paths_compared(problem: tuple[Any, Any, Any], ours: Any, theirs: Any) -> str:
    """How many sequences are decoded alike, and whose paths have the higher scores, computed in float64."""
    emissions, transitions = problem[0].double().cpu(), problem[2].double().cpu()

    def scores(paths: Any) -> Any:
        of_labels = emissions.gather(2, paths[:, :, None])[:, :, 0].sum(1)
        return of_labels + transitions[paths[:, :-1], paths[:, 1:]].sum(1)

    ours, theirs = ours.cpu().long(), theirs.cpu().long()
    lead = scores(ours) - scores(theirs)
    alike = int((ours == theirs).all(1).sum())
    return f"{alike} of {len(ours)} sequences alike; score of ours minus theirs {lead.min():.1e} to {lead.max():.1e}"


def chains(repeats: int) -> None:
    batch, steps = sized((64, 512), (2, 12))
    for labels in sized((10, 50, 128), (3,)):
        problem = chain_problem(batch, steps, labels, "cuda" if GPU else "cpu")
        ours, crf = our_step(*problem)
        calls: dict[str, Callable[[], Any]] = {"mercer": ours}
        other = pytorch_crf_step(*problem)
        struct = torch_struct_step(*problem) if labels <= 50 else None
        if other is not None:
            calls["pytorch-crf"] = other[0]
        if struct is not None:
            calls["torch-struct"] = struct
        losses = {name: float(call().detach()) for name, call in calls.items()}
        found = medians(repeats, calls)
        size = f"{batch} × {steps} positions, {labels} labels"
        note = "losses " + ", ".join(f"{value:.6g}" for value in losses.values())
        shown("chain", f"step, {size}", "mercer", found, note)
        memory = {}
        for name, call in calls.items() if GPU else ():
            wait()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            call()
            memory[name] = (torch.cuda.max_memory_allocated() - before) / 2**20
        for name in memory:
            if name != "mercer":
                record(
                    "memory",
                    f"memory of a step, {size}",
                    ours=memory["mercer"],
                    theirs=memory[name],
                    peer=name,
                    unit="MiB",
                )
        print(f"  memory in MiB: {memory}", flush=True)
        with torch.no_grad():
            decoders: dict[str, Callable[[], Any]] = {"mercer": lambda crf=crf, x=problem[0]: crf.decode(x)}
            if other is not None:
                decoders["pytorch-crf"] = lambda crf=other[1], x=problem[0]: crf.decode(x)
            compared = ""
            if other is not None:
                compared = paths_compared(problem, decoders["mercer"](), torch.tensor(decoders["pytorch-crf"]()))
            found = medians(repeats, decoders)
        shown("chain", f"decoding, {size}", "mercer", found, compared)
        if GPU:
            unchecked, _ = our_step(*problem, check=False)
            half, _ = our_step(problem[0].bfloat16(), *problem[1:])
            found = medians(repeats, {"mercer, check=False": unchecked, "mercer, bfloat16": half})
            print("  " + ", ".join(f"{name} {1e3 * t:.4g} ms" for name, t in found.items()), flush=True)
            record("chain", f"step without checks, {size}", ours=found["mercer, check=False"])
            record("chain", f"step, bfloat16, {size}", ours=found["mercer, bfloat16"])
            taken = medians(repeats, {"mercer": as_graph(*problem)})["mercer"]
            print(f"  as a CUDA graph {1e3 * taken:.4g} ms", flush=True)
            record("chain", f"step without checks, as a CUDA graph, {size}", ours=taken)


def checks() -> None:
    """Errors against float64: by operations of torch in the log domain, and for long sequences by the kernels."""
    for steps, labels in sized(((512, 10), (512, 50), (512, 128), (100_000, 10)), ((9, 3),)):
        batch = 4 if steps <= 512 else 1
        emissions, tags, transitions = chain_problem(batch, steps, labels, "cuda" if GPU else "cpu", seed=steps)
        exact = None
        for kind in (torch.float64, torch.float32, torch.bfloat16):
            given = emissions.to(kind)
            crf = ChainCRF(labels, reduction="sum", dtype=torch.float64 if kind == torch.float64 else torch.float32)
            crf = crf.to(given.device)
            with torch.no_grad():
                crf.transitions.copy_(transitions)
            theta = given.clone().requires_grad_()
            loss = crf(theta, tags)
            loss.backward()
            found = float(loss.detach()), theta.grad.double(), crf.transitions.grad.double()
            if kind == torch.float64:
                exact = found
                if steps <= 512:
                    lengths = torch.full((batch,), steps, device=given.device)
                    shared = transitions.double(), crf.start.detach(), crf.end.detach()
                    ones = torch.ones(batch, dtype=torch.float64, device=given.device)
                    _, nodes, pairs, _, _ = by_operations.marginals(given, shared, lengths, ones)
                    truth = by_operations.counts(tags, lengths, ones, given)
                    errors = [
                        float((a - b).abs().max())
                        for a, b in ((exact[1], nodes - truth[0]), (exact[2], pairs - truth[1]))
                    ]
                    print(f"float64 against torch's operations, {steps} × {labels}: {errors}", flush=True)
                continue
            assert exact is not None
            relative = abs(found[0] - exact[0]) / abs(exact[0])
            nodes, pairs = (float((a - b).abs().max()) for a, b in zip(found[1:], exact[1:], strict=True))
            name = str(kind).removeprefix("torch.")
            share = float((found[2] - exact[2]).norm() / exact[2].norm())
            values = {"loss, relative": relative, "emissions": nodes, "transitions": pairs, "relative": share}
            print(f"{name} against float64, {steps} × {labels}: {values}", flush=True)
            record("errors", f"{name}, {steps} positions, {labels} labels", values=values)


# -------------------------------------------------------------------------------------------------------- segments


def segment_problem(batch: int, steps: int, longest: int, labels: int, device: str) -> tuple[Any, ...]:
    random = torch.Generator().manual_seed(0)
    emissions = torch.randn(batch, steps, labels, generator=random)
    emissions -= emissions.mean(1, keepdim=True)
    durations, transitions = (
        torch.randn(longest, labels, generator=random),
        torch.randn(labels, labels, generator=random),
    )
    tags = torch.full((batch, steps), -1)
    for i in range(batch):
        at = 0
        while at < steps:
            tags[i, at] = int(torch.randint(0, labels, (), generator=random))
            at += int(torch.randint(1, longest + 1, (), generator=random))
    return tuple(x.to(device) for x in (emissions, tags, durations, transitions))


def segment_step(emissions: Any, tags: Any, durations: Any, transitions: Any) -> tuple[Callable[[], Any], Any]:
    crf = SemiMarkovCRF(emissions.shape[2], len(durations), reduction="sum").to(emissions.device)
    with torch.no_grad():
        crf.durations.copy_(durations)
        crf.transitions.copy_(transitions)
        crf.start.copy_(transitions.logsumexp(0))  # flash-semicrf has a transition into the first segment
    theta = emissions.clone().requires_grad_()

    def step() -> Any:
        theta.grad = None
        crf.zero_grad()
        loss = crf(theta, tags)
        loss.backward()
        return loss

    return step, crf


def flash_step(emissions: Any, tags: Any, durations: Any, transitions: Any) -> Callable[[], Any] | None:
    """log Z and its gradients; the score of the truth, which costs nothing beside it, is left out."""
    module = peer("flash_semicrf")
    if module is None:
        return None
    from flash_semicrf.streaming import semi_crf_streaming_forward

    theta, given = emissions.clone().requires_grad_(), [x.clone().requires_grad_() for x in (transitions, durations)]
    lengths = torch.full((len(emissions),), emissions.shape[1], device=emissions.device)

    def step() -> Any:
        theta.grad = None
        zero = torch.zeros(len(theta), 1, theta.shape[2], dtype=torch.float64, device=theta.device)
        sums = torch.cat([zero, theta.double().cumsum(1)], 1)
        value = semi_crf_streaming_forward(sums, given[0], given[1], lengths, len(durations)).sum()
        value.backward()
        return value

    return step


def segments(repeats: int, size: tuple[int, int, int, int], with_peer: bool) -> None:
    device = "cuda" if GPU else "cpu"
    problem = segment_problem(*size, device)
    ours, crf = segment_step(*problem)
    calls: dict[str, Callable[[], Any]] = {"mercer": ours}
    other = flash_step(*problem) if with_peer else None
    if other is not None:
        values: list[float] = []
        calls["flash-semicrf"] = lambda: values.append(float(other().detach()))
    found = medians(repeats, calls, slow=2)
    if other is not None:
        print(f"  log Z: {float(crf.log_partition(problem[0]).sum().detach())}, flash-semicrf {values[0]}", flush=True)
    batch, steps, longest, labels = size
    name = f"{batch} × {steps:,} positions, {longest} lengths, {labels} labels"
    shown("segments", f"step, {name}", "mercer", found)
    with torch.no_grad():
        shown("segments", f"decoding, {name}", "mercer", medians(repeats, {"mercer": lambda: crf.decode(problem[0])}))
    if GPU:
        wait()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        ours()
        print(f"  memory {(torch.cuda.max_memory_allocated() - before) / 2**20:.4g} MiB", flush=True)
        theta = problem[0].double()
        exact = SemiMarkovCRF(labels, longest, reduction="sum", dtype=torch.float64).to(device)
        exact.load_state_dict({name: x.double() for name, x in crf.state_dict().items()})
        theta.requires_grad_()
        value = exact(theta, problem[1])
        value.backward()
        single = problem[0].clone().requires_grad_()
        crf.zero_grad()
        loss = crf(single, problem[1])
        loss.backward()
        errors = {
            "loss, relative": abs(float(loss.detach()) - float(value.detach())) / abs(float(value.detach())),
            "emissions": float((single.grad - theta.grad).abs().max()),
            "durations": float((crf.durations.grad - exact.durations.grad).abs().max()),
            "transitions": float((crf.transitions.grad - exact.transitions.grad).abs().max()),
            "relative": float((crf.durations.grad - exact.durations.grad).norm() / exact.durations.grad.norm()),
        }
        print(f"  float32 against float64: {errors}", flush=True)
        record("errors", f"float32, segments of {name}", values=errors)


def verbs(repeats: int) -> None:
    """What is asked less often: kernels beside what they took the place of."""
    device = "cuda" if GPU else "cpu"
    batch, steps, labels = sized((64, 512, 50), (2, 12, 3))
    emissions, _, transitions = chain_problem(batch, steps, labels, device)
    crf = ChainCRF(labels).to(device)
    with torch.no_grad():
        crf.transitions.copy_(transitions)
    shared = tuple(x.detach() for x in (crf.transitions, crf.start, crf.end))
    lengths = torch.full((batch,), steps, device=device)
    size = f"{batch} × {steps} positions, {labels} labels"
    for name, ours, theirs in (
        ("5 best", lambda: crf.k_best(emissions, 5), lambda: by_operations.k_best(emissions, shared, lengths, 5)),
        (
            "10 samples",
            lambda: crf.sample(emissions, 10),
            lambda: by_operations.sample(emissions, shared, lengths, 10, 0),
        ),
        ("entropy", lambda: crf.entropy(emissions), lambda: by_operations.entropy(emissions, shared, lengths)),
    ):
        with torch.no_grad():
            found = medians(repeats, {"mercer": ours, "operations of torch": theirs})
        shown("verbs", f"{name}, {size}", "mercer", found)
    sizes = sized((8, 4096, 32, 24), (1, 20, 4, 3))
    problem = segment_problem(*sizes, device)
    _, layer = segment_step(*problem)
    here = SemiMarkovCRF(sizes[3], sizes[2])
    here.load_state_dict({name: x.cpu() for name, x in layer.state_dict().items()})
    given, copied = problem[0], problem[0].cpu()
    size = f"segments of {sizes[0]} × {sizes[1]:,} positions, {sizes[2]} lengths, {sizes[3]} labels"
    for name, ask in (
        ("5 best", lambda crf, x: crf.k_best(x, 5)),
        ("10 samples", lambda crf, x: crf.sample(x, 10, random_state=0)),
        ("entropy", lambda crf, x: crf.entropy(x)),
    ):
        calls = {"mercer": lambda ask=ask: ask(layer, given)}
        if HAS_CORE:
            calls["the core"] = lambda ask=ask: ask(here, copied)
        with torch.no_grad():
            shown("verbs", f"{name}, {size}", "mercer", medians(repeats, calls))


# ------------------------------------------------------------------------------------------------------------- cpu


def on_cpu(repeats: int) -> None:
    """One thread, seconds of the processor. torch-struct has fewer sequences: 64 of them would need 33 GB."""
    torch.set_num_threads(1)
    batch, steps, labels = sized((64, 512, 50), (2, 12, 3))
    fewer = sized(4, 1)
    problem = chain_problem(batch, steps, labels, "cpu")
    small = problem[0][:fewer], problem[1][:fewer], problem[2]
    other, struct = pytorch_crf_step(*problem), torch_struct_step(*small)
    for name, call, given in (
        ("pytorch-crf", None if other is None else other[0], problem),
        ("torch-struct", struct, small),
    ):
        calls: dict[str, Callable[[], Any]] = {"mercer": our_step(*given)[0]}
        if call is not None:
            calls[name] = call
        found = medians(repeats, calls, slow=2, clock=time.process_time)
        shown("cpu", f"step on one thread, {len(given[0])} × {steps} positions, {labels} labels", "mercer", found)
    size = sized((8, 4096, 32, 24), (1, 20, 4, 3))
    step, _ = segment_step(*segment_problem(*size, "cpu"))
    name = f"{size[0]} × {size[1]:,} positions, {size[2]} lengths, {size[3]} labels"
    found = medians(repeats, {"mercer": step}, slow=3, clock=time.process_time)
    shown("cpu", f"step on one thread, segments, {name}", "mercer", found)


def conll(sentences: int | None) -> None:
    """F1 of chunks and seconds of training: the network with a chain on top, and the tagger with its template."""
    from mercer.data import Template
    from mercer.datasets import load_conll2000
    from mercer.metrics import span_f1
    from mercer.tagging import Constraints, NeuralTagger, Tagger

    torch.set_num_threads(1)
    with from_data("conll"):
        train, test = load_conll2000("train")[: sized(sentences, 40)], load_conll2000("test")[: sized(None, 20)]
        tags = [[token[2] for token in sentence] for sentence in train]
        truth = [[token[2] for token in sentence] for sentence in test]
        labels = sorted({tag for row in tags for tag in row})
        rules = Constraints.bio(labels)
        inputs, others = ([[tuple(token[:2]) for token in s] for s in part] for part in (train, test))
        neural = NeuralTagger(constraints=rules, random_state=0, **({"max_iter": 1} if SMOKE else {}))
        start = time.process_time()
        neural.fit(inputs, tags)
        taken = time.process_time() - start
        rows = {"NeuralTagger": (span_f1(truth, neural.predict(others)), taken, neural.n_iter_)}
        tagger = Tagger(template=Template.load("words+pos"), constraints=rules, max_iter=sized(None, 3))
        start = time.process_time()
        tagger.fit(inputs, tags)
        taken = time.process_time() - start
        found = tagger.predict(others)
        rows["Tagger"] = span_f1(truth, found), taken, tagger.n_iter_
        for name, (score, taken, rounds) in rows.items():
            print(f"{name}: F1 {100 * score:.2f}, {taken:.1f} s, {rounds} epochs or iterations", flush=True)
            values = {"F1": round(100 * score, 2), "seconds": taken, "epochs or iterations": rounds}
            record("conll", f"{name}, {len(train):,} sentences", values=values)


def tutorial() -> None:
    """The code of the tutorial up to its score of the test set, on one thread."""
    from unittest.mock import patch

    from mercer import datasets

    torch.set_num_threads(1)
    page = Path(__file__).parent.parent / "docs" / "tutorials" / "networks.md"
    blocks = re.findall(r"^```{code-block} python\n(.*?)^```", page.read_text(), re.S | re.M)
    names: dict[str, Any] = {}
    with from_data("tutorial"):
        load = datasets.load_conll2000
        with patch.object(datasets, "load_conll2000", lambda part: load(part)[: sized(None, 40)]):
            for block in blocks:
                if "f1" not in names:
                    exec(block, names)
        values = {"F1": round(100 * names["f1"], 2), "seconds": names["seconds"]}
        values["epochs or iterations"] = names["epochs"]
        print(f"tutorial: F1 {values['F1']}, {values['seconds']:.1f} s", flush=True)
        record("conll", f"the network of the tutorial, {len(names['train']):,} sentences", values=values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--parts", nargs="+", default=["check", "chain", "segments", "long", "verbs", "cpu", "conll", "tutorial"]
    )
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--sentences", type=int, help="of CoNLL-2000's training set; default all")
    options = parse(parser, repeats=1)
    here = GPU or SMOKE
    for part in options.parts:
        if part in ("check", "chain", "segments", "long", "verbs") and not here:
            print(f"{part}: left out, there is no GPU", flush=True)
        elif (part in ("cpu", "conll", "tutorial") or not GPU) and not HAS_CORE:
            print(f"{part}: left out, the compiled core is missing", flush=True)
        elif part == "check":
            checks()
        elif part == "chain":
            chains(options.repeats)
        elif part == "segments":
            segments(options.repeats, sized((8, 4096, 32, 24), (1, 20, 4, 3)), True)
        elif part == "long":
            segments(min(options.repeats, 5), sized((2, 50_000, 100, 12), (2, 20, 4, 3)), True)
        elif part == "verbs":
            verbs(options.repeats)
        elif part == "cpu":
            on_cpu(options.repeats)
        elif part == "conll":
            conll(options.sentences)
        elif part == "tutorial":
            tutorial()


if __name__ == "__main__":
    main()
