"""The queue on disk: no row in it is lost, and thinned rows are in its ledger."""

import random
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from ringlog.clients.readings import Reading, stored
from ringlog.clients.spool.file import Former, SpoolError
from ringlog.clients.spool.spool import Spool
from ringlog.schema.moments import HOUR
from small_disk import small_disk
from spools import everything, put

COLUMNS = ["current", "state"]
NOON = 1_780_000_000_000_000 // HOUR * HOUR
SECOND = 1_000_000


def opened(file: Path, columns: list[str] = COLUMNS, budget: int = 2**30) -> Spool:
    return Spool(file, "magnets", columns, 5, budget)


def test_rows_are_returned_exactly_and_in_order(tmp_path: Path) -> None:
    readings: list[tuple[Reading, ...]] = [
        (0.1, "Störung"),
        (None, ""),
        (5e-324, "a\nb"),
        (True, None),
        (2**63 - 1, "磁石"),
    ]
    with closing(opened(tmp_path / "s")) as spool:
        spool.begin(3, NOON - SECOND)
        for number, row in enumerate(readings):
            put(spool, NOON + number, row)
    with closing(opened(tmp_path / "s")) as spool:
        rows = everything(spool)
        assert [row.readings for row in rows] == readings
        assert [type(value) for row in rows for value in row.readings] == [
            type(value) for row in readings for value in row
        ]
        assert [row.time for row in rows] == [NOON + number for number in range(5)]
        assert [row.seq_no for row in rows] == [4, 5, 1, 2, 3]
        assert (spool.depth, spool.oldest, spool.seq_no, spool.time) == (5, NOON, 3, NOON + 4)


def test_rows_are_numbered_when_the_position_of_the_ring_is_known(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "s")) as spool:
        for number in range(3):
            put(spool, NOON + number, (1.0, None))
        assert [row.seq_no for row in everything(spool)] == [None] * 3
        spool.begin(4, NOON - 1)
        put(spool, NOON + 3, (1.0, None))
        assert [row.seq_no for row in everything(spool)] == [5, 1, 2, 3]
        # this spool's own rows, which the server does not have yet, are later than the server's
        spool.begin(4, NOON - 1)
        assert spool.seq_no == 3
        # another writer has written meanwhile
        spool.begin(2, NOON + 1000)
        put(spool, NOON + 2000, (1.0, None))
        assert [row.seq_no for row in everything(spool)] == [5, 1, 2, 3, 3]


def test_only_acknowledged_rows_are_removed_and_the_ledger_balances(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "s")) as spool:
        spool.begin(0, None)
        for number in range(6):
            put(spool, NOON + number * HOUR // 3, (number, None))
        first, second, third = everything(spool)[:3]
        spool.acknowledge([first])
        spool.acknowledge([third], late=True)
        spool.refuse(second, "error 8152: too long")
        spool.repeat()
        spool.settle()
        assert [row.readings[0] for row in everything(spool)] == [3, 4, 5]
        assert (spool.depth, spool.oldest) == (3, NOON + HOUR)
        books = {hour.hour: hour for hour in spool.hours()}
        noon = books[NOON]
        assert (noon.produced, noon.acknowledged, noon.refused, noon.late) == (3, 2, 1, 1)
        assert (books[NOON + HOUR].produced, books[NOON + HOUR].acknowledged) == (3, 0)
        assert sum(hour.repeated for hour in books.values()) == 1
        # a count that the server has received is not sent again, unless it has changed meanwhile
        put(spool, NOON + HOUR, (6, None))
        for hour in books.values():
            spool.hour_reported(hour)
        assert [(hour.hour, hour.produced) for hour in spool.hours()] == [(NOON + HOUR, 4)]
        assert [(event.kind, event.time, event.message, event.rows) for event in spool.events()] == [
            ("refused", second.time, "error 8152: too long", 1)
        ]
        spool.events_reported(spool.events()[-1])
        assert spool.events() == []


def test_rows_that_come_together_share_a_commit(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "s")) as spool:
        spool.begin(4, None)
        commits: list[str] = []
        spool._database.set_trace_callback(lambda text: commits.append(text) if text == "commit" else None)
        spool.put([(NOON + number * HOUR // 2, stored((number, "on"))) for number in range(300)])
        assert len(commits) == 1
        rows = spool.batch(0, spool.newest, 1000, 2**20)
        assert [(row.id, row.seq_no) for row in rows[:3]] == [(1, 5), (2, 1), (3, 2)]
        # with the next rows' commit they leave the file
        spool.acknowledge(rows[:200])
        spool.put([(NOON + 150 * HOUR, stored((300, "on")))])
        assert len(commits) == 2
        spool._database.set_trace_callback(None)
        books = {hour.hour: hour for hour in spool.hours()}
        assert (books[NOON].produced, books[NOON].acknowledged) == (2, 2)
        assert sum(hour.acknowledged for hour in books.values()) == 200
        assert spool.depth == 101
    # none of them is stored if one cannot be
    with closing(opened(tmp_path / "s")) as spool:
        with pytest.raises(UnicodeEncodeError):
            spool.put([(NOON, stored((1, "on"))), (NOON, stored((2, "\ud800")))])
        assert spool.depth == 101


PUTTING = """
import sys, time
from pathlib import Path
from ringlog.clients.readings import stored
from ringlog.clients.spool.spool import Spool
spool = Spool(Path(sys.argv[1]), "magnets", ["current", "state"], 5)
spool.begin(0, None)
last = 0
while True:
    # a row, or four together
    numbers = range(spool.newest + 1, spool.newest + (5 if spool.newest % 3 else 2))
    spool.put([(number * 1000, stored((number, "x" * 500))) for number in numbers])
    rows = spool.batch(last, spool.newest, 2, 1000)
    spool.acknowledge(rows)
    last = rows[-1].id
    print(spool.newest, flush=True)
"""


@pytest.mark.long
def test_kill_leaves_every_row_that_was_put(tmp_path: Path) -> None:
    file = tmp_path / "s"
    put = 0
    for _ in range(5):
        command = [sys.executable, "-P", "-c", PUTTING, str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(random.uniform(0.05, 0.3))
            process.send_signal(signal.SIGKILL)
            put = max(int(line) for line in [first, *process.stdout])
        with closing(opened(file)) as spool:
            rows = everything(spool)
            # the rows that the kill cut off may have been put, too
            assert put <= spool.newest <= put + 4
            assert rows[-1].id == spool.newest
            assert [row.readings[0] for row in rows] == [row.id for row in rows]
            acknowledged = sum(hour.acknowledged for hour in spool.hours())
            assert all(later.id == earlier.id + 1 for earlier, later in pairwise(rows))
            assert acknowledged + len(rows) == sum(hour.produced for hour in spool.hours()) == spool.newest
            put = spool.newest


@pytest.mark.long
def test_a_full_budget_thins_the_oldest_rows_and_reports_that(memory: Path) -> None:
    file = memory / "s"
    with closing(opened(file, budget=2**20)) as spool:
        spool.begin(0, None)
        for number in range(4000):
            put(spool, NOON + number * SECOND, (number, "x" * 400))
            used = sum(part.stat().st_size for part in memory.iterdir())
            assert used <= 2**20
        rows = everything(spool)
        (produced,) = {sum(hour.produced for hour in spool.hours())}
        thinned = sum(hour.thinned for hour in spool.hours())
        assert produced == 4000
        assert thinned == 4000 - len(rows) > 2000
        # the whole time is covered, the latest part of it without a gap
        numbers = [row.readings[0] for row in rows]
        assert numbers[-500:] == [*range(3500, 4000)]
        gaps = [int(str(later)) - int(str(earlier)) for earlier, later in pairwise(numbers)]
        assert int(str(numbers[0])) < 32
        assert max(gaps) <= 32
        thinned = [event for event in spool.events() if event.kind == "thinned"]
        assert thinned
        assert all(event.until and event.until >= event.time for event in thinned)


def fill(file: Path) -> None:
    with suppress(OSError), file.open("wb", buffering=0) as other:
        while True:
            other.write(b"x" * 4096)


def test_a_full_disk_loses_only_rows_in_the_ledger(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "3m"):
        with closing(opened(disk / "s", budget=2**21)) as spool:
            spool.begin(0, None)
            for number in range(3000):
                put(spool, NOON + number * SECOND, (number, "x" * 400))
                if number == 500:
                    # another program takes the remaining space
                    fill(disk / "other")
            rows = everything(spool)
            thinned = sum(hour.thinned for hour in spool.hours())
            produced = sum(hour.produced for hour in spool.hours())
            assert thinned > 0
            assert produced == thinned + len(rows)
            assert rows[-1].readings[0] == 2999 or produced < 3000
            for row in rows:
                spool.acknowledge([row])
            (disk / "other").unlink()
            put(spool, NOON + 3000 * SECOND, (3000, None))
            spool.settle()
            assert spool.depth == 1
            assert sum(hour.produced for hour in spool.hours()) == 3001
        with closing(opened(disk / "s")) as spool:
            assert [row.readings[0] for row in everything(spool)] == [3000]


def test_a_row_possibly_on_the_server_is_not_reported_lost(memory: Path) -> None:
    with closing(opened(memory / "s", budget=2**20)) as spool:
        spool.begin(0, None)
        for number in range(200):
            put(spool, NOON + number * SECOND, (number, "x" * 400))
        sent = spool.batch(20, 100, 30, 10**9)
        assert [row.id for row in sent] == [*range(21, 51)]
        spool.repeat(unknown=True)
        for number in range(200, 4000):
            spool.after(spool.newest - 1)
            put(spool, NOON + number * SECOND, (number, "x" * 400))
        assert {row.id for row in sent} <= {row.id for row in everything(spool)}
        assert spool.thinned == sum(hour.thinned for hour in spool.hours()) > 2000


def test_a_spool_is_for_one_process_and_one_table(tmp_path: Path) -> None:
    file = tmp_path / "s"
    with closing(opened(file)):
        program = (
            "import sys; from pathlib import Path; from ringlog.clients.spool.spool import Spool;"
            "Spool(Path(sys.argv[1]), 'magnets', ['current', 'state'], 5)"
        )
        other = subprocess.run(
            [sys.executable, "-P", "-c", program, str(file)], capture_output=True, text=True, check=False
        )
        assert "another process writes table magnets" in other.stderr
    with pytest.raises(SpoolError, match="is the spool of table magnets, not of vacuum"):
        Spool(file, "vacuum", COLUMNS, 5)
    with pytest.raises(SpoolError, match="below 1048576, 1 MiB"):
        opened(tmp_path / "t", budget=1000)
    assert not (tmp_path / "t").exists()


def test_rows_follow_their_columns_when_the_facility_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "s"
    with closing(opened(file)) as spool:
        put(spool, NOON, (1.5, "on"))
    with closing(opened(file, ["state", "voltage", "current"])) as spool:
        assert everything(spool)[0].readings == ("on", None, 1.5)
    with pytest.raises(SpoolError, match="rows with column current, which magnets no longer has"):
        opened(file, ["state", "voltage"])


def test_a_renamed_table_keeps_its_spool(tmp_path: Path) -> None:
    former = Former("magnets", {"current": "amperes"})
    with closing(opened(tmp_path / "magnets.spool")) as spool:
        put(spool, NOON, (1.5, "on"))
        name = spool.name
        with pytest.raises(SpoolError, match="a process still writes this table by its former name"):
            Spool(tmp_path / "coils.spool", "coils", ["amperes", "state"], 5, former=former)
    for _ in range(2):
        with closing(
            Spool(tmp_path / "coils.spool", "coils", ["amperes", "state"], 5, former=former)
        ) as spool:
            assert (spool.name, [row.readings for row in everything(spool)]) == (name, [(1.5, "on")])
            assert spool.events() == []
    assert {each.name for each in tmp_path.iterdir()} == {"coils.spool", "coils.spool-count"}
