"""A select on a log with archived weeks: an error if it reaches them, a message if it may reach them."""

from collections.abc import Iterator

import pytest

from authors import author_with_schema
from servers import Login
from tds_clients import Admin, Answer, Clients
from waiting import wait_until

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
        wait_until(lambda: said(clients, "5.0", f"select max(time) from log..{COLD}").messages)
        yield
        admin.execute("delete from ringlog.cold_week")
        admin.execute("notify ringlog_catalogue, 'moved'")


def said(clients: Clients, version: str, text: str) -> Answer:
    with clients.ct(OWN, version) as client:
        return client.language(text)


@pytest.mark.parametrize("version", ["5.0", "7.4"])
@pytest.mark.parametrize(
    "text",
    [
        f"select count(*) {FROM} time >= '2026-02-01'",
        f"select count(*) {FROM} '20260201' < time and seq_no = 1",
        f"select count(*) {FROM} (time between '2026-01-13' and '2026-02-02') and seq_no in (1, 2)",
        f"select count(*) {FROM} time < '2026-01-04'",
        f"declare @t datetime select @t = '2026-02-01' select count(*) {FROM} time > @t",
        f"select count(*) {FROM} time > dateadd(day, -1, '2026-02-10')",
        f"select count(*) {FROM} time > dateadd(hour, -1, getdate())",
        f"select t.seq_no from log..{COLD} t join log..{COLD} u on u.seq_no = t.seq_no"
        " and u.time = '20260301' where t.time > '20260301'",
        f"use log select count(*) from {COLD} where {COLD}.time > '2026-02-01'",
        "select count(*) from log..sr_rf",
        f"select count(*) from online..{COLD}",
    ],
)
def test_a_select_that_does_not_reach_them(clients: Clients, version: str, text: str) -> None:
    messages = said(clients, version, text).messages
    assert [message for message in messages if message.number != 5701] == []


@pytest.mark.parametrize("version", ["5.0", "7.4"])
@pytest.mark.parametrize(
    "text",
    [
        f"select count(*) {FROM} time >= '2026-01-11'",
        f"select count(*) {FROM} time <= '2026-01-07'",
        f"select count(*) {FROM} time = '2026-01-06'",
        f"declare @t datetime select @t = '2026-01-01' select count(*) {FROM} time > @t",
        f"select a from (select seq_no a {FROM} time > '20260101') d where 1 = 1",
        f"select 1 where exists (select * {FROM} time > '20260101')",
    ],
)
def test_one_that_reaches_them(clients: Clients, version: str, text: str) -> None:
    error = said(clients, version, text).error
    assert "1 weeks of table every_type are not in PostgreSQL but in the archive: 2026w02" in error.text


@pytest.mark.parametrize("version", ["5.0", "7.4"])
@pytest.mark.parametrize(
    "text",
    [
        f"select top 3 seq_no from log..{COLD} order by time desc",
        f"select count(*) {FROM} seq_no = 1",
        f"select count(*) {FROM} datepart(hour, time) = 5",
        f"select count(*) {FROM} time > '20260201' or seq_no = 1",
        f"select count(*) {FROM} time < '20260201'",
        f"select (select count(*) from log..{COLD} l where l.seq_no = r.seq_no) from online..{COLD} r",
    ],
)
def test_one_that_may_reach_them(clients: Clients, version: str, text: str) -> None:
    (message,) = said(clients, version, text).messages
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
