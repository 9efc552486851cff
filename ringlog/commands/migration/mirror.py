"""The commands `ringlog mirror` and `ringlog mirror-switch`: two servers, one of which answers."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from ringlog.errors import ServerError, UsageError
from ringlog.gateway import Mirror
from ringlog.loader.cli import option
from ringlog.monitoring.metrics import served
from ringlog.server.processes.descriptors import raise_file_limit
from ringlog.server.processes.stopping import stop_at_signals
from ringlog.server.server import Address

_DEFAULT_PORT = 5000
_PATIENCE = 30.0  # seconds

Report = Annotated[
    Path,
    typer.Option(
        "--report",
        metavar="FILE",
        help="File of the differences, a line of JSON for each. An existing report is continued.",
    ),
]
Control = Annotated[
    Path | None,
    option(
        "--control",
        metavar="SOCKET",
        help="Socket for ringlog mirror-switch. Default: the report's name and .socket.",
    ),
]


def mirror(
    old: Annotated[str, typer.Option(metavar="tds://HOST[:PORT]", help="The server that answers clients.")],
    new: Annotated[str, typer.Option(metavar="tds://HOST[:PORT]", help="The server that is compared.")],
    listen: Annotated[
        str,
        typer.Option(metavar="[HOST]:PORT", help=("Address that clients connect to. Port 0: a free one.")),
    ] = "127.0.0.1:5000",
    report: Report = Path("mirror.jsonl"),
    control: Control = None,
    metrics: Annotated[
        str | None,
        option(metavar="HOST:PORT", help="Address of the metrics for Prometheus (/metrics). Default: none."),
    ] = None,
) -> None:
    """Pass every client to the old server, send its requests to the new one too, and compare their answers.

    Clients get the old server's answers unchanged. Differences of the new one go to the report and the
    metrics only. It runs until Ctrl-C.
    """
    servers = _server("--old", old), _server("--new", new)
    if servers[0] == servers[1]:
        raise UsageError(f"--old and --new are the same server, {servers[0]}")
    address = Address.parse(f"0.0.0.0{listen}" if listen.startswith(":") else listen)
    counts = None if metrics is None else Address.parse(metrics)
    raise_file_limit()
    stop = stop_at_signals()
    with ExitStack() as stack:
        try:
            running = Mirror(address.host, address.port, *servers, report)
        except OSError as error:
            raise ServerError(f"the mirror cannot start: {error}") from None
        stack.callback(running.stop)
        path = control or report.with_name(f"{report.name}.socket")
        stack.enter_context(_controlled(path, lambda command: _obey(running, command)))
        lines = [f"mirror on {Address(*running.address)}: {servers[0]} answers, {servers[1]} is compared"]
        if counts is not None:
            where = stack.enter_context(served(running.metrics, lambda: None, counts.host, counts.port))
            lines.append(f"metrics on http://{Address(*where)}/metrics")
        lines.append(f"  switch over:  ringlog mirror-switch new --control {path}")
        lines.append("  stop:         Ctrl-C")
        print("\n".join(lines), flush=True)
        stop.wait()
    print("stopped", flush=True)


def mirror_switch(
    to: Annotated[str, typer.Argument(metavar="old|new|status", help=("The server that answers clients."))],
    control: Annotated[
        Path, typer.Option("--control", metavar="SOCKET", help="Socket of the running mirror.")
    ] = Path("mirror.jsonl.socket"),
    close: Annotated[
        bool,
        typer.Option(
            "--close",
            help="End the open sessions, each as soon as it is idle, so that their clients reconnect.",
        ),
    ] = False,
) -> None:
    """Select the server, new or old, that answers clients which connect from now on.

    The other one is still compared.
    """
    if to not in ("old", "new", "status"):
        raise UsageError(f"{to!r} is not one of: old, new, status")
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(_PATIENCE)
        try:
            caller.connect(str(control))
            caller.sendall(f"{to} {'close' if close else 'keep'}".encode())
            caller.shutdown(socket.SHUT_WR)
            print(b"".join(iter(lambda: caller.recv(4096), b"")).decode())
        except OSError as error:
            reason = error.strerror or error
            raise ServerError(f"no mirror answers at {control}: {reason}") from None


def _obey(running: Mirror, command: str) -> str:
    to, _, ends = command.partition(" ")
    if to in ("old", "new"):
        running.switch("new" if to == "new" else "old", close=ends == "close")
    which = "new" if running.new_answers else "old"
    return f"the {which} server answers new sessions from now on"


@contextmanager
def _controlled(path: Path, obey: Callable[[str], str]) -> Iterator[None]:
    """Answers requests on a socket that only its owner may use."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            before = os.umask(0o177)
            try:
                listener.bind(str(path))
            finally:
                os.umask(before)
        except OSError as error:
            raise ServerError(f"cannot make the socket {path}: {error}") from None
        listener.listen()

        def answer() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with caller:
                    try:
                        caller.settimeout(_PATIENCE)
                        caller.sendall(obey(caller.recv(100).decode(errors="replace")).encode())
                    except OSError:
                        continue

        thread = threading.Thread(target=answer, name="control", daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            path.unlink(missing_ok=True)


def _server(option: str, url: str) -> str:
    """host:port of a server's URL, which has no user: clients use their own logins."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORT
    except ValueError:
        raise UsageError(f"{option} {url!r}: its port is not a number up to 65535") from None
    if parts.scheme != "tds" or not parts.hostname or parts.username or parts.path not in ("", "/"):
        raise UsageError(f"{option} {url!r} must have the form tds://HOST:PORT")
    return str(Address(parts.hostname, port))
