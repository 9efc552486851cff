"""ringlog's own schema has a version; migrations bring an earlier one to today's."""

import pytest
import sqlalchemy as sa

from ringlog.schema.installing import versions
from ringlog.schema.installing.install import InstallRefused, bring_up_to_date, install
from ringlog.schema.installing.versions import Migration

from ..conftest import Connect, magnets_facility

FACILITY = magnets_facility()
MIGRATIONS = (
    Migration(1, "places", "alter table ringlog.logged_table add column place text"),
    Migration(2, "places are known", "update ringlog.logged_table set place = 'hall'"),
)


@pytest.fixture
def database_url(empty_database_url: sa.URL) -> sa.URL:
    return empty_database_url


def test_an_earlier_database_gets_missing_objects(
    engine: sa.Engine, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(engine, FACILITY)
    connection = connect()
    for count, titles in ((1, ["1: places"]), (2, ["2: places are known"])):
        known = MIGRATIONS[:count]
        monkeypatch.setattr(versions, "migrations", lambda known=known: known)
        # in either order: the start of the server, and the facility file
        report = bring_up_to_date(engine) if count == 1 else install(engine, FACILITY)
        assert [*report.changed] == [f"schema version {title}" for title in titles]
        assert not bring_up_to_date(engine)
        assert not install(engine, FACILITY)
    assert connection.execute("select place from ringlog.logged_table").fetchall() == [("hall",)]
    assert connection.execute("select version, title from ringlog.schema_version order by 1").fetchall() == [
        (each.version, each.title) for each in MIGRATIONS
    ]


def test_a_new_database_has_had_all_migrations(
    engine: sa.Engine, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = (Migration(1, "not run", "select 1 / 0"),)
    monkeypatch.setattr(versions, "migrations", lambda: wrong)
    install(engine, FACILITY)
    found = connect().execute("select version, title from ringlog.schema_version").fetchall()
    assert found == [(1, "not run")]


def test_migrations_are_numbered_from_1_on() -> None:
    assert [each.version for each in versions.migrations()] == [*range(1, len(versions.migrations()) + 1)]


def test_a_database_of_a_later_ringlog_is_left_alone(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connect().execute("insert into ringlog.schema_version (version, title) values (999, 'of tomorrow')")
    for attempt in (lambda: install(engine, FACILITY), lambda: bring_up_to_date(engine)):
        with pytest.raises(InstallRefused, match=r"a later ringlog has changed this database: .* 999"):
            attempt()


def test_a_missing_procedure_is_restored_without_a_facility(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connect().execute("drop function ringlog.table_states")
    assert bring_up_to_date(engine).created == ("procedure table_states",)
    assert not bring_up_to_date(engine)


def test_system_procedures_of_an_earlier_version_are_replaced(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    query = "select count(*), count(distinct prokind) from pg_proc where pronamespace = 'sys'::regnamespace"
    before = connection.execute(query).fetchone()
    connection.execute("comment on schema sys is 'of an earlier version'")
    assert bring_up_to_date(engine)
    assert connection.execute(query).fetchone() == before
    assert not bring_up_to_date(engine)
