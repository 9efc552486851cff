"""A TCP proxy to a server whose connections can be cut, all at once, at any moment."""

import socket
import struct
import threading
from contextlib import suppress


class Proxy:
    """Forwards its `port` to another one of this machine. While `closed`, connections are refused."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._open: dict[threading.Thread, tuple[socket.socket, socket.socket]] = {}
        self._lock = threading.Lock()
        self.closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self._lock:
            doomed = dict(self._open)
        for ends in doomed.values():
            for end in ends:
                with suppress(OSError):
                    # with a reset: bytes in transit are lost
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RDWR)
        for thread in doomed:
            thread.join()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            try:
                if self.closed:
                    raise ConnectionError
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:
                client.close()
                continue
            thread = threading.Thread(target=self._serve, args=(client, server), daemon=True)
            with self._lock:
                self._open[thread] = client, server
                thread.start()
            if self.closed:
                # a connection since the check, perhaps after the cut
                self.cut()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """Forwards both directions. The sockets are closed when no thread uses them any more: another
        connection could get their numbers, and its bytes would be read here."""
        back = threading.Thread(target=_forward, args=(server, client), daemon=True)
        back.start()
        _forward(client, server)
        back.join()
        with self._lock:
            del self._open[threading.current_thread()]
        client.close()
        server.close()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        # wakes the thread of the other direction
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
