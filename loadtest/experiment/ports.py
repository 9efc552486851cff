"""Ports for servers of our own."""

import random
import socket
from contextlib import suppress

from ringlog.loadtest.experiment.errors import LoadTestError


def free_port() -> int:
    """A port of TCP and UDP below those that Linux gives to outgoing connections."""
    for port in random.sample(range(10_000, 32_000), 1000):
        with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagram, suppress(OSError):
            stream.bind(("127.0.0.1", port))
            datagram.bind(("127.0.0.1", port))
            return port
    raise LoadTestError("no port is free for a server beside ringlog's")
