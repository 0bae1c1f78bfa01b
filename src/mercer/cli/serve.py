"""``mercer serve``: serve models over HTTP, with a page to try them."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from mercer.cli import terminal
from mercer.cli.errors import UsageError, settings

_LIMITS = "Limits"
_SAFETY = "Safety"


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]MODEL…", help="Model files; the name of a model is the stem of its file."),
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, max=256, help="Processes, which share the memory of the models.")
    ] = 1,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="File with the token that callers must send.", rich_help_panel=_SAFETY),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Allow access without a token.", rich_help_panel=_SAFETY),
    ] = False,
    certificate: Annotated[
        str | None, typer.Option(metavar="PATH", help="TLS certificate (PEM).", rich_help_panel=_SAFETY)
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="PATH", help="Private key of the certificate.", rich_help_panel=_SAFETY)
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name of this server in the Host header.", rich_help_panel=_SAFETY),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Allow requests from pages of this origin.", rich_help_panel=_SAFETY),
    ] = None,
    max_body: Annotated[
        int, typer.Option(metavar="BYTES", min=1, help="Maximum bytes of a request.", rich_help_panel=_LIMITS)
    ] = 16 << 20,
    max_instances: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of instances in a request.", rich_help_panel=_LIMITS)
    ] = 4096,
    max_length: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum number of tokens, characters or pixels of an instance.",
            rich_help_panel=_LIMITS,
        ),
    ] = 100_000,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.01, help="Time limit for an answer.", rich_help_panel=_LIMITS)
    ] = 30.0,
    max_queue: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Maximum number of requests that wait for a model.", rich_help_panel=_LIMITS
        ),
    ] = 64,
    max_batch: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Maximum number of instances in a batch.", rich_help_panel=_LIMITS),
    ] = 256,
    max_delay: Annotated[
        float,
        typer.Option(
            metavar="MS", min=0, max=1000, help="Time that a request waits for a batch.", rich_help_panel=_LIMITS
        ),
    ] = 0.0,
    max_connections: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of open connections.", rich_help_panel=_LIMITS)
    ] = 1000,
    reload: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Interval of checks for replaced files; 0 for never.")
    ] = 1.0,
    drain: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time to finish requests after SIGTERM.")
    ] = 10.0,
    drain_delay: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, help="Time for which it still takes requests, not ready, after SIGTERM."
        ),
    ] = 0.0,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log every request.")] = False,
) -> None:
    """Serve models over HTTP, to programs and to people.

    The address of the page is printed once all models are loaded; the log goes to standard error as JSON lines. If a
    model file is replaced, the server checks it and then switches to the new model. If the new file cannot be served,
    the server reports it and keeps the old model. On SIGTERM and Ctrl-C, the server answers running requests and ends.

    [bold]Examples[/bold]
      mercer serve tagger.mercer spam=mail.mercer --port 8000
      curl -s localhost:8000/v1/models/tagger:predict -d '{"instances": [["Ada", "wrote", "programs"]]}'
      mercer serve tagger.mercer --host 0.0.0.0 --token-file token.txt --certificate cert.pem --key key.pem
    """
    from mercer.serve.errors import MissingExtraError
    from mercer.serve.server import Options, is_loopback
    from mercer.serve.server import serve as run
    from mercer.serve.store import model_names

    named = model_names(models)
    token = _token(token_file)
    if not is_loopback(host) and token is None and not insecure:
        raise UsageError(
            f"{host} can be reached from other machines: give --token-file",
            "--insecure lets everybody who reaches the address use the models",
        )
    if (certificate is None) != (key is None):
        raise UsageError("--certificate and --key belong together")
    for path in (certificate, key):
        if path is not None:
            open(path, "rb").close()
    options = Options(
        named, host, port, workers, token, list(allow_host or []), list(cors or []), certificate, key, max_body,
        max_instances, max_length, timeout, max_batch, max_delay / 1e3, max_queue, reload,
        max_connections=max_connections, drain_seconds=drain, drain_delay=drain_delay, log_requests=log_requests,
        max_bytes=settings.max_bytes,
    )  # fmt: skip

    def announce(url: str) -> None:
        terminal.say("serving ", ", ".join(named), " at ", url)
        sys.stdout.flush()

    try:
        status = run(options, announce)
    except MissingExtraError as error:
        raise UsageError(str(error)) from None
    if status:
        raise SystemExit(status)


def _token(path: str | None) -> str | None:
    """The first line of a file; long enough not to be guessed."""
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        token = file.readline().strip()
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"{os.fspath(path)}: the token must be one line of at least 16 letters, digits and signs",
            "python -c 'import secrets; print(secrets.token_urlsafe())' makes one",
        )
    return token
