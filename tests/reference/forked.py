"""Processes that have NumPy, scikit-learn and the package already: forked from a server that has imported them.

    process = popen(code, "predict", path, stdin=subprocess.PIPE)

is ``subprocess.Popen([sys.executable, "-c", code, "predict", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)``
without a second of imports: arguments, streams, signals and exit status are those of a process of its own, and Ctrl-C
is switched on. Hashes of strings have another seed than here. The server has one thread and does nothing but import, so
what it forks is as good as new. Tests of imports, of start and end of the interpreter, and of memory start a real one.
"""

from __future__ import annotations

import atexit
import functools
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import IO, Any, NoReturn


class Process:
    """The part of `subprocess.Popen` that tests use."""

    def __init__(self, streams: list[IO[Any] | None], status: IO[str]) -> None:
        self.stdin, self.stdout, self.stderr = streams
        self._status = status
        self.pid = int(status.readline())
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float = 120.0) -> int:
        if self.returncode is None:
            watchdog = threading.Timer(timeout, self.kill)
            watchdog.start()
            self.returncode = int(self._status.readline())
            watchdog.cancel()
            self._status.close()
        return self.returncode

    def communicate(self, timeout: float = 120.0) -> tuple[Any, Any]:
        """What is left to read of both outputs; little of the second, as they are read one after the other."""
        if self.stdin is not None:
            self.stdin.close()
        watchdog = threading.Timer(timeout, self.kill)
        watchdog.start()
        found = [None if stream is None else stream.read() for stream in (self.stdout, self.stderr)]
        watchdog.cancel()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait(timeout)
        return found[0], found[1]


def popen(code: str, *args: str, stdin: int | IO[Any] = subprocess.DEVNULL, text: bool = False) -> Process:
    """Run code with these arguments in a process of its own, with pipes for its outputs."""
    ours: list[IO[Any] | None] = []
    theirs = []
    if stdin == subprocess.PIPE:
        read, write = os.pipe()
        ours.append(open(write, "w" if text else "wb"))  # noqa: SIM115
        theirs.append(read)
    else:
        ours.append(None)
        theirs.append(os.open(os.devnull, os.O_RDONLY) if isinstance(stdin, int) else os.dup(stdin.fileno()))
    for _ in range(2):
        read, write = os.pipe()
        ours.append(open(read, "r" if text else "rb"))  # noqa: SIM115
        theirs.append(write)
    read, write = os.pipe()
    request = {"code": code, "args": args, "folder": os.getcwd(), "environment": dict(os.environ)}
    socket.send_fds(_server(), [json.dumps(request).encode()], [*theirs, write])
    for descriptor in (*theirs, write):
        os.close(descriptor)
    return Process(ours, open(read))


@functools.cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = [os.environ.get("PYTHONPATH", ""), str(Path(__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    environment["PYTHONHASHSEED"] = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    command = [sys.executable, "-m", "reference.forked", str(theirs.fileno())]
    process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()
    atexit.register(lambda: (ours.close(), process.wait()))
    return ours


# ------------------------------------------------------------------------------------------------- the server


def serve(requests: socket.socket) -> None:
    """Fork for each request, until the other side is closed."""
    import mercer.cli
    import mercer.online
    import mercer.tagging  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for the processes
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not message:
            return
        if os.fork() == 0:
            requests.close()
            _watch(json.loads(message), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _watch(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Fork the process, and tell its number and its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, told = descriptors
    process = os.fork()
    if process == 0:
        os.close(told)
        _run(request, streams)
    for descriptor in streams:
        os.close(descriptor)
    os.write(told, f"{process}\n".encode())
    _, status = os.waitpid(process, 0)
    os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _run(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be what ``python -c code args`` is."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False))  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", closefd=False), errors="backslashreplace", line_buffering=True  # noqa: SIM115
    )  # fmt: skip
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["-c", *request["args"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status: Any = 0
    try:
        exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = 120
    os._exit(status or 0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
