"""Programs cache answers for closed time, confirmed by ETag and 304; progress of long answers."""

import io
import math
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from known_rows import BEGIN, ROWS, row, time_of
from psycopg.conninfo import make_conninfo
from webs import fill

from ringlog.clients import ReadRefused, answers, progress, read, reading
from ringlog.clients.answers import Answers
from ringlog.history import closing as packing
from ringlog.history.archive.archiving import archive
from ringlog.history.summaries.summarising import summarise
from ringlog.retrieval.samples import columns_of, samples
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.access import Login
from ringlog.retrieval.serving.connections import Connections
from ringlog.retrieval.serving.unchanged import tag_of
from ringlog.retrieval.signals import Signal, describe
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from ringlog.server.processes.web import Web, settings
from servers import FACILITY, free_port, serving, sqlalchemy_url

SIGNAL = "every_type/a_double"
START, END = BEGIN + timedelta(seconds=60), BEGIN + timedelta(seconds=140)
VALUES = [row(number)["a_double"] for number in range(60, 140)]


@dataclass
class Closed:
    """A server whose known rows are closed, and the statuses of its answers."""

    url: str
    dsn: str
    statuses: list[int]

    def read(self, **options: Any) -> pa.Table:
        return read(SIGNAL, START, END, server=self.url, password="read-Ω-2", **options)


@pytest.fixture(scope="module")
def server(temporary_directory: Path) -> Iterator[Closed]:
    at = f"127.0.0.1:{free_port()}"
    with (
        serving(temporary_directory / "kept", "--http", at, facility=FACILITY) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        fill(running)
        # creates a partition for the rows' week
        engine = sa.create_engine(sqlalchemy_url(running.dsn))
        maintain(engine, BEGIN + timedelta(hours=1))
        engine.dispose()
        patch.setattr(packing, "BLOCK", 50)
        summarise(running.dsn, BEGIN + timedelta(days=1), enough=1)
        assert packing.close(running.dsn, pauses=0).complete
        yield Closed(f"http://{running.reader.user}@{at}", running.dsn, [])


@pytest.fixture
def closed(server: Closed, monkeypatch: pytest.MonkeyPatch) -> Closed:
    opened = reading.opened
    server.statuses.clear()

    def noted(*words: Any) -> Any:
        try:
            answer = opened(*words)
        except ReadRefused as error:
            server.statuses.append(error.status)
            raise
        server.statuses.append(answer.status)
        return answer

    monkeypatch.setattr(reading, "opened", noted)
    monkeypatch.setattr(reading, "_IN_MEMORY", Answers())
    return server


def test_an_answer_is_cached_until_a_late_row(closed: Closed, tmp_path: Path) -> None:
    for options in ({}, {"cache": tmp_path / "kept"}):
        tables = [closed.read(**options) for _ in range(2)]
        assert closed.statuses == [200, 304]
        assert [table["value"].to_pylist() for table in tables] == [VALUES] * 2
        assert tables[0].schema.equals(tables[1].schema, check_metadata=True)
        closed.statuses.clear()
    (file,) = (tmp_path / "kept").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    assert closed.read(cache=tmp_path / "kept").equals(tables[0])
    assert closed.statuses == [200]
    # time that is not closed
    for _ in range(2):
        read(SIGNAL, time_of(ROWS - 3), "now", server=closed.url, password="read-Ω-2")
    assert closed.statuses == [200] * 3
    with psycopg.connect(closed.dsn) as connection:
        row = "jsonb_build_object('seq_no', 1, 'time', %s::timestamptz, 'a_double', 7)"
        put = f"select ringlog.put_every_type(jsonb_populate_record(null::online.every_type, {row}))"
        connection.execute(put, [START + timedelta(seconds=1.5)])
    assert closed.read()["value"].to_pylist().count(7) == 1


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"value": pa.array(range(1000), pa.int64())})
    monkeypatch.setattr(answers, "MOST_BYTES", 2 * table.nbytes)
    kept = Answers()
    for name in "abc":
        kept.keep(name, f"tag of {name}", table)
    assert kept.find("a") is None
    found = kept.find("c")
    assert found is not None
    assert found[0] == "tag of c"
    assert found[1].equals(table, check_metadata=True)


def test_progress(web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function receives the bytes of each part; a line is shown only on a terminal, and removed."""
    parts: list[int] = []
    read(SIGNAL, BEGIN, END, server=web.url, progress=parts.append)
    assert sum(parts) > 8 * len(VALUES)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(progress, "_QUIET", 0.0)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    shown = {}
    for kind in ("terminal", "file", "notebook"):
        terminal = kind == "terminal"
        if kind == "notebook":
            monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
        stderr = Terminal()
        monkeypatch.setattr(sys, "stderr", stderr)
        read(SIGNAL, BEGIN, END, server=web.url)
        shown[kind] = stderr.getvalue()
    assert shown["file"] == ""
    for kind in ("terminal", "notebook"):
        first, *_, last, end = shown[kind].split("\r")[1:]
        assert first == "ringlog: 0.0 MB"
        assert last.isspace()
        assert end == ""


# --- entity tags of closed time change as soon as the answer changes ---

MARCH = datetime(2026, 3, 4, tzinfo=UTC)
NOW = MARCH + timedelta(hours=10)


class Log:
    """A row per minute, in blocks of 50."""

    def __init__(self, engine: sa.Engine, conninfo: str) -> None:
        columns = (Column("a", "m/a", "double"),)
        install(engine, Facility("test", "UTC", (Table("m", 9, 60.0, columns, summaries=(60, 600)),)))
        self.conninfo = conninfo
        self.connections = Connections()
        self.login = Login("admin", conninfo, lambda node: pytest.fail(node))
        self.put(*range(0, 590, 1))
        maintain(engine, NOW)
        self.close()

    def put(self, *minutes: float) -> None:
        with psycopg.connect(self.conninfo) as connection, connection.cursor() as cursor:
            rows = [(MARCH + timedelta(minutes=minute), minute) for minute in minutes]
            cursor.executemany("select ringlog.put_m(row (1, %s, %s)::online.m)", rows)

    def close(self) -> None:
        summarise(self.conninfo, NOW, enough=1)
        assert packing.close(self.conninfo, pauses=0).complete

    def tag(self, first: float, last: float) -> tuple[str | None, list[float]]:
        """The tag, and the values of an answer, including the one before the time."""
        start, end = (MARCH + timedelta(minutes=minute) for minute in (first, last))
        with Servers(self.connections, self.login) as servers:
            (signal,) = describe(servers, ["m/a"]).values()
            found = samples(servers, signal, start, end + timedelta(microseconds=1), before=True)
            values = [value for part in found for value in part.values.to_pylist()]
            return tag_of(servers, ["m/a"], start, end), values


@pytest.fixture
def log(database_url: sa.URL, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    monkeypatch.setattr(packing, "BLOCK", 50)
    conninfo = make_conninfo(user=database_url.username, dbname=database_url.database, **database_url.query)
    made = Log(engine, conninfo)
    with closing(made.connections):
        yield made


def test_a_late_row_changes_the_tag(log: Log) -> None:
    times = [(120.5, 300.5), (100, 450), (150.5, 150.6)]
    before = [log.tag(*time) for time in times]
    assert None not in [tag for tag, _ in before]
    assert before == [log.tag(*time) for time in times]
    # of the time before each, where its first row but one was
    log.put(99.5, 120.2, 150.2)
    assert [log.tag(*time)[0] for time in times] == [None] * 3
    log.close()
    after = [log.tag(*time) for time in times]
    for (tag, values), (other, others) in zip(before, after, strict=True):
        assert values != others
        assert other not in (None, tag)


def test_time_that_is_not_closed_has_none(log: Log) -> None:
    assert log.tag(500, 595)[0] is None
    # the newest row before might come later
    assert log.tag(-50, 100)[0] is None


def test_a_change_of_the_registry_changes_the_tag(log: Log) -> None:
    before, _ = log.tag(100, 200)
    with psycopg.connect(log.conninfo) as connection:
        connection.execute("update ringlog.signal set unit = 'mA'")
    assert log.tag(100, 200)[0] not in (before, None)


# --- archived weeks over HTTP ---

LATER = datetime(2026, 6, 10, tzinfo=UTC)
WEEK = datetime(2026, 5, 4, tzinfo=UTC)
"""a Monday: the begin of week 19"""
ROWS_OF_A_WEEK = 7 * 72  # one each 20 minutes, a week
FORMS = {
    "/api/v1/data": {"signal": "t/double"},
    "/retrieval/data/getData.json": {"pv": "t/double"},
    "/retrieval/data/getData.raw": {"pv": "t/double"},
}


def conninfo_of(url: sa.URL) -> str:
    return make_conninfo(user=url.username, dbname=url.database, **dict(url.query))


@pytest.fixture
def archived(database_url: sa.URL, temporary_directory: Path) -> Iterator[tuple[httpx.Client, Path]]:
    """A client of four weeks, of which the first three are files, and the archive's folder."""
    conninfo = conninfo_of(database_url)
    folder, engine = temporary_directory / f"archive-{database_url.database}", sa.create_engine(database_url)
    table = Table("slow", 10, 1200.0, (Column("a_double", "t/double", "double"),))
    history = History(Retention(2, "week"), str(folder))
    install(engine, Facility("test", "UTC", (table,), history=history))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "insert into weeks.slow select 1, %s + n * interval '20 minutes', sin(n)"
            " from generate_series(0, %s) as n",
            [WEEK, 4 * ROWS_OF_A_WEEK - 1],
        )
        maintain(engine, LATER)
    assert len([*archive(conninfo, LATER, pauses=0)]) == 3
    engine.dispose()
    served = settings("127.0.0.1", free_port(), conninfo, role="daq_reader")
    with (
        Web(served).running() as web,
        httpx.Client(base_url=f"http://{web.address}", timeout=60, trust_env=False) as client,
    ):
        yield client, folder


def week(number: int) -> dict[str, str]:
    begin = WEEK + number * timedelta(weeks=1)
    return {"from": begin.isoformat(), "to": (begin + timedelta(weeks=1)).isoformat()}


@pytest.mark.long
def test_a_trend_of_files_has_the_requested_number_of_points(archived: tuple[httpx.Client, Path]) -> None:
    client, _ = archived

    def trend(points: int, span: dict[str, str]) -> dict[str, list[float]]:
        asked = {"signal": "t/double", "points": str(points)} | span
        answer = client.get("/api/v1/trend", params=asked)
        assert answer.status_code == 200, answer.text
        found: dict[str, list[float]] = answer.json()["signals"][0]
        return found

    # the rows are sin(0), sin(1), ...: 72 a day
    days = trend(7, week(0))
    assert days["n"] == [72] * 7
    assert days["max"] == [max(math.sin(72 * day + n) for n in range(72)) for day in range(7)]
    part = {"from": (WEEK + timedelta(days=1)).isoformat(), "to": (WEEK + timedelta(days=2)).isoformat()}
    assert sum(trend(24, part)["n"]) == 72
    assert len(trend(24, part)["n"]) == 24
    assert trend(100, part)["mean"] == [math.sin(72 + n) for n in range(72)]


@pytest.mark.long
def test_the_width_of_points_is_that_of_the_bins(database_url: sa.URL) -> None:
    """If most bins have no rows it is less than the distance between any two points."""
    table = Table("sparse", 10, 60.0, (Column("a_double", "t/sparse", "double"),), summaries=(600, 3600))
    conninfo, engine = conninfo_of(database_url), sa.create_engine(database_url)
    install(engine, Facility("test", "UTC", (table,)))
    engine.dispose()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        # ten rows in one of every three spans of ten minutes
        connection.execute(
            "insert into weeks.sparse"
            " select 1, %s + n / 10 * interval '30 minutes' + n %% 10 * interval '1 minute', n"
            " from generate_series(0, 479) as n",
            [WEEK],
        )
        maintain(engine, LATER)
    summarise(conninfo, LATER, enough=1)
    served = settings("127.0.0.1", free_port(), conninfo, role="daq_reader")
    with (
        Web(served).running() as web,
        httpx.Client(base_url=f"http://{web.address}", timeout=60, trust_env=False) as client,
    ):
        day = {"from": WEEK.isoformat(), "to": (WEEK + timedelta(days=1)).isoformat()}
        for points, width in ((150, 600), (50, 1800), (1, 86_400)):
            asked = {"signal": "t/sparse", "points": str(points)} | day
            [found] = client.get("/api/v1/trend", params=asked).json()["signals"]
            assert found["width"] == width
            assert sum(found["n"]) == 480
            assert len(found["n"]) == (1 if points == 1 else 48)


def test_a_damaged_file_is_reported(archived: tuple[httpx.Client, Path]) -> None:
    client, folder = archived
    whole = client.get("/api/v1/data", params=FORMS["/api/v1/data"] | week(0)).json()["signals"][0]["samples"]
    assert len(whole) == ROWS_OF_A_WEEK
    path = folder / "slow/2026w19.parquet"
    content = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    flipped = bytearray(content)
    flipped[column.data_page_offset + column.total_compressed_size - 9] ^= 1
    for damaged in (content[:-1000], bytes(flipped), b""):
        path.write_bytes(damaged)
        for form, signal in FORMS.items():
            answer = client.get(form, params=signal | week(0))
            assert answer.status_code == 503, answer.text
            assert "ringlog archive verify" in answer.text
    # the other weeks can be read, and with its file so can this one
    for number in (1, 3):
        answer = client.get("/api/v1/data", params=FORMS["/api/v1/data"] | week(number))
        assert len(answer.json()["signals"][0]["samples"]) == ROWS_OF_A_WEEK
    path.write_bytes(content)
    again = client.get("/api/v1/data", params=FORMS["/api/v1/data"] | week(0))
    assert again.json()["signals"][0]["samples"] == whole


# --- the cached registry is read again after a change ---

COLUMNS = (Column("a", "m/a", "double"), Column("b", "m/b", "real", unit="A"))
TABLE = Table("m", 9, 20.0, COLUMNS)


@pytest.fixture
def connections(database_url: sa.URL, engine: sa.Engine) -> Iterator[tuple[Connections, Login]]:
    install(engine, Facility("test", "UTC", (TABLE,)))
    conninfo = make_conninfo(user=database_url.username, dbname=database_url.database, **database_url.query)
    made = Connections()
    with closing(made):
        yield made, Login("admin", conninfo, lambda node: pytest.fail(node))


def seen(connections: tuple[Connections, Login]) -> tuple[dict[str, Signal], list[str]]:
    """The signals in one request, and the columns of the first."""
    with Servers(*connections) as servers:
        found = describe(servers, ["m/a", "m/b", "m/new"])
        return found, [column.location.column for column in columns_of(servers, found["m/a"])]


def test_changes_of_the_registry_are_visible_at_once(
    connections: tuple[Connections, Login], engine: sa.Engine
) -> None:
    found, places = seen(connections)
    assert (sorted(found), places, found["m/b"].unit) == (["m/a", "m/b"], ["a"], "A")
    columns = (replace(COLUMNS[0], name="c", renamed_from="a"), replace(COLUMNS[1], unit="mA"))
    columns = (*columns, Column("new", "m/new", "int"))
    install(engine, Facility("test", "UTC", (replace(TABLE, cycle=5.0, columns=columns),)))
    found, places = seen(connections)
    assert (sorted(found), places, found["m/b"].unit) == (["m/a", "m/b", "m/new"], ["c"], "mA")
    assert found["m/a"].cycle == 5.0
    with engine.begin() as connection:
        connection.execute(sa.text("delete from ringlog.signal where signal = 'm/new'"))
    assert "m/new" not in seen(connections)[0]


def test_an_unchanged_registry_is_read_once(
    connections: tuple[Connections, Login], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = seen(connections)
    monkeypatch.setattr("ringlog.retrieval.signals.records", lambda *of: pytest.fail("asked again"))
    monkeypatch.setattr("ringlog.retrieval.samples.locations", lambda *of: pytest.fail("asked again"))
    assert seen(connections) == before
