"""Entity tags of closed time change as soon as the answer changes."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo

from ringlog.history import closing as packing
from ringlog.history.summaries.summarising import summarise
from ringlog.retrieval.samples import samples
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.access import Login
from ringlog.retrieval.serving.connections import Connections
from ringlog.retrieval.serving.unchanged import tag_of
from ringlog.retrieval.signals import describe
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain

BEGIN = datetime(2026, 3, 4, tzinfo=UTC)
NOW = BEGIN + timedelta(hours=10)


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
            rows = [(BEGIN + timedelta(minutes=minute), minute) for minute in minutes]
            cursor.executemany("select ringlog.put_m(row (1, %s, %s)::online.m)", rows)

    def close(self) -> None:
        summarise(self.conninfo, NOW, enough=1)
        assert packing.close(self.conninfo, pauses=0).complete

    def tag(self, first: float, last: float) -> tuple[str | None, list[float]]:
        """The tag, and the values of an answer, including the one before the time."""
        start, end = (BEGIN + timedelta(minutes=minute) for minute in (first, last))
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
