"""The installed objects are compared with the facility file only if they may differ: after any change by
hand, never after the work of housekeeping."""

import re
import subprocess
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from case_tables import cases
from psycopg.conninfo import make_conninfo

from ringlog.history.summaries.summarising import summarise
from ringlog.schema import change as changes
from ringlog.schema.change import Blocked, change, run
from ringlog.schema.facility import Facility
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing import unchanged
from ringlog.schema.installing.install import InstallRefused, InstallReport, difference, install
from ringlog.schema.relations import rings
from ringlog.schema.relations.partitions import maintain
from ringlog.schema.relations.statistics import turn_off_near
from ringlog.server.embedded.programs import packaged_programs

from ..conftest import Connect, rows

TEXT = Path(__file__).with_name("unchanged.toml").read_text()

BY_HAND = cases(__file__, "by_hand")

ELSEWHERE = cases(__file__, "elsewhere")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plant.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def facility(engine: sa.Engine, file: Path) -> Facility:
    wanted = load_facility(file)
    install(engine, wanted)
    return wanted


def compares(engine: sa.Engine, facility: Facility) -> bool:
    """Installs again; returns whether it examined the existing procedures."""
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        install(engine, facility)
    except InstallRefused:
        return True
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)
    return any("pg_get_functiondef" in statement for statement in asked)


def test_an_installed_file_is_not_compared_again(engine: sa.Engine, facility: Facility) -> None:
    assert not compares(engine, facility)
    assert install(engine, facility) == InstallReport((), ())
    assert difference(engine, facility) == InstallReport((), ())


def test_changes_by_hand_are_detected(engine: sa.Engine, facility: Facility) -> None:
    with engine.connect() as connection:
        for statement in BY_HAND:
            with connection.begin_nested() as attempt:
                connection.exec_driver_sql(statement)
                assert not unchanged.is_noted(connection, unchanged.state(connection, facility)), statement
                attempt.rollback()
        assert unchanged.is_noted(connection, unchanged.state(connection, facility))


def test_rows_of_the_catalogue_that_lie_elsewhere_are_compared(
    engine: sa.Engine, facility: Facility, connect: Connect
) -> None:
    connection = connect()
    for statement in ELSEWHERE:
        connection.execute(statement.encode())
        assert compares(engine, facility), statement
        assert not compares(engine, facility)


def test_a_replaced_function_and_a_unit_are_restored(
    engine: sa.Engine, facility: Facility, connect: Connect
) -> None:
    connection = connect()
    connection.execute("drop function ringlog.get_pump")
    connection.execute("update ringlog.signal set unit = 'hPa' where signal = 'pump/pressure'")
    report = install(engine, facility)
    assert report.created == ("procedure get_pump",)
    assert report.changed == ('signal pump/pressure: unit "hPa" → "Pa"',)
    assert not compares(engine, facility)


def test_work_of_the_server_itself_is_no_change(
    engine: sa.Engine, facility: Facility, connect: Connect, database_url: sa.URL
) -> None:
    """Weeks that are created and dropped, views that advance, rows, statistics, logins."""
    connection = connect()
    before = rows(connection, "select obj_description('recent.pump'::regclass)")
    now = datetime.now(UTC)
    for days in (0, 1, 2):
        for _ in range(2):
            connection.execute(
                "select ringlog.put_pump(row (1, %s, 1.5, 'n')::online.pump)", [now - timedelta(days=days)]
            )
    for ahead in (0, 30, 60):
        maintain(engine, now + timedelta(days=ahead))
        assert not [*turn_off_near(engine, now + timedelta(days=ahead))]
    info = connection.info
    summarise(f"host={info.host} port={info.port} dbname={info.dbname} user={info.user}")
    assert rows(connection, "select obj_description('recent.pump'::regclass)") != before
    for statement in ("vacuum analyze", "vacuum freeze", "checkpoint", "create role somebody_else login"):
        connection.execute(statement.encode())
    connection.execute("grant daq_reader to somebody_else")
    connection.execute("create table public.other (a integer)")
    connection.execute("drop role somebody_else")
    assert not compares(engine, facility)


def test_another_text_is_compared(engine: sa.Engine, facility: Facility, file: Path) -> None:
    file.write_text(f"# the same, said otherwise\n{TEXT}")
    assert compares(engine, load_facility(file))
    assert not compares(engine, load_facility(file))
    # the name of the facility, where the text has none
    assert compares(engine, load_facility(file.rename(file.with_stem("site"))))


def test_an_installation_of_other_sources_is_compared(
    engine: sa.Engine, facility: Facility, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unchanged, "_sources", lambda: "of another version")
    assert compares(engine, facility)
    assert not compares(engine, facility)


def test_a_facility_of_no_file_is_compared(engine: sa.Engine, facility: Facility) -> None:
    """A facility derived from a file's, as by moving a table, is not one of a file."""
    assert compares(engine, replace(facility, tables=facility.tables))
    assert facility.of(None).digest == facility.digest
    assert facility.of("b").digest not in (None, facility.digest)
    assert replace(facility.of("b"), tables=()).digest is None


def test_a_change_that_commits_during_an_installation_is_compared(
    engine: sa.Engine, facility: Facility, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that began before, and one after the comparison."""
    begun = connect()
    begun.execute("begin; grant select on ringlog.signal to daq_writer")
    connect().execute("delete from ringlog.installation")
    install(engine, facility)
    begun.execute("commit")
    assert compares(engine, facility)

    def late(connection: sa.Connection, state: unchanged.State) -> None:
        connect().execute("alter function ringlog.get_trace set work_mem = '1MB'")
        note(connection, state)

    connect().execute("delete from ringlog.installation")
    note = unchanged.note
    with monkeypatch.context() as patch:
        patch.setattr(unchanged, "note", late)
        install(engine, facility)
    assert install(engine, facility).changed == ("procedure get_trace: it was not as ringlog makes it",)
    assert not compares(engine, facility)


def test_a_restored_dump_is_compared(
    engine: sa.Engine, facility: Facility, connect: Connect, empty_database_url: sa.URL
) -> None:
    info = connect().info
    there = make_conninfo(
        user=empty_database_url.username, dbname=empty_database_url.database, **dict(empty_database_url.query)
    )
    here = f"host={info.host} port={info.port} dbname={info.dbname} user={info.user}"
    programs = packaged_programs()
    dumped = subprocess.run([programs / "pg_dump", here], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run([programs / "psql", "-Xq", there], input=dumped, check=True, stdout=subprocess.DEVNULL)
    restored = sa.create_engine(empty_database_url)
    assert compares(restored, facility)
    assert not compares(restored, facility)
    restored.dispose()


def test_deleted_rows_of_a_ring_are_restored(engine: sa.Engine, facility: Facility, connect: Connect) -> None:
    connection = connect()
    connection.execute("delete from online.pump where seq_no in (2, 3)")
    connection.execute("delete from ring.trace where seq_no = 1")
    assert install(engine, facility) == InstallReport((), ())
    assert [*rings.complete(engine)] == ["ring pump: 2 rows more", "ring trace: 1 rows more"]
    assert rows(connection, "select count(*) from online.pump union all select count(*) from ring.trace") == [
        (4,),
        (4,),
    ]
    assert not [*rings.complete(engine)]


# --- a change of tables in constant use: it is given up, and its error names the sessions ---


def test_a_blocked_change_names_the_blocking_sessions(
    engine: sa.Engine, database_url: sa.URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "PATIENCE", 0.0)

    def add_column(connection: sa.Connection) -> None:
        run(connection, "alter table public.wanted add column b int")

    dsn = database_url.set(drivername="postgresql").render_as_string(hide_password=False)
    with closing(psycopg.connect(dsn, application_name="17 isql (console-3)")) as reader:
        reader.execute("create table public.wanted (a int)")
        reader.commit()
        reader.execute("select from public.wanted")
        with pytest.raises(Blocked) as refused:
            change(engine, add_column)
        words = str(refused.value)
        pid = reader.info.backend_pid
        assert f"public.wanted is used by process {pid}: login {reader.info.user}" in words
        assert "program '17 isql (console-3)', idle in transaction, in a transaction since 2" in words
        advice = re.search(r"select pg_terminate_backend[(][0-9]+[)]", words)
        assert advice is not None
        with engine.begin() as administrator:
            run(administrator, advice.group())
        change(engine, add_column)
