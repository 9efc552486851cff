"""`ringlog load --backfill`: each row of old files is in the log once, whatever process is killed
meanwhile."""

import math
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prepared_python import RINGLOG, Command

from ringlog.loader import imports
from ringlog.loader.sources import SourceError
from ringlog.loader.sources.blocks import File
from ringlog.schema import locks
from ringlog.schema.facility import Column, Facility, Table
from servers import RunningServer, free_port, ringlog
from waiting import wait_until

from .conftest import FACILITY

TOKYO = ZoneInfo("Asia/Tokyo")
SECOND = timedelta(seconds=1)

Backfill = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def backfill(quick_server: RunningServer) -> Backfill:
    """Starts `ringlog load --backfill` of a folder as the login `writer`, with these further options."""

    def start(source: str, *options: str) -> subprocess.Popen[str]:
        url = f"postgresql://{quick_server.writer.user}@127.0.0.1:{quick_server.postgres_port}/ringlog"
        words = ("load", "--backfill", "--facility", FACILITY, "--url", url, "--source", source)
        return Command(
            [RINGLOG, *words, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"RINGLOG_PASSWORD": quick_server.writer.password},
        )

    return start


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=100)
    return process.returncode, output


def rows(server: RunningServer, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.dsn, options="-c timezone=UTC") as connection:
        return connection.execute(query.encode(), values or None).fetchall()


def write_magnets(folder: Path, begin: datetime, count: int) -> None:
    """`count` rows of 60 columns, a second apart, as Parquet."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    times = np.datetime64(begin.replace(tzinfo=None), "us") + np.arange(count) * np.timedelta64(1, "s")
    columns = {f"current_{n}": random.random(count, np.float32) for n in range(1, 61)}
    table = pa.table({"time": pa.array(times).cast(pa.timestamp("us", "UTC")), **columns})
    pq.write_table(table, folder / "magnet.parquet")


def test_every_type_comes_from_csv(backfill: Backfill, quick_server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "every_type").mkdir()
    head = "time,a_real,a_double,every_type/an_int,a_smallint,a_bigint,a_bit,a_varchar\n"
    (tmp_path / "every_type/1.csv").write_text(
        "\ufeff"
        + head
        + '2011-03-01T09:00:00+09:00,1.5,0.1,+1,-32768,9223372036854775807,true,"磁石, north"\n'
        "2011-03-01 09:00:01.250000,,1e308,,,,0,\n"
    )
    (tmp_path / "every_type/2.csv").write_text(head + "2011-03-02T00:00:00Z,-3.4e38,,,,,,\n")
    code, output = ended(backfill(f"csv:{tmp_path}"))
    assert (code, output) == (0, "every_type: 3 rows, 3 new, 0 already stored\n")
    begin = datetime(2011, 3, 1, tzinfo=UTC)
    found = rows(quick_server, "select * from log.every_type where time < '2012-01-01' order by time")
    numbers = {seq_no for seq_no, *_ in found}
    assert len(numbers) == 3
    assert [row[1:] for row in found] == [
        (begin, 1.5, 0.1, 1, -32768, 2**63 - 1, True, "磁石, north"),
        (begin + 1.25 * SECOND, None, 1e308, None, None, None, False, None),
        (begin + timedelta(days=1), pytest.approx(-3.4e38), *[None] * 6),
    ]
    # in their weeks, not in the default partition
    assert rows(quick_server, "select count(*) from log.every_type_default where time < '2012-01-01'") == [
        (0,)
    ]
    again = ended(backfill(f"csv:{tmp_path}"))
    assert again == (0, "every_type: 0 rows, 0 new, 0 already stored, 3 imported by an earlier run\n")


def test_the_import_waits_for_housekeeping(
    quick_server: RunningServer, facility: Facility, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of old weeks are stored in their weeks, although the server's housekeeping runs at the same
    time.
    """
    monkeypatch.setattr(imports, "_SHORT", 100.0)
    file = tmp_path / "beam.csv"
    file.write_text("time,current\n2017-06-01T00:00:00Z,1\n")
    (beam,) = (each for each in facility.tables if each.name == "beam")
    conninfo = quick_server.dsn_of(quick_server.writer)
    importing = imports.Imports({"beam": [file]}, [beam], TOKYO, {"beam": conninfo})
    thread = threading.Thread(target=lambda: [*importing.running(1, 0.01)])
    with psycopg.connect(quick_server.dsn) as housekeeping:
        housekeeping.execute(locks.statement(locks.CHANGES))
        thread.start()
        waits = "select from pg_locks where relation = 'ringlog.one_change'::regclass and not granted"
        wait_until(lambda: rows(quick_server, waits))
    thread.join()
    assert importing.progress["beam"].ended, importing.progress
    assert (
        rows(quick_server, "select from log.beam_default where time between '2017-01-01' and '2018-01-01'")
        == []
    )
    assert rows(quick_server, "select count(*) from log.beam_2017w22") == [(1,)]


@contextmanager
def held(server: RunningServer, file: Path, beyond: int) -> Iterator[None]:
    """The import has stored more than this many rows of the file, and stores no others until the block
    ends.
    """
    query = "select rows from ringlog.imported_file where file like %s for update"
    with psycopg.connect(server.dsn) as holding:

        def has_more() -> bool:
            found = holding.execute(query, [f"%{file}"]).fetchone()
            if found is not None and found[0] > beyond:
                return True
            holding.rollback()
            return False

        wait_until(has_more)
        yield


@pytest.mark.long
def test_after_kills_no_row_is_repeated_or_lost(
    backfill: Backfill, quick_server: RunningServer, tmp_path: Path
) -> None:
    begin, count = datetime(2012, 3, 5, tzinfo=UTC), 100_000
    write_magnets(tmp_path, begin, count)
    file = tmp_path / "magnet.parquet"
    taken = "select rows from ringlog.imported_file where file like %s"
    reached = 0
    for _ in range(3):
        process = backfill(f"parquet:{tmp_path}")
        with held(quick_server, file, reached):
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
        ((reached,),) = rows(quick_server, taken, f"%{file}")
    assert 0 < reached < count
    process = backfill(f"parquet:{tmp_path}")
    with held(quick_server, file, reached):
        process.terminate()
    code, output = ended(process)
    assert (code, "the same command continues from there" in output) == (1, True)
    code, output = ended(backfill(f"parquet:{tmp_path}"))
    assert code == 0, output
    counts = (
        "select count(*), count(distinct time), min(time), max(time), sum(current_60::float8)"
        " from log.magnet where time < '2013-01-01'"
    )
    ((number, times, first, last, total),) = rows(quick_server, counts)
    assert (number, times) == (count, count)
    assert (first, last) == (begin, begin + (count - 1) * SECOND)
    expected = pq.read_table(file)["current_60"].to_numpy().astype(float)
    assert math.isclose(total, math.fsum(expected), rel_tol=1e-9)
    books = rows(
        quick_server,
        "select sum(produced), sum(acknowledged), sum(in_log), sum(missing)"
        " from ringlog.losses('2012-01-01', '2013-01-01', 'magnet')",
    )
    assert books == [(count, count, count, 0)]


@pytest.mark.long
def test_the_import_waits_for_a_killed_server(
    backfill: Backfill, quick_server: RunningServer, tmp_path: Path
) -> None:
    begin, count = datetime(2014, 3, 3, tzinfo=UTC), 60_000
    write_magnets(tmp_path, begin, count)
    process = backfill(f"parquet:{tmp_path}")
    ours = "select pid from pg_stat_activity where application_name = 'ringlog backfill'"
    for ((pid,),) in (wait_until(lambda: rows(quick_server, ours)) for _ in range(2)):
        rows(quick_server, "select pg_terminate_backend(%s)", pid)
        wait_until(lambda pid=pid: (pid,) not in rows(quick_server, ours))
    code, output = ended(process)
    assert code == 0, output
    found = rows(
        quick_server,
        "select count(*), count(distinct time) from log.magnet where time >= %s and time < %s",
        begin,
        begin + count * SECOND,
    )
    assert found == [(count, count)]


@pytest.mark.long
def test_the_answering_one_of_several_machines_is_found(
    backfill: Backfill, quick_server: RunningServer, tmp_path: Path
) -> None:
    (tmp_path / "beam.csv").write_text("time,current\n2013-06-01T00:00:00Z,1\n")
    places = f"127.0.0.1:{free_port()},127.0.0.1:{quick_server.postgres_port}"
    url = f"postgresql://{quick_server.writer.user}@{places}/ringlog"
    assert ended(backfill(f"csv:{tmp_path}", "--url", url)) == (0, "beam: 1 rows, 1 new, 0 already stored\n")


@pytest.mark.long
def test_rows_that_differ_from_the_log_are_refused_and_reported(
    backfill: Backfill, quick_server: RunningServer, tmp_path: Path
) -> None:
    lines = [f"2015-06-01T00:00:0{n}Z,{n}\n" for n in range(5)]
    file = tmp_path / "beam.csv"
    file.write_text("time,sr_beam/current\n" + "".join(lines))
    assert ended(backfill(f"csv:{tmp_path}")) == (0, "beam: 5 rows, 5 new, 0 already stored\n")
    lines[2] = lines[2].replace(",2", ",77")
    file.write_text("time,current\n" + "".join(lines) + "2015-06-01T00:00:09Z,9\n")
    code, output = ended(backfill(f"csv:{tmp_path}", "--tables", "beam"))
    assert (code, output) == (1, "beam: 6 rows, 1 new, 4 already stored, 1 refused\n")
    report = ringlog("report", "losses", "--since", "9999w", "--table", "beam", "--data", quick_server.data)
    assert '"current":77' in report.stdout
    assert report.returncode == 1
    query = "select current from log.beam where time between '2015-01-01' and '2016-01-01' order by time"
    log = rows(quick_server, query)
    assert log == [(0.0,), (1.0,), (2.0,), (3.0,), (4.0,), (9.0,)]


def test_a_wrong_row_ends_the_import_after_those_before(
    backfill: Backfill, quick_server: RunningServer, tmp_path: Path
) -> None:
    (tmp_path / "beam.csv").write_text("time,current\n2016-06-01T00:00:00Z,1\n2016-06-01T00:00:01Z,none\n")
    code, output = ended(backfill(f"csv:{tmp_path}"))
    assert code == 1
    assert f"{tmp_path}/beam.csv, row 2: column current: 'none' is not a number" in output
    assert rows(quick_server, "select from log.beam where time between '2016-01-01' and '2017-01-01'") == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--source", "simulator"], "--backfill imports files: --source csv:DIR or parquet:DIR"),
        (["--source", "csv:/nowhere"], "/nowhere is not a folder of files"),
        (["--source", "csv:{folder}"], "has neither"),
        (["--source", "csv:{folder}", "--tables", "nobody"], "the facility has no table 'nobody'"),
        (["--source", "parquet:{folder}"], "stranger: the facility has no table 'stranger'"),
        (["--url", "tds://writer@127.0.0.1:5000"], "--backfill connects to PostgreSQL directly"),
    ],
)
def test_impossible_requests_are_reported(tmp_path: Path, options: list[str], words: str) -> None:
    (tmp_path / "magnet.parquet").touch()
    (tmp_path / "stranger.parquet").touch()
    command = ["load", "--backfill", "--facility", FACILITY, "--url", "postgresql://a@127.0.0.1:1/b"]
    done = ringlog(*command, *(option.format(folder=tmp_path) for option in options), RINGLOG_PASSWORD="x")
    assert done.returncode == 2
    assert words in done.stderr


# --- contents of files ---


def table(*columns: Column, name: str = "t") -> Table:
    return Table(name, 10, 1.0, columns)


def read(path: Path, table: Table, after: int = 0) -> list[dict[str, Any]]:
    return [row for block in File(path, table, TOKYO).blocks(after) for row in block.to_pylist()]


def test_a_file_is_read_from_any_row_on(tmp_path: Path, facility: Facility) -> None:
    file = tmp_path / "beam.csv"
    file.write_text("time,current\n" + "".join(f"2015-06-01T00:00:0{n}Z,{n}\n" for n in range(5)))
    (beam,) = (each for each in facility.tables if each.name == "beam")
    assert [row["current"] for row in read(file, beam, 3)] == [3.0, 4.0]


def test_types_of_parquet(tmp_path: Path) -> None:
    every = table(
        Column("a", "t/a", "numeric(8,3)"),
        Column("b", "t/b", "datetime"),
        Column("c", "t/c", "real"),
        Column("d", "t/d", "text"),
        Column("e", "t/e", "double[]", points=3),
        Column("f", "t/f", "smallint"),
        Column("t/nanoseconds", "t/nanoseconds", "smallint"),
    )
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    stamps = pa.array([np.datetime64("2020-01-01T00:00:00.000000007", "ns")]).cast(pa.timestamp("ns", "UTC"))
    values = {"a": [Decimal("12345.678")], "b": [noon], "c": [float("nan")], "d": ["long"], "e": [[1.0, 2.0]]}
    pq.write_table(pa.table({"time": stamps, **values, "f": pa.array([3.0])}), tmp_path / "t.parquet")
    (row,) = read(tmp_path / "t.parquet", every)
    assert row.pop("time") == datetime(2020, 1, 1, tzinfo=UTC)
    assert math.isnan(row.pop("c"))
    assert row == {
        "a": Decimal("12345.678"),
        "b": noon,
        "d": "long",
        "e": [1.0, 2.0],
        "f": 3,
        "t/nanoseconds": 7,
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a\n1\n", "there is no column 'time'"),
        ("time,b\n", "table t has no column or signal 'b'"),
        ("time,a,t/a\n", "a column is named twice"),
        ("time,a\n2020-01-01T00:00:00Z,0x1F\n", "row 1: column a: '0x1F' is not a int"),
        ("time,a\n2020-01-01T00:00:00Z,1\n2020-01-01T00:00:00Z,1\n", "row 2: its time is not later"),
        (
            "time,a\n2020-01-01T00:00:00Z,3000000000\n",
            "row 1: column a: 3000000000 is out of the range of int",
        ),
        ("time,a\n,1\n", "row 1: the time is missing"),
        ("time,a\nyesterday,1\n", "row 1: 'yesterday' is not an ISO 8601 time"),
        ("time,a\n2020-01-01T00:00:00.0000001Z,1\n", "row 1: time 2020-01-01T00:00:00.0000001Z is finer"),
        ("time,a\n2020-01-01T00:00:00Z,1,2\n", "Expected 2 columns, got 3"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(SourceError) as refused:
        read(tmp_path / "t.csv", table(Column("a", "t/a", "int")))
    assert words in str(refused.value)


def test_a_repeated_or_skipped_time_is_refused(tmp_path: Path) -> None:
    for hour in ("2025-10-26 02:30:00", "2025-03-30 02:30:00"):
        (tmp_path / "t.csv").write_text(f"time,a\n{hour},1\n")
        with pytest.raises(
            SourceError, match=r"row 1: time .* is ambiguous or does not exist in Europe/Zurich"
        ):
            [*File(tmp_path / "t.csv", table(Column("a", "t/a", "int")), ZoneInfo("Europe/Zurich")).blocks()]


def test_rows_of_one_time_are_distinguished_by_seq_no(tmp_path: Path) -> None:
    moment = "2020-01-01T00:00:00Z"
    (tmp_path / "t.csv").write_text(f"time,seq_no,a\n{moment},2,1\n{moment},3,2\n")
    file = File(tmp_path / "t.csv", table(Column("a", "t/a", "int")), TOKYO)
    assert file.numbered
    assert [(row["seq_no"], row["a"]) for block in file.blocks() for row in block.to_pylist()] == [
        (2, 1),
        (3, 2),
    ]
