"""A hundred trips of 2,000 signals beside writers at 10 Hz: captures are complete.

The load is ten writers over TDS, each with a table of 200 columns. How long puts wait with and without trips,
which take turns, is printed: on a machine that does something else it depends on that more than on captures.
"""

import os
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from ringlog.clients import call, connect
from ringlog.server.logins import Right, add_login
from servers import Login, RunningServer, serving
from waiting import wait_until

TABLES, COLUMNS, CYCLE = 10, 200, 0.1
TURNS = int(os.environ.get("CAPTURE_TURNS", "5"))
TRIPS = 20  # of a turn, one a second
QUIET = 12.0  # seconds of a turn
SPAN = 10.0  # seconds before and after a trip
RECORDER = Login("recorder", "keep-Ω-4")

FACILITY = "timezone = 'UTC'\n" + "".join(
    f"""
[[table]]
name = "crate_{n}"
rows = 1000
cycle = {CYCLE}
log = {{ nth = 10 }}
[[table.column]]
name = "c_{{n}}"
count = {COLUMNS}
signal = "crate_{n}/{{n}}"
type = "real"
"""
    for n in range(TABLES)
)


class Writer(threading.Thread):
    """Puts a row of a table each cycle; keeps when, and how long it took."""

    def __init__(self, server: RunningServer, table: int, end: threading.Event) -> None:
        super().__init__()
        self._server, self._table, self._end = server, table, end
        self.sent: list[tuple[int, datetime, float]] = []
        self.took: list[tuple[float, float]] = []

    def run(self) -> None:
        login = self._server.writer
        url = f"tds://{login.user}@{self._server.host}:{self._server.port}"
        with closing(connect(url, password=login.password)) as connection:
            number = 0
            while not self._end.wait(CYCLE):
                at, first = datetime.now(UTC), float(number)
                values = {f"c_{n}": first + n for n in range(1, COLUMNS + 1)}
                begin = time.monotonic()
                seq_no = number % 1000 + 1
                call(connection, f"put_crate_{self._table}", seq_no=seq_no, time=at, **values)
                self.took.append((begin, time.monotonic() - begin))
                self.sent.append((seq_no, at, first))
                number += 1


@pytest.mark.timeout(1800)
def test_trips_beside_load(temporary_directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "crates.toml"
    tmp_path.chmod(0o755)
    file.write_text(FACILITY)
    end = threading.Event()
    trips: list[tuple[int, datetime]] = []
    busy: list[tuple[float, float]] = []
    with serving(temporary_directory / "trips", facility=file) as running:
        add_login(running.dsn, RECORDER.user, [Right.RECORDER], RECORDER.password)
        writers = [Writer(running, n, end) for n in range(TABLES)]
        for writer in writers:
            writer.start()
        try:
            _take_turns(running, trips, busy)
        finally:
            end.set()
            for writer in writers:
                writer.join()
        _compare(running, writers, trips)
    within = [[], []]
    for writer in writers:
        for begin, took in writer.took:
            within[any(start <= begin < stop for start, stop in busy)].append(took)
    quiet, beside = (float(np.percentile(took, 99)) for took in within)
    print(
        f"{len(trips)} trips; p99 of {len(within[0])} puts without {quiet * 1e3:.1f} ms,"
        f" of {len(within[1])} with trips {beside * 1e3:.1f} ms: {beside / quiet:.2f}; medians"
        f" {np.median(within[0]) * 1e3:.1f} and {np.median(within[1]) * 1e3:.1f} ms; load {os.getloadavg()}"
    )


def _take_turns(
    running: RunningServer, trips: list[tuple[int, datetime]], busy: list[tuple[float, float]]
) -> None:
    tables = ",".join(f"crate_{n}" for n in range(TABLES))
    query = "select ringlog.capture_event('trip', %s, %s, %s, %s, late => 0)"
    for _ in range(TURNS):
        time.sleep(QUIET)
        begin = time.monotonic()
        for _ in range(TRIPS):
            at = datetime.now(UTC)
            trips.append((running.sql(query, [at, SPAN, SPAN, tables], login=RECORDER)[0][0], at))
            time.sleep(1)
        wait_until(
            lambda: running.sql("select count(*) from ringlog.captured_table where due is not null") == [(0,)]
        )
        busy.append((begin, time.monotonic()))


def _compare(running: RunningServer, writers: list[Writer], trips: list[tuple[int, datetime]]) -> None:
    """Each capture has the rows that the writers sent, each value of them."""
    assert running.sql(
        "select count(*) from ringlog.captured_table where lost is not null or trouble is not null"
    ) == [(0,)]
    names = ", ".join(f"c_{n}" for n in range(1, COLUMNS + 1))
    for table, writer in enumerate(writers):
        for number, at in trips:
            begin, stop = at - timedelta(seconds=SPAN), at + timedelta(seconds=SPAN)
            query = (
                f"select seq_no, time, {names} from capture.crate_{table} where capture = %s order by time"
            )
            found = running.sql(query, [number])
            assert found == [
                (seq_no, time, *(first + n for n in range(1, COLUMNS + 1)))
                for seq_no, time, first in writer.sent
                if begin <= time < stop
            ]
            assert len(found) > 50
