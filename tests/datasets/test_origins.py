"""Data sets come from their origins whole and right, or not at all: tried against a server on this machine."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mercer.cli import main
from mercer.datasets import (
    FetchError,
    cache_folder,
    checksums,
    fetch,
    load_basenp,
    load_sms_spam,
    load_tu,
    origin_of,
    origins,
)

pytest.importorskip("pooch", reason="pip install 'mercer[data]'")

SMS = b"ham\tsee you at noon\nspam\tcall now\n"


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


class Server:
    """Files by their paths; ``cut`` ends an answer in the middle, ``asked`` are the requests that came."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                data = outer.files.get(self.path)
                if data is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if self.path in outer.cut else data)
                if self.path in outer.cut:
                    self.connection.close()

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    server = Server()
    monkeypatch.setenv("MERCER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.delenv("MERCER_OFFLINE", raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    yield server
    server.http.shutdown()
    server.http.server_close()


def serve(server: Server, monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, bytes], url: str) -> None:
    """Let a data set come from the server; ``{}`` in the URL is the name of a file."""
    known = {file: (f"{server.url}{url.format(file)}",) for file in files}
    monkeypatch.setitem(origins.ORIGINS, name, origins.Origin("a set", "CC0", "nobody", known))
    for file, data in files.items():
        monkeypatch.setitem(checksums.CHECKSUMS, f"{name}/{file}", (hashlib.sha256(data).hexdigest(), len(data)))


# --------------------------------------------------------------------------------------------------------- fetching


def test_a_loader_downloads_once_and_reads_from_the_cache(server, monkeypatch, capsys) -> None:
    serve(server, monkeypatch, "sms-spam", {"SMSSpamCollection": SMS}, "/{}")
    server.files["/SMSSpamCollection"] = SMS
    assert list(load_sms_spam().labels) == ["ham", "spam"]
    assert "downloading sms-spam" in capsys.readouterr().err
    assert list(load_sms_spam().labels) == ["ham", "spam"]
    assert server.asked == ["/SMSSpamCollection"]
    assert (cache_folder() / "sms-spam" / "SMSSpamCollection").read_bytes() == SMS
    assert os.listdir(cache_folder() / "sms-spam") == ["SMSSpamCollection"]


def test_members_of_archives_are_held_against_their_own_checksums(server, monkeypatch) -> None:
    names = ("TOY_A.txt", "TOY_graph_indicator.txt", "TOY_graph_labels.txt")
    files = dict(zip(names, (b"1, 2\n2, 1\n", b"1\n1\n", b"1\n"), strict=True))
    serve(server, monkeypatch, "graphs/TOY", files, "/TOY.zip#TOY/{}")
    server.files["/TOY.zip"] = zipped({f"TOY/{name}": data for name, data in files.items()})
    graphs, y = load_tu("TOY")
    assert (len(graphs), y.tolist()) == (1, [1])
    monkeypatch.setenv("MERCER_CACHE", str(cache_folder().parent / "other"))
    server.files["/TOY.zip"] = zipped({f"TOY/{name}": data + b" " for name, data in files.items()})
    with pytest.raises(FetchError, match="SHA-256"):
        load_tu("TOY")
    assert server.asked == ["/TOY.zip"] * 2  # one download for all members
    server.files["/TOY.zip"] = zipped({"other": b""})
    with pytest.raises(FetchError, match="has no TOY/TOY_A"):
        load_tu("TOY")
    server.files["/TOY.zip"] = b"no archive"
    with pytest.raises(FetchError, match="not a complete zip archive"):
        load_tu("TOY")


@pytest.mark.parametrize("fault", ["wrong contents", "interrupted", "missing", "offline"])
def test_what_goes_wrong_is_said_and_leaves_nothing(server, monkeypatch, fault: str) -> None:
    serve(server, monkeypatch, "sms-spam", {"SMSSpamCollection": SMS}, "/{}")
    path = "/SMSSpamCollection"
    if fault == "wrong contents":
        server.files[path] = SMS + b"more"
    elif fault == "interrupted":
        server.files[path], server.cut = SMS * 1000, {path}
        data = SMS * 1000
        serve(server, monkeypatch, "sms-spam", {"SMSSpamCollection": data}, "/{}")
    elif fault == "offline":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{free.getsockname()[1]}/x"
        origin = origins.Origin("a set", "CC0", "nobody", {"SMSSpamCollection": (nobody,)})
        monkeypatch.setitem(origins.ORIGINS, "sms-spam", origin)
    with pytest.raises(
        FetchError, match=r"cannot fetch sms-spam/SMSSpamCollection.*http://127\.0\.0\.1.*Copy the file"
    ):
        load_sms_spam()
    folder = cache_folder() / "sms-spam"
    assert not folder.exists() or os.listdir(folder) == []
    if fault == "interrupted":  # and the next call begins again
        server.cut = set()
        assert len(load_sms_spam().labels) == 2000


def test_the_second_address_is_tried_where_the_first_fails(server, monkeypatch) -> None:
    serve(server, monkeypatch, "sms-spam", {"SMSSpamCollection": SMS}, "/{}")
    urls = (f"{server.url}/gone", f"{server.url}/SMSSpamCollection")
    origin = origins.Origin("a set", "CC0", "nobody", {"SMSSpamCollection": urls})
    monkeypatch.setitem(origins.ORIGINS, "sms-spam", origin)
    server.files["/SMSSpamCollection"] = SMS
    assert fetch("sms-spam") == cache_folder() / "sms-spam"
    assert server.asked == ["/gone", "/SMSSpamCollection"]


def test_nothing_is_downloaded_where_a_folder_is_given_or_forbidden(server, monkeypatch, tmp_path) -> None:
    serve(server, monkeypatch, "basenp-crfpp", {"train.data": b"a DT B\n"}, "/{}")
    server.files["/train.data"] = b"a DT B\n"
    with pytest.raises(FileNotFoundError, match="needs the file train"):
        load_basenp(data_home=tmp_path)
    monkeypatch.setenv("MERCER_OFFLINE", "1")
    with pytest.raises(FileNotFoundError, match="MERCER_DATA"):
        load_basenp()
    assert server.asked == []
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))  # a folder without the set
    with pytest.raises(FileNotFoundError, match="MERCER_OFFLINE"):
        load_basenp()
    monkeypatch.delenv("MERCER_OFFLINE")
    assert load_basenp() == [[("a", "DT", "B")]]


def test_a_cache_that_cannot_be_written_says_so(server, monkeypatch, tmp_path) -> None:
    serve(server, monkeypatch, "sms-spam", {"SMSSpamCollection": SMS}, "/{}")
    (tmp_path / "cache").write_text("a file, no folder")
    with pytest.raises(FetchError, match="cannot write"):
        fetch("sms-spam")


# ---------------------------------------------------------------------------------------------------------- the table


def test_every_origin_has_checksums_a_licence_and_a_citation() -> None:
    for name, origin in origins.ORIGINS.items():
        assert origin.title
        assert origin.licence
        assert origin.citation
        assert origin.files
        for file, urls in origin.files.items():
            digest, size = checksums.CHECKSUMS[f"{name}/{file}"]
            assert len(digest) == 64
            assert size > 0
            assert all(url.startswith("https://") for url in urls)
    assert {key.rpartition("/")[0] for key in checksums.CHECKSUMS} == set(origins.ORIGINS)
    with pytest.raises(ValueError, match="available are conll2000"):
        origin_of("nothing")


@pytest.mark.skipif(not os.environ.get("MERCER_DATA"), reason="set MERCER_DATA to the folder of public data sets")
def test_checksums_are_those_of_the_files_that_loaders_were_tested_with() -> None:
    import gzip

    home = Path(os.environ["MERCER_DATA"])
    for key, (digest, size) in checksums.CHECKSUMS.items():
        if size > 2_000_000:
            continue
        path = home / key
        data = path.read_bytes() if path.is_file() else gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes())
        assert hashlib.sha256(data).hexdigest() == digest, key


# -------------------------------------------------------------------------------------------------------- the command


def test_the_command_lists_tells_and_fetches(server, monkeypatch, capsys) -> None:
    serve(server, monkeypatch, "sms-spam", {"SMSSpamCollection": SMS}, "/{}")
    server.files["/SMSSpamCollection"] = SMS
    assert main(["datasets"]) == 0
    out = capsys.readouterr().out
    assert "conll2000" in out
    assert "graphs/MUTAG" in out
    assert main(["datasets", "sms-spam"]) == 0
    assert "nobody" in capsys.readouterr().out
    assert main(["datasets", "sms-spam", "--fetch"]) == 0
    told = capsys.readouterr().out
    assert str(cache_folder()) in told
    assert "licence: CC0" in told
    assert main(["datasets", "nothing"]) == 2
    assert main(["datasets", "--fetch"]) == 2
    server.files.clear()
    assert main(["datasets", "graphs/MUTAG", "sms-spam"]) == 0
