"""Several databases of one old server are moved to one facility, each as a schema with its name."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pymssql
import pytest

from ringlog.adoption.conversion.across import across
from ringlog.adoption.conversion.order import ordered
from ringlog.adoption.conversion.roles import with_distinct_roles
from ringlog.adoption.databases import demand_names, site_databases
from ringlog.adoption.errors import AdoptionError
from ringlog.adoption.rings import Rules, sort
from ringlog.adoption.server.objects import Grant, Member, Module, Old, OldColumn, OldTable
from servers import RunningServer, ringlog, serving

pytestmark = pytest.mark.long

BEGIN = datetime(2026, 3, 2)
ROWS = 90
OWNER = """
create role control nologin;
grant daq_reader, daq_writer to control;
create role developer login password 'develop-1' in role control;
grant developer to ringlog_gateway with inherit false, set true;
alter role developer set role = control;
"""
SCHEMAS = """
create schema {0} authorization control;
grant usage on schema {0} to public;
"""
# the same names in both databases, and each names the other
SITE = Path(__file__).with_name("databases.sql").read_text()


def batches(client: pymssql.Connection, text: str) -> None:
    with client.cursor() as cursor:
        for batch in text.split("\ngo\n"):
            if batch.strip():
                cursor.execute(batch)


def session(server: RunningServer, database: str) -> pymssql.Connection:
    return server.connect("developer", "develop-1", database=database, timeout=60)


@pytest.fixture(scope="module")
def old(temporary_directory: Path) -> Iterator[RunningServer]:
    """A server with two databases of a site."""
    with serving(temporary_directory / "of_several") as running:
        with psycopg.connect(running.dsn, autocommit=True) as administrator:
            administrator.execute(OWNER)
            for name in ("control", "history"):
                administrator.execute(SCHEMAS.format(name).encode())
        with session(running, "control") as client:
            batches(client, SITE)
            with client.cursor() as cursor:
                for number in range(ROWS):
                    time, of_ring = BEGIN + timedelta(hours=2 * number), number % 30 + 1
                    cursor.execute(
                        f"if not exists (select * from control..beam_loss where seq_no = {of_ring})"
                        f" insert control..beam_loss values ({of_ring}, null, null)"
                        f" exec control..put_beam_loss {of_ring}, '{time}', {number / 4}"
                    )
        yield running


@pytest.mark.parametrize("version", ["7.4", "5.0"])
def test_two_databases_are_migrated(
    old: RunningServer, temporary_directory: Path, tmp_path: Path, version: str
) -> None:
    output = tmp_path / "adopted"
    url = f"tds://developer:develop-1@{old.host}:{old.port}/control"
    words = ("adopt", url, "--database", "history", "--output", output, "--tds-version", version)
    done = ringlog(*words)
    assert done.returncode == 0, done.stderr
    control, history = json.loads((output / "assessment.json").read_text())["databases"]
    assert [(ring["name"], ring["log"], ring["log_rows"]) for ring in control["rings"]] == [
        ("beam_loss", "history..beam_loss", ROWS)
    ]
    assert {each["name"] for each in control["modules"]} == {"v", "both_titles", "elsewhere"}
    assert [table["name"] for table in history["site_tables"]] == ["title"]
    assert "table beam_loss is the log of the ring control..beam_loss" in history["decisions"]
    assert "history..gone is not migrated, but used by procedure elsewhere (line 4)" in control["decisions"]
    missing = "the database nowhere is not migrated, but used by procedure elsewhere (line 3)"
    assert missing in control["decisions"]
    page = (output / "assessment.html").read_text()
    assert page.count("<h2>Objects</h2>") == 2

    data = temporary_directory / f"several_{version}"
    with serving(data, facility=output / "facility.toml") as here:
        with psycopg.connect(here.dsn, autocommit=True) as administrator:
            administrator.execute((output / "0_roles.psql").read_text().encode())
            administrator.execute(OWNER.partition("daq_writer to control;")[2].encode())
        with session(here, "control") as client:
            for file in sorted(output.glob("[1-5]_*.sql")):
                batches(client, file.read_text())
        copied = ringlog(*words, "--copy", "--data", data, timeout=300)
        assert copied.returncode == 0, copied.stdout + copied.stderr
        assert f"copied {ROWS + 30 + 2} rows, {ROWS + 30 + 2} of them new; 0 parts differ" in copied.stdout
        for question in (
            "select * from control..v",
            "select * from history..v",
            "exec both_titles",
            "exec control..both_titles",
            "select seq_no, time, loss from history..beam_loss order by time",
            "select seq_no, time, loss from control.dbo.beam_loss order by seq_no",
        ):
            assert answer(here, question) == answer(old, question) != [], question
        assert len(answer(here, "select * from history..beam_loss")) == ROWS
        next_title = "insert history..title (name) values ('next') select id, name from history..title"
        assert answer(here, next_title) == [(1, "of history"), (2, "next")]
        # a procedure of one database that writes a ring of the other
        assert answer(
            here,
            "declare @s int exec @s = history..again '2026-05-01'"
            " select @s, loss, (select count(*) from history..beam_loss) from beam_loss where seq_no = 7",
        ) == [(3, 0.5, ROWS + 1)]


def answer(server: RunningServer, question: str) -> list[tuple[object, ...]]:
    with session(server, "control") as client, client.cursor() as cursor:
        cursor.execute(question)
        rows: list[tuple[object, ...]] = cursor.fetchall()
    return rows


def test_all_databases_of_the_site_are_migrated(old: RunningServer, tmp_path: Path) -> None:
    url = f"tds://developer:develop-1@{old.host}:{old.port}"
    done = ringlog("adopt", url, "--all-databases", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    judged = json.loads((tmp_path / "assessment.json").read_text())["databases"]
    assert [each["database"] for each in judged] == ["control", "history"]
    assert ringlog("adopt", f"{url}/control", "--database", "log", "--output", tmp_path).returncode == 2


def test_databases_of_the_server_itself_are_not_migrated() -> None:
    there = ["master", "Plant", "tempdb", "msdb", "sybsystemprocs", "log", "lab"]
    # `log` is a site's own unless the old server is a ringlog server
    assert site_databases(there) == ["Plant", "log", "lab"]
    assert site_databases([*there, "ringlog"]) == ["Plant", "lab"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("log",), "'log' cannot be migrated under its name: the schema log is"),
        (("plant", "Plant"), "'plant' and 'Plant' differ by their case only"),
    ],
)
def test_names_that_databases_cannot_have(names: tuple[str, ...], words: str) -> None:
    with pytest.raises(AdoptionError, match=words):
        demand_names(names)


def old_of(database: str, *modules: Module, **more: object) -> Old:
    made = Old("ASE", True, (), modules, (), (), database=database)
    return replace(made, **more)  # type: ignore[arg-type]


def module(database: str, name: str, text: str, kind: str = "view") -> Module:
    return Module(kind, name, text, database=database)


@pytest.mark.parametrize(
    ("text", "here"),
    [
        # a name that means the same here
        ("select * from archive..t", "select * from archive..t"),
        ("select * from [Archive] . dbo . t x", "select * from [Archive] . dbo . t x"),
        # an owner is not part of a name here
        ("select * from archive.ops.t", "select * from archive..ops_t"),
        ("select * from archive..only", "select * from archive..[ops only]"),
        # a table with a column, a text and a comment are not names
        ("select archive.ops.t from archive", "select archive.ops.t from archive"),
        ("select 'archive.ops.t' -- archive.ops.t", "select 'archive.ops.t' -- archive.ops.t"),
        # ringlog's own procedure belongs to no database
        ("exec archive..put_bl 1", "exec put_bl 1"),
    ],
)
def test_names_of_other_databases(text: str, here: str) -> None:
    names = {"dbo": {"t": "t"}, "ops": {"t": "ops_t", "only": "ops only"}}
    archive = old_of("archive", names=names)
    # a schema with the name of a database: an ambiguous name is not changed
    own = {"archive": {"ops": "ops"}} if text.startswith("select archive.") else {}
    control = old_of("control", module("control", "p", text), names=own)
    found, _ = across([control, archive], {"control", "archive"}, {"archive": ["PUT_BL"]})
    assert (found.modules[0].text, found.left) == (here, ())


def test_objects_missing_in_other_databases_are_reported() -> None:
    text = (
        "create procedure p as\nselect * from lab.dbo.t\nselect * from archive.ops.t, tempdb..t\nexec lab..p"
    )
    control = old_of("control", module("control", "p", text, "procedure"))
    found, _ = across([control, old_of("archive")], {"control", "archive", "lab"}, {})
    assert found.modules == control.modules
    assert found.left == (
        "the database lab is not migrated, but used by procedure p (lines 2, 4)",
        "archive.ops.t is not migrated, but used by procedure p (line 3)",
    )


def test_views_are_made_after_those_of_the_same_name_elsewhere() -> None:
    control = module("control", "v", "create view v as select * from archive..v")
    archive = module("archive", "v", "create view v as select * from t")
    last = module("archive", "w", "create view w as select * from control.dbo.v -- x")
    assert ordered([last, control, archive]) == [archive, control, last]


def test_of_two_rings_of_one_name_the_first_is_the_ring() -> None:
    columns = tuple(
        OldColumn(name, kind, 8, 0, 0, True)
        for name, kind in (("nr", "int"), ("time", "datetime"), ("p", "float"))
    )
    ring = OldTable("vac", columns, (("nr",),), 100, database="control")
    other = replace(ring, database="lab")
    log = OldTable("vac", columns, (), 500, database="archive")

    def bounds(table: OldTable, name: str) -> tuple[object, object]:
        return (1, 100) if name == "nr" else (BEGIN, BEGIN + timedelta(seconds=table.rows - 1))

    olds = [old_of(each.database, tables=(each,)) for each in (ring, other, log)]
    control, lab, archive = sort(olds, Rules(), bounds)
    assert [(each.table, each.log) for each in control.rings] == [(ring, log)]
    assert "ring vac: its log is taken to be archive..vac" in control.decisions
    assert (lab.rings, lab.site) == ((), (other,))
    assert lab.decisions == (
        "table vac could be a ring, but control has one of this name, and a facility has one: "
        "it stays a site table",
    )
    assert (archive.rings, archive.site, archive.away) == ((), (), control.rings)
    # the rules say which table of that name
    control, lab, _ = sort(olds, Rules(site=frozenset({"control.vac"})), bounds)
    assert (control.rings, [each.table for each in lab.rings]) == ((), [other])
    with pytest.raises(AdoptionError, match="which control and lab and archive have: write"):
        sort(olds, Rules(site=frozenset({"vac"})), bounds)


def test_roles_of_one_name_and_other_members_are_two() -> None:
    users = (("ann", "ann"), ("bob", "robert"))
    control = old_of(
        "control",
        users=users,
        members=(Member("operators", "ann"), Member("readers", "bob"), Member("db_owner", "ann")),
        grants=(Grant("operators", "SELECT", "t"),),
    )
    archive = old_of(
        "archive",
        module("archive", "p", "create procedure p as select 1", "procedure"),
        users=users,
        members=(Member("operators", "bob"), Member("readers", "bob"), Member("readers", "operators")),
        grants=(Grant("operators", "SELECT", "t"), Grant("bob", "SELECT", "t")),
    )
    first, second = with_distinct_roles([control, archive])
    assert (first.members, first.grants[0].who) == (control.members[:2], "operators")
    assert second.members == (
        Member("archive_operators", "bob"),
        Member("archive_readers", "bob"),
        Member("archive_readers", "archive_operators"),
    )
    assert [each.who for each in second.grants] == ["archive_operators", "bob"]
    assert second.left[0] == (
        "role operators is archive_operators here: control has one of this name with other members, and "
        "roles are those of the server"
    )
    # ann owns one of the databases: a member of the owner would have both
    assert first.left == (
        "ann owns control (db_owner) and not all the databases: here ann has all rights on its tables, views "
        "and procedures, and cannot make or alter any",
    )
    assert with_distinct_roles([control]) == [control]
