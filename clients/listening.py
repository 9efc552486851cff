"""The addresses that a program listens on: given by an option, or a free port."""

import random
import socket
from collections.abc import Iterable
from contextlib import suppress

# Linux uses higher ports for outgoing connections, which could take one before its server starts. Lower ones
# are distributed among the tests (tests/harness/servers.py).
PORTS = range(28_000, 32_768)


def host_and_port(text: str) -> tuple[str, int] | None:
    """Reads HOST:PORT, an IPv6 address in brackets; None for an invalid one."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        return None
    return host, int(port)


def free(host: str, port: int) -> None:
    """Raises OSError when no program can listen on this address; port 0: any free one."""
    family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family) as stream:
        # like servers: ended connections do not block the port
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stream.bind(where)


def free_port(among: Iterable[int] | None = None) -> int:
    """The first of these ports of 127.0.0.1 that is free, for TCP and UDP; one of PORTS, when none are named.

    Raises OSError when there is none.
    """
    for port in random.sample(PORTS, len(PORTS)) if among is None else among:
        with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagram, suppress(OSError):
            # like servers: ended connections do not block the port
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stream.bind(("127.0.0.1", port))
            datagram.bind(("127.0.0.1", port))
            return port
    raise OSError("no port of 127.0.0.1 is free")
