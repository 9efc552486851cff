"""A database without case comes with its default collation and with those of its columns."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pymssql
import pytest

from ringlog.adoption.conversion.rights import rights
from ringlog.adoption.conversion.tables import table_scripts
from ringlog.adoption.rings import Rules, sort
from ringlog.adoption.server import collations
from ringlog.adoption.server.catalogue import read
from servers import RunningServer, ringlog, run, serving
from waiting import wait_until

OLD, NEW = "folded_there", "folded_here"
COLLATION = "SQL_Latin1_General_CP1_CI_AS"


@pytest.fixture
def administrator(server: RunningServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"create schema {OLD} authorization {server.reader.user}")
        connection.execute("call tsql.declare_schema(%s, %s)", [OLD, COLLATION])
        yield connection
        connection.execute(f"drop schema {OLD} cascade; drop schema if exists {NEW} cascade")
        connection.execute(f"drop role if exists {NEW}")


def test_a_database_without_case_moves_in(server: RunningServer, administrator: psycopg.Connection) -> None:
    def session(database: str) -> pymssql.Connection:
        login = server.reader
        opened = server.connect(login.user, login.password, database=database, timeout=60, autocommit=True)

        def is_folding() -> bool:
            """Whether the gateway has been notified of the collation."""
            with opened.cursor() as cursor:
                cursor.execute("select case when 'a' = 'A' then 1 else 0 end")
                return cursor.fetchall() == [(1,)]

        wait_until(is_folding)
        return opened

    with session(OLD) as there, there.cursor() as cursor:
        cursor.execute("create table t (a varchar(9), b varchar(9) collate Latin1_General_BIN, c int)")
        old = read(there, OLD)
    found = sort([old], Rules(), lambda *_: (None, None))[0]
    made = rights(old, found, NEW)
    (script,) = table_scripts(found.site, False)
    assert (old.collation, old.left) == (COLLATION, ())
    assert "[b] varchar(9) collate Latin1_General_BIN null" in script.text.replace("b varchar", "[b] varchar")
    for statement in made.roles:
        administrator.execute(statement.encode())
    administrator.execute(f"grant all on schema {NEW} to {server.reader.user}")
    with session(NEW) as here, here.cursor() as cursor:
        cursor.execute(script.text)
        cursor.execute("insert t values ('AC/DC', 'AC/DC', 1)")
        cursor.execute("select count(*) from t where a like '%ac/dc%'")
        assert cursor.fetchall() == [(1,)]
        cursor.execute("select count(*) from t where b like '%ac/dc%' or 'a' <> 'A'")
        assert cursor.fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("SQL_Latin1_General_CP1_CI_AS", "SQL_Latin1_General_CP1_CI_AS"),
        ("Latin1_General_100_CI_AS_SC_UTF8", "Latin1_General_100_CI_AS_SC_UTF8"),
        ("Japanese_BIN2", collations.BINARY),
        ("Latin1_General_CS_AS", collations.BINARY),
        ("Latin1_General_CI_AI", ""),
        ("Danish_Norwegian_CI_AS", ""),
    ],
)
def test_collations_that_compare_alike(there: str, here: str) -> None:
    assert collations.here(there) == here


# --- texts of clients that declare a character set arrive unchanged at the new server ---

SITE = """
create role notes nologin;
create schema notes authorization notes;
grant usage on schema notes to public;
create role clerk login password 'clerk-1' in role notes;
grant clerk to ringlog_gateway with inherit false, set true;
alter role clerk set role = notes;
"""
# by the character set that a TDS 5.0 client declares at login
TEXTS = {
    "iso_1": "Größe ÿ½",
    "cp850": "Größe ░½",
    "cp1252": "Größe €œ",
    "sjis": "加速器ｱ表",
    "eucjis": "加速器ｱ表",
    "utf8": "Größe 加速器 😀",
}


def tsql(server: RunningServer, folder: Path, charset: str, text: str) -> list[str]:
    """Runs a batch by a client of TDS 5.0 that declares the character set; the lines of its answer."""
    configuration = folder / f"{charset}.conf"
    configuration.write_text(
        "[global]\nclient charset = UTF-8\n[old]\n"
        f"host = {server.host}\nport = {server.port}\ntds version = 5.0\nserver charset = {charset}\n"
    )
    words = ("tsql", "-S", "old", "-U", "clerk", "-P", "clerk-1", "-D", "notes", "-o", "qhf")
    done = run(*words, stdin=f"{text}\ngo\n", FREETDSCONF=str(configuration), LC_ALL="C.UTF-8")
    assert "Msg" not in done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def old(temporary_directory: Path) -> Iterator[RunningServer]:
    with serving(temporary_directory / "notes") as running:
        running.sql(SITE)
        columns = "charset varchar(10) not null, fixed char(20) null, said varchar(40) null, body text null"
        tsql(running, temporary_directory, "utf8", f"create table note ({columns})")
        for charset, text in TEXTS.items():
            insert = f"insert note values ('{charset}', '{text}', '{text}', '{text}')"
            tsql(running, temporary_directory, charset, insert)
        yield running


@pytest.mark.long
@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_texts_arrive_unchanged(
    old: RunningServer, temporary_directory: Path, tmp_path: Path, version: str
) -> None:
    words = ("adopt", f"tds://clerk:clerk-1@{old.host}:{old.port}/notes", "--tds-version", version)
    words = (*words, "--timezone", "Asia/Tokyo")
    words = (*words, "--output", tmp_path / "adopted")
    ringlog(*words)
    with serving(temporary_directory / f"notes_{version}") as new:
        new.sql(SITE)
        tsql(new, tmp_path, "utf8", (tmp_path / "adopted" / "1_tables.sql").read_text())
        copied = ringlog(*words, "--copy", "--data", new.data)
        assert "note: 6 rows, new, the same on both sides" in copied.stdout, copied.stdout
        for charset, text in TEXTS.items():
            asked = f"select fixed, said, body from note where charset = '{charset}'"
            (line,) = tsql(new, tmp_path, charset, asked)
            fixed, converted, body = line.split("\t")
            assert (fixed.rstrip(), converted, body) == (text, text, text)
