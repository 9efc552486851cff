"""log.<table> while its weeks are archived and recalled, over TDS, PostgreSQL's protocol and HTTP."""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

import httpx
import psycopg
import pymssql
import pytest

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.recall import recall
from ringlog.schema.session import engine
from ringlog.server.processes.web import Web, settings
from servers import Login, RunningServer, free_port, serving
from waiting import among_readers, wait_until_reachable

NOW = datetime.now(UTC)
MONDAY = (NOW - timedelta(days=NOW.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
BEGIN = MONDAY - timedelta(weeks=6)
ROWS = 6 * 7 * 72  # one each 20 minutes
SUM = ROWS * (ROWS - 1) // 2
FACILITY = """
timezone = "UTC"

[history]
online = "2 weeks"
archive = "{folder}"

[[table]]
name = "slow"
description = "slow things"
rows = 10
cycle = 1200.0

[[table.column]]
name = "n"
signal = "slow/n"
type = "int"
unit = "A"
"""

QUERY = "select count(*), sum(n) from log{}slow"


@pytest.mark.long
@pytest.mark.parametrize("seed", [49])
def test_every_client_counts_each_row_once(temporary_directory: Path, seed: int) -> None:
    file = temporary_directory / "facility.toml"
    file.write_text(FACILITY.format(folder=temporary_directory / "archive"))
    (temporary_directory / "archive").mkdir(mode=0o777)
    (temporary_directory / "archive").chmod(0o777)
    with serving(temporary_directory / "data", facility=file) as server:
        fill(server)
        as_a_table(server)
        served = settings("127.0.0.1", free_port(), server.dsn, role="daq_reader")
        with (
            Web(served).running() as web,
            httpx.Client(base_url=f"http://{web.address}", timeout=60, trust_env=False) as http,
            psycopg.connect(server.dsn, autocommit=True) as admin,
        ):
            # the server may have archived some
            [*archive(engine(server.dsn), server.dsn, pauses=0)]
            assert admin.execute("select count(*) from ringlog.cold_week").fetchone() == (4,)
            counted(admin.execute(QUERY.format(".")).fetchone)
            as_a_table(server)
            changed_by_its_owner(server)
            counts = while_weeks_move(server, http, Random(seed))
    for name, found in counts.items():
        assert len(found) > 3, name
        assert {*found} == {(ROWS, SUM)}, name


def fill(server: RunningServer) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(
            "insert into weeks.slow select 1, %s + n * interval '20 minutes', n"
            " from generate_series(0, %s) as n",
            [BEGIN, ROWS - 1],
        )
        for week in range(6):
            admin.execute("select ringlog.make_week('slow', %s)", [BEGIN + timedelta(weeks=week)])
        # summaries would be required before a week is archived
        admin.execute("update ringlog.summarised set levels = '{}'; delete from ringlog.summary_mark")


def counted(fetch: Callable[[], object]) -> None:
    """Waits for the archive server."""
    wait_until_reachable(lambda: fetch() == (ROWS, SUM))


def as_a_table(server: RunningServer) -> None:
    """T-SQL shows a log as a table with its key and its descriptions, with archived weeks or without."""
    with server.connect(server.reader.user, server.reader.password, database="log") as session:
        cursor = session.cursor()

        def rows(text: str) -> list[tuple[object, ...]]:
            cursor.execute(text)
            return cursor.fetchall()

        assert rows("select type from sys.objects where name = 'slow'") == [("U ",)]
        assert rows("select TABLE_TYPE from INFORMATION_SCHEMA.TABLES where TABLE_NAME = 'slow'") == [
            ("BASE TABLE",)
        ]
        assert rows(
            "select COLUMN_NAME, IS_NULLABLE, DATA_TYPE from INFORMATION_SCHEMA.COLUMNS"
            " where TABLE_NAME = 'slow' order by ORDINAL_POSITION"
        ) == [("seq_no", "NO", "int"), ("time", "NO", "datetime2"), ("n", "YES", "int")]
        assert rows(
            "select COLUMN_NAME from INFORMATION_SCHEMA.KEY_COLUMN_USAGE where TABLE_NAME = 'slow'"
            " order by ORDINAL_POSITION"
        ) == [("time",), ("seq_no",)]
        assert [row[3] for row in rows("exec sp_pkeys slow")] == ["time", "seq_no"]
        indexed = [row[8] for row in rows("exec sp_statistics slow") if row[8] is not None]
        assert indexed == ["time", "seq_no"]
        key = "select index_id from sys.indexes where object_id = object_id('slow') and is_primary_key = 1"
        ((index,),) = rows(key)
        assert rows(
            "select type, unique_index_id from sys.key_constraints where parent_object_id = object_id('slow')"
        ) == [("PK", index)]
        nullable = [(row[3], row[10]) for row in rows("exec sp_columns slow")]
        assert nullable == [("seq_no", 0), ("time", 0), ("n", 1)]
        assert rows(
            "select minor_id, cast(value as varchar(40)) from sys.extended_properties"
            " where major_id = object_id('slow') order by minor_id"
        ) == [(0, "slow things"), (3, "slow/n, A")]
        newest = rows("select top 10 n from slow order by time desc")
        assert newest == [(ROWS - 1 - n,) for n in range(10)]
        old = f"select top 2 n from slow where time < '{BEGIN + timedelta(hours=1):%Y%m%d %H:%M}'"
        assert rows(f"{old} order by time desc") == [(2,), (1,)]
        # a cursor finds its rows again by the key
        cursor.execute("declare @c int, @n int")
        for fetched in (0, 1):
            assert rows(
                "declare c scroll cursor for select n from slow order by time"
                f" open c fetch absolute {fetched + 1} from c close c deallocate c"
            ) == [(fetched,)]


def changed_by_its_owner(server: RunningServer) -> None:
    """Inserts, bulk copies, locks: rows of archived weeks remain unchanged."""
    owner = Login("owner_of_logs", "owner-of-logs")
    server.sql(
        f"create role {owner.user} login password '{owner.password}' in role ringlog_owner;"
        f" grant {owner.user} to ringlog_gateway with inherit false, set true".encode()
    )
    with (
        server.connect(owner.user, owner.password, database="log") as session,
        server.connect(owner.user, owner.password, database="log") as other,
        session.cursor() as cursor,
        other.cursor() as waiting,
    ):
        new = f"{NOW:%Y-%m-%d %H:%M:%S}.5"
        cursor.execute(f"insert slow (seq_no, time, n) values (2, '{new}', -1)")
        session.bulk_copy("slow", [(3, f"{new}1", -2)])
        cursor.execute("begin transaction select n from slow with (updlock) where n < 0 order by n")
        assert cursor.fetchall() == [(-2,), (-1,)]
        # the whole table is locked, since PostgreSQL locks no row of a view with UNION
        waiting.execute("set lock_timeout 100")
        with pytest.raises(pymssql.Error, match="1222"):
            waiting.execute(f"insert slow (seq_no, time, n) values (4, '{new}2', -3)")
        cursor.execute("commit")
        for refused in (
            "update slow set n = 0 where n < 0",
            "delete slow where n < 0",
            "select n from slow with (updlock, readpast)",
            "declare c cursor for select n from slow where n < 0 for update"
            " open c fetch c update slow set n = 0 where current of c",
        ):
            with pytest.raises(pymssql.Error):
                cursor.execute(refused)
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        assert admin.execute("delete from weeks.slow where n < 0").rowcount == 2
        admin.execute("drop role owner_of_logs")


def while_weeks_move(
    server: RunningServer, http: httpx.Client, random: Random
) -> dict[str, list[tuple[object, ...]]]:
    counts: dict[str, list[tuple[object, ...]]] = {}
    done = threading.Event()

    def by_tds() -> tuple[object, ...]:
        with server.connect(server.reader.user, server.reader.password) as session:
            cursor = session.cursor()
            cursor.execute(QUERY.format(".."))
            return tuple(cursor.fetchone() or ())

    def by_psql() -> tuple[object, ...]:
        return server.sql(QUERY.format("."), login=server.reader)[0]

    def by_http() -> tuple[object, ...]:
        asked = {"signal": "slow/n", "from": BEGIN.isoformat(), "to": NOW.isoformat(), "format": "csv"}
        lines = http.get("/api/v1/data", params=asked).raise_for_status().text.splitlines()[1:]
        values = [int(float(line.split(",")[1])) for line in lines]
        return len(values), sum(values)

    def count(name: str, ask: Callable[[], tuple[object, ...]]) -> None:
        while not done.is_set():
            with suppress(psycopg.errors.SerializationFailure):
                counts.setdefault(name, []).append(ask())
            done.wait(0.2)

    asking = {"TDS": by_tds, "psql": by_psql, "HTTP": by_http}
    threads = [threading.Thread(target=partial(count, *each)) for each in asking.items()]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            begins = BEGIN + timedelta(weeks=random.randrange(3))
            week = (begins, begins + timedelta(weeks=1))
            among_readers(partial(recall, engine(server.dsn), server.dsn, "slow", *week, timedelta(0)))
            among_readers(partial(archive, engine(server.dsn), server.dsn, pauses=0))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return counts
