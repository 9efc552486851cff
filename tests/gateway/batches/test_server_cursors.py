"""Server cursors: sp_cursoropen and related procedures at 7.4, those of CT-Library at 5.0.

Expected values are SQL Server's documentation of these procedures, and the tokens of SAP/go-dblib
(tds/packageCur*.go).
"""

import re
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pymssql
import pytest
from case_tables import cases

import raw_tds
from raw_client import RawClient, logged_in7
from raw_tds import BIG, LITTLE, Order
from servers import RunningServer
from tds_clients import Clients, errors_of, result_sets

KEYSET, DYNAMIC, FORWARD_ONLY, STATIC, FAST_FORWARD = 1, 2, 4, 8, 16
PARAMETERIZED, AUTO_FETCH, AUTO_CLOSE, ACCEPT, KEYSET_WILL_DO = 0x1000, 0x2000, 0x4000, 0x8000, 0x10000
READ_ONLY, SCROLL_LOCKS, OPTIMISTIC, OPTIMISTIC_VALUES, ALLOW_DIRECT = 1, 2, 4, 8, 0x2000
UPDATE, DELETE, INSERT, SET_POSITION = 1, 2, 4, 0x20
SUCCEEDED, MISSING = 1, 2
FIRST, NEXT, PREV, LAST, ABSOLUTE, RELATIVE, REFRESH, INFO, PREV_NOADJUST = 1, 2, 4, 8, 16, 32, 128, 256, 512

Run = Callable[[str], list[list[tuple[Any, ...]]]]


@pytest.fixture(scope="module")
def connection(
    server: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pymssql.Connection]:
    directory = tmp_path_factory.mktemp("cursors")
    clients = Clients.of(server, directory / "none", directory)
    with clients.pymssql(server.reader) as connection:
        with connection.cursor() as cursor:
            cursor.execute("create table #t (id int primary key, v varchar(10) null)")
            cursor.execute("insert #t values (1, 'a'), (2, 'b'), (3, null), (4, 'd'), (5, 'e'), (6, 'f')")
        yield connection


@pytest.fixture
def run(connection: pymssql.Connection) -> Iterator[Run]:
    """All result sets of a batch. DB-Library shows the hidden column, a row's status, as the last one."""
    with connection.cursor() as cursor:
        yield partial(result_sets, cursor)
        cursor.execute("exec sp_cursorclose -1")


def refused(run: Run, text: str) -> int:
    with pytest.raises(pymssql.Error) as error:
        run(text)
    return errors_of(error.value).number


def opened(
    run: Run, select: str, scroll: int, concurrency: int = READ_ONLY, rows: int = 0, more: str = ""
) -> Any:
    """Result sets of sp_cursoropen, and its status and outputs: cursor, scrollopt, ccopt, rowcount."""
    *results, [returned] = run(
        f"declare @r int, @h int, @s int = {scroll}, @c int = {concurrency}, @n int = {rows}"
        f" exec @r = sp_cursoropen @h output, N'{select}', @s output, @c output, @n output{more}"
        " select @r, @h, @s, @c, @n"
    )
    return results, returned


def fetched(run: Run, cursor: int, kind: int, row: int = 0, rows: int = 2) -> Any:
    """The ids of the rows, the status, and the answer of INFO: row number, number of rows."""
    found, [returned] = run(
        "declare @r int, @at int, @all int"
        f" exec @r = sp_cursorfetch {cursor}, {kind}, {row}, {rows}"
        f" exec sp_cursorfetch {cursor}, {INFO}, @at output, @all output"
        " select @r, @at, @all"
    )
    assert all(row[-1] == 1 for row in found), "FETCH_SUCCEEDED"
    return [row[0] for row in found], *returned


def test_a_static_cursor(run: Run) -> None:
    [none], (status, cursor, scroll, concurrency, rows) = opened(run, "select * from #t order by id", STATIC)
    assert (none, status, scroll, concurrency, rows) == ([], 0, STATIC, READ_ONLY, 6)
    for (kind, row, count), expected in {
        (NEXT, 0, 2): ([1, 2], 0, 1, 6),
        (RELATIVE, 3, 4): ([4, 5, 6], 0, 4, 6),
        (REFRESH, 0, 1): ([4, 5, 6], 0, 4, 6),
        (NEXT, 0, 1): ([], 0, -1, 6),
        (PREV, 0, 1): ([6], 0, 6, 6),
        (ABSOLUTE, -2, 2): ([5, 6], 0, 5, 6),
        (FIRST, 0, 0): ([], 0, 0, 6),
        (LAST, 0, 4): ([3, 4, 5, 6], 0, 3, 6),
        # "the cursor is adjusted to start at the first row"
        (PREV, 0, 5): ([1, 2, 3, 4, 5], 2, 1, 6),
        (ABSOLUTE, 4, 1): ([4], 0, 4, 6),
        # "never includes any of the rows at or after the current cursor position"
        (PREV_NOADJUST, 0, 5): ([1, 2, 3], 0, 1, 6),
        (PREV, 0, 2): ([], 0, 0, 6),
        (ABSOLUTE, 7, 1): ([], 0, -1, 6),
    }.items():
        assert fetched(run, cursor, kind, row, count) == expected, (kind, row, count)


def test_its_rows_are_those_at_its_opening(run: Run) -> None:
    _, (_, cursor, *_) = opened(run, "select id, v from #t where id > 4", STATIC)
    run("begin transaction update #t set v = 'new' where id = 5 delete #t where id = 6")
    _, (_, inside, *_) = opened(run, "select id, v from #t where id > 4", STATIC)
    assert run(f"exec sp_cursorfetch {inside}, {NEXT}, 0, 9") == [[(5, "new", 1)]]
    assert run(f"exec sp_cursorfetch {cursor}, {NEXT}, 0, 9") == [[(5, "e", 1), (6, "f", 1)]]
    run("set cursor_close_on_commit on rollback")
    assert refused(run, f"exec sp_cursorfetch {inside}, {FIRST}, 0, 1") == 16909


def test_a_rollback_leaves_static_cursors_open(run: Run) -> None:
    """SQL Server, ROLLBACK TRANSACTION, "Effect on cursors"."""
    run("set cursor_close_on_commit off begin transaction delete #t where id = 1")
    select = "select id, v, datalength(v) n from #t"
    kinds = (STATIC, FORWARD_ONLY)
    static, forward = (opened(run, select, kind)[1][1] for kind in kinds)
    fetch = f"exec sp_cursorfetch {static}, {NEXT}, 0, 2"
    assert run(fetch) == [[(2, "b", 1, SUCCEEDED), (3, None, None, SUCCEEDED)]]
    run("rollback")
    assert run(fetch) == [[(4, "d", 1, SUCCEEDED), (5, "e", 1, SUCCEEDED)]]
    assert run(f"exec sp_cursorfetch {static}, {FIRST}, 0, 1") == [[(2, "b", 1, SUCCEEDED)]]
    assert refused(run, f"exec sp_cursorfetch {forward}, {NEXT}, 0, 1") == 16909
    run(f"exec sp_cursorclose {static}")


def test_other_kinds_are_answered_with_a_static_one(run: Run) -> None:
    for scroll, concurrency in ((KEYSET, READ_ONLY), (DYNAMIC, READ_ONLY), (STATIC, OPTIMISTIC)):
        _, (_, _, *given) = opened(run, "select id from #t", scroll, concurrency)
        assert given == [STATIC, READ_ONLY, 6]
    with pytest.raises(pymssql.Error) as error:
        opened(run, "select id from #t", KEYSET | ACCEPT | KEYSET_WILL_DO)
    assert errors_of(error.value).number == 16955


def test_forward_only(run: Run) -> None:
    _, (_, cursor, scroll, _, rows) = opened(
        run, "select id from #t order by id for update of v", FORWARD_ONLY
    )
    assert (scroll, rows) == (FORWARD_ONLY, -1)
    assert fetched(run, cursor, NEXT, 0, 4) == ([1, 2, 3, 4], 0, 1, -1)
    assert fetched(run, cursor, NEXT, 0, 4) == ([5, 6], 0, 5, -1)
    assert fetched(run, cursor, NEXT, 0, 4) == ([], 0, -1, -1)
    assert refused(run, f"exec sp_cursorfetch {cursor}, {PREV}, 0, 1") == 16911


def test_rows_are_sent_with_the_answer_and_the_last_close_the_cursor(run: Run) -> None:
    options = FAST_FORWARD | AUTO_FETCH | AUTO_CLOSE | PARAMETERIZED
    [rows], (status, cursor, scroll, _, count) = opened(
        run, "select id from #t where id > @p order by id", options, rows=2, more=", N'@p int', 3"
    )
    assert (rows, status, scroll, count) == ([(4, 1), (5, 1)], 0, FAST_FORWARD, 2)
    last, [(status,)] = run(f"declare @r int exec @r = sp_cursorfetch {cursor}, {NEXT}, 0, 2 select @r")
    assert (last, status) == ([(6, 1)], 16)
    assert refused(run, f"exec sp_cursorclose {cursor}") == 16909


# --- cursors that change rows (sp_cursor) ---


@pytest.fixture
def changed(run: Run) -> Iterator[Run]:
    run("create table #u (id int primary key, v varchar(10) null, n money null)")
    run("insert #u values (1, 'a', 1), (2, 'b', 2), (3, null, 3)")
    yield run
    run("exec sp_cursorclose -1 drop table #u")


# "Cursors", "Keyset-driven cursors"; sp_cursoropen: scrollopt and ccopt may be returned changed
@pytest.mark.parametrize(
    ("select", "scroll", "concurrency", "given"), cases(__file__, "which_cursors_change_rows")
)
def test_which_cursors_change_rows(
    changed: Run, select: str, scroll: int, concurrency: int, given: list[int]
) -> None:
    changed("create table #nokey (a int null unique)")
    _, (status, _, *returned) = opened(changed, select, scroll, concurrency)
    changed("exec sp_cursorclose -1 drop table #nokey")
    assert (status, returned) == (0, given)


def test_rows_are_changed_where_they_were_fetched(changed: Run) -> None:
    _, (_, cursor, *_) = opened(changed, "select id, v, n from #u order by id", KEYSET, OPTIMISTIC)
    next_two = f"exec sp_cursorfetch {cursor}, {NEXT}, 0, 2"
    assert changed(next_two) == [[(1, "a", 1, SUCCEEDED), (2, "b", 2, SUCCEEDED)]]
    # the second row of the buffer, with a value of another type
    changed(f"exec sp_cursor {cursor}, {UPDATE | SET_POSITION}, 2, '', @V = 'new', @n = 7")
    # "0: all rows of the fetch buffer"
    changed(f"exec sp_cursor {cursor}, {UPDATE}, 0, '', @v = null")
    again = f"exec sp_cursorfetch {cursor}, {REFRESH}, 0, 0"
    assert changed(again) == [[(1, None, 1, SUCCEEDED), (2, None, 7, SUCCEEDED)]]
    changed(f"exec sp_cursor {cursor}, {DELETE}, 1, ''")
    assert changed(again) == [[(None, None, None, MISSING), (2, None, 7, SUCCEEDED)]]
    assert changed("select id, v, n from #u order by id") == [[(2, None, 7), (3, None, 3)]]
    assert refused(changed, f"exec sp_cursor {cursor}, {UPDATE}, 1, '', @v = 'x'") == 16947
    assert refused(changed, f"exec sp_cursor {cursor}, {UPDATE}, 3, '', @v = 'x'") == 16930


def test_rows_that_a_cursor_inserts_are_its_last(changed: Run) -> None:
    _, (_, cursor, *_) = opened(
        changed, "select id, v from #u where id < 3 order by id desc", KEYSET, OPTIMISTIC
    )
    changed(f"exec sp_cursor {cursor}, {INSERT}, 0, '', @id = 9, @v = 'last'")
    assert fetched(changed, cursor, LAST, rows=2) == ([1, 9], 0, 2, 3)
    # the key of a row that it has changed itself is followed
    changed(f"exec sp_cursor {cursor}, {UPDATE}, 1, '', @id = 5")
    assert fetched(changed, cursor, FIRST, rows=9) == ([2, 5, 9], 0, 1, 3)


def test_changes_of_others_are_seen_and_not_overwritten(changed: Run) -> None:
    _, (_, cursor, *_) = opened(changed, "select id, v from #u", KEYSET, OPTIMISTIC)
    fetch = f"exec sp_cursorfetch {cursor}, {FIRST}, 0, 3"
    changed(fetch)
    changed("update #u set v = 'other' where id = 1 delete #u where id = 2")
    # "Optimistic concurrency check failed. The row was modified outside of this cursor."
    assert refused(changed, f"exec sp_cursor {cursor}, {UPDATE}, 1, '', @v = 'mine'") == 16934
    assert refused(changed, f"exec sp_cursor {cursor}, {DELETE}, 2, ''") == 16947
    assert changed(fetch) == [[(1, "other", SUCCEEDED), (None, None, MISSING), (3, None, SUCCEEDED)]]
    changed(f"exec sp_cursor {cursor}, {UPDATE}, 1, '', @v = 'mine'")
    assert changed("select v from #u where id = 1") == [[("mine",)]]


@pytest.mark.parametrize(("what", "number"), cases(__file__, "changes_that_are_refused"))
def test_changes_that_are_refused(changed: Run, what: str, number: int) -> None:
    _, (_, cursor, *_) = opened(changed, "select id, v from #u order by id", KEYSET, OPTIMISTIC)
    changed(f"exec sp_cursorfetch {cursor}, {NEXT}, 0, 1")
    assert refused(changed, "exec sp_cursor " + what.format(cursor=cursor)) == number
    assert changed("select id, v from #u order by id") == [[(1, "a"), (2, "b"), (3, None)]]


def test_a_rollback_undoes_changes(changed: Run) -> None:
    # "ON ... closes any open cursors on commit or rollback" (SET CURSOR_CLOSE_ON_COMMIT); pymssql has set it
    changed("set cursor_close_on_commit off")
    _, (_, cursor, *_) = opened(changed, "select id, v from #u order by id", KEYSET, OPTIMISTIC)
    changed(f"exec sp_cursorfetch {cursor}, {NEXT}, 0, 1")
    changed(f"begin transaction exec sp_cursor {cursor}, {UPDATE}, 1, '', @v = 'x' rollback")
    assert changed(f"exec sp_cursorfetch {cursor}, {FIRST}, 0, 1") == [[(1, "a", SUCCEEDED)]]


def test_prepared_cursors(run: Run) -> None:
    _, [(prepared,)] = run(
        "declare @p int exec sp_cursorprepare @p output, N'@a int',"
        f" N'select id from #t where id >= @a', 1, {STATIC}, {READ_ONLY} select @p"
    )
    _, [(cursor,)] = run(
        f"declare @h int exec sp_cursorexecute {prepared}, @h output, {STATIC}, {READ_ONLY}, 0, 6 select @h"
    )
    assert fetched(run, cursor, NEXT) == ([6], 0, 1, 1)
    run(f"exec sp_cursorunprepare {prepared}")
    _, [(both, again)] = run(
        "declare @p int, @h int exec sp_cursorprepexec @p output, @h output, N'@a int',"
        f" N'select id from #t where id >= @a', {STATIC}, {READ_ONLY}, 0, 5 select @p, @h"
    )
    assert both > prepared
    assert fetched(run, again, NEXT) == ([5, 6], 0, 1, 2)


@pytest.mark.parametrize(("text", "number"), cases(__file__, "refusals"))
def test_refusals(run: Run, text: str, number: int) -> None:
    _, (_, cursor, *_) = opened(run, "select id from #t", STATIC)
    assert refused(run, text.format(cursor=cursor)) == number


def test_statements_without_a_cursor_run_at_once_if_allowed(run: Run) -> None:
    results, (_, cursor, *_) = opened(run, "select 1 select 2", FORWARD_ONLY, READ_ONLY | ALLOW_DIRECT)
    assert (results, cursor) == ([[(1,)], [(2,)]], 0)


def test_all_outputs_without_a_cursor_are_returned(server: RunningServer) -> None:
    """mssql-jdbc reads the cursor and the number of rows "even if SQL Server does not cursorize the
    statement" (SQLServerStatement, StmtExecOutParamHandler)."""

    def integer(value: int, *, output: bool) -> bytes:
        return b"\0" + bytes([output]) + struct.pack("<BBBi", 0x26, 4, 4, value)

    text = "select 1 select 2".encode("utf-16-le")
    nvarchar = struct.pack("<BH5sH", 0xE7, 100, b"\x09\x04\xd0\0\x34", len(text)) + text
    request = raw_tds.rpc7("sp_cursoropen") + integer(0, output=True) + b"\0\0" + nvarchar
    request += integer(STATIC, output=False) + integer(READ_ONLY | ALLOW_DIRECT, output=True)
    with logged_in7(server, server.reader) as client:
        client.send(raw_tds.RPC7, request + integer(0, output=True))
        answer = client.receive()
    # RETURNVALUE: number of the parameter, name, status, user type, flags, type, value (2.2.7.19)
    found = re.findall(rb"\xac(..)\x00\x01\x00{4}\x01\x00\x26\x04\x04(.{4})", answer, re.DOTALL)
    outputs = [(struct.unpack("<H", index)[0], struct.unpack("<i", value)[0]) for index, value in found]
    assert outputs == [(0, 0), (3, READ_ONLY | ALLOW_DIRECT), (4, 0)]


def test_rowcount_limits_a_cursor(run: Run) -> None:
    run("set rowcount 3")
    _, (_, cursor, _, _, rows) = opened(run, "select id from #t order by id", STATIC)
    _, (_, forward, *_) = opened(run, "select id from #t order by id", FORWARD_ONLY)
    run("set rowcount 0")
    assert rows == 3
    assert fetched(run, cursor, LAST, rows=2) == ([2, 3], 0, 2, 3)
    assert fetched(run, forward, NEXT, rows=5) == ([1, 2, 3], 0, 1, -1)
    assert fetched(run, forward, NEXT, rows=5) == ([], 0, -1, -1)


# --- TDS 5.0 ---

DECLARED, OPEN, CLOSED, READS, ROWS, DEALLOCATED, SCROLLABLE = 1, 2, 4, 8, 0x20, 0x40, 0x80
SELECT = "select id, v from #t5 order by id"


@pytest.fixture(params=[LITTLE, BIG], ids=["little", "big"])
def client(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    order: Order = request.param
    with RawClient(server.host, server.port, order=order) as client:
        assert client.log_in5(server.reader).login == 5
        made = client.language(
            "create table #t5 (id int not null, v varchar(10) null)"
            " insert #t5 select 1, 'a' union select 2, 'b' union select 3, null"
        )
        assert made.errors == []
        yield client


def test_a_cursor_of_ct_library(client: RawClient) -> None:
    order = client.order
    # in one message, as FreeTDS sends it
    begun = client.ask(
        raw_tds.declare_cursor("c1", SELECT, order)
        + raw_tds.cursor_rows("c1", 2, order)
        + raw_tds.open_cursor("c1", order)
    )
    assert (begun.errors, [name for name, _ in begun.columns], begun.rows) == ([], ["id", "v"], [])
    number = begun.cursors[0][0]
    assert begun.cursors == [
        (number, DECLARED | CLOSED | READS),
        (number, DECLARED | CLOSED | READS | ROWS),
        (number, OPEN | READS),
    ]
    for rows in ([[1, "a"], [2, "b"]], [[3, None]], []):
        # by name in FreeTDS, by number in go-ase
        for cursor in ("c1", number)[: 1 if rows else 2]:
            reply = client.ask(raw_tds.fetch_cursor(cursor, 1, order=order), begun.columns)
            assert (reply.errors, reply.rows, reply.done[-1][1]) == ([], rows, len(rows))
    closed = client.ask(raw_tds.close_cursor(number, order))
    assert closed.cursors == [(number, CLOSED | DECLARED)]
    again = client.ask(raw_tds.open_cursor("c1", order))
    assert (again.errors, again.cursors) == ([], [(number, OPEN | READS)])
    gone = client.ask(raw_tds.close_cursor(number, order, deallocate=True))
    assert gone.cursors == [(number, CLOSED | DEALLOCATED)]
    assert [error.number for error in client.ask(raw_tds.open_cursor("c1", order)).errors] == [16916]


def test_a_scrollable_cursor_of_ct_library(client: RawClient) -> None:
    order = client.order
    opened = client.ask(raw_tds.declare_scrollable("s", SELECT, order) + raw_tds.open_cursor("s", order))
    assert opened.cursors[-1][1] == OPEN | READS | SCROLLABLE
    # last, previous, first, absolute, relative, next
    for direction, row, expected in [
        (4, None, 3),
        (2, None, 2),
        (3, None, 1),
        (5, -1, 3),
        (6, -2, 1),
        (1, None, 2),
    ]:
        reply = client.ask(raw_tds.fetch_cursor("s", direction, row, order), opened.columns)
        assert [row[0] for row in reply.rows] == [expected]


def test_a_cursor_of_ct_library_on_a_dynamic_statement(client: RawClient) -> None:
    order = client.order
    text = "create proc d as select id from #t5 where id > ? order by id"
    assert client.ask(raw_tds.prepare("d", text, order)).errors == []
    assert client.ask(raw_tds.declare_cursor("d", "d", order, dynamic=True)).errors == []
    for over, found in ((1, [[2]]), (2, [[3]])):
        one = [raw_tds.Param(raw_tds.INT4, over)]
        opened = client.ask(raw_tds.open_cursor("d", order, one))
        assert client.ask(raw_tds.fetch_cursor("d", 1, order=order), opened.columns).rows == found
        client.ask(raw_tds.close_cursor("d", order))
    assert [error.number for error in client.ask(raw_tds.open_cursor("d", order)).errors] == [201]


def test_refusals_of_ct_library_cursors(client: RawClient) -> None:
    order = client.order

    def errors(request: bytes) -> list[int]:
        return [error.number for error in client.ask(request).errors]

    assert errors(raw_tds.declare_cursor("c", SELECT, order)) == []
    assert errors(raw_tds.declare_cursor("c", SELECT, order)) == [16915]
    assert errors(raw_tds.fetch_cursor("c", 1, order=order)) == [16917]
    assert errors(raw_tds.open_cursor("c", order)) == []
    assert errors(raw_tds.open_cursor("c", order)) == [16905]
    assert errors(raw_tds.fetch_cursor("c", 2, order=order)) == [16911]
    assert errors(raw_tds.delete_by_cursor("c", "#t5", order)) == [16929]
    assert errors(raw_tds.declare_cursor("d", "delete #t5", order)) == [16938]
    assert errors(raw_tds.declare_cursor("d", "no such", order, dynamic=True)) == [2812]
    assert client.language("select count(*) from #t5").rows == [[3]]
