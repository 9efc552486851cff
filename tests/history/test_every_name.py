"""Columns and tables with every name used in ringlog's own SQL: none is confused with another object."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from sql_names import names_in_sql

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.recall import recall
from ringlog.history.archive.restoring import restore
from ringlog.history.reading import newest, read
from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.retrieval.serving.access import Access
from ringlog.retrieval.serving.application import application
from ringlog.retrieval.serving.limits import Limits
from ringlog.retrieval.serving.settings import LoginServer
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations import rings
from ringlog.schema.relations.partitions import Week, maintain
from waiting import wait_until

# thousands of names take minutes
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

NOW = datetime.now(UTC).replace(microsecond=0)
WEEK = timedelta(weeks=1)
OLD = Week.of(NOW - 10 * WEEK).start + timedelta(hours=5)


def tables() -> tuple[Table, ...]:
    names = names_in_sql()
    assert {"n", "location", "at", "came", "ring", "logged", "known", "table_name"} <= {*names}

    def columns(table: str, of: list[str]) -> tuple[Column, ...]:
        kinds = ("double", "double", "int", "varchar(20)")
        return tuple(
            Column(name, f"{table}/{name}", kinds[number % 4] if len(of) > 1 else "double")
            for number, name in enumerate(of)
        )

    half = len(names) // 2
    wide = {"r": names[:half], "ring": names[half:]}
    narrow = {
        name: [name] for name in ("n", "location", "came", "log", "known", "logged", "there", "now", "row")
    }
    return tuple(
        Table(name, 4, 1.0, columns(name, of), summaries=(60, 3600), retention=Retention(20, "week"))
        for name, of in (wide | narrow).items()
    )


TABLES = tables()
Sent = dict[str, list[dict[str, object]]]
"""the rows of each log, in their order"""


def row(table: Table, seq_no: int | None, time: datetime, value: int) -> dict[str, object]:
    values = {column.name: f"text {value}" if column.type.is_text else value for column in table.columns}
    return {"seq_no": seq_no, "time": time.isoformat(), **values}


class Site:
    """A database with these tables."""

    def __init__(
        self, engine: sa.Engine, conninfo: str, connection: psycopg.Connection, folder: Path
    ) -> None:
        self.engine = engine
        self.conninfo = conninfo
        self.connection = connection
        self.facility = Facility(
            "names", "UTC", TABLES, history=History(Retention(6, "week"), str(folder / "archive"))
        )

    def call(self, table: Table, pattern: str, *values: object) -> list[tuple[object, ...]]:
        call = sql.SQL("select * from ringlog.{}({})").format(
            sql.Identifier(pattern.format(table.name)), sql.SQL(", ").join(sql.Placeholder() * len(values))
        )
        return self.connection.execute(call, values).fetchall()

    def put(self, table: Table, *values: dict[str, object]) -> None:
        for each in values:
            self.connection.execute(
                sql.SQL("select ringlog.{}(json_populate_record(null::{}, %s))").format(
                    sql.Identifier(f"put_{table.name}"), sql.Identifier("online", table.name)
                ),
                [json.dumps(each)],
            )

    def stored(self, table: Table, schema: str = "weeks") -> list[dict[str, object]]:
        query = sql.SQL(
            'select to_json(stored.*) from {} as stored where stored."time" is not null'
            ' order by stored."time", stored.seq_no'
        ).format(sql.Identifier(schema, table.name))
        return [
            each | {"time": datetime.fromisoformat(each["time"]).astimezone(UTC).isoformat()}
            for (each,) in self.connection.execute(query)
        ]


@pytest.fixture
def site(engine: sa.Engine, conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    # a week may have begun since this file was read; its newest rows are of this week
    wait_until(lambda: Week.of(datetime.now(UTC) - timedelta(seconds=20)) == Week.of(datetime.now(UTC)))
    now = datetime.now(UTC).replace(microsecond=0)
    monkeypatch.setitem(globals(), "NOW", now)
    monkeypatch.setitem(globals(), "OLD", Week.of(now - 10 * WEEK).start + timedelta(hours=5))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        site = Site(engine, conninfo, connection, tmp_path)
        install(engine, site.facility)
        yield site


async def over_http(site: Site) -> None:
    served = application(Access(LoginServer(site.conninfo, site.conninfo), 60.0), Limits())
    span = {"from": OLD.isoformat(), "to": (OLD + timedelta(days=1)).isoformat()}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://ringlog") as client:
        for table in TABLES:
            signals = [column.signal for column in table.columns[:40]]
            got = await client.get("/api/v1/data", params={"signal": signals, **span})
            assert got.status_code == 200, got.text
            assert [len(each["samples"]) for each in got.json()["signals"]] == [7] * len(signals), got.text
            pv = f"count_3600({signals[0]})"
            got = await client.get("/retrieval/data/getData.json", params={"pv": pv, **span})
            assert got.status_code == 200, got.text
            assert sum(event["val"] for event in got.json()[0]["data"]) == 7, got.text


def write_rows(site: Site, sent: Sent) -> None:
    for table in TABLES:
        given = [row(table, None, NOW + timedelta(seconds=n - 20), n) for n in range(6)]
        old = [row(table, n % 4 + 1, OLD + timedelta(seconds=n), n) for n in range(4)]
        site.put(table, *given, *given[-1:], *old)
        batch = row(table, 3, NOW - timedelta(seconds=5), 7)
        claim = "select ringlog.claim_writer(%s, 'spool', 'writer')"
        (epoch,) = site.connection.execute(claim, [table.name]).fetchone() or (None,)
        site.call(table, "put_{}_batch", json.dumps([batch]), epoch)
        whole = [each | {"seq_no": seq_no} for each, seq_no in zip(given, [1, 2, 3, 4, 1, 2], strict=True)]
        sent[table.name] = [*old, *whole, batch]
        assert site.stored(table) == sent[table.name]
        assert site.stored(table, "online") == [whole[3], whole[4], whole[5], batch]
        with pytest.raises(psycopg.errors.UniqueViolation):
            site.put(table, row(table, 3, NOW - timedelta(seconds=5), 8))


def read_rows(site: Site) -> None:
    for table in TABLES:
        last = row(table, 3, NOW - timedelta(seconds=5), 7)
        assert site.call(table, "last_{}") == [(3, NOW - timedelta(seconds=5))]
        assert [each[0] for each in site.call(table, "get_{}", 2)] == [3, 2]
        assert [each[0] for each in site.call(table, "get_{}_at", NOW)] == [3]
        assert len(site.call(table, "get_{}_range", OLD, NOW, 100)) == 11
        for column in table.columns:
            if not column.type.is_text:
                assert len(site.call(table, "get_signal", column.signal, OLD, NOW)) == 11, column
                assert site.call(table, "get_distribution", column.signal, OLD, NOW), column
            if str(column.type) == "int":
                assert len(site.call(table, "get_states", column.signal, OLD, NOW)) == 7, column
        assert site.call(table, "get_latest", table.columns[0].signal) != []
        assert last in site.stored(table)


def import_rows(site: Site, sent: Sent) -> None:
    for table in TABLES:
        with site.connection.transaction():
            site.connection.execute("select * from ringlog.begin_import(%s, 'f', 'd')", [table.name])
            imported = [row(table, n + 1, OLD + timedelta(minutes=n + 1), n) for n in range(3)]
            for each in [*imported, sent[table.name][0]]:
                site.connection.execute(
                    sql.SQL("insert into pg_temp.{} select * from json_populate_record(null::{}, %s)").format(
                        sql.Identifier(table.name), sql.Identifier("log", table.name)
                    ),
                    [json.dumps(each)],
                )
            assert site.call(table, "import_{}", "f", 0, True, True) == [(3, 1, 0)]
        sent[table.name] = [*sent[table.name][:4], *imported, *sent[table.name][4:]]
        assert site.stored(table) == sent[table.name]


def keep_house(site: Site, sent: Sent) -> None:
    report = maintain(site.engine)
    assert report.failed == ()
    assert report.moved == {Week.of(OLD).partition(table.name): 7 for table in TABLES}
    summarise(site.conninfo, enough=1)
    site.connection.execute(sql.SQL("delete from online.{} where seq_no = 2").format(sql.Identifier("n")))
    assert [*rings.complete(site.engine)] == ["ring n: 1 rows more"]
    longer = replace(site.facility, tables=tuple(replace(table, rows=8) for table in TABLES))
    install(site.engine, longer)
    for table in TABLES:
        count = sql.SQL("select count(*) from online.{}").format(sql.Identifier(table.name))
        assert site.connection.execute(count).fetchone() == (8,), table.name
        for column in table.columns:
            if not column.type.is_text:
                found = site.connection.execute(
                    "select n, min, max from ringlog.get_statistics(%s, %s, %s)",
                    [column.signal, OLD, OLD + timedelta(days=1)],
                ).fetchall()
                assert found == [(7, 0.0, 3.0)], column
                trend = "select sum(n)::integer from ringlog.get_trend(%s, %s, %s, 10)"
                bounds = [column.signal, OLD, OLD + timedelta(days=1)]
                assert site.connection.execute(trend, bounds).fetchone() == (7,)
        assert site.stored(table) == sent[table.name]


def archive_and_recall(site: Site, sent: Sent) -> None:
    def read_all(table: Table) -> list[object]:
        names = ["seq_no", *(column.name for column in table.columns)]
        return [
            each
            for part in read(site.conninfo, table.name, names)
            for each in part.select(["seq_no", *names[1:]]).to_pylist()
        ]

    before = {table.name: read_all(table) for table in TABLES}
    lines = [*archive(site.conninfo, pauses=0)]
    assert sum(line.startswith("archived log.") for line in lines) == len(TABLES), lines
    for table in TABLES:
        assert read_all(table) == before[table.name]
        assert len(site.stored(table)) == 7
        late = row(table, 4, OLD + timedelta(minutes=30), 9)
        site.put(table, late, sent[table.name][0])
        assert newest(site.conninfo, table.name, [table.columns[0].name], OLD + timedelta(hours=2))
    summarise(site.conninfo, enough=1)
    lines = [*archive(site.conninfo, pauses=0)]
    merged = ["merged 1 late rows" in line and ", 1 were there" in line for line in lines]
    assert sum(merged) == len(TABLES), lines
    assert [*problems_of(site.connection)] == []
    for table in TABLES:
        late = row(table, 4, OLD + timedelta(minutes=30), 9)
        sent[table.name].insert(7, late)
        again = row(table, 4, OLD + timedelta(minutes=31), 9)
        site.put(table, again, late)
        bounds = (OLD - WEEK, OLD + WEEK)
        assert len([*recall(site.conninfo, table.name, *bounds, timedelta(days=7))]) == 1
        sent[table.name].insert(8, again)
        assert site.stored(table) == sent[table.name]


def restore_past_retention(site: Site, sent: Sent) -> None:
    later = OLD + 22 * WEEK
    assert len(maintain(site.engine, later).set_aside) >= len(TABLES)
    for table in TABLES:
        site.put(table, sent[table.name][0], row(table, 4, OLD + timedelta(minutes=32), 9))
        assert [*restore(site.conninfo, table.name, OLD, OLD + WEEK)] != []
        sent[table.name].insert(9, row(table, 4, OLD + timedelta(minutes=32), 9))
        assert site.stored(table)[:10] == sent[table.name][:10]


def test_every_name(site: Site) -> None:
    sent: Sent = {}
    write_rows(site, sent)
    read_rows(site)
    import_rows(site, sent)
    keep_house(site, sent)
    asyncio.run(over_http(site))
    archive_and_recall(site, sent)
    restore_past_retention(site, sent)
