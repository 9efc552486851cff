"""Migration from another server: SQL Server, or one that resembles it (Babelfish).

Run by hand (docs/developer.md). The test makes two databases of its own there and drops them at the end.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pymssql
import pytest
from mirrors import mirroring
from psycopg import sql

from ringlog.clients import Address
from servers import RunningServer, ringlog, serving

# an old server may be slow
pytestmark = pytest.mark.timeout(2000)

URL = "RINGLOG_OLD_SERVER"
# texts and numbers that every driver reads: FreeTDS knows neither sql_variant nor datetimeoffset in full
_EXPRESSIONS = {
    # its value is compared by `--copy`
    "sql_variant": "convert(nvarchar(100), sql_variant_property({0}, 'BaseType'))",
    "datetimeoffset": "convert(varchar(19), {0}, 121), datepart(microsecond, {0}), datepart(tzoffset, {0})",
}
# queries with the same answer from both servers by SQL Server's documentation, each column with its own name
# and type
REQUESTS = (
    "select id, name, rated from suppliers order by id",
    "select [key], supplier, price, ratio, day, flag from [Order] order by [key]",
    "select count(*) as n, min(gate) as a, max(gate) as z, sum(gate) as s from beam_loss",
    "select top 5 seq_no, gate, loss from beam_loss_log order by time desc",
    "exec order_of 1",
    "exec order_of 99",
    "declare @m float, @r int, @s int exec @s = mean_loss '2026-03-02', '2026-03-03', @m output, @r output"
    " select @m as m, @r as r, @s as s",
    "exec dynamic_count 'suppliers'",
    "exec steps 1",
    "exec titles",
    "select n from {archive}.dbo.linac_rows",
    "select dbo.twice(21) as v",
    "select number, price from [dear orders] order by number",
    "insert suppliers (name, rated) values ('new one', 2.5)",
    "update suppliers set rated = rated * 2 where name = 'new one'",
    "select name, rated from suppliers where name = 'new one'",
    "delete suppliers where name = 'new one'",
    "begin tran insert suppliers (name) values ('rolled') rollback select count(*) as n from suppliers",
    "insert stamped values (1, 'again')",
    "insert stamped values (10, 'ten') select n from audit order by id",
    "update stamped set v = 'TEN' where id = 10",
    "delete stamped where id = 10",
    "if exists (select * from suppliers) print 'there' else print 'not'",
    "select 1 / 0 as x",
    "raiserror ('own %s', 12, 3, 'text')",
)
LAST = "select @@version as version"
"""differs for certain: with its line the report has all lines of the requests before it"""


@dataclass(frozen=True)
class OldServer:
    """The server with the two databases."""

    address: Address
    password: str
    control: str
    archive: str

    def connect(self, database: str = "", host: str = "", port: int = 0) -> pymssql.Connection:
        return pymssql.connect(
            server=host or self.address.host,
            port=str(port or self.address.port),
            user=self.address.user,
            password=self.password,
            database=database,
            autocommit=True,
            timeout=300,
        )

    def filled(self, text: str) -> str:
        return text.replace("{control}", self.control).replace("{archive}", self.archive)


@pytest.fixture(scope="module")
def old() -> Iterator[OldServer]:
    url = os.environ.get(URL)
    assert url, f"{URL} names no server: tds://USER:PASSWORD@HOST:PORT, with the right to create databases"
    address = Address.parse(url)
    mark = os.getpid()
    made = OldServer(
        replace(address, database="", password=None),
        address.password or "",
        f"control_{mark}",
        f"archive_{mark}",
    )
    with made.connect("master") as client, client.cursor() as cursor:
        try:
            for name in (made.control, made.archive):
                cursor.execute(f"create database {name}")
            text = Path(__file__).with_name("sql_server.sql").read_text()
            for batch in made.filled(text).split("\ngo\n"):
                if batch.strip():
                    cursor.execute(batch)
            yield made
        finally:
            cursor.execute("use master")
            for name in (made.control, made.archive):
                cursor.execute(f"if db_id('{name}') is not null drop database {name}")


@dataclass(frozen=True)
class Moved:
    """The site's new server, and the files of the migration."""

    server: RunningServer
    output: Path


@pytest.fixture(scope="module")
def new(old: OldServer, temporary_directory: Path) -> Iterator[Moved]:
    output, data = temporary_directory / "adopted", temporary_directory / "moved"
    url = f"tds://{old.address.user}@{old.address.host}:{old.address.port}/{old.control}"
    words = ("adopt", url, "--database", old.archive, "--output", output)
    environment = {"RINGLOG_PASSWORD": old.password}
    done = ringlog(*words, timeout=1000, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    with serving(data, facility=output / "facility.toml") as here:
        user = sql.Identifier(old.address.user)
        with psycopg.connect(here.dsn, autocommit=True) as administrator:
            administrator.execute((output / "0_roles.psql").read_text().encode())
            for statement in (
                "create role {user} login password {password}",
                "grant {owner}, daq_reader, daq_writer to {user}",
                "grant {user} to ringlog_gateway with inherit false, set true",
                "alter role {user} set role = {owner}",
            ):
                administrator.execute(
                    sql.SQL(statement).format(
                        user=user, owner=sql.Identifier(old.control), password=sql.Literal(old.password)
                    )
                )
        with old.connect(old.control, here.host, here.port) as client, client.cursor() as cursor:
            for file in sorted(output.glob("[1-5]_*.sql")):
                for batch in file.read_text().split("\ngo\n"):
                    if batch.strip():
                        cursor.execute(batch)
        copied = ringlog(*words, "--copy", "--data", data, timeout=1000, **environment)
        assert copied.returncode == 0, copied.stdout + copied.stderr
        yield Moved(here, output)


def test_all_objects_compile_and_all_rows_are_the_same(old: OldServer, new: Moved) -> None:
    control, archive = json.loads((new.output / "assessment.json").read_text())["databases"]
    # Babelfish returns names in lower case
    assert {each["name"].lower(): each["log"].lower() for each in control["rings"]} == {
        "beam_loss": "beam_loss_log",
        "sr_vac": "sr_vac_hist",
        "linac": f"{old.archive}..linac",
    }
    assert [each for each in (*control["modules"], *archive["modules"]) if not each["compiled"]] == []
    tables = [
        (database, table["name"])
        for database, judged in ((old.control, control), (old.archive, archive))
        for table in judged["site_tables"]
    ]
    tables += [
        (old.control, name) for name in ("beam_loss", "beam_loss_log", "SR_VAC", "SR_VAC_HIST", "LINAC")
    ]
    tables.append((old.archive, "LINAC"))
    there = old.connect(old.control)
    here = old.connect(old.control, new.server.host, new.server.port)
    with there, here:
        for database, name in tables:
            columns = columns_of(there, database, name)
            # names have no owner here
            owner = "ops" if name == "shifts" else "dbo"
            found = [
                rows(client, f"select {columns} from {source}")
                for client, source in (
                    (there, f"{database}.{owner}.[{name}]"),
                    (here, f"{database}.dbo.[{name}]"),
                )
            ]
            assert len(found[0]) > 0
            assert found[0] == found[1], name


def columns_of(client: pymssql.Connection, database: str, table: str) -> str:
    """The columns of a table, in a form that every driver reads."""
    question = (
        f"select c.name, t.name from {database}.sys.columns c"
        f" join {database}.sys.types t on t.user_type_id = c.user_type_id"
        f" join {database}.sys.objects o on o.object_id = c.object_id"
        f" where o.name = '{table}' order by c.column_id"
    )
    with client.cursor() as cursor:
        cursor.execute(question)
        return ", ".join(
            _EXPRESSIONS.get(str(kind), "{0}").format(f"[{name}]") for name, kind in cursor.fetchall() or ()
        )


def rows(client: pymssql.Connection, question: str) -> list[str]:
    with client.cursor() as cursor:
        cursor.execute(question)
        return sorted(map(repr, cursor.fetchall() or ()))


def test_identities_continue(old: OldServer, new: Moved) -> None:
    for host, port in (("", 0), (new.server.host, new.server.port)):
        with old.connect(old.archive, host, port) as client, client.cursor() as cursor:
            cursor.execute("insert title (name) values ('next')")
            cursor.execute("select id, name from title order by id")
            assert cursor.fetchall() == [(7, "of the archive"), (13, "next")]
            cursor.execute("delete title where name = 'next'")


def test_clients_get_the_old_answers_and_the_new_ones_agree(
    old: OldServer, new: Moved, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values, outputs and statuses agree. Other differences are printed: each server has some."""
    with mirroring(
        tmp_path, f"{old.address.host}:{old.address.port}", f"{new.server.host}:{new.server.port}"
    ) as running:
        with old.connect(old.control, running.host, running.port) as client:
            for request in (*REQUESTS, LAST):
                with client.cursor() as cursor, suppress(pymssql.Error):
                    cursor.execute(old.filled(request))
                    while cursor.nextset():
                        pass
        running.wait(lambda: any(line["request"] == LAST for line in running.lines()))
        lines = [line for line in running.lines() if line["request"] != LAST]
    with capsys.disabled():
        print()
        for line in lines:
            print(f"{line['part']}: {line['request'][:70]!r}: old {line['old']!r}, new {line['new']!r}")
    assert [line for line in lines if line["part"] in ("rows", "status", "outputs")] == []
