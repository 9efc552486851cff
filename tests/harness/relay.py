"""A TCP relay between one client and a server, for tests that watch the traffic."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from servers import RunningServer


@contextmanager
def relay(server: RunningServer, passes: Callable[[bytes, bool], bool]) -> Iterator[int]:
    """The port of a relay to the server.

    `passes` gets each part that arrives, and whether the client has sent it. If it returns False, neither
    this part nor a later one of that direction is passed on. Connections are cut at the end.
    """
    ends: list[socket.socket] = []

    def pass_on(source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while part := source.recv(65536):
                if not passes(part, from_client):
                    return
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with suppress(OSError):
            client, _ = listener.accept()
            onward = socket.create_connection((server.host, server.port))
            ends.extend((client, onward))
            back = threading.Thread(target=pass_on, args=(onward, client, False))
            back.start()
            pass_on(client, onward, True)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            for end in (listener, *ends):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            thread.join()
            for end in ends:
                end.close()
