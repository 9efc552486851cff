"""Rights: PostgreSQL decides, under the caller's own role."""

from collections.abc import Callable, Iterator
from itertools import product

import psycopg
import pytest
import sqlalchemy as sa
from case_tables import cases
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from ringlog.schema import layout, session
from ringlog.schema.facility import Facility
from ringlog.server.logins import Right, add_login

from .conftest import Magnets, magnets_facility

WRITER, READER, NOBODY = "rights_writer", "rights_reader", "rights_nobody"


@pytest.fixture(scope="module")
def logins(magnets_databases: Callable[[Facility], sa.URL]) -> Iterator[None]:
    """A writer, a reader and a login without rights."""
    url = magnets_databases(magnets_facility())
    conninfo = make_conninfo(user=url.username, dbname=url.database, **dict(url.query))
    with psycopg.connect(conninfo, autocommit=True) as administrator:
        administrator.execute(f"create role {NOBODY} login")
        add_login(conninfo, WRITER, [Right.WRITER], "secret")
        add_login(conninfo, READER, [Right.READER], "secret")
        yield
        for login in (WRITER, READER, NOBODY):
            administrator.execute(sql.SQL("drop role {}").format(sql.Identifier(login)))


@pytest.fixture
def written(magnets: Magnets, logins: None) -> Magnets:
    magnets.put(1, "2026-03-02 12:00:00")
    return magnets


def as_login(magnets: Magnets, login: str) -> psycopg.Connection:
    connection = magnets.connect()
    connection.execute(sql.SQL("set session authorization {}").format(sql.Identifier(login)))
    return connection


PUT = "select ringlog.put_magnets(row (2, now(), 1, true, '')::online.magnets)"
READS = cases(__file__, "reads")
LAST = "select * from ringlog.last_magnets()"
CHANGES = cases(__file__, "changes")


@pytest.mark.parametrize(
    ("login", "statement"), [(WRITER, PUT), (WRITER, LAST), (READER, LAST), *product([READER], READS)]
)
def test_permitted_operations(written: Magnets, login: str, statement: str) -> None:
    assert as_login(written, login).execute(sql.SQL(statement)).rowcount >= 1


@pytest.mark.parametrize(
    ("login", "statement"),
    [(READER, PUT), *product([WRITER], READS), *product([NOBODY], (PUT, LAST, *READS))],
)
def test_forbidden_operations(written: Magnets, login: str, statement: str) -> None:
    before = written.ring(), written.log()
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for"):
        as_login(written, login).execute(sql.SQL(statement))
    assert (written.ring(), written.log()) == before


@pytest.mark.parametrize("statement", CHANGES)
@pytest.mark.parametrize("login", [WRITER, READER, NOBODY])
def test_operations_forbidden_to_all(written: Magnets, login: str, statement: str) -> None:
    before = written.ring(), written.log()
    with pytest.raises(errors.InsufficientPrivilege, match=r"permission denied|must be owner"):
        as_login(written, login).execute(sql.SQL(statement))
    assert (written.ring(), written.log()) == before


def test_the_gateway_has_no_rights_of_its_own(written: Magnets) -> None:
    connection = as_login(written, layout.GATEWAY)
    for statement in (PUT, LAST, *READS, *CHANGES[:-1]):
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(sql.SQL(statement))


def test_the_gateway_may_act_for_a_login(written: Magnets) -> None:
    connection = as_login(written, layout.GATEWAY)
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(WRITER)))
    connection.execute(sql.SQL(PUT))
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(READER)))
    with pytest.raises(errors.InsufficientPrivilege):
        connection.execute(sql.SQL(PUT))


def test_public_may_execute_none_of_the_procedures(written: Magnets) -> None:
    # except those that the gateway calls before any login may select from a log: which weeks are archived
    assert written.rows(
        "select proname from pg_proc where pronamespace = 'ringlog'::regnamespace"
        " and (proacl is null or exists (select from aclexplode(proacl) where grantee = 0)) order by 1"
    ) == [("demand_log",), ("partial_logs",)]


def test_roles(written: Magnets) -> None:
    assert written.rows(
        "select rolname, rolcanlogin, rolinherit, rolsuper, rolcreaterole, rolbypassrls from pg_roles"
        " where rolname ~ '^(ringlog|daq)_' order by rolname"
    ) == [
        ("daq_reader", False, True, False, False, False),
        ("daq_table_reader", False, True, False, False, False),
        ("daq_table_writer", False, True, False, False, False),
        ("daq_writer", False, True, False, False, False),
        ("ringlog_gateway", True, False, False, False, False),
        ("ringlog_owner", False, True, False, False, False),
    ]


def test_functions_that_run_as_another_or_in_triggers_search_only_postgresqls_schemas(
    written: Magnets,
) -> None:
    """Names in their bodies are resolved when they run, along a path that the caller cannot choose."""
    assert (
        written.rows(
            "select oid::regprocedure::text from pg_proc"
            " where (prosecdef"
            " or prorettype = 'trigger'::regtype and proowner::regrole::text = 'ringlog_owner')"
            " and pronamespace::regnamespace::text not in ('pg_catalog', 'information_schema')"
            " and not 'search_path=pg_catalog, pg_temp' = any(coalesce(proconfig, '{}'))"
        )
        == []
    )


def test_a_writer_makes_no_weeks_of_a_far_future(written: Magnets) -> None:
    """They would be left by no retention."""
    with as_login(written, WRITER) as connection:
        for start, now in (("9000-01-06", "9000-01-01"), ("9000-01-06", "infinity")):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute("select ringlog.make_week('magnets', %s, %s)", [start, now])
        with pytest.raises(psycopg.errors.CheckViolation), connection.transaction():
            connection.execute("select ringlog.make_week('magnets', '9000-01-06')")


def test_a_healthy_ring_keeps_its_files(written: Magnets) -> None:
    file = "select pg_relation_filepath('online.magnets'), xmin::text from online.magnets where seq_no = 1"
    ((path, row),) = written.rows(file)
    with as_login(written, WRITER) as connection:
        message = f"invalid page in block 0 of relation {path}"
        assert connection.execute("select ringlog.mend_ring(%s)", [message]).fetchone() == (True,)
    assert written.rows(file) == [(path, row)]
    assert written.rows("select message from ringlog.damage") == []


# --- sessions of ringlog's own ---


def test_an_engine_continues_after_its_connections_were_ended(database_url: sa.URL) -> None:
    conninfo = make_conninfo(
        user=database_url.username, dbname=database_url.database, **dict(database_url.query)
    )
    engine = session.engine(conninfo)
    with engine.begin() as connection:
        process = connection.scalar(sa.text("select pg_backend_pid()"))
    with psycopg.connect(conninfo) as administrator:
        administrator.execute("select pg_terminate_backend(%s, 10000)", [process])
    with engine.begin() as connection:
        assert connection.scalar(sa.text("select pg_backend_pid()")) != process
    engine.dispose()
