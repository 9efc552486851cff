"""The metrics of the server for Prometheus and compatible programs; and its health checks."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import generate_latest

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"
_END = "# EOF\n"


@contextmanager
def served(
    text: Callable[[], str], ready: Callable[[], str | None], host: str, port: int
) -> Iterator[tuple[str, int]]:
    """Answers on host and port inside the with block; yields the address.

    `/metrics` returns `text()`, as OpenMetrics or in Prometheus's older form, by the Accept header.
    `/healthz` returns 200 while this process lives, `/readyz` while it can serve, else 503 with the reason
    of `ready()`.
    Raises OSError when the address cannot be listened on.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/metrics":
                    wanted = self.headers.get("Accept", "")
                    if not wanted or "openmetrics" in wanted or "*/*" in wanted:
                        self._answer(HTTPStatus.OK, text(), OPENMETRICS)
                    else:
                        self._answer(HTTPStatus.OK, text().removesuffix(_END), PLAIN)
                case "/healthz":
                    self._answer(HTTPStatus.OK, "alive\n")
                case "/readyz":
                    why = ready()
                    status = HTTPStatus.OK if why is None else HTTPStatus.SERVICE_UNAVAILABLE
                    self._answer(status, f"{why or 'ready'}\n")
                case _:
                    self.send_error(HTTPStatus.NOT_FOUND, explain="The metrics are at /metrics.")

        # load balancers send HEAD
        do_HEAD = do_GET  # noqa: N815

        def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes are not logged."""

    with ThreadingHTTPServer((host, port), Handler) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield host, http.server_address[1]
        finally:
            http.shutdown()
            thread.join()


@dataclass(frozen=True)
class _Families:
    families: Iterable[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.families


def exposition(families: Iterable[Metric]) -> str:
    """OpenMetrics text without its end."""
    text: bytes = generate_latest(_Families(families))  # type: ignore[no-untyped-call]
    return text.decode().removesuffix(_END)


def together(*parts: str) -> str:
    """Joins texts of metrics, with one end."""
    return "".join(part.removesuffix(_END) for part in parts) + _END
