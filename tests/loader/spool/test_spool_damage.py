"""Damaged spools: readable rows are sent unchanged, the others are named and counted."""

import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest

from ringlog.clients import Address
from ringlog.clients.spool.books import Event
from ringlog.clients.spool.spool import Spool
from ringlog.clients.writer import Writer, spool_file
from ringlog.schema.facility import Facility
from ringlog.schema.moments import HOUR
from servers import RunningServer, ringlog
from spools import everything, put

COLUMNS = ["current", "state"]
NOON = 1_780_000_000_000_000 // HOUR * HOUR
SECOND = 1_000_000
ROWS = 370


def opened(file: Path, columns: list[str] = COLUMNS) -> Spool:
    return Spool(file, "magnets", columns, 1000)


def reading(number: int) -> tuple[float, str]:
    return 1_234_000.25 + number, f"state {number} " + "x" * 100


def filled(file: Path, rows: int = ROWS) -> Path:
    """A spool of a source whose server is away. Its process is killed: the -wal file stays."""
    spool = opened(file)
    spool.begin(0, None)
    for number in range(rows):
        put(spool, NOON + number * SECOND, reading(number))
    kept = file.with_name("kept")
    kept.mkdir()
    for each in file.parent.glob(f"{file.name}*"):
        shutil.copy(each, kept / each.name)
    spool.close()
    for each in kept.iterdir():
        shutil.move(each, file.with_name(each.name))
    kept.rmdir()
    file.with_name(f"{file.name}-reserve").unlink()
    return file


def settled(file: Path, rows: int = ROWS) -> Path:
    """Like `filled`, with everything in the file itself."""
    filled(file, rows)
    with closing(sqlite3.connect(file)) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    return file


def change(file: Path, before: bytes, after: bytes) -> None:
    content = file.read_bytes()
    assert content.count(before) == 1
    file.write_bytes(content.replace(before, after))


def cut_short(log: Path) -> None:
    """A part of the write-ahead log was altered."""
    size = log.stat().st_size
    with log.open("r+b") as disk:
        disk.seek(size // 16)
        disk.write(random.randbytes(4096))


def damages(spool: Spool) -> list[Event]:
    return [event for event in spool.events() if event.kind == "damaged"]


def thinned(spool: Spool) -> int:
    return sum(hour.thinned for hour in spool.hours())


def produced(spool: Spool) -> int:
    return sum(hour.produced for hour in spool.hours())


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"[1234007.25,", b"[1236007.25,"), (b"[1234007.25,", b"{1234007.25,"), (b"state 7 ", b"state\xff7 ")],
    ids=["digit", "form", "character"],
)
def test_a_row_with_a_changed_bit_is_set_aside(memory: Path, before: bytes, after: bytes) -> None:
    file = settled(memory / "s")
    change(file, before, after)
    with closing(opened(file)) as spool:
        rows = everything(spool)
        assert [row.readings for row in rows] == [reading(number) for number in range(ROWS) if number != 7]
        assert (spool.depth, spool.thinned, thinned(spool)) == (ROWS - 1, 1, 1)
        (event,) = damages(spool)
        assert (event.time, event.rows) == (NOON + 7 * SECOND, 1)
        assert event.message == f"rows were damaged on the disk: they are in the table refused of {file}"
        put(spool, NOON + HOUR, (1.0, "on"))
        assert everything(spool)[-1].readings == (1.0, "on")
    with closing(sqlite3.connect(file)) as db:
        db.text_factory = bytes
        ((number, kept, reason),) = db.execute("select id, readings, reason from refused").fetchall()
        assert (number, after in kept) == (8, True)
        assert reason == b"damaged on the disk: its checksum is wrong"


@pytest.mark.long
def test_half_a_file_is_renamed_and_its_rows_are_sent(memory: Path) -> None:
    file = settled(memory / "s", 5000)
    os.truncate(file, file.stat().st_size // 2)
    with closing(opened(file)) as spool:
        rows = everything(spool)
        assert 1000 < len(rows) < 4000
        assert all(row.readings == reading(row.id - 1) for row in rows)
        assert thinned(spool) == 5000 - len(rows)
        (event,) = damages(spool)
        (aside,) = memory.glob("s-damaged-*")
        assert (event.rows, str(aside) in event.message) == (5000 - len(rows), True)
        put(spool, NOON + HOUR, (1.0, "on"))
        assert everything(spool)[-1].id == 5001
    # it is repaired
    with closing(opened(file)) as spool:
        assert len(everything(spool)) == len(rows) + 1


@pytest.mark.long
def test_a_file_that_is_no_database_is_renamed(memory: Path) -> None:
    file = memory / "s"
    file.write_text("this is no database at all" * 200)
    with closing(opened(file)) as spool:
        put(spool, NOON, (1.0, "on"))
        assert len(everything(spool)) == 1
    (aside,) = memory.glob("s-damaged-*")
    assert aside.read_text().endswith("no database at all")


def test_damage_under_a_running_writer(memory: Path) -> None:
    file = settled(memory / "s", 6000)
    with closing(opened(file)) as spool:
        first = spool.after(0)
        assert first is not None
        spool.acknowledge([first])
        name = spool.name
        with file.open("r+b") as disk:
            for page in range(40, 60):
                disk.seek(page * 4096)
                disk.write(random.randbytes(4096))
        rows = everything(spool)
        put(spool, NOON + HOUR, (1.0, "on"))
        rows = everything(spool)
        assert (spool.name, rows[0].id, rows[-1].id) == (name, 2, 6001)
        assert all(row.readings == reading(row.id - 1) for row in rows[:-1])
        assert 5000 < len(rows) < 6000
        assert thinned(spool) == 6000 - len(rows)
        assert sum(hour.acknowledged for hour in spool.hours()) == 1
        assert damages(spool)


def test_damaged_figures_and_events_are_named(memory: Path) -> None:
    file = filled(memory / "s")
    with closing(opened(file)) as spool:
        spool.note("gap", NOON, "the words of a gap", NOON + SECOND, 3)
        spool.note("gap", NOON, "the second", NOON + SECOND, 3)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("update ledger set produced = produced + 4096")
    change(file, b"words of a gap", b"wordc of a gap")
    with closing(opened(file)) as spool:
        # one that is counted on is not made sound by that
        put(spool, NOON + SECOND, (1.0, "on"))
        assert [hour.produced for hour in spool.hours()] == [1]
        for _ in range(2):
            gap, *_ = events = spool.events()
        assert gap.message == "the second"
        words = [event.message for event in events if event.kind == "damaged"]
        assert any(f"count anew: hour {NOON}, produced {ROWS + 4096}" in each for each in words)
        assert any(each.endswith("message the wordc of a gap") for each in words)
        assert len(words) == 2


@pytest.mark.long
def test_any_bit_of_the_file(memory: Path) -> None:
    """Rows are read unchanged, and each row is read or counted."""
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    file = settled(memory / "s")
    whole = {each.name: each.read_bytes() for each in memory.iterdir()}
    for _ in range(60):
        for each in memory.iterdir():
            each.unlink()
        for name, content in whole.items():
            (memory / name).write_bytes(content)
        content = bytearray(whole["s"])
        bit = chance.randrange(len(content) * 8)
        content[bit // 8] ^= 1 << bit % 8
        file.write_bytes(content)
        told = f"seed {seed}, bit {bit}"
        with closing(opened(file)) as spool:
            rows = everything(spool)
            assert all(
                (row.readings, row.time, row.seq_no)
                == (reading(row.id - 1), NOON + (row.id - 1) * SECOND, row.id)
                for row in rows
            ), told
            assert len(rows) == spool.depth == ROWS - spool.thinned, told
            put(spool, NOON + HOUR, (1.0, "on"))
            assert everything(spool)[-1].readings == (1.0, "on"), told
            spool.events()
            spool.hours()


@pytest.mark.parametrize("damage", [Path.unlink, cut_short])
def test_rows_lost_with_a_missing_log_are_counted(memory: Path, damage: Callable[[Path], object]) -> None:
    file = filled(memory / "s")
    damage(memory / "s-wal")
    with closing(opened(file)) as spool:
        rows = everything(spool)
        lost = ROWS - len(rows)
        assert 10 < lost < ROWS
        assert [row.readings for row in rows] == [reading(number) for number in range(len(rows))]
        assert (produced(spool), thinned(spool), spool.thinned) == (ROWS, lost, lost)
        (event,) = damages(spool)
        assert (event.rows, event.until) == (lost, NOON + (ROWS - 1) * SECOND)
        assert event.message == f"{file} has lost its newest rows: its -wal file was removed or damaged"
        # another row does not get the number of a lost one
        put(spool, NOON + HOUR, (1.0, "on"))
        assert everything(spool)[-1].id == ROWS + 1
    with closing(opened(file)) as spool:
        assert len(damages(spool)) == 1


def test_rows_that_the_server_has_are_not_lost_with_the_log(memory: Path) -> None:
    file = memory / "s"
    spool = opened(file)
    spool.begin(0, None)
    for number in range(ROWS):
        put(spool, NOON + number * SECOND, reading(number))
        row = spool.after(number)
        assert row is not None
        spool.acknowledge([row])
    for each in (file, memory / "s-count"):
        shutil.copy(each, memory / f"copy-{each.name}")
    spool.close()
    (memory / "copy-s").rename(file)
    (memory / "copy-s-count").rename(memory / "s-count")
    with closing(opened(file)) as spool:
        assert (produced(spool), thinned(spool)) == (ROWS, 0)
        assert [event.rows for event in damages(spool)] == [0]


def test_a_removed_spool_is_counted(memory: Path) -> None:
    file = filled(memory / "s")
    for each in (file, memory / "s-wal"):
        each.unlink()
    with closing(opened(file)) as spool:
        assert (produced(spool), thinned(spool), spool.depth) == (ROWS, ROWS, 0)
        (event,) = damages(spool)
        assert event.message == f"{file} was removed while rows waited in it"


def test_a_spool_is_readable_only_by_its_owner(memory: Path) -> None:
    folder = memory / "folder"
    with closing(opened(folder / "s")) as spool:
        put(spool, NOON, (1.0, "on"))
        files = [*folder.iterdir()]
        assert {each.name for each in files} == {"s", "s-wal", "s-count", "s-reserve"}
        assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "s").chmod(0o644)
    with closing(opened(folder / "s")):
        assert stat.S_IMODE((folder / "s").stat().st_mode) == 0o600


@pytest.mark.long
def test_the_report_names_rows_lost_with_a_missing_log(
    facility: Facility, address: Address, quick_server: RunningServer, memory: Path
) -> None:
    (table,) = (table for table in facility.tables if table.name == "every_type")
    file = spool_file(memory, address, table.name)
    columns = [column.name for column in table.columns]
    begin = datetime(2022, 3, 3, 12, tzinfo=UTC)
    first = round(begin.timestamp()) * SECOND
    folder = file.parent / "copy"
    with closing(Spool(file, table.name, columns, table.rows)) as spool:
        for number in range(ROWS):
            put(spool, first + number * SECOND, [number if name == "an_int" else None for name in columns])
        folder.mkdir()
        for each in (file, file.with_name(f"{file.name}-count")):
            shutil.copy(each, folder / each.name)
    for each in folder.iterdir():
        shutil.move(each, file.with_name(each.name))
    password = quick_server.writer.password
    with Writer(table, ZoneInfo(facility.timezone), address, password, memory, take_over=True) as writer:
        assert writer.drain(100)
    with psycopg.connect(quick_server.dsn) as connection:
        query = "select produced, in_log, thinned, waiting from ringlog.losses(%s, %s, 'every_type')"
        ((rows, in_log, lost, waiting),) = connection.execute(
            query, [begin, begin + timedelta(hours=1)]
        ).fetchall()
    assert (rows, waiting) == (ROWS, 0)
    assert lost == ROWS - in_log > 10
    shown = ringlog(
        "report", "losses", "--since", "999w", "--table", "every_type", "--data", quick_server.data
    )
    assert shown.returncode == 1
    assert f"{file} has lost its newest rows" in shown.stdout
