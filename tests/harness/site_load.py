"""Writers of all tables of a site while they move, and the gateway that they use."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers import RINGLOG, address_of, free_port
from sites import Site
from spools import waiting
from waiting import PATIENCE, wait_until

_COUNTING = Path(__file__).with_name("counting.py")


@dataclass
class Load:
    """Writers of all tables of a site, and the gateway that they use."""

    site: Site
    port: int
    serving: "subprocess.Popen[str]"

    def given(self, table: str) -> int:
        file = self.site.folder / f"given.{table}"
        return len(file.read_text().split()) if file.exists() else 0

    def go_on(self, tables: dict[str, str | None]) -> None:
        """Waits until rows have arrived in these tables, each on its server."""
        before = {table: self.given(table) for table in tables}
        wait_until(
            lambda: all(
                max(self.site.rows(table, node), default=0) > before[table] + 5
                for table, node in tables.items()
            ),
            (self.site.folder / "load.log").read_text,
        )

    def gateway_dies(self) -> None:
        self.serving.kill()
        self.serving.wait()

    def gateway_starts(self) -> None:
        self.serving = serve(self.site, self.port)

    def all_are_there(self, tables: dict[str, str | None]) -> None:
        for table, node in tables.items():
            found = self.site.rows(table, node)
            # the row in transit at the request to end may not have left the source
            assert set(range(1, self.given(table))) <= {*found, *waiting(self.site.folder / "spool", table)}
            assert all(times == 1 for times in found.values())


def serve(site: Site, port: int) -> "subprocess.Popen[str]":
    with (site.folder / "serve.log").open("a") as log:
        process = subprocess.Popen(
            [RINGLOG, "serve", "--listen", f"127.0.0.1:{port}"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | {"RINGLOG_DSN": site.dsn},
        )
    address_of(process, site.folder / "serve.log")
    return process


@contextmanager
def loaded(site: Site) -> Iterator[Load]:
    """Writers write all tables until the end of the block."""
    shutil.copy(_COUNTING, site.folder)
    port = free_port()
    load = Load(site, port, serve(site, port))
    url = f"tds://writer@127.0.0.1:{port}"
    words = ("load", "--facility", site.facility, "--url", url, "--source", "python:counting:read")
    try:
        with (site.folder / "load.log").open("w") as output:
            writers = subprocess.Popen(
                [RINGLOG, *words],
                cwd=site.folder,
                stdout=output,
                stderr=output,
                env=os.environ | {"RINGLOG_PASSWORD": "secret", "RINGLOG_SPOOL": str(site.folder / "spool")},
            )
        try:
            yield load
        finally:
            writers.send_signal(signal.SIGTERM)
            ended = writers.wait(PATIENCE)
        assert ended == 0, (site.folder / "load.log").read_text()
    finally:
        load.serving.terminate()
        load.serving.wait()
