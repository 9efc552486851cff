"""install: an empty database gets the facility."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import OVER_ALL_TABLES
from ringlog.procedures.parameters import OVER_ALL_PARAMETERS
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing import unchanged
from ringlog.schema.installing.install import InstallRefused, InstallReport, difference, install

from ..conftest import Connect, magnets_facility, rows
from .snapshot import snapshot

FACILITY = magnets_facility()


@pytest.fixture
def database_url(empty_database_url: sa.URL) -> sa.URL:
    return empty_database_url


FILE = """
timezone = "UTC"
"""
TABLE = """
[[table]]
name = "table_{n}"
rows = 4
cycle = 1.0
column = [{{ name = "a", type = "real" }}, {{ name = "b", type = "real[]", points = 4 }}]

[[parameter]]
name = "parameter_{n}"
key = "device"
column = [{{ name = "device", type = "varchar(20)" }}, {{ name = "b", type = "real" }}]
"""


def test_a_first_installation_takes_few_statements_for_each_table_and_shows_its_progress(
    empty_database_url: sa.URL,
    copied_databases: Callable[[str], AbstractContextManager[sa.URL]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("ringlog.schema.installing.new_tables._PAUSE", 0.0)
    monkeypatch.setattr("ringlog.schema.installing.unchanged.is_noted", lambda *_: False)
    caplog.set_level("INFO")
    taken = []
    with copied_databases("template1") as other:
        for url, tables in ((empty_database_url, 2), (other, 8)):
            file = tmp_path / f"{tables}.toml"
            file.write_text(FILE + "".join(TABLE.format(n=number) for number in range(tables)))
            engine, statements = sa.create_engine(url), count(0)
            sa.event.listen(engine, "before_cursor_execute", lambda *_, n=statements: next(n))
            install(engine, load_facility(file))
            taken.append(next(statements))
            with engine.connect() as connection:
                # noted without a comparison
                assert connection.scalar(sa.select(sa.func.count()).select_from(unchanged.installation)) == 1
            assert not difference(engine, load_facility(file))
            engine.dispose()
    # of a table and a parameter table: DDL of SQLAlchemy, and a round trip for each kind of the rest
    assert (taken[1] - taken[0]) / 6 <= 22, taken
    assert "installing the facility: 5 of 8 tables are made" in caplog.text
    done = [caplog.text.count(f"{what} the facility: procedures") for what in ("installing", "trying")]
    assert done == [2, 2], "a dry run installs nothing"


def test_report_of_an_empty_database(engine: sa.Engine) -> None:
    report = install(engine, FACILITY)
    things = [thing for thing in report.created if not thing.startswith("role ")]  # roles are the cluster's
    assert things == [
        "schema online",
        "schema log",
        "schema weeks",
        "schema ring",
        "schema ringlog",
        "schema parameter",
        "schema parameter_history",
        "schema parameter_rows",
        "schema recent",
        "schema set_aside",
        "schema closed",
        "schema archive",
        "schema archive_files",
        "schema iceberg",
        "schema summary",
        "schema capture",
        "schema ten_seconds",
        "schema minute",
        "schema ten_minutes",
        "schema hour",
        "schema day",
        "schema sys",
        "schema sybsystemprocs",
        "schema tsql_information_schema",
        "schema tsql",
        "schema tsql_global",
        "procedure array_bytes",
        "table magnets",
        *(f"procedure {name}" for name in OVER_ALL_TABLES),
        "procedure put_magnets",
        "procedure put_magnets_claimed",
        "procedure put_magnets_batch",
        "procedure import_magnets",
        "procedure get_magnets",
        "procedure get_magnets_at",
        "procedure get_magnets_range",
        "procedure last_magnets",
        *(f"procedure {name}" for name in OVER_ALL_PARAMETERS),
        "catalogue of T-SQL",
    ]
    assert report.changed == (
        "setting TimeZone of the database: none → Asia/Tokyo",
        'setting search_path of the database: none → "online", "log", "ringlog", "public"',
    )
    assert "created table magnets" in str(report)
    assert str(InstallReport((), ())) == "nothing to do"


def test_many_equal_changes_are_one_line() -> None:
    tables = tuple(f"table t{n}" for n in range(60))
    assert str(InstallReport(tables, ())) == "created 60 tables"
    slower = tuple(f"{table}: cycle 1 s → 2 s" for table in tables[:59])
    report = InstallReport((), (*slower, "table t59: rows 5 → 8", "view recent.t0"))
    assert report.text("would create", "would change").splitlines() == [
        "would change 59 tables (t0, t1, t2, 56 more): cycle 1 s → 2 s",
        "would change table t59: rows 5 → 8",
        "would change view recent.t0",
    ]
    signals = tuple(f'signal s{n}: description none → "{n}"' for n in range(11))
    assert str(InstallReport((), signals)) == "changed 11 signals"
    assert len(InstallReport((), signals).text("created", "changed", whole=True).splitlines()) == 11


def test_rings_are_full_and_empty(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    assert rows(connection, "select * from online.magnets order by seq_no") == [
        (seq_no, None, None, None, None) for seq_no in range(1, 6)
    ]


def test_columns_and_keys(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    for schema in ("online", "log"):
        columns = rows(
            connection,
            "select column_name, data_type, character_maximum_length from information_schema.columns"
            " where table_schema = %s and table_name = 'magnets' order by ordinal_position",
            schema,
        )
        assert columns == [
            ("seq_no", "integer", None),
            ("time", "timestamp with time zone", None),
            ("current", "real", None),
            ("on", "boolean", None),
            ("state", "character varying", 8),
        ]
    keys = rows(
        connection,
        "select indrelid::regclass::text, indisprimary, pg_get_indexdef(indexrelid, 1, false),"
        " pg_get_indexdef(indexrelid, 2, false) from pg_index"
        " where indrelid in ('online.magnets'::regclass, 'weeks.magnets'::regclass) order by 1, 2",
    )
    assert keys == [
        ("magnets", False, '"time"', "seq_no"),
        ("magnets", True, "seq_no", ""),
        ("weeks.magnets", True, '"time"', "seq_no"),
    ]


def test_everything_belongs_to_the_owner(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    owners = rows(
        connect(),
        "select distinct relowner::regrole::text from pg_class where relnamespace = any(%s::regnamespace[])"
        " union select proowner::regrole::text from pg_proc where pronamespace = any(%s::regnamespace[])"
        " union select nspowner::regrole::text from pg_namespace where oid = any(%s::regnamespace[])",
        *[["online", "log", "ringlog"]] * 3,
    )
    assert owners == [("ringlog_owner",)]


def test_settings_of_the_database(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    assert rows(connection, "show timezone") == [("Asia/Tokyo",)]
    assert rows(connection, "show search_path") == [("online, log, ringlog, public",)]
    assert len(rows(connection, "select * from magnets")) == 5, "the ring"
    assert rows(connection, "select seq_no from last_magnets()") == [(None,)]


def test_a_search_path_that_is_there_stays(engine: sa.Engine, connect: Connect) -> None:
    connection = connect()
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("alter database {} set search_path = site, online").format(database))
    assert install(engine, FACILITY).changed == ("setting TimeZone of the database: none → Asia/Tokyo",)
    assert rows(connect(), "show search_path") == [("site, online",)]


def test_two_installers_at_once(database_url: sa.URL, connect: Connect) -> None:
    def run(_: int) -> InstallReport:
        engine = sa.create_engine(database_url)
        report = install(engine, FACILITY)
        engine.dispose()
        return report

    with ThreadPoolExecutor() as threads:
        reports = threads.map(run, range(2))
    assert sorted(bool(report) for report in reports) == [False, True]
    assert rows(connect(), "select count(*) from online.magnets") == [(5,)]


def test_a_schema_of_other_origin(engine: sa.Engine, connect: Connect) -> None:
    connection = connect()
    connection.execute("create schema log")
    before = snapshot(connection)
    with pytest.raises(InstallRefused) as error:
        install(engine, FACILITY)
    assert snapshot(connection) == before
    (obstacle,) = error.value.obstacles
    assert obstacle.what == "schema log belongs to postgres and was not made by ringlog"
    connection.execute(sql.SQL(obstacle.sql))
    install(engine, FACILITY)
