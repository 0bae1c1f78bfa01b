"""A server under load and faults: requests a second, what a request costs, overload, a soak, hostile callers.

    python benchmarks/serving.py [--parts load,overload,hostile,soak] [--seconds 10] [--hostile 100000] [--smoke]

Loopback only, on the cores that the load generator uses as well. The model is a tagger of sentences with 24 tokens.

``load``      closed loop over ``--connections`` kept connections: requests a second, median and 99 % of latency, and
              processor time of the server for a request, with many callers and with one, also without the time that
              ``predict`` takes; beside the same model behind plain FastAPI endpoints on uvicorn without batches (a
              function, which runs on a thread, and a coroutine, which holds the loop up), where that is installed, and
              beside a bare application that answers a constant
``overload``  more than the server can do: answered requests a second beside the peak, latency of those, the share that
              is refused, memory. Four times as many callers as the queue holds, who come back 20 ms after a refusal;
              and requests of 32 sentences at four times the pace of the peak, whoever is refused (the generator needs
              as much time for a request as the server, and can keep such a pace only of long requests)
``soak``      two workers for ``--soak`` seconds at 70 % of the peak that they reach; the model replaced every 5 s, a
              worker killed every 30 s: answers that are wrong, requests without an answer
``hostile``   ``--hostile`` requests that are truncated, huge, deep, of wrong types, slow, with bad tokens, paths and
              headers: crashes, stack traces, memory

``soak`` runs only when it is named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from _timing import missing, parse, record, sized

import mercer
from mercer.tagging import Tagger

TIMED = """
import sys, time
import numpy as np
from mercer.tagging import Tagger
own, plain = np.memmap(sys.argv[-1], np.float64, "r+", shape=(1,)), Tagger.predict
def timed(self, X):
    begun = time.thread_time()
    found = plain(self, X)
    own[0] += time.thread_time() - begun
    return found
Tagger.predict = timed
"""
SERVER = """
import json, sys
from mercer.serve.server import Options, serve
raise SystemExit(serve(Options(**json.loads(sys.argv[1])), lambda url: print(url, flush=True)))
"""
FASTAPI = """
import sys, mercer, uvicorn
from typing import Any
from fastapi import FastAPI
from pydantic import BaseModel
tagger, app = mercer.load(sys.argv[1]), FastAPI()
class Request(BaseModel):
    instances: list[list[str]]
class Answer(BaseModel):
    predictions: list[list[str]]
@app.post("/v1/models/tagger:predict", response_model=Answer)
KIND predict(request: Request) -> Any:
    return {"predictions": tagger.predict(request.instances)}
"""
ON_UVICORN = """
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("http://127.0.0.1:" + sys.argv[2] + "/", flush=True)
Server(uvicorn.Config(app, port=int(sys.argv[2]), log_level="error", access_log=False, lifespan="off")).run()
"""
BARE = """
import sys, uvicorn
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    body = b'{"predictions":[]}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"18")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
"""
WORDS = [f"w{i}" for i in range(500)]


def sentence(rng: random.Random) -> list[str]:
    return rng.choices(WORDS, k=24)


def tagger(labels: tuple[str, str], seed: int = 0) -> Tagger:
    """Words with even numbers have the first label."""
    rng = random.Random(seed)
    X = [sentence(rng) for _ in range(sized(200, 20))]
    y = [[labels[int(word[1:]) % 2] for word in one] for one in X]
    return Tagger(C=10.0, max_iter=30).fit(X, y)


# ------------------------------------------------------------------------------------------------------------- servers


class Server:
    """A server process on loopback."""

    def __init__(self, program: str, *arguments: str, times: Path | None = None) -> None:
        self.times = None
        if times is not None:
            self.times = np.memmap(times, np.float64, "w+", shape=(1,))
            program, arguments = TIMED + program, (*arguments, str(times))
        command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - read when the server has ended
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env=environment)
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode().strip()
        if not line:
            self.log.seek(0)
            raise RuntimeError(self.log.read().decode()[-2000:])
        self.port = int(line.rstrip("/").rpartition(":")[2])

    def pids(self) -> list[int]:
        own = self.process.pid
        said = subprocess.run(["ps", "-o", "pid=", "--ppid", str(own)], capture_output=True, text=True, check=False)
        return [own, *map(int, said.stdout.split())]

    def workers(self) -> list[int]:
        return self.pids()[1:]

    def memory(self) -> float:
        """Resident megabytes of all its processes."""
        total = 0
        for pid in self.pids():
            with suppress(OSError):
                total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return total * os.sysconf("SC_PAGE_SIZE") / 2**20

    def seconds(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def own_seconds(self) -> float:
        """Processor time of the model so far, where the program is timed."""
        return 0.0 if self.times is None else float(self.times[0])

    def end(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.seek(0)
        return self.log.read().decode(errors="replace")


@contextmanager
def serving(path: Path, times: Path | None = None, **options: Any) -> Iterator[Server]:
    said = {"models": {"tagger": str(path)}, "port": 0, **options}
    server = Server(SERVER, json.dumps(said), times=times)
    try:
        yield server
    finally:
        server.text = server.end()  # type: ignore[attr-defined]


@contextmanager
def own_server(program: str, path: Path, times: Path | None = None, port: int = 18_431) -> Iterator[Server]:
    server = Server(program + ON_UVICORN, str(path), str(port), times=times)
    try:
        yield server
    finally:
        server.end()


# ------------------------------------------------------------------------------------------------------ load generator


class Caller(asyncio.Protocol):
    """One connection that is kept; a bare protocol, so that the generator costs little."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.transport: Any = None
        self.answer: asyncio.Future[tuple[int, bytes]] | None = None
        self.data = b""

    async def ask(self, body: bytes) -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        if self.transport is None:
            self.transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self.port)
            self.data = b""
        self.answer = loop.create_future()
        head = b"POST /v1/models/tagger:predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.transport.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return await self.answer

    def data_received(self, data: bytes) -> None:
        self.data = self.data + data if self.data else data
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.data[:end].lower()
        at = head.index(b"content-length: ") + 16
        length = int(head[at : (head.find(b"\r\n", at) + 1 or len(head) + 1) - 1])
        if len(self.data) < end + 4 + length:
            return
        content, self.data = self.data[end + 4 : end + 4 + length], self.data[end + 4 + length :]
        if b"connection: close" in head:
            self.close()
        if self.answer is not None and not self.answer.done():
            self.answer.set_result((int(head[9:12]), content))

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error or EOFError("the server closed the connection"))

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()
            self.transport = None


async def closed_loop(
    port: int, connections: int, seconds: float, pause: float = 0.0, sentences: int = 1, pace: float = 0.0
) -> dict[str, Any]:
    """So many callers, each with one request at a time; with a pace, the next free one asks when a request is due."""
    rng = random.Random(1)
    bodies = [json.dumps({"instances": [sentence(rng) for _ in range(sentences)]}).encode() for _ in range(200)]
    begun, spent = time.perf_counter(), time.process_time()
    until = begun + seconds
    statuses: Counter[int] = Counter()
    times: list[float] = []
    tickets = iter(range(10**12))

    async def one(k: int) -> None:
        caller = Caller(port)
        i = k
        while True:
            due = begun + next(tickets) / pace if pace else 0.0
            if max(due, time.perf_counter()) >= until:
                break
            if pace:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            status, _ = await caller.ask(bodies[i % len(bodies)])
            statuses[status] += 1
            if status == 200:
                times.append(time.perf_counter() - started)
            elif pause:
                await asyncio.sleep(pause)
            i += 1
        caller.close()

    await asyncio.gather(*(one(k) for k in range(connections)))
    elapsed = time.perf_counter() - begun
    times.sort()
    return {
        "rate": len(times) / elapsed,
        "p50": 1e3 * times[len(times) // 2],
        "p99": 1e3 * times[min(len(times) - 1, int(0.99 * len(times)))],
        "statuses": dict(statuses),
        "n": len(times),
        "offered": sum(statuses.values()) / elapsed,
        "generator": (time.process_time() - spent) / elapsed,
    }


# --------------------------------------------------------------------------------------------------------------- parts


def load(path: Path, args: argparse.Namespace) -> None:
    """Many callers, then one: requests a second, latency, processor time of the server for a request."""
    rates, above = {}, {}

    def measured(name: str, server: Server) -> None:
        values, costs = {}, {}
        for callers in (args.connections, 1):
            asyncio.run(closed_loop(server.port, callers, 0.2 * args.seconds))
            before, own = server.seconds(), server.own_seconds()
            found = asyncio.run(closed_loop(server.port, callers, args.seconds))
            each = 1e6 / max(1, found["n"])
            whole, own = each * (server.seconds() - before), each * (server.own_seconds() - own)
            if callers > 1:
                rates[name], above[name] = found["rate"], whole - own
                values |= {"requests/s": found["rate"], "p50, ms": found["p50"], "p99, ms": found["p99"]}
            who = "one caller" if callers == 1 else "many callers"
            costs |= {f"µs, {who}": whole, f"without the model, {who}": whole - own}
        if name != "mercer serve":
            values["ratio of requests/s"] = rates["mercer serve"] / rates[name]
            costs["ratio, many callers"] = above[name] / above["mercer serve"]
        shown = ", ".join(f"{key} {value:,.1f}" for key, value in {**values, **costs}.items())
        print(f"load: {name}: {shown}", flush=True)
        record("load", name, values=values)
        record("cost", name, values=costs)

    times = path.with_name("times")
    with serving(path, times) as server:
        measured("mercer serve", server)
    if not missing("fastapi"):
        for name, kind in (("", "def"), (", a coroutine", "async def")):
            with own_server(FASTAPI.replace("KIND", kind), path, times) as server:
                measured(f"FastAPI, no batches{name}", server)
    with own_server(BARE, path) as server:
        measured("bare ASGI application, no model", server)


def overload(path: Path, args: argparse.Namespace) -> None:
    callers = 4 * 64
    for name, many, pause in ((f"{callers} callers, a queue of 64", 1, 0.02), ("long requests, 4 × the pace", 32, 0.0)):
        with serving(path) as server:
            asyncio.run(closed_loop(server.port, args.connections, 0.2 * args.seconds, sentences=many))
            peak = asyncio.run(closed_loop(server.port, args.connections, args.seconds, sentences=many))
            before = server.memory()
            pace = 0.0 if pause else 4 * peak["rate"]
            found = asyncio.run(closed_loop(server.port, callers, args.seconds, pause, many, pace))
            after = server.memory()
        refused = found["statuses"].get(503, 0) / sum(found["statuses"].values())
        values: dict[str, Any] = {"peak, requests/s": peak["rate"], "offered/s": found["offered"]}
        values |= {"answered/s": found["rate"], "of the peak, %": 100 * found["rate"] / peak["rate"]}
        values |= {"p99, ms": found["p99"], "refused, %": 100 * refused}
        values |= {"memory before, MB": before, "memory after, MB": after}
        values |= {"generator, % of a core": 100 * found["generator"]}
        said = ", ".join(f"{key} {value:,.1f}" for key, value in values.items())
        print(f"overload: {name}: {said}, statuses {found['statuses']}", flush=True)
        record("overload", name, values=values)


def soak(path: Path, args: argparse.Namespace) -> None:
    """Callers keep a common pace of ``--share`` of the peak that the same workers reached just before."""
    models = [tagger(("A", "B")), tagger(("C", "D"))]
    names = [{"A", "B"}, {"C", "D"}]
    outcomes: Counter[str] = Counter()
    times = array("d")
    begun = until = pace = 0.0
    tickets = iter(range(10**12))

    async def caller(port: int, k: int) -> None:
        rng, line = random.Random(k), Caller(port)
        while True:
            due = begun + next(tickets) / pace
            if max(due, time.monotonic()) >= until:
                break
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            X = sentence(rng)
            started = time.monotonic()
            try:
                answer = line.ask(json.dumps({"instances": [X]}).encode())
                status, content = await asyncio.wait_for(answer, 30)
            except TimeoutError:
                outcomes["hung"] += 1
                line.close()
                continue
            except (OSError, EOFError):
                outcomes["connection lost with its worker"] += 1
                line.close()
                await asyncio.sleep(0.05)
                continue
            if status != 200:
                outcomes[f"status {status}"] += 1
                continue
            times.append(time.monotonic() - started)
            [labels] = json.loads(content)["predictions"]
            kind = next((one for one in names if set(labels) <= one), None)
            first = None if kind is None else sorted(kind)
            right = first is not None and all(
                label == first[int(w[1:]) % 2] for w, label in zip(X, labels, strict=True)
            )
            outcomes["right" if right else "wrong"] += 1
        line.close()

    async def faults(server: Server) -> None:
        turn = 0
        while time.monotonic() < until - 5:
            await asyncio.sleep(5)
            turn += 1
            await asyncio.to_thread(mercer.save, models[turn % 2], path)
            if turn % 6 == 0:
                workers = server.workers()
                if workers:
                    os.kill(random.Random(turn).choice(workers), signal.SIGKILL)
                    outcomes["workers killed"] += 1
        outcomes["models replaced"] = turn

    async def run(server: Server) -> None:
        await asyncio.gather(faults(server), *(caller(server.port, k) for k in range(args.connections)))

    with serving(path, workers=2, reload_seconds=0.5) as server:
        peak = asyncio.run(closed_loop(server.port, args.connections, min(5.0, args.soak)))["rate"]
        pace, before = args.share * peak, server.memory()
        begun = time.monotonic()
        until = begun + args.soak
        asyncio.run(run(server))
        elapsed, after = time.monotonic() - begun, server.memory()
    p99 = 1e3 * sorted(times)[min(len(times) - 1, int(0.99 * len(times)))]
    print(
        f"soak: {elapsed:.0f} s at {pace:,.0f} requests/s of {peak:,.0f}, p99 {p99:.1f} ms, {dict(outcomes)}, memory"
        f" {before:.0f} to {after:.0f} MB"
    )
    refused = sum(n for name, n in outcomes.items() if name.startswith("status"))
    values: dict[str, Any] = {"requests": outcomes["right"] + outcomes["wrong"], "wrong": outcomes["wrong"]}
    values |= {"hung": outcomes["hung"], "refused": refused, "p99, ms": p99}
    values |= {"lost with a worker": outcomes["connection lost with its worker"]}
    values |= {"workers killed": outcomes["workers killed"], "models replaced": outcomes["models replaced"]}
    values |= {"memory before, MB": before, "memory after, MB": after}
    record("soak", f"{elapsed:.0f} s, {(outcomes['right'] + refused) / elapsed:,.0f} requests/s", values=values)


WRONG: list[Any] = [3, "x", None, {}, [3], [[3, "a"]], [[None]], [[]], []]
PATHS = [
    b"/../../etc/passwd",
    b"/v1/models/..:predict",
    b"/v1/models/tagger:__class__",
    b"/static/%2e%2e/app.py",
    b"/v1/models/" + b"a" * 9000 + b":predict",
]


def hostile_requests(rng: random.Random) -> bytes:
    """One of many kinds of requests that nobody should send."""
    good = json.dumps({"instances": [sentence(rng)]}).encode()

    def post(body: bytes, head: bytes = b"", path: bytes = b"/v1/models/tagger:predict", more: int = 0) -> bytes:
        lines = (b"POST %s HTTP/1.1" % path, b"Host: localhost", b"Connection: close")
        return b"\r\n".join(lines) + b"\r\nContent-Length: %d\r\n%s\r\n%s" % (len(body) + more, head, body)

    noise = rng.randbytes(rng.randint(1, 200))
    kinds = [
        lambda: post(good[: rng.randint(0, len(good))]),
        lambda: post(good, more=50),
        lambda: post(b'{"instances": ' + b"[" * 20_000),
        lambda: post(b'{"instances": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}"),
        lambda: post(json.dumps({"instances": rng.choice(WRONG)}).encode()),
        lambda: post(json.dumps({"instances": [["a"]], rng.choice(["k_best", "explain", "x"]): -1}).encode()),
        lambda: post(b'{"instances": [["' + noise.replace(b'"', b"") + b'"]]}'),
        lambda: post(b" " * 200_000),
        lambda: post(good, b"Authorization: Bearer " + noise.hex().encode() + b"\r\n"),
        lambda: post(good, b"".join(b"X-%d: y\r\n" % i for i in range(300))),
        lambda: post(good, b"X: " + b"y" * 70_000 + b"\r\n"),
        lambda: post(good, path=rng.choice(PATHS)),
        lambda: post(good, b"Transfer-Encoding: chunked\r\n"),
        lambda: post(good, b"Content-Length: 3\r\n"),
        lambda: post(good, b"Content-Type: " + rng.choice([b"text/csv", b"application/x-npy", b"x" * 500]) + b"\r\n"),
        lambda: post(good, b"Inference-Header-Content-Length: 99999999999\r\n", b"/v2/models/tagger/infer"),
        lambda: noise,
        lambda: b"GET / HTTP/9.9\r\n\r\n",
        lambda: good,
    ]
    return rng.choice(kinds)()


def hostile(path: Path, args: argparse.Namespace) -> None:
    outcomes: Counter[str] = Counter()
    numbers = iter(range(args.hostile))

    memory: dict[str, float] = {}

    async def one(server: Server, k: int) -> None:
        rng, port = random.Random(k), server.port
        for i in numbers:
            if i == args.hostile // 10:
                memory["after a tenth, MB"] = server.memory()
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                data = hostile_requests(rng)
                writer.write(data)
                if rng.random() < 0.3:
                    writer.write_eof()
                said = await asyncio.wait_for(reader.read(100_000), 30)
                writer.close()
            except TimeoutError:
                outcomes["hung"] += 1
                continue
            except OSError:
                outcomes["closed"] += 1
                continue
            outcomes[said[9:12].decode("ascii", "replace") if said else "closed"] += 1
            if b"Traceback" in said or b'File "' in said:
                outcomes["stack traces"] += 1

    async def run(server: Server) -> None:
        loris = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(20)]
        for _, writer in loris:
            writer.write(b"POST /v1/models/tagger:predict HTTP/1.1\r\nHost: loc")
        await asyncio.gather(*(one(server, k) for k in range(128)))
        for _, writer in loris:
            writer.close()

    with serving(path, max_body=100_000, head_seconds=sized(1.0, 0.3), body_seconds=sized(1.0, 0.3)) as server:
        asyncio.run(closed_loop(server.port, 4, sized(1.0, 0.1)))
        pid, before = server.process.pid, server.memory()
        asyncio.run(run(server))
        after = server.memory()
        alive = asyncio.run(closed_loop(server.port, 4, sized(0.5, 0.1)))["n"] > 0 and server.process.poll() is None
        assert pid == server.process.pid
    failures = sum('"failure"' in line for line in server.text.splitlines())  # type: ignore[attr-defined]
    crashes = 0 if alive else 1
    print(
        f"hostile: {args.hostile:,} requests, {crashes} crashes, {outcomes['stack traces']} stack traces,"
        f" {outcomes['hung']} hung, {failures} failures in the log, memory {before:.0f} to {after:.0f} MB"
        f" ({memory}), {dict(sorted(outcomes.items()))}"
    )
    values = {"requests": args.hostile, "crashes": crashes, "stack traces": outcomes["stack traces"]}
    values |= {"hung": outcomes["hung"], "memory before, MB": before, **memory, "after all, MB": after}
    record("faults", "hostile requests", values=values)


PARTS = {"load": load, "overload": overload, "hostile": hostile, "soak": soak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="load,overload,hostile")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--hostile", type=int, default=100_000)
    parser.add_argument("--soak", type=float, default=600.0)
    parser.add_argument("--share", type=float, default=0.7, help="of the peak, for the load of the soak")
    args = parse(parser, parts="load,hostile", seconds=0.1, connections=4, hostile=100)
    for word in args.parts.split(","):
        if word not in PARTS:
            parser.error(f"no such part: {word}")
    if missing("starlette", "orjson", "uvicorn", "httptools"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tagger.mercer"
        mercer.save(tagger(("A", "B")), path)
        for word in args.parts.split(","):
            PARTS[word](path, args)


if __name__ == "__main__":
    main()
