"""log.<table> while its weeks are archived and recalled, over TDS, PostgreSQL's protocol and HTTP."""

import csv
import json
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psycopg
import pyarrow.parquet as pq
import pymssql
import pytest

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.recall import recall
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.relations.partitions import Week
from ringlog.schema.relations.sample_tables import merge
from ringlog.schema.session import engine
from ringlog.server.processes.web import Web, settings
from servers import Login, RunningServer, free_port, ringlog, serving
from waiting import among_readers, wait_until_reachable

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
def test_every_client_counts_each_row_once(data: Path, seed: int) -> None:
    file = facility_file(data.parent, FACILITY)
    monday = Week.of(datetime.now(UTC)).start
    begin = monday - timedelta(weeks=6)
    with serving(data, facility=file) as server:
        fill(server, begin)
        as_a_table(server, begin)
        served = settings("127.0.0.1", free_port(), server.dsn, role="daq_reader")
        with (
            Web(served).running() as web,
            httpx.Client(base_url=f"http://{web.address}", timeout=60, trust_env=False) as http,
            psycopg.connect(server.dsn, autocommit=True) as admin,
        ):
            # the server may have archived some
            [*archive(server.dsn, pauses=0)]
            assert admin.execute("select count(*) from ringlog.cold_week").fetchone() == (4,)
            counted(admin.execute(QUERY.format(".")).fetchone)
            spans = "select begins, ends from ringlog.get_spans('slow/n >= 10 and slow/n < 20', %s, %s)"
            found = admin.execute(spans, [begin + timedelta(seconds=1.5), monday]).fetchall()
            assert found == [(begin + timedelta(minutes=200), begin + timedelta(minutes=400))]
            as_a_table(server, begin)
            changed_by_its_owner(server)
            counts = while_weeks_move(server, http, begin, Random(seed))
    for name, found in counts.items():
        assert len(found) > 3, name
        assert {*found} == {(ROWS, SUM)}, name


def facility_file(folder: Path, text: str) -> Path:
    """With the folder of the archive there."""
    (folder / "archive").mkdir()
    (folder / "archive").chmod(0o777)
    file = folder / "facility.toml"
    file.write_text(text.format(folder=folder / "archive"))
    return file


def fill(server: RunningServer, begin: datetime) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(
            "insert into weeks.slow select 1, %s + n * interval '20 minutes', n"
            " from generate_series(0, %s) as n",
            [begin, ROWS - 1],
        )
        for week in range(6):
            admin.execute("select ringlog.make_week('slow', %s)", [begin + timedelta(weeks=week)])
        # summaries would be required before a week is archived
        admin.execute("update ringlog.summarised set levels = '{}'; delete from ringlog.summary_mark")


def counted(fetch: Callable[[], object]) -> None:
    """Waits for the archive server."""
    wait_until_reachable(lambda: fetch() == (ROWS, SUM))


def as_a_table(server: RunningServer, begin: datetime) -> None:
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
        old = f"select top 2 n from slow where time < '{begin + timedelta(hours=1):%Y%m%d %H:%M}'"
        assert rows(f"{old} order by time desc") == [(2,), (1,)]
        # a cursor finds its rows again by the key
        cursor.execute("declare @c int, @n int")
        for fetched in (0, 1):
            assert rows(
                "declare c scroll cursor for select n from slow order by time"
                f" open c fetch absolute {fetched + 1} from c close c deallocate c"
            ) == [(fetched,)]


def _run(cursor: pymssql.Cursor, text: str) -> None:
    """Runs a batch and reads all its results: an error may come behind rows."""
    cursor.execute(text)
    while cursor.nextset():
        pass


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
        new = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}.5"
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
                _run(cursor, refused)
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        assert admin.execute("delete from weeks.slow where n < 0").rowcount == 2
        admin.execute("drop role owner_of_logs")


def while_weeks_move(
    server: RunningServer, http: httpx.Client, begin: datetime, random: Random
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
        span = {"from": begin.isoformat(), "to": datetime.now(UTC).isoformat()}
        asked = {"signal": "slow/n", "format": "csv"} | span
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
            begins = begin + timedelta(weeks=random.randrange(3))
            week = (begins, begins + timedelta(weeks=1))
            among_readers(partial(recall, server.dsn, "slow", *week, timedelta(0)))
            among_readers(partial(archive, server.dsn, pauses=0))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return counts


# --- tables of samples whose weeks are archived ---

SAMPLES = """
timezone = "UTC"

[history]
online = "2 weeks"
archive = "{folder}"

[[table]]
name = "vac"
kind = "samples"
type = "double"
[[table.signal]]
name = "gauge:{{n}}"
count = 3
"""


@dataclass(frozen=True)
class Span:
    """The five weeks before this one, and this one until now."""

    to: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def first(self) -> datetime:
        return Week.of(self.to).start - timedelta(weeks=5)

    @property
    def later(self) -> datetime:
        return self.first + timedelta(days=10)

    @property
    def tsql(self) -> tuple[str, ...]:
        return (
            "select signal, time, value, severity, status, nanoseconds from log..vac order by number, time",
            "select count(*), max(value) from log..vac where signal = 'gauge:2'",
            f"select value from log..vac where time < '{self.later:%Y-%m-%d}' order by time, number",
            "exec get_vac @signal = 'gauge:1'",
            f"exec get_vac_at @at = '{self.later:%Y-%m-%d}'",
            "exec get_vac_at",
            "exec get_signal @name = 'gauge:2'",
            "exec get_latest @name = 'gauge:3'",
        )

    @property
    def sql(self) -> tuple[str, ...]:
        span = f"'{self.first}', '{self.to}'"
        return (
            "select got::text from ringlog.get_vac('gauge:1') as got",
            "select sample::text from log.vac as sample order by signal, time",
            f"select n, min, max, round(mean::numeric, 9) from ringlog.get_statistics('gauge:2', {span})",
            f"select * from ringlog.get_spans('gauge:2 > 20 and not gauge:1 < 9.5', {span}, 20000)",
            "select round(time_mean::numeric, 9) from"
            f" ringlog.get_statistics_while('gauge:2', 'gauge:3 > 5', {span}, 1e5, true)",
        )

    @property
    def http(self) -> dict[str, str]:
        return {"from": self.first.isoformat(), "to": self.to.isoformat()}


def fill_samples(server: RunningServer, first: datetime) -> None:
    """Samples every two hours for five weeks; the last signal's end after a week."""
    ns = int(first.timestamp()) * 10**9
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        for signal, n in (("gauge:1", 420), ("gauge:2", 420), ("gauge:3", 84)):
            admin.execute(
                """
                select ringlog.put_vac_batch(
                  array_agg(number), array_agg(%s + k * 7200000000123),
                  array_agg(case when k %% 50 <> 7 then k / 7.0::double precision end),
                  array_agg((k %% 30 / 29)::smallint)
                )
                from ringlog.sample_signal, generate_series(0, %s) as k where signal = %s
                """,
                [ns, n - 1, signal],
            )
        for week in range(5):
            admin.execute("select ringlog.make_week('vac', %s)", [first + timedelta(weeks=week)])
    merge(engine(server.dsn))


def rounded(answer: httpx.Response) -> Any:
    """JSON whose means do not depend on the order of additions."""
    return json.loads(answer.text, parse_float=lambda text: round(float(text), 9))


def answers(server: RunningServer, http: httpx.Client, span: Span, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with closing(server.connect(server.reader.user, server.reader.password)) as session:
        for text in span.tsql:
            with session.cursor() as cursor:
                cursor.execute(text)
                found[text] = cursor.fetchall()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'; set role daq_reader")
        for text in span.sql:
            found[text] = connection.execute(text.encode()).fetchall()
    names = [("signal", f"gauge:{n}") for n in (1, 2, 3)]
    for path, options in (
        ("/api/v1/data", {}),
        ("/api/v1/trend", {"points": "30"}),
        ("/api/v1/data", {"wide": "last", "format": "csv"}),
    ):
        answer = http.get(path, params=[*span.http.items(), *options.items(), *names])
        assert answer.status_code == 200, answer.text
        found[path + str(options)] = (
            answer.text if "csv" in answer.headers["content-type"] else rounded(answer)
        )
    for pv in ("gauge:1", "mean_86400(gauge:2)", "lastSample_86400(gauge:1)"):
        middle = span.http | {"from": span.later.isoformat(), "pv": pv}
        answer = http.get("/retrieval/data/getData.json", params=middle)
        assert answer.status_code == 200, answer.text
        found[pv] = rounded(answer)
    for file in (folder / "all.csv", folder / "all.parquet"):
        words = ("--from", span.http["from"], "--to", span.http["to"], "--output", file)
        ran = ringlog("export", "gauge:1", "gauge:3", "--server", str(http.base_url), *words)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    with (folder / "all.csv").open() as text_file:
        found["csv"] = [*csv.reader(text_file)]
    found["parquet"] = pq.read_table(folder / "all.parquet").to_pylist()
    return found


def test_every_client_has_the_same_answers(data: Path, tmp_path: Path) -> None:
    file, span = facility_file(data.parent, SAMPLES), Span()
    with serving(data, facility=file) as server:
        fill_samples(server, span.first)
        served = settings("127.0.0.1", free_port(), server.dsn, role="daq_reader")
        with (
            Web(served).running() as web,
            httpx.Client(base_url=f"http://{web.address}", timeout=60, trust_env=False) as http,
            psycopg.connect(server.dsn, autocommit=True) as admin,
        ):
            before = answers(server, http, span, tmp_path)
            assert len(before[span.tsql[0]]) == len(before[span.sql[1]]) == 2 * 420 + 84
            assert len(before["csv"]) == len(before["parquet"]) + 1 == 420 + 84 + 1
            # the server may have summarised and archived some
            summarise(server.dsn, enough=1)
            [*archive(server.dsn, pauses=0)]
            weeks = admin.execute("select count(*), sum(rows) from ringlog.cold_week").fetchone()
            # a week may have begun since
            cold = 3 + (Week.of(datetime.now(UTC)) != Week.of(span.to))
            assert weeks == (cold, (2 * cold + 1) * 84)
            wait_until_reachable(lambda: admin.execute("select count(*) from log.vac").fetchone() == (924,))
            after = answers(server, http, span, tmp_path)
            for what, answer in before.items():
                assert after[what] == answer, what
        output = ringlog("archive", "status", "--data", server.data).stdout
        assert "vac" in output
        assert ringlog("archive", "verify", "--data", server.data).returncode == 0
        week = [f"{at:%Y-%m-%d}" for at in (span.first, span.first + timedelta(weeks=1))]
        recalled = ringlog("recall", "vac", *week, "--data", server.data)
        assert "252 rows" in recalled.stdout, recalled.stdout + recalled.stderr
        again = ringlog("recall", "vac", *week, "--data", server.data)
        assert again.stdout.startswith("nothing to recall: the archive has no week of vac in this time")
        status = json.loads(ringlog("status", "--json", "--data", server.data).stdout)
        assert [table["table_name"] for table in status["tables"]] == ["vac"]
