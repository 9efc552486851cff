"""The server process: it reads its settings from standard input, and stops when that ends.

Its first line of input is the settings in JSON, its first line of output `HTTP on HOST:PORT`. Each further
line of input has nodes to add. The process stops when its input ends, also because its parent process has
ended.
"""

import asyncio
import io
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import uvicorn

from ringlog.history.priority import lower_process
from ringlog.history.privileges import become
from ringlog.retrieval.serving.access import Access
from ringlog.retrieval.serving.application import application
from ringlog.retrieval.serving.protocol import Protocol
from ringlog.retrieval.serving.renewal import followed
from ringlog.retrieval.serving.settings import LoginServer, Settings, nodes_from_json

_NICENESS = 5  # nice value: readers wait for writers
_BACKLOG = 2048  # connections that wait to be accepted


def main() -> None:
    """Serves until standard input ends or a signal arrives."""
    # not sys.stdin: a thread that reads it holds its lock to the end, and Python aborts
    parent = io.FileIO(sys.stdin.fileno(), "rb", closefd=False)
    # SIGHUP may be sent to the process group; it is for the parent
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    line = parent.readline()
    if not line:
        # the server has ended while it started
        return
    settings = Settings.from_json(line)
    with suppress(OSError):
        lower_process(os.getpid(), _NICENESS)
    try:
        listening, server, access = _prepared(settings)
    except ssl.SSLError as error:
        _refuse(f"the certificate {settings.certificate} cannot be used: {error}")
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        _refuse(f"cannot listen on {where}: {error.strerror or error}. Name another address with --http")
    _become(settings)
    host, port = listening.getsockname()[:2]
    print(f"HTTP on [{host}]:{port}" if ":" in host else f"HTTP on {host}:{port}", flush=True)

    def watch() -> None:
        try:
            for line in parent:
                access.know_nodes(nodes_from_json(line))
        finally:
            # also after an error: a process that does not read its input would outlive its parent
            server.should_exit = True

    threading.Thread(target=watch, name="parent", daemon=True).start()

    def renew() -> None:
        if server.config.ssl is not None and settings.certificate is not None:
            server.config.ssl.load_cert_chain(settings.certificate, settings.key)

    files = [Path(file) for file in (settings.certificate, settings.key) if file is not None]
    with followed(files, renew):
        server.run(sockets=[listening])


def _refuse(message: str) -> NoReturn:
    print(message, flush=True)
    sys.exit(1)


def _prepared(settings: Settings) -> tuple[socket.socket, uvicorn.Server, Access]:
    listening = listen(settings.host, settings.port)
    first = LoginServer(settings.database, settings.everyone)
    access = Access(first, settings.limits.seconds, settings.nodes)
    config = uvicorn.Config(
        application(access, settings.limits, settings.data),
        http=Protocol,
        ws="none",
        lifespan="on",
        # in the format of the other logs of this process
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        backlog=_BACKLOG,
        # for connections; queries have their own limits
        limit_concurrency=2000,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=65_536,
    )
    config.load()
    logging.getLogger("uvicorn.error").addFilter(_is_of_a_fault)
    return listening, uvicorn.Server(config), access


def _is_of_a_fault(record: logging.LogRecord) -> bool:
    """False for a request that the stop of the server has cancelled: uvicorn has logged their number."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY on connections only if their socket names its protocol; without it the end of
    # an answer waits for the client's delayed acknowledgement, 40 ms
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.listen(_BACKLOG)
    return listening


def _become(settings: Settings) -> None:
    """Gives up root, which an HTTP server does not need."""
    if os.geteuid() != 0:
        return
    if not settings.uid or settings.gid is None:
        _refuse("it does not run as root: name an account for it")
    become(settings.uid, settings.gid)
