"""Rights of an old server, and their equivalents here."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pymssql
import pytest

from ringlog.adoption.conversion.rights import rights
from ringlog.adoption.rings import Rules, sort
from ringlog.adoption.server import ase, sql_server
from ringlog.adoption.server.objects import Grant, Member, Module, Old, OldColumn, OldTable
from servers import RunningServer, ringlog, serving

pytestmark = pytest.mark.long

TABLE = OldTable(
    "magnets",
    tuple(OldColumn(name, "int", 4, 0, 0, True) for name in ("id", "current", "note")),
    (("id",),),
    3,
)
MODULES = (Module("procedure", "ramp", "create procedure ramp as select 1"),)


def old(*grants: Grant, members: tuple[Member, ...] = (), users: tuple[tuple[str, str], ...] = ()) -> Old:
    logins = tuple(login for _, login in users if login)
    return Old("old", True, (TABLE,), MODULES, grants, logins, (), members, users)


def judged(of: Old):  # type: ignore[no-untyped-def]
    return rights(of, sort([of], Rules(), lambda *_: (None, None))[0], "site")


def test_rights_of_ase() -> None:
    """Actions, types and bits from SAP ASE's Reference Manual (Tables: sysprotects)."""
    rows = [
        ("operators", 193, 1, 7, "magnets", b"\x01", "dbo"),
        ("operators", 197, 1, 7, "magnets", b"\x04", "dbo"),
        ("ann", 224, 0, 8, "ramp", None, "dbo"),
        ("bob", 193, 2, 7, "magnets", b"\x01", "dbo"),
        ("bob", 193, 1, 9, "magnets", b"\x01", "fred"),
        ("bob", 193, 1, 9, "Magnets", b"\x01", "gone"),
        ("ann", 198, 1, 0, None, None, None),
    ]
    names = {"dbo": {"magnets": "magnets", "ramp": "ramp"}, "fred": {"magnets": "fred_magnets"}}
    assert ase.grants(rows, {("dbo", "magnets"): TABLE}, names) == [
        Grant("operators", "SELECT", "magnets"),
        Grant("operators", "UPDATE", "magnets", ("current",)),
        Grant("ann", "EXECUTE", "ramp", (), "grantable"),
        Grant("bob", "SELECT", "magnets", (), "denied"),
        Grant("bob", "SELECT", "fred_magnets"),
        Grant("ann", "CREATE TABLE", ""),
    ]


def test_rights_of_a_schema_become_rights_on_its_objects() -> None:
    """sys.database_permissions: class 0: a database, 1: an object or its columns, 3: a schema."""
    rows = [
        ("ann", "CONNECT", "GRANT", 0, None, None, None, None),
        ("ann", "EXECUTE", "GRANT", 3, None, None, "dbo", None),
        ("carl", "SELECT", "GRANT", 3, None, None, "ops", None),
        ("carl", "INSERT", "GRANT", 1, "magnets", None, None, "ops"),
        ("bob", "SELECT", "GRANT", 1, "magnets", "id", None, "dbo"),
        ("bob", "SELECT", "GRANT", 1, "magnets", "note", None, "dbo"),
        ("bob", "DELETE", "DENY", 0, None, None, None, None),
    ]
    objects = [("dbo", "magnets", False), ("ops", "ops_magnets", False), ("dbo", "ramp", True)]
    names = {"dbo": {"magnets": "magnets", "ramp": "ramp"}, "ops": {"magnets": "ops_magnets"}}
    assert sql_server.grants(rows, objects, names) == [
        Grant("ann", "EXECUTE", "ramp"),
        Grant("carl", "SELECT", "ops_magnets"),
        Grant("carl", "INSERT", "ops_magnets"),
        Grant("bob", "DELETE", "magnets", (), "denied"),
        Grant("bob", "DELETE", "ops_magnets", (), "denied"),
        Grant("bob", "SELECT", "magnets", ("id", "note")),
    ]


def test_written_files_and_decisions() -> None:
    found = judged(
        old(
            Grant("operators", "SELECT", "magnets"),
            Grant("operators", "UPDATE", "magnets", ("current",)),
            Grant("ann_user", "EXECUTE", "ramp", (), "grantable"),
            Grant("Bob", "SELECT", "magnets"),
            Grant("carl", "SELECT", "magnets", (), "denied"),
            Grant("guest", "SELECT", "magnets"),
            Grant("dbo", "DELETE", "magnets"),
            Grant("carl", "CREATE TABLE", ""),
            Grant("carl", "VIEW DEFINITION", "magnets"),
            Grant("carl", "VIEW DEFINITION", "ramp"),
            Grant("public", "SELECT", "magnets"),
            members=(Member("operators", "ann_user"), Member("idle", "carl"), Member("sa_role", "carl")),
            users=(("ann_user", "ann"), ("Bob", "Bob"), ("carl", "carl"), ("loose", "")),
        )
    )
    assert found.tsql == (
        "grant select on magnets to operators",
        "grant execute on ramp to ann",
        "grant select on magnets to public",
    )
    assert found.sql == (
        'grant update ("current") on table "site"."magnets" to "operators";',
        'grant select on table "site"."magnets" to "Bob";',
        'grant "operators" to "ann";',
    )
    assert [line for line in found.roles if line.startswith("create role")] == [
        'create role "site" nologin;',
        'create role "loose" nologin;',
        'create role "operators" nologin;',
    ]
    assert found.writers == {"ann"}
    for words in (
        "ann may grant EXECUTE on ramp to others there",
        "carl is denied SELECT on magnets",
        "guest, a login without a user there, has SELECT on magnets",
        "carl has CREATE TABLE: there is no such right here",
        "carl has VIEW DEFINITION on 2 objects: there is no such right here",
        "carl has the role sa_role of the old server",
        "user loose has no login there",
    ):
        assert any(words in decision for decision in found.decisions), words
    assert not any("dbo" in decision or "idle" in decision for decision in found.decisions)


SITE = """
create role site nologin;
create schema site authorization site;
grant usage on schema site to public;
create role developer login password 'develop-1' in role site;
create role operators nologin;
create role ann login password 'ann-1' in role operators, daq_reader;
create role bob login password 'bob-1' in role daq_reader;
grant developer, ann, bob to ringlog_gateway with inherit false, set true;
alter role developer set role = site;
"""
TABLES = """
create table magnets (id int not null primary key, [current] int null, note varchar(20) null)
go
insert magnets values (1, 5, 'x')
go
create procedure ramp as update magnets set [current] = [current] + 1
go
grant select on magnets to operators
go
grant execute on ramp to bob
go
"""
# rights: the user, the statement, and the expected error (229: no right)
ASKED = [
    ("ann", "select note from magnets", None),
    ("ann", "update magnets set note = 'y'", None),
    ("ann", "update magnets set id = 2", 229),
    ("ann", "exec ramp", 229),
    ("bob", "exec ramp", None),
    ("bob", "select * from magnets", 229),
]


def errors(server: RunningServer) -> list[tuple[str, str, int | None]]:
    found: list[tuple[str, str, int | None]] = []
    for who, text, _ in ASKED:
        with server.connect(who, f"{who}-1", database="site") as session, session.cursor() as cursor:
            try:
                cursor.execute(text)
                found.append((who, text, None))
            except pymssql.Error as error:
                found.append((who, text, error.args[0]))
    return found


@pytest.fixture(scope="module")
def there(temporary_directory: Path) -> Iterator[RunningServer]:
    with serving(temporary_directory / "rights") as running:
        with psycopg.connect(running.dsn, autocommit=True) as administrator:
            administrator.execute(SITE)
            build(running, TABLES)
            administrator.execute("grant update (note) on site.magnets to operators")
        yield running


def build(server: RunningServer, text: str) -> None:
    with server.connect("developer", "develop-1", database="site") as session, session.cursor() as cursor:
        for batch in text.split("\ngo\n"):
            if batch.strip():
                cursor.execute(batch)


def test_every_login_has_the_same_rights_here_and_there(
    there: RunningServer, temporary_directory: Path, tmp_path: Path
) -> None:
    url = f"tds://developer:develop-1@{there.host}:{there.port}/site"
    ringlog("adopt", url, "--output", tmp_path)
    with serving(temporary_directory / "rights_moved") as new:
        with psycopg.connect(new.dsn, autocommit=True) as administrator:
            administrator.execute((tmp_path / "0_roles.psql").read_bytes())
            administrator.execute(
                "create role developer login password 'develop-1' in role site;"
                "grant developer to ringlog_gateway with inherit false, set true;"
                "alter role developer set role = site"
            )
            logins = (tmp_path / "logins.sh").read_text()
            assert "ringlog user add 'ann' --reader --writer" in logins
            for who in ("ann", "bob"):
                words = ("user", "add", who, "--reader", "--password-stdin", "--data", new.data)
                assert ringlog(*words, stdin=f"{who}-1").returncode == 0
            for file in ("1_tables.sql", "3_procedures.sql", "5_grants.sql"):
                build(new, (tmp_path / file).read_text())
            administrator.execute((tmp_path / "6_rights.psql").read_bytes())
            build(new, "insert magnets values (1, 5, 'x')")
        assert errors(there) == errors(new) == ASKED
