"""The cached registry is read again after a change."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo

from ringlog.retrieval.samples import columns_of
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.access import Login
from ringlog.retrieval.serving.connections import Connections
from ringlog.retrieval.signals import Signal, describe
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install

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
        return found, [column.place.column for column in columns_of(servers, found["m/a"])]


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
    monkeypatch.setattr("ringlog.retrieval.samples.places", lambda *of: pytest.fail("asked again"))
    assert seen(connections) == before
