"""Texts of several read-only queries. The gateway sends prepared ones at once, so each text is repeated: its
answer must not depend on that."""

import time
from collections.abc import Iterator

import pytest

from tds_clients import Admin, Clients, CtClient
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("numbers")
VERSIONS = pytest.mark.parametrize("version", ["5.0", "7.1", "7.4"])
TIMES = 4
"""a query is prepared at its first or second execution"""


@pytest.fixture(scope="module")
def numbers(admin: Admin) -> Iterator[None]:
    """Table ahead..numbers with 1 to 3000, which every login may change."""
    admin.execute("drop schema if exists ahead cascade; create schema ahead")
    admin.execute("create table ahead.numbers as select n::int from generate_series(1, 3000) n")
    admin.execute("grant all on schema ahead to public; grant all on ahead.numbers to public")
    yield
    admin.execute("drop schema ahead cascade")


def answers(client: CtClient, text: str) -> tuple[list[list[str | None]], list[int]]:
    """Rows and numbers of errors, the same each time."""
    found = [client.language(text) for _ in range(TIMES)]
    seen = [(answer.rows, [error.number for error in answer.errors], answer.events) for answer in found]
    assert all(one == seen[0] for one in seen), seen
    return seen[0][:2]


def select(number: int) -> str:
    return f"select n from ahead..numbers where n = {number}\n"


FAILS = "select 1 / (n - n) from ahead..numbers where n = 7\n"
"""8134, an error of this one statement (SQL Server: Database Engine events and errors)"""


@VERSIONS
def test_rows_come_in_the_order_of_the_text(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        text = "".join(map(select, [*range(100, 180), 4000, 3]))
        assert answers(client, text) == ([[str(n)] for n in [*range(100, 180), 3]], [])


@VERSIONS
def test_an_error_is_that_of_its_own_query(clients: Clients, version: str) -> None:
    """The queries after one that fails run, unless xact_abort is on or a CATCH has the error; in ASE an
    arithmetic error ends the batch (Reference Manual: Building Blocks, "Arithmetic errors")."""
    with clients.ct(clients.server.reader, version) as client:
        text = select(1) + select(2) + FAILS + select(3) + select(4)
        everything = [["1"], ["2"], ["3"], ["4"]]
        if version == "5.0":
            assert answers(client, text) == (everything[:2], [8134])
            return
        assert answers(client, text) == (everything, [8134])
        assert client.language("set xact_abort on").errors == []
        assert answers(client, text) == (everything[:2], [8134])
        assert client.language("set xact_abort off").errors == []
        caught = f"begin try {text} end try begin catch select error_number() end catch {select(5)}"
        assert answers(client, caught) == ([["1"], ["2"], ["8134"], ["5"]], [])


@VERSIONS
def test_changes_by_a_statement_between_them_are_visible(clients: Clients, version: str) -> None:
    count = "select count(*) from ahead..numbers where n > 5000\n"
    with clients.ct(clients.server.reader, version) as client:
        changed = f"{count}{count}insert ahead..numbers values (6000)\n{count}{count}"
        text = f"begin tran {changed} rollback {count}{count}"
        assert answers(client, text) == ([["0"], ["0"], ["1"], ["1"], ["0"], ["0"]], [])
        text = f"{changed} delete ahead..numbers where n = 6000 {count}"
        assert answers(client, text) == ([["0"], ["0"], ["1"], ["1"], ["0"]], [])


@VERSIONS
def test_state_of_one_query_exists_for_the_next(clients: Clients, version: str) -> None:
    two = "select n from ahead..numbers where n in (1, 2)\n"
    with clients.ct(clients.server.reader, version) as client:
        assert answers(client, f"{two} select @@rowcount {select(9)} select @@rowcount")[0][2:] == [
            ["2"],
            ["9"],
            ["1"],
        ]
        limited = f"{two}{two} set rowcount 1 {two}{two} set rowcount 0 {two}"
        assert len(answers(client, limited)[0]) == 8
        looped = f"declare @i int set @i = 0 while @i < 3 begin {two}{select(5)} set @i = @i + 1 end"
        assert len(answers(client, looped)[0]) == 9


def test_a_table_has_other_columns_meanwhile(clients: Clients, admin: Admin) -> None:
    admin.execute("create table ahead.shape as select 1 as a; grant select on ahead.shape to public")
    text = "select * from ahead..shape " * 3
    with clients.ct(clients.server.reader, "7.4") as client:
        assert answers(client, text) == ([["1"]] * 3, [])
        admin.execute("alter table ahead.shape add column b int default 2")
        assert answers(client, text) == ([["1", "2"]] * 3, [])
        admin.execute("drop table ahead.shape")
        assert answers(client, text)[0] == []


def test_a_row_limit_ends_no_other_query(clients: Clients, admin: Admin) -> None:
    """The query with too many rows is cancelled when PostgreSQL may have begun the next one."""
    name = clients.server.reader.user
    admin.execute(f"""alter role "{name}" set tsql.row_limit = '1000'""")
    try:
        with clients.ct(clients.server.reader, "7.4") as client:
            text = f"{select(1)} select n from ahead..numbers where n > 5 {select(2)}{select(3)}"
            for _ in range(TIMES):
                answer = client.language(text)
                assert (len(answer.errors), answer.rows[0], answer.rows[-2:]) == (1, ["1"], [["2"], ["3"]])
                assert len(answer.rows) == 1003
    finally:
        admin.execute(f"""alter role "{name}" reset tsql.row_limit""")


@VERSIONS
def test_a_cancel_ends_all_of_them(clients: Clients, admin: Admin, version: str) -> None:
    def text(most: int) -> str:
        where = f"where a.n <= {most} and b.n <= {most} and c.n <= {most}"
        return f"select count(*) from ahead..numbers a, ahead..numbers b, ahead..numbers c {where} " * 3

    running = (
        "select count(*) from pg_stat_activity where state = 'active' and query like '%ahead%numbers%'"
        " and pid <> pg_backend_pid()"
    )
    with clients.ct(clients.server.reader, version) as client:
        assert answers(client, text(1)) == ([["1"]] * 3, [])
        for _ in range(3):
            start = time.monotonic()
            client.cancelled(text(3000), after=0.2)
            assert time.monotonic() - start < PATIENCE
            assert client.language(select(8)).rows == [["8"]]
            wait_until(lambda: admin.execute(running).fetchone() == (0,))


@VERSIONS
def test_a_query_is_sent_and_inserted_alternately(clients: Clients, version: str) -> None:
    """INSERT ... EXECUTE keeps the rows of a query that are otherwise sent to the client."""
    text = "select n from ahead..numbers where n in (4, 5)\n"
    inserted = f"create table #kept (n int) insert #kept execute ('{text.strip()}') select n * 10 from #kept"
    with clients.ct(clients.server.reader, version) as client:
        for _ in range(2):
            assert answers(client, text) == ([["4"], ["5"]], [])
            assert answers(client, f"{inserted} drop table #kept") == ([["40"], ["50"]], [])
    with clients.ct(clients.server.reader, version) as client:
        assert answers(client, f"{inserted} drop table #kept") == ([["40"], ["50"]], [])
        assert answers(client, text) == ([["4"], ["5"]], [])
