"""`set transaction isolation level`, `set lock_timeout`: the visibility of other transactions, and the wait
for locks.

SQL Server: SET TRANSACTION ISOLATION LEVEL, SET LOCK_TIMEOUT; errors 1205 and 1222."""

from collections.abc import Iterator
from typing import Any

import pytest
from case_tables import cases
from talks import hold, talks

from authors import author_with_schema
from ringlog.clients import call, connect
from servers import Login, RunningServer
from tds_clients import Admin, Answer, Clients
from waiting import wait_until


@pytest.fixture
def shared(admin: Admin) -> Iterator[None]:
    admin.execute(
        "create table public.shared_by_two (id integer primary key, n integer);"
        " insert into public.shared_by_two values (1, 10), (2, 20);"
        " grant all on public.shared_by_two to daq_writer, daq_reader"
    )
    yield
    admin.execute("drop table public.shared_by_two")


@talks(__file__)
def test_talks(clients: Clients, admin: Admin, shared: None, version: str, talk: dict[str, Any]) -> None:
    hold(talk, version, clients, admin)


# --- a log's time compared with the clock: only the selected weeks are opened ---


# PostgreSQL locks each partition of a plan before it runs.
LOCKED = r"""
select count(*) from pg_locks join pg_class on pg_class.oid = relation
join pg_namespace on pg_namespace.oid = relnamespace
where pid = %s and nspname = 'log' and relname like 'every\_type\_%%' and relkind = 'r'
"""
PARTITIONS = "select count(*) from pg_inherits where inhparent = 'weeks.every_type'::regclass"


def number(admin: Admin, query: str, *values: object) -> int:
    row = admin.execute(query.encode(), values or None).fetchone()
    assert row is not None
    return int(str(row[0]))


@pytest.mark.parametrize(
    "condition", cases(__file__, "weeks_are_chosen_when_a_query_with_the_clock_is_planned")
)
def test_weeks_are_chosen_when_a_query_with_the_clock_is_planned(
    clients: Clients, admin: Admin, condition: str
) -> None:
    assert number(admin, PARTITIONS) >= 5
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        cursor.execute("set transaction isolation level serializable begin tran")
        for _ in range(4):
            # from the sixth execution on PostgreSQL may use one plan for all times if it costs no more
            cursor.execute(f"select count(*) from log..every_type where {condition}")
            assert cursor.fetchone() == (0,)
        cursor.execute("select @@spid")
        spid = cursor.fetchone()
        assert spid is not None
        # the number comes first in the name of the session's connection
        pid = number(admin, "select pid from pg_stat_activity where application_name like %s", f"{spid[0]} %")
        # two weeks at the turn of a week
        assert 1 <= number(admin, LOCKED, pid) <= 2
        cursor.execute("rollback")


def test_the_text_of_a_time_includes_microseconds(server: RunningServer) -> None:
    moment = "2026-03-04 05:06:07.123456"
    address = f"tds://{server.writer.user}@{server.host}:{server.port}"
    with connect(address, server.writer.password) as connection:
        call(connection, "put_sr_rf", seq_no=9, time=moment)
    texts = ", ".join(f"convert(varchar(30), time, {style})" for style in (121, 126, 120, 14))
    address = f"tds://{server.reader.user}@{server.host}:{server.port}"
    with connect(address, server.reader.password) as connection, connection.cursor() as cursor:
        cursor.execute(f"select {texts}, cast(time as varchar(30)) from log..sr_rf where time = '{moment}'")
        assert cursor.fetchall() == [
            (moment, moment.replace(" ", "T"), moment[:19], "05:06:07:123", "Mar  4 2026  5:06AM")
        ]


# --- a select on a log with archived weeks ---

OWN = Login("archived_weeks", "archived-weeks")
COLD = "every_type"
FROM = f"from log..{COLD} where"


@pytest.fixture(scope="module", autouse=True)
def cold_week(clients: Clients, admin: Admin) -> Iterator[None]:
    with author_with_schema(clients.server, OWN, "readers_of_weeks"):
        admin.execute(
            "insert into ringlog.cold_week (table_name, begins, ends, file, rows, bytes, sha256)"
            f" values ('{COLD}', '2026-01-05Z', '2026-01-12Z', 'none', 1, 1, '')"
        )
        admin.execute("notify ringlog_catalogue, 'moved'")
        wait_until(lambda: answered(clients, "5.0", f"select max(time) from log..{COLD}").messages)
        yield
        admin.execute("delete from ringlog.cold_week")
        admin.execute("notify ringlog_catalogue, 'moved'")


def answered(clients: Clients, version: str, text: str) -> Answer:
    with clients.ct(OWN, version) as client:
        return client.language(text)


@pytest.mark.parametrize("version", ["5.0", "7.4"])
@pytest.mark.parametrize("text", cases(__file__, "a_select_that_does_not_reach_them"))
def test_a_select_that_does_not_reach_them(clients: Clients, version: str, text: str) -> None:
    messages = answered(clients, version, text).messages
    assert [message for message in messages if message.number != 5701] == []


@pytest.mark.parametrize("version", ["5.0", "7.4"])
@pytest.mark.parametrize("text", cases(__file__, "one_that_reaches_them"))
def test_one_that_reaches_them(clients: Clients, version: str, text: str) -> None:
    error = answered(clients, version, text).error
    assert "1 weeks of table every_type are not in PostgreSQL but in the archive: 2026w02" in error.text


@pytest.mark.parametrize("version", ["5.0", "7.4"])
@pytest.mark.parametrize("text", cases(__file__, "one_that_may_reach_them"))
def test_one_that_may_reach_them(clients: Clients, version: str, text: str) -> None:
    (message,) = answered(clients, version, text).messages
    assert message.severity <= 10
    assert 'Weeks of "log"."every_type" before 2026-01-12' in message.text


@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_a_procedure_and_a_view(clients: Clients, version: str) -> None:
    with clients.ct(OWN, version) as client:
        client.language("use readers_of_weeks")
        for text in (
            f"create procedure since @t datetime as select count(*) {FROM} time > @t",
            f"create view every_row as select seq_no from log..{COLD}",
        ):
            assert client.language(text).errors == []
        assert client.language("exec since '20260201'").messages == []
        assert "archive" in client.language("exec since '20260101'").error.text
        assert "archive" in client.language("select count(*) from every_row").messages[0].text
        client.language("drop procedure since drop view every_row")
