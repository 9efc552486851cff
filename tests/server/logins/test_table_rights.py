"""Rights by table: a login with some tables has its rights there and nowhere else, in every way of access."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx
import psycopg
import pymssql
import pytest
from psycopg import errors

from raw_client import RawClient
from servers import Login, RunningServer, free_port, ringlog, serving

TABLE = """
[[table]]
name = "{name}"
rows = 5
cycle = 1.0
summaries = ["1 min"]
{more}

[[table.column]]
name = "value"
type = "int"
"""
WRITER, READER = Login("some_writer", "write-some-1"), Login("some_reader", "read-some-1")
AT = datetime(2026, 3, 2, 12)


def facility(*groups: str, tables: str = "") -> str:
    named = "".join(f"[groups]\nvacuum = [{', '.join(groups)}]\n" if groups else "")
    return named + (
        tables or "".join(TABLE.format(name=name, more="") for name in ("sr_vac", "bo_vac", "beam"))
    )


FIRST = facility('"sr_vac"', '"bo_vac"')


@dataclass(frozen=True)
class Own:
    """A server of three tables: the logins have the group vacuum, of sr_vac and bo_vac, and not beam."""

    server: RunningServer
    facility: Path
    http: str

    def user(self, *words: str, stdin: str = "", code: int = 0) -> str:
        done = ringlog("user", *words, "--data", self.server.data, stdin=stdin)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def install(self, text: str) -> None:
        self.facility.write_text(text)
        done = ringlog("init", "--data", self.server.data, "--facility", self.facility)
        assert done.returncode == 0, done.stderr

    def get(self, path: str, **values: str) -> httpx.Response:
        shown = base64.b64encode(f"{READER.user}:{READER.password}".encode()).decode()
        return httpx.get(
            self.http + path,
            params=values,
            headers={"Authorization": f"Basic {shown}"},
            trust_env=False,
            timeout=60,
        )

    def postgres(self, login: Login) -> psycopg.Connection:
        return psycopg.connect(
            self.server.dsn_of(login), autocommit=True, options="-c search_path=online,log,ringlog"
        )


@pytest.fixture(scope="module")
def own(temporary_directory: Path) -> Iterator[Own]:
    file = temporary_directory / "table_rights.toml"
    file.write_text(FIRST)
    port = free_port()
    options = ("--http", f"127.0.0.1:{port}")
    with serving(temporary_directory / "table_rights", *options, facility=file) as server:
        made = Own(server, file, f"http://127.0.0.1:{port}")
        stdin = "--password-stdin"
        output = made.user("add", WRITER.user, "--writer", "--tables", "vacuum", stdin, stdin=WRITER.password)
        assert output.startswith("login some_writer added as a writer of group vacuum\n")
        made.user("add", READER.user, "--reader", "--tables", "sr_vac,bo_vac", stdin, stdin=READER.password)
        yield made


@pytest.fixture(autouse=True)
def no_rows(own: Own) -> None:
    """No test finds the rows of another one."""
    with psycopg.connect(own.server.dsn) as admin:
        for table in ("sr_vac", "bo_vac", "beam"):
            admin.execute(f"truncate weeks.{table}; update online.{table} set time = null, value = null")
        admin.execute("truncate ringlog.writer, ringlog.event, ringlog.ledger, ringlog.imported_file")


@pytest.fixture
def other_rights(own: Own) -> Iterator[None]:
    """For a test that changes the rights of the writer, or the facility."""
    yield
    if own.facility.read_text() != FIRST:
        own.install(FIRST)
    own.user("change", WRITER.user, "--writes", "vacuum", "--reads", "none")


def stored(own: Own, table: str) -> list[object]:
    """Every kind of row that a writer could have stored; the server itself notes refused calls of a put."""
    return own.server.sql(
        f"select 'ring', value::text from online.{table} where time is not null"
        f" union all select 'log', value::text from log.{table}"
        " union all select 'claim', spool from ringlog.writer where table_name = %(table)s"
        " union all select 'event', message from ringlog.event"
        " where table_name = %(table)s and spool <> %(put)s"
        " union all select 'ledger', produced::text from ringlog.ledger where table_name = %(table)s"
        " union all select 'import', file from ringlog.imported_file where table_name = %(table)s",
        {"table": table, "put": f"put_{table}"},
    )


# each with the procedure and its arguments, for a table
CALLS: dict[str, tuple[str, Callable[[str], tuple[object, ...]]]] = {
    "put": ("put_{}", lambda _: (1, AT, 7)),
    "put_claimed": ("put_{}_claimed", lambda _: (1, AT, 7, 1)),
    "put_batch": (
        "put_{}_batch",
        lambda _: (json.dumps([{"seq_no": 1, "time": AT.isoformat(), "value": 7}]), 1),
    ),
    "claim": ("claim_writer", lambda table: (table, "a spool", "a writer")),
    "release": ("release_claim", lambda table: (table, "a spool", 1)),
    "report": ("report_writer", lambda table: (table, "a spool", "writing")),
    "ledger": ("report_ledger", lambda table: (table, "a spool", AT, 1, 1, 0, 0, 0, 0)),
    "events": (
        "report_events",
        lambda table: (
            table,
            "a spool",
            json.dumps([{"number": 1, "time": AT.isoformat(), "kind": "gap", "message": "w"}]),
        ),
    ),
    "import": ("begin_import", lambda table: (table, "a file", "a digest")),
    "week": ("make_week", lambda table: (table, datetime(2020, 1, 6))),
}


def call(kind: str, table: str) -> str:
    name, arguments = CALLS[kind]
    values = (str(value) if isinstance(value, int) else f"'{value}'" for value in arguments(table))
    return f"exec {name.format(table)} {', '.join(values)}"


Run = Callable[[str], list[tuple[int, str]]]
"""Runs a text, and returns the numbers and texts of its errors."""


@contextmanager
def session_of(own: Own, login: Login, version: str) -> Iterator[Run]:
    if version == "5.0":
        with RawClient(own.server.host, own.server.port) as client:
            assert client.log_in5(login).login == 5
            yield lambda text: [(error.number, error.text) for error in client.language(text).errors]
        return
    with closing(own.server.connect(login.user, login.password)) as session:

        def run(text: str) -> list[tuple[int, str]]:
            try:
                with session.cursor() as cursor:
                    cursor.execute(text)
            except pymssql.Error as error:
                return [(error.args[0], str(error))]
            return []

        yield run


VERSIONS = pytest.mark.parametrize("version", ["7.4", "5.0"])


@VERSIONS
def test_a_writer_of_some_tables_over_tds(own: Own, version: str) -> None:
    with session_of(own, WRITER, version) as run:
        texts = [call(kind, "beam") for kind in CALLS]
        for text in [*texts, "insert log..beam values (1, getdate(), 7)", "select * from log..sr_vac"]:
            ((number, output),) = run(text)
            assert number == 229, (text, output)
            assert WRITER.user in output, (text, output)
            assert "beam" in output or "sr_vac" in output, (text, output)
        assert stored(own, "beam") == []
        for kind in ("claim", "put", "put_claimed", "put_batch", "report", "ledger", "events", "release"):
            assert run(call(kind, "sr_vac")) == []
        assert run("exec last_sr_vac") == []
    assert {kind for kind, _ in stored(own, "sr_vac")} == {"ring", "log", "claim", "event", "ledger"}


def test_a_call_by_rpc_is_refused_too(own: Own) -> None:
    with closing(own.server.connect(WRITER.user, WRITER.password)) as session:
        for name, arguments in CALLS.values():
            # the second call has a known shape
            for _ in range(2):
                with pytest.raises(pymssql.Error, match=f"permission denied.*{WRITER.user}") as refused:
                    session.cursor().callproc(name.format("beam"), arguments("beam"))
                assert refused.value.args[0] == 229
    assert stored(own, "beam") == []


def test_a_writer_of_some_tables_over_postgresql(own: Own) -> None:
    with own.postgres(WRITER) as connection:
        for name, arguments in CALLS.values():
            called = arguments("beam")
            if name.startswith("put_{}") and not name.endswith("batch"):
                row, *epoch = [f"row (1, '{AT}', 7)::online.beam", *map(str, called[3:])]
                statement, values = f"select {name.format('beam')}({', '.join([row, *epoch])})", ()
            else:
                statement = f"select {name.format('beam')}({', '.join(['%s'] * len(called))})"
                values = called
            with pytest.raises(errors.InsufficientPrivilege, match="beam"):
                connection.execute(statement.encode(), values)
        for statement in ("table online.beam", "table log.sr_vac", "select * from get_sr_vac()"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement.encode())
        ((path,),) = own.server.sql("select pg_relation_filepath('online.beam')")
        message = f"invalid page in block 0 of relation {path}"
        with pytest.raises(errors.InsufficientPrivilege, match="beam"):
            connection.execute("select ringlog.mend_ring(%s)", [message])
        assert stored(own, "beam") == []
        connection.execute("select put_bo_vac(row (1, now(), 7)::online.bo_vac)")
    assert [kind for kind, _ in stored(own, "bo_vac")] == ["ring", "log"]


def test_events_of_another_table_are_not_treated_as_known(own: Own) -> None:
    """Spool and number identify an event of its table only."""
    name, arguments = CALLS["events"]
    with closing(own.server.connect(WRITER.user, WRITER.password)) as session:
        for table in ("sr_vac", "bo_vac"):
            session.cursor().callproc(name, arguments(table))
    assert (stored(own, "sr_vac"), stored(own, "bo_vac")) == ([("event", "w")], [("event", "w")])


READS = (
    "select count(*) from online..{}",
    "select count(*) from log..{}",
    "select count(*) from recent..{}",
    "select count(*) from minute..{}",
    "exec get_{} 1",
    "exec get_{}_range",
    "exec last_{}",
    "exec get_signal '{}/value'",
    "exec get_latest '{}/value'",
    "exec get_trend '{}/value'",
)


@VERSIONS
def test_a_reader_of_some_tables_over_tds(own: Own, version: str) -> None:
    with session_of(own, READER, version) as run:
        for read in READS:
            ((number, output),) = run(read.format("beam"))
            assert (number, READER.user in output, "beam" in output) == (229, True, True), (read, output)
            assert run(read.format("sr_vac")) == [], read
        for kind in CALLS:
            ((number, _),) = run(call(kind, "sr_vac"))
            assert number == 229, kind
    with closing(own.server.connect(READER.user, READER.password)) as session, session.cursor() as cursor:
        cursor.callproc("find_signals", ("%",))
        assert [row[0] for row in cursor.fetchall()] == ["bo_vac/value", "sr_vac/value"]
        cursor.execute("exec sp_tables")
        assert not [row[2] for row in cursor.fetchall() if row[2].startswith("beam")]


def test_events_are_shown_to_readers_of_their_tables(own: Own) -> None:
    with psycopg.connect(own.server.dsn, autocommit=True) as admin:
        for number, table in enumerate(("sr_vac", "beam")):
            admin.execute(
                'insert into ringlog.event (spool, number, table_name, "time", kind, rows, message)'
                " values ('shown', %s, %s, %s, 'refused', 1, 'a whole row')",
                (number, table, AT),
            )
        query = "select table_name from ringlog.event where spool = 'shown' order by table_name"
        assert admin.execute(query).fetchall() == [("beam",), ("sr_vac",)]
        with own.postgres(READER) as connection:
            assert connection.execute(query).fetchall() == [("sr_vac",)]
        with closing(own.server.connect(READER.user, READER.password)) as tds, tds.cursor() as cursor:
            cursor.execute(query)
            assert cursor.fetchall() == [("sr_vac",)]
        span = {"from": "2026-03-02T00:00:00Z", "to": "2026-03-03T00:00:00Z"}
        found = own.get("/api/v1/events", **span).json()
        assert [event["table_name"] for event in found if event["kind"] == "refused"] == ["sr_vac"]
        admin.execute("delete from ringlog.event where spool = 'shown'")


def test_a_reader_of_some_tables_over_http(own: Own) -> None:
    assert own.get("/api/v1/data", signal="sr_vac/value").status_code == 200
    refused = own.get("/api/v1/data", signal="beam/value")
    assert refused.status_code == 403
    assert {"beam", READER.user} <= {*re.findall(r"\w+", refused.text)}, refused.text
    assert own.get("/api/v1/trend", signal="sr_vac/value").status_code == 200
    assert own.get("/api/v1/trend", signal="beam/value").status_code == 403
    found = own.get("/api/v1/signals")
    assert found.status_code == 200
    assert {signal["signal"] for signal in found.json()} == {"sr_vac/value", "bo_vac/value"}
    found = own.get("/retrieval/bpl/getMatchingPVs", regex=".*")
    assert found.json() == ["bo_vac/value", "sr_vac/value"]
    tables = own.get("/api/v1/tables").json()["tables"]
    assert [table["table_name"] for table in tables] == ["bo_vac", "sr_vac"]


def test_the_rights_of_a_login_are_narrowed_and_widened(own: Own, other_rights: None) -> None:
    """During an open session, and for all ways of access."""
    with closing(own.server.connect(WRITER.user, WRITER.password)) as session:
        cursor = session.cursor()
        cursor.callproc("put_sr_vac", (1, AT, 1))
        output = own.user("change", WRITER.user, "--writes", "bo_vac, beam")
        assert output == "login some_writer is a writer of beam, bo_vac\n"
        with pytest.raises(pymssql.Error, match="permission denied"):
            cursor.callproc("put_sr_vac", (1, AT, 2))
        cursor.callproc("put_beam", (1, AT, 3))
        assert own.user("change", WRITER.user, "--writes", "all") == "login some_writer is a writer\n"
        cursor.callproc("put_sr_vac", (2, AT, 4))
        cursor.callproc("claim_writer", ("beam", "a spool", "a writer"))
        own.user("change", WRITER.user, "--writes", "vacuum", "--reads", "beam")
        assert "some_writer: reader of beam and writer of group vacuum, open" in own.user("list")
        cursor.execute("select count(*) from log..beam")
        assert cursor.fetchone() == (1,)
        with pytest.raises(pymssql.Error, match="permission denied"):
            cursor.callproc("claim_writer", ("beam", "a spool", "a writer"))
        cursor.callproc("last_sr_vac", ())
        own.user("change", WRITER.user, "--reads", "all")
        shown = "reader of all tables and writer of group vacuum"
        assert f"some_writer: {shown}, open" in own.user("list")
        (listed,) = (each for each in json.loads(own.user("list", "--json")) if each["name"] == WRITER.user)
        assert (listed["rights"], listed["locked"]) == (shown.split(" and "), False)


def test_further_rights_are_granted(own: Own, other_rights: None) -> None:
    """In addition to those that the login has."""
    own.user("grant", WRITER.user, "--writes", "beam", "--reads", "bo_vac")
    assert "some_writer: reader of bo_vac and writer of beam, group vacuum, open" in own.user("list")
    assert may_put(own, "beam", "sr_vac", "bo_vac") == ["beam", "sr_vac", "bo_vac"]
    own.user("grant", WRITER.user, "--writes", "all")
    assert "writer of all tables, open" in own.user("list")
    assert "choose what to grant" in own.user("grant", WRITER.user, code=2)
    assert "none takes rights away" in own.user("grant", WRITER.user, "--writes", "none", code=2)


def test_commands_refuse_wrong_requests(own: Own) -> None:
    output = own.user("change", WRITER.user, "--writes", "vacum", code=2)
    assert "there is no table and no group of tables 'vacum'" in output
    assert "would have no right at all" in own.user("change", WRITER.user, "--writes", "none", code=2)
    assert "a name is missing" in own.user("change", WRITER.user, "--writes", "beam,", code=2)
    assert "choose what to change" in own.user("change", WRITER.user, code=2)
    output = own.user("add", "another", "--parameter-writer", "--tables", "beam", code=2)
    assert "--tables names the tables of --writer and --reader" in output
    assert "some_writer: writer of group vacuum, open" in own.user("list")


def may_put(own: Own, *tables: str) -> list[str]:
    """The tables among these that the writer may put into."""
    with psycopg.connect(own.server.dsn) as admin:
        query = "select 1 from pg_proc where proname = %s and has_function_privilege(%s, oid, 'execute')"
        return [
            table
            for table in tables
            if admin.execute(query, [f"put_{table}_claimed", WRITER.user]).fetchone()
        ]


@pytest.mark.long
def test_rights_follow_the_facility_file(own: Own, other_rights: None) -> None:
    """A table that joins a group, leaves it, is renamed, retired and restored."""
    every = ("sr_vac", "bo_vac", "beam", "linac_vac", "ring_vac")
    linac = TABLE.format(name="linac_vac", more="")
    own.install(facility('"sr_vac"', '"linac_vac"') + linac)
    assert may_put(own, *every) == ["sr_vac", "linac_vac"]
    tables = "".join(TABLE.format(name=name, more="") for name in ("bo_vac", "beam", "linac_vac"))
    renamed = TABLE.format(name="ring_vac", more='renamed_from = "sr_vac"')
    own.install(facility('"ring_vac"', tables=tables + renamed))
    assert may_put(own, *every) == ["sr_vac", "ring_vac"]
    own.user("change", WRITER.user, "--writes", "sr_vac")
    assert "writer of ring_vac" in own.user("list")
    own.install(facility(tables=tables + renamed.replace("rows", "retired = true\nrows")))
    assert may_put(own, *every) == []
    own.install(facility(tables=tables + renamed))
    assert may_put(own, *every) == ["sr_vac", "ring_vac"]
    own.install(facility(tables=tables + TABLE.format(name="sr_vac", more='renamed_from = "ring_vac"')))
    with psycopg.connect(own.server.dsn) as admin:
        for function in (
            "put",
            "put_{}_claimed",
            "put_{}_batch",
            "import",
            "get",
            "get_{}_at",
            "get_{}_range",
            "last",
        ):
            name = (function if "{}" in function else function + "_{}").format("linac_vac")
            admin.execute(f"drop function ringlog.{name}")
        admin.execute("drop view recent.linac_vac; drop view minute.linac_vac")
        admin.execute(
            "drop table online.linac_vac; drop table weeks.linac_vac cascade; drop table summary.linac_vac"
        )
        admin.execute("drop sequence summary.linac_vac_until")
        for noted in ("signal", "logged_table", "summarised"):
            admin.execute(f"delete from ringlog.{noted} where table_name = 'linac_vac'")


def test_a_right_granted_by_hand_lasts_until_the_login_is_removed(own: Own, other_rights: None) -> None:
    """GRANT in SQL and T-SQL gives the same rights, since PostgreSQL decides."""
    own.user("add", "by_hand", "--writer", "--tables", "sr_vac", "--password-stdin", stdin="made by hand")
    login = Login("by_hand", "made by hand")
    with psycopg.connect(own.server.dsn, autocommit=True) as admin:
        admin.execute("create role steward login password 'steward' in role ringlog_owner")
        admin.execute("grant steward to ringlog_gateway with inherit false, set true")
        admin.execute("grant execute on function ringlog.put_beam to by_hand")
    with (
        closing(own.server.connect("steward", "steward")) as steward,
        closing(own.server.connect(login.user, login.password)) as session,
        steward.cursor() as granting,
        session.cursor() as cursor,
    ):
        granting.execute("grant execute on put_beam_claimed to by_hand grant select on log..beam to by_hand")
        own.install(facility('"sr_vac"') + "# another file\n")
        cursor.callproc("put_beam", (1, AT, 7))
        cursor.callproc("claim_writer", ("beam", "a spool", "a writer"))
        granting.execute("revoke execute on put_beam_claimed from by_hand")
        with pytest.raises(pymssql.Error, match="login by_hand may not write table beam"):
            cursor.callproc("claim_writer", ("beam", "a spool", "a writer"))
    own.user("remove", "by_hand")
    # a later one of this name has no rights
    with psycopg.connect(own.server.dsn, autocommit=True) as admin:
        admin.execute("create role by_hand")
        own.install(facility('"sr_vac"') + "# yet another file\n")
        assert not admin.execute(
            "select from pg_proc where has_function_privilege('by_hand', oid, 'execute')"
            " and proname ~ '^put_' and pronamespace = 'ringlog'::regnamespace"
        ).fetchall()
        admin.execute("drop role by_hand, steward")


def test_doctor_lists_writers_of_all_tables(own: Own) -> None:
    own.user("add", "of_all", "--writer", "--password-stdin", stdin="all")
    output = ringlog("doctor", "--data", own.server.data).stdout
    assert "of_all, writer may write every table" in output
    assert "ringlog user change NAME --writes TABLES" in output
    assert "some_writer" not in output
    own.user("remove", "of_all")
