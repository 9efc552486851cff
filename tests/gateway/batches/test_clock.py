"""A log's time compared with the clock: only the selected weeks are opened."""

import pytest

from ringlog.clients import call, connect
from servers import RunningServer
from tds_clients import Admin, Clients

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
    "condition",
    [
        "time between dateadd(second, -1, getdate()) and getdate()",
        "time >= dateadd(second, -1, sysdatetime()) and time < getdate()",
        "time > dateadd(mi, -1, getdate()) and time < dateadd(minute, 1, getdate())",
        "seq_no = 1 and time >= current_timestamp and time <= getdate() + 0.0001",
    ],
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
