"""SQL over the archive: the answers of `archive.<table>` are PostgreSQL's."""

import json
import struct
from datetime import timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from case_tables import cases
from psycopg import errors

from ringlog.history.archive.folder import Damaged, Folder
from ringlog.history.archive.parquet import files
from ringlog.history.archive_server import rows as rows_of_files
from ringlog.history.archive_server import statement
from ringlog.history.archive_server.engine import Engine, Failed
from ringlog.history.archive_server.lists import Changed, Lists

from .conftest import BEGIN, one


def test_lists_of_files_are_requested_once() -> None:
    asked: list[str] = []
    lists = Lists(asked.append)
    week = ["t/1.parquet", "2026-04-27T00:00:00+00:00", "2026-05-04T00:00:00+00:00", 5, "f"]
    text = json.dumps({"folder": "/a", "files": [week]})
    name = f"a table {sha256(text.encode()).hexdigest()}"
    lists.answer(json.dumps([1, text, None]).encode())
    (week,) = lists.of(name).weeks
    assert (week.name, week.begins, week.ends, week.rows) == (
        "t/1.parquet",
        BEGIN,
        BEGIN + timedelta(weeks=1),
        5,
    )
    assert lists.of(name).folder == "/a"
    # one that the manifest has no longer, and none; an answer to an earlier question does not count
    lists.answer(json.dumps([2, text, None]).encode())
    with pytest.raises(Changed, match="weeks of a table were archived or recalled meanwhile"):
        lists.of("a table 1")
    lists.answer(json.dumps([2, text, None]).encode())
    lists.answer(json.dumps([3, None, "no connection"]).encode())
    with pytest.raises(Damaged, match="files of other cannot be read from the manifest: no connection"):
        lists.of("other 2")
    assert asked == ['files 1 "a table"\n', 'files 2 "a table"\n', 'files 3 "other"\n']


def test_no_list_of_files_is_sent(sql: psycopg.Connection) -> None:
    plan = sql.execute("explain (verbose) select * from archive.every_type").fetchall()
    assert "Remote SQL" in str(plan)
    assert ".parquet" not in str(plan)


def test_every_row(sql: psycopg.Connection) -> None:
    (rows,) = one(sql, "select sum(rows)::int from ringlog.cold_week where table_name = 'every_type'")
    assert one(sql, "select count(*) from archive.every_type") == (rows,)
    # bit by bit
    same = """
        select count(*) from archive.every_type as a join copied.every_type as c using ("time", seq_no)
        where (a.*) *= (c.*)
    """
    assert one(sql, same) == (rows,)


@pytest.mark.parametrize(
    ("query", "sent"),
    cases(__file__, "its_answers_equal_postgresqls")
)  # fmt: skip
def test_its_answers_equal_postgresqls(sql: psycopg.Connection, query: str, sent: str) -> None:
    there = query.replace("{}", "archive.every_type").replace("{{", "{").replace("}}", "}")
    # the rows that are not archived yet
    rows = "(select * from copied.every_type where time < '2026-05-25')"
    here = query.replace("{} a", f"{rows} a").replace("{} b", f"{rows} b").replace("{}", f"{rows} c")
    here = here.replace("{{", "{").replace("}}", "}")
    plan = sql.execute(f"explain verbose {there}".encode()).fetchall()
    assert any(sent in line for (line,) in plan if "Remote SQL" in line)
    found, expected = (sql.execute(text.encode()).fetchall() for text in (there, here))
    assert compared(found) == compared(expected)


def compared(rows: list[tuple[object, ...]]) -> str:
    """Rows as text, NaN as NaN; numerics with the digits that DuckDB has for an average."""
    return str([[float(value) if isinstance(value, Decimal) else value for value in row] for row in rows])


@pytest.mark.parametrize(("query", "words"), cases(__file__, "unsupported_requests"))
def test_unsupported_requests(sql: psycopg.Connection, query: str, words: str) -> None:
    with pytest.raises(errors.FeatureNotSupported, match=words):
        sql.execute(query.encode())
    # and continues
    taken = "with taken as materialized (select * from archive.every_type) select count(*) from taken"
    assert one(sql, f"{taken} where sinh(a_smallint) > 1") == (1995,)
    with pytest.raises(errors.Error):
        sql.execute("delete from archive.every_type")


def test_a_log_includes_its_archived_weeks(sql: psycopg.Connection) -> None:
    assert one(sql, "select count(*), sum(an_int) from log.every_type") == (3001, 3000 * 3001 // 2)
    same = """
        select count(*) from log.every_type as a join copied.every_type as c using ("time", seq_no)
        where (a.*) *= (c.*)
    """
    assert one(sql, same) == (3001,)
    newest = "select an_int from {} order by time desc limit 10"
    middle = "select an_int from {} where time < '2026-05-25 01:00Z' order by time desc, seq_no limit 10"
    words = "select count(*), max(upper(a_text)) from {} where a_text like '%1' and sinh(a_smallint) > 1"
    for query in (newest, middle, words):
        log, copied = (
            sql.execute(query.format(relation).encode()).fetchall()
            for relation in ("log.every_type", "copied.every_type")
        )
        assert log == copied
    plan = [line for (line,) in sql.execute(b"explain (verbose) " + newest.format("log.every_type").encode())]
    assert any("Remote SQL" in line and "ORDER BY" in line for line in plan)


@pytest.mark.parametrize("bound", ["< {}", "<= {}", "= {}", "> {}", ">= {}", "> {} and {} >= time"])
def test_bounds_of_time_are_exact(sql: psycopg.Connection, bound: str) -> None:
    """Also if only they are sent, and DuckDB is not used."""
    condition = "time " + bound.format("'2026-05-04 00:20Z'", "'2026-05-18 00:40Z'")
    for order in ("", "order by time", "order by time desc"):
        here, *there = (
            sql.execute(f"select an_int from {rows} where {condition} {order}".encode()).fetchall()
            for rows in ("copied.every_type", "log.every_type", "archive.every_type")
        )
        if not order:
            here, *there = (sorted(rows) for rows in (here, *there))
        archived = [row for row in here if row[0] < 2016]
        assert archived
        assert there == [here, archived]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ('SELECT "a:real" FROM {}', ["a:real"]),
        ('SELECT "a:real", "b:real" FROM {} WHERE (("time:timestamp with time zone" < $1)) '
         'ORDER BY "time:timestamp with time zone" DESC NULLS FIRST', ["a:real", "b:real"]),
        ('SELECT "a:real" FROM {} WHERE (("seq_no:integer" < 5))', None),
        ('SELECT "a:real" FROM {} WHERE (("number:integer" = 5))', None),
        ('SELECT "a:real" FROM {} WHERE (("time:timestamp with time zone" < \'infinity\'))', None),
        ('SELECT "a:real" FROM {} ORDER BY "a:real" ASC NULLS LAST', None),
        ('SELECT "a:real" FROM {} LIMIT 3::bigint', None),
        ('SELECT count("a:real") FROM {}', None),
        ("SELECT NULL FROM {}", None),
    ],
)  # fmt: skip
def test_queries_without_duckdb(query: str, columns: list[str] | None) -> None:
    assert statement.read(query.format('archive."t 1"'), ["2026-05-04 00:00:00+00"]).columns == columns


@pytest.mark.parametrize("order", ["ASC NULLS LAST", "DESC NULLS FIRST"])
def test_the_first_rows_come_from_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """The first answer has as many rows as requested; the next ones have more."""
    # this process, which runs other tests too, is larger than the archive server may be
    monkeypatch.setattr(rows_of_files, "resident", lambda: 0)
    folder, rows = Folder(str(tmp_path)), 5000
    begins = int(BEGIN.timestamp()) * 10**6
    times = pa.array(begins + np.arange(rows) * 10**6, pa.timestamp("us", "UTC"))
    with folder.created("there.parquet") as stream:
        columns = {"seq_no": pa.array(np.arange(rows), pa.int32()), "time": times}
        files.write(stream, iter([pa.record_batch(columns)]), {})
    here = [["there.parquet", BEGIN.isoformat(), (BEGIN + timedelta(weeks=1)).isoformat(), rows, None]]
    is_last = order.startswith("DESC")
    begins = BEGIN - timedelta(weeks=1) if is_last else BEGIN + timedelta(weeks=1)
    gone = [["gone.parquet", begins.isoformat(), (begins + timedelta(weeks=1)).isoformat(), 1, None]]
    text = json.dumps({"folder": str(tmp_path), "files": gone + here if is_last else here + gone})
    lists = Lists(lambda _: None)
    lists.answer(json.dumps([1, text, None]).encode())
    engine = Engine(str(tmp_path), 1 << 20, 1, lists)
    answer = engine.query(
        f'SELECT "seq_no:integer" FROM archive."t {sha256(text.encode()).hexdigest()}"'
        f' ORDER BY "time:timestamp with time zone" {order}',
        [],
    )
    found, counts = b"", []
    while sum(counts) < rows:
        messages, count = answer.take(10)
        found += b"".join(messages)
        counts.append(count)
        answer.prepare()
    assert counts[:3] == [10, 90, 1000]
    # an error of rows that were made ahead is never the end of the rows
    for _ in range(2):
        with pytest.raises(Failed, match=r"gone\.parquet"):
            answer.take(10)
    answer.close()
    numbers = [*range(rows)]
    # a message of one value: D, its length, the number of values, the value's length and text
    texts = [str(number).encode() for number in (reversed(numbers) if is_last else numbers)]
    assert found == b"".join(
        b"D" + struct.pack("!ihi", 10 + len(value), 1, len(value)) + value for value in texts
    )


def test_procedures_read_it(sql: psycopg.Connection) -> None:
    """Like rows in PostgreSQL."""
    span = "'2026-04-28', '2026-06-01 00:10'"
    for call, query in {
        f"get_every_type_range({span})": "select * from {rows} order by time, seq_no",
        f"get_every_type_range({span}, 5)": "select * from {rows} order by time, seq_no limit 5",
        f"get_signal('t/smallint', {span})": "select time, a_smallint from {rows} order by time, seq_no",
        f"get_signal('t/bit', {span}, 7)": "select time, a_bit::int from {rows} order by time limit 7",
        "get_every_type_at('2026-04-30 01:01')": "select * from {all} where time = '2026-04-30 01:00'",
        f"get_waveforms('t/reals', {span}, every_nth => 5)": "select time, reals::float8[] from (select *,"
        " row_number() over (order by time, seq_no) as n from {rows} where reals is not null)"
        " where n % 5 = 1 order by n",
        "get_waveform('t/reals', '2026-05-04 00:01')": "select time, reals::float8[] from {all}"
        " where time <= '2026-05-04 00:01' and reals is not null order by time desc limit 1",
    }.items():
        rows = f"(select * from copied.every_type where time >= {span.replace(',', ' and time <')})"
        # as texts: Python has no years before 1
        found = sql.execute(f"select r::text from ringlog.{call} as r".encode()).fetchall()
        query = query.format(rows=rows, all="copied.every_type")
        assert found, call
        assert found == sql.execute(f"select r::text from ({query}) as r".encode()).fetchall(), call


def test_analyze(sql: psycopg.Connection) -> None:
    """It samples no ten years of rows."""
    sql.execute("analyze")
    known = one(sql, "select count(*) from pg_stats where schemaname = 'archive_files'")
    assert known == (0,)
