"""A TCP proxy to a server whose connections can be cut, all at once, at any moment."""

import socket
import struct
import threading
from contextlib import suppress


class Proxy:
    """Forwards its `port` to another one of this machine. While `closed`, connections are refused."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self._lock:
            doomed, self._open = self._open, set()
        for end in doomed:
            with suppress(OSError):
                # with a reset: bytes in transit are lost
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
            end.close()

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
            with self._lock:
                self._open |= {client, server}
            if self.closed:
                # a connection since the check, perhaps after the cut
                self.cut()
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with self._lock:
                self._open.discard(end)
            with suppress(OSError):
                # wakes the thread that waits for the other direction: closing alone would not
                end.shutdown(socket.SHUT_RDWR)
            end.close()
