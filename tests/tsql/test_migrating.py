"""The procedures of docs/how-to/procedures.md and others, created and called through real clients."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg
import pymssql
import pytest

from raw_client import RawClient
from servers import Login, RunningServer, set_path
from tds_clients import Answer, Clients, Param, error_number

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "procedures.md"
CT_CLIENT = Path(__file__).parents[1] / "gateway" / "programs" / "ct_client.c"
DEVELOPER = Login("developer", "choose one")
NEW_YEAR, DAY_AFTER = "46021 0", "46022 0"
"""2026-01-01 and 02 as ct-library has them: days since 1900, and 1/300 s"""

PROCEDURES = Path(__file__).with_name("migrating.sql").read_text()
"""Procedures beside that of the page: outputs and a status, a cursor, an error that is caught, dynamic SQL"""


@dataclass(frozen=True)
class Example:
    """A fenced block of the page."""

    language: str
    text: str

    @property
    def batches(self) -> list[str]:
        return [batch for batch in re.split(r"^go\n", self.text, flags=re.M) if batch.strip()]


def examples() -> list[Example]:
    found = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), flags=re.M | re.S)
    return [*(Example(*each) for each in found), Example("tsql", PROCEDURES)]


@pytest.fixture(scope="module")
def clients(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    directory = tmp_path_factory.mktemp("migrating")
    program = directory / "ct_client"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-o", program, CT_CLIENT, "-lct"], check=True)
    return Clients.of(server, program, directory)


@pytest.fixture(scope="module")
def migrated(server: RunningServer, clients: Clients) -> Iterator[list[Answer]]:
    """The answers to each example of the page at a TDS 5.0 console."""
    made, *typed = examples()
    assert made.language == "sql"
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(made.text.encode())
        assert typed[0].batches[0] == "use site\n"
        typed = [Example("tsql", f"use site\ngo\n{example.text}") for example in typed]
        yield [clients.tsql(DEVELOPER, *example.batches) for example in typed]
        admin.execute(
            "drop schema site cascade; drop owned by site; drop owned by developer; drop role developer, site"
        )
    set_path(server.dsn)


@pytest.fixture(autouse=True)
def no_rows(migrated: list[Answer], server: RunningServer) -> None:
    server.sql("truncate site.beam_loss, site.beam_loss_log; update site.ring_position set seq_no = 0")


@pytest.fixture
def losses(no_rows: None, clients: Clients) -> None:
    """A row in each of five seconds of the new year."""
    with clients.pymssql(clients.server.writer) as connection, connection.cursor() as cursor:
        for second, loss in enumerate((1.5, 2.5, 8.0, 8.5, 0.0)):
            cursor.callproc("put_beam_loss", (datetime(2026, 1, 1, 0, 0, second), loss))


def test_the_examples_are_accepted(migrated: list[Answer]) -> None:
    assert len(migrated) == 3
    for answer in migrated:
        assert answer.errors == []


def test_a_procedure_that_writes_is_called_by_rpc_and_in_text(
    migrated: list[Answer], clients: Clients
) -> None:
    del migrated
    with clients.ct(clients.server.writer, "5.0") as client:
        first = client.call("put_beam_loss", [Param("datetime", NEW_YEAR), Param("real", "1.5")])
        assert first.errors == []
        assert first.statuses == [1]
    with clients.pymssql(clients.server.writer) as connection, connection.cursor() as cursor:
        cursor.callproc("put_beam_loss", (datetime(2026, 1, 1, 0, 0, 1), 2.5))
        cursor.execute("exec put_beam_loss '2026-01-01 00:00:02', 8")
    text = clients.tsql(
        clients.server.writer, "exec put_beam_loss @loss = 8.5, @time = '2026-01-01 00:00:03'"
    )
    assert text.statuses == [4]
    with psycopg.connect(clients.server.dsn) as admin:
        ring = admin.execute("select seq_no, loss from site.beam_loss order by seq_no").fetchall()
        log = admin.execute("select loss from site.beam_loss_log order by time").fetchall()
    assert ring == [(1, 1.5), (2, 2.5), (3, 8.0), (4, 8.5)]
    assert log == [(1.5,), (2.5,), (8.0,), (8.5,)]


def test_counts_are_also_sent_from_a_shared_connection(migrated: list[Answer], server: RunningServer) -> None:
    del migrated
    with RawClient(server.host, server.port) as client:
        client.log_in5(server.writer)
        reply = client.language("exec put_beam_loss @time = '2026-01-01 00:00:04', @loss = 0")
        assert reply.errors == []
        # update, update, insert, insert
        assert [count for status, count in reply.done if status & 0x10] == [1, 0, 1, 1]


def test_outputs_status_and_result_sets(losses: None, clients: Clients) -> None:
    del losses
    with clients.ct(clients.server.reader, "5.0") as client:
        params = [
            Param("datetime", NEW_YEAR, "@from"),
            Param("datetime", DAY_AFTER, "@to"),
            Param("float", None, "@mean", out=True),
            Param("int", None, "@rows", out=True),
        ]
        answer = client.call("mean_loss", params)
        assert answer.errors == []
        assert answer.statuses == [0]
        assert [float(value or "nan") for value in answer.outputs.values()] == [4.1, 5]
        steps = client.call("loss_steps", [Param("real", "2")])
        assert steps.errors == []
        assert [row[1:] for row in steps.rows] == [["2.5", "8"], ["8.5", "0"]]
        assert steps.statuses == [2]
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        cursor.callproc("loss_steps", (0.25,))
        assert [row[1:] for row in cursor.fetchall()] == [(1.5, 2.5), (2.5, 8.0), (8.0, 8.5), (8.5, 0.0)]
        mean = pymssql.output(float)
        outputs = cursor.callproc("mean_loss", (datetime(2025, 1, 1), datetime(2025, 1, 2), mean))
        assert outputs[2] is None
        assert cursor.returnvalue == 1


def test_an_error_sent_by_a_procedure(losses: None, clients: Clients) -> None:
    del losses
    answer = clients.tsql(
        DEVELOPER,
        "use site",
        "exec correct_loss '2026-01-01 00:00:02', 7",
        "exec correct_loss '2020-01-01', 7",
    )
    assert [message[:] for message in answer.errors] == [(50000, 16, "0 rows have this time")]
    assert answer.statuses == [0, -1]


def test_rights(migrated: list[Answer], clients: Clients) -> None:
    del migrated
    for login, call in [
        (clients.server.reader, "exec put_beam_loss '2026-01-01', 1"),
        (clients.server.writer, "declare @m float exec mean_loss '2026-01-01', '2026-01-02', @m output"),
        (clients.server.reader, "exec correct_loss '2026-01-01', 1"),
        (clients.server.reader, "select * from site..beam_loss"),
        (clients.server.reader, "create procedure site..mine as return 1"),
    ]:
        for section in ("5.0", "7.4"):
            assert clients.tsql(login, call, section=section).error.number == 229


def test_an_error_in_a_procedure_as_seen_by_a_batch(migrated: list[Answer], clients: Clients) -> None:
    del migrated
    for section in ("5.0", "7.4"):
        answer = clients.tsql(
            DEVELOPER,
            "use site",
            "create procedure reports as raiserror ('raised', 16, 1) return 5",
            "create procedure throws as throw 50001, 'thrown', 1",
            "create procedure fails as insert ring_position values ('beam_loss', 0) print 'not reached'",
            "declare @s int exec @s = reports select @@error, @s print 'after'",
            "exec fails select @@error print 'next statement'",
            "begin try exec reports end try begin catch print 'caught' select error_procedure() end catch",
            "begin try exec throws end try begin catch select error_number() end catch",
            "exec throws print 'not after a throw'",
            "drop procedure reports, throws, fails",
            section=section,
        )
        duplicate = 2601 if section == "5.0" else 2627
        assert [message.number for message in answer.errors] == [50000, duplicate, 50001]
        values = [row for row in answer.rows if row and row[0] not in ("", "use site")]
        assert values == [["50000", "5"], ["0"], ["reports"], ["50001"]]


def test_the_text_is_returned(migrated: list[Answer], clients: Clients) -> None:
    del migrated
    answer = clients.tsql(DEVELOPER, "use site", "sp_helptext put_beam_loss")
    (example,) = (e for e in examples() if "create procedure put_beam_loss" in e.text)
    assert [line for (line, *_) in answer.rows[1:]] == example.batches[0].strip().split("\n")


def test_a_procedure_of_the_site_uses_the_fast_path(migrated: list[Answer], server: RunningServer) -> None:
    del migrated
    shares = server.sql(
        "select p.proname, p.prokind = 'f' and p.prosecdef and p.provolatile = 'v' and not p.proretset"
        " and not o.rolcanlogin and p.proconfig::text like '%search_path=%'"
        " from pg_proc p join pg_roles o on o.oid = p.proowner"
        " where p.pronamespace = 'site'::regnamespace order by 1"
    )
    assert shares == [
        ("add_loss", False), ("correct_loss", True), ("loss_steps", False), ("mean_loss", True),
        ("put_beam_loss", True),
    ]  # fmt: skip


def test_refusals_name_line_and_construct(migrated: list[Answer], clients: Clients) -> None:
    del migrated
    for section in ("5.0", "7.4"):
        refused = clients.tsql(
            DEVELOPER, "use site", "create procedure jumps as\nprint 'a'\ngoto there", section=section
        )
        assert refused.error.number == 133
        assert "there" in refused.error.text
    with clients.pymssql(DEVELOPER, database="site") as connection, connection.cursor() as cursor:
        assert error_number(cursor, "create procedure mean_loss as return 1") == 2714


def test_a_procedure_run_by_the_gateway(migrated: list[Answer], clients: Clients) -> None:
    del migrated
    calls = [
        "use site",
        "begin tran exec add_loss '2027-01-01', 9 exec add_loss '2027-01-02', 9, 'not_there' commit",
    ]
    for section in ("5.0", "7.4"):
        answer = clients.tsql(clients.server.writer, *calls, section=section)
        assert [error.number for error in answer.errors] == [208]
        assert answer.statuses == [0, -6]
        refused = clients.tsql(clients.server.reader, "exec site..add_loss '2027-01-01', 9", section=section)
        assert refused.error.number == 229
    with psycopg.connect(clients.server.dsn) as admin:
        counted = admin.execute("delete from site.beam_loss_log where time >= '2027-01-01'").rowcount
    assert counted == 2
