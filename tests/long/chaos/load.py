"""Kills and cuts while `ringlog load` replays recordings at their own pace.

Writers, the supervisor, the server (gateway) and PostgreSQL are killed and connections are cut; on request
the server is away, its disk is full, the spools' disk is full. Then every row of every recording must be in
the log exactly once, with its values. Only rows thinned by a full spool may be missing: as many as in the
ledger.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from chaos.figures import Figures
from chaos.processes import kill, kill_gateway, kill_postgresql, load, writers_of_load
from chaos.recordings import DOUBLES, record, record_waveforms
from chaos.site import LoadedSite, table_text
from random_operations import Operations, run
from small_disk import filled

SERVER_DISK, SPOOL_DISK = "600m", "24m"
"""Sizes of disks that become full: a little more than their use at the beginning."""
SPOOL_BUDGET = 4
"""MiB: the spools of all tables fit on their disk until it is filled"""
FAULTS: Operations = {
    "writer": (6, kill(writers_of_load)),
    "connections": (6, lambda site, draw: site.proxy.cut()),
    "supervisor": (2, kill(load)),
    "gateway": (2, kill_gateway),
    "postgresql": (2, kill_postgresql),
}


@dataclass
class RecordedSite(LoadedSite):
    """Tables with a recording each."""

    tables: int = 6
    cycle: float = 0.1
    """seconds between two rows"""
    recorded: int = 3000
    """rows of each recording"""
    points: int = 0
    """of waveforms, in place of single values"""

    def __post_init__(self) -> None:
        self.names = [f"fault_{number}" for number in range(self.tables)]
        self.length = self.recorded * self.cycle
        super().__post_init__()
        self.record()

    def record(self) -> None:
        begins = dict.fromkeys(self.names, datetime.now(UTC).replace(microsecond=0))
        if self.points:
            record_waveforms(self.recordings, begins, self.cycle, self.recorded, self.points)
        else:
            record(self.recordings, begins, self.cycle, self.recorded)

    def text(self) -> str:
        columns: dict[str, dict[str, object]] = {"c_{n}": {"count": len(DOUBLES), "type": "double"}}
        if self.points:
            columns = {"trace": {"type": "double[]", "points": self.points}}
        return "".join(table_text(name, columns, rows=100, cycle=self.cycle) for name in self.names)

    @property
    def loaded(self) -> Mapping[str, tuple[str, ...]]:
        return dict.fromkeys(self.names, ("trace",) if self.points else (*DOUBLES,))

    def harm(
        self,
        draw: random.Random,
        faults: int,
        mean: float,
        *,
        outage: float = 0.0,
        full_server: float = 0.0,
        full_spool: float = 0.0,
    ) -> Figures:
        """Makes so many faults, `mean` seconds apart on average, and then seconds of an outage and without
        space on the disks of the server and of the spools, while the server is away."""
        self.start_load()
        run(self, FAULTS, draw, self.note, pause=lambda: draw.expovariate(1 / mean), number=faults)
        if outage:
            self.await_rows()
            self.note("outage")
            self.cut_off(outage)
        if full_server:
            self.await_rows()
            self.note("full disk of the server")
            with filled(self.folder / "server"):
                time.sleep(full_server)
        if full_spool:
            self.await_rows()
            self.note("full disk of the spools")
            with filled(self.folder / "spool"):
                self.cut_off(full_spool)
        self.await_end()
        self.compare()
        return self.figures
