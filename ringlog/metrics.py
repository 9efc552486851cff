"""What the server counts, for Prometheus and whatever else reads its format."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@contextmanager
def served(text: Callable[[], str], host: str, port: int) -> Iterator[tuple[str, int]]:
    """Answers GET /metrics on host and port with `text()` inside the with block; yields the address.

    Raises OSError when the address cannot be listened on.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0

        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND, explain="The counts are at /metrics.")
                return
            body = text().encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """A scrape is nothing to report."""

    with ThreadingHTTPServer((host, port), Handler) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield host, http.server_address[1]
        finally:
            http.shutdown()
            thread.join()
