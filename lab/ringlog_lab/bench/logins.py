"""Storms of logins: the number of successful clients, and the waits of a writer meanwhile."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pymssql

from ringlog.clients.calling import call
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables, write_facility
from ringlog.loadtest.experiment.server import READER, WRITER, Server, make_certificate, serving
from ringlog_lab.bench.asking import asking
from ringlog_lab.record import Figure

RATE = 50.0
"""calls a second of the writer"""
_WRITTEN = Tables("stormy_", 1, 10)
_SECTION = "gateway"
"""of freetds.conf"""


@dataclass(frozen=True)
class Storm:
    """Clients that log in at the same moment."""

    title: str
    version: str
    """of TDS"""
    encryption: str
    """in the form of freetds.conf"""
    share: int
    """the requested clients for each of these"""


STORMS = (
    Storm("TDS 5.0", "5.0", "off", 1),
    Storm("TDS 7.4 by TLS", "7.4", "require", 4),
)


def measure_logins(
    programs: Path, folder: Path, clients: int, seconds: float, doing: Callable[[str], None]
) -> Iterator[Figure]:
    """Storms of this number of clients on a separate server, and a writer, which is measured alone before."""
    facility, settings = folder / "logins.toml", folder / "freetds.conf"
    write_facility(facility, [_WRITTEN])
    certificate, key = make_certificate(folder / "certificate")
    options = ("--tls-cert", certificate, "--tls-key", key)
    doing("starting a server")
    with (
        serving(facility, folder / "logins", keep=False, options=options) as server,
        ThreadPoolExecutor() as pool,
        _Writer(server) as writer,
    ):
        writing = pool.submit(writer.run)
        try:
            doing("a writer alone")
            time.sleep(seconds)
            yield from writer.figures("alone")
            for storm in STORMS:
                count = max(1, clients // storm.share)
                doing(f"{count} logins, {storm.title}")
                settings.write_text(
                    f"[{_SECTION}]\nhost = {server.host}\nport = {server.port}\n"
                    f"encryption = {storm.encryption}\n"
                )
                command = [
                    *("env", f"FREETDSCONF={settings}"),
                    *(str(programs / "tdslogins"), _SECTION, READER, storm.version, str(count)),
                ]
                what = f"{count} logins at once, {storm.title}"
                with asking(command, server.password, what, own_session=True) as answer:
                    writer.waits()
                    found = json.loads(answer("go"))
                    yield from writer.figures(f"beside {what}")
                if found["refusal"]:
                    raise LoadTestError(f"{what}: {found['in']} are in, another: {found['refusal']}")
                yield Figure(f"{what}: in", found["in"], "clients")
                yield Figure(f"{what}: median", found["median"], "s")
                yield Figure(f"{what}: the last", found["last"], "s")
        finally:
            writer.stop()
        writing.result()


class _Writer:
    """One client that puts rows at RATE. Its waits are measured from the time at which a call is due."""

    def __init__(self, server: Server) -> None:
        self._connection = pymssql.connect(
            server=server.host,
            port=str(server.port),
            user=WRITER,
            password=server.password,
            tds_version="7.4",
            encryption="off",
            autocommit=True,
        )
        self._waits: list[float] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def run(self) -> None:
        readings = [number / 7 for number in range(_WRITTEN.columns)]
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            call(self._connection, f"put_{_WRITTEN.names[0]}", None, datetime.now(UTC), *readings)
            waited = time.monotonic() - due
            with self._lock:
                self._waits.append(waited)
            due += 1 / RATE

    def stop(self) -> None:
        self._stop.set()

    def waits(self) -> list[float]:
        """Those since the last time, in seconds, the shortest first."""
        with self._lock:
            waits, self._waits = self._waits, []
        return sorted(waits)

    def figures(self, when: str) -> Iterator[Figure]:
        waits = self.waits()
        if not waits:
            raise LoadTestError(f"no call of the writer was answered {when}")
        for name, part in (("p50", 0.5), ("p99", 0.99), ("longest", 1.0)):
            yield Figure(f"a writer {when}: {name}", 1e3 * waits[int((len(waits) - 1) * part)], "ms")
