"""Code of a site runs on a connection logged in as its caller, wherever PostgreSQL executes it."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from case_tables import cases

from authors import create_login
from servers import Login
from tds_clients import Admin, Clients, Param

CALLER = Login("calls_a_site", "calls")
OWNER = "owns_a_site"

# `note` is called everywhere that PostgreSQL evaluates code in addition to a function's own body.
SITE = (
    Path(__file__)
    .with_name("sites_code.sql")
    .read_text()
    .replace("{definer}", "language plpgsql volatile security definer set search_path = pg_catalog, pg_temp")
    .replace("{name}", "put")
)

PLACES = {
    "check of a domain",
    "default of an argument",
    "check of a table",
    "generated column",
    "index",
    "operator class",
    "trigger",
    "deferred trigger",
    "rule",
    "policy",
    "body",
    "polymorphic",
    "variadic",
    "stranger",
}


@pytest.fixture(scope="module")
def site(admin: Admin) -> Iterator[None]:
    """A site's objects, whose owner cannot log in, and a login that calls them."""
    admin.execute(SITE.encode())
    create_login(admin, CALLER, "daq_writer", "daq_reader")
    yield
    admin.execute(
        "drop function ringlog.put_stranger, ringlog.put_with_type; drop schema recording cascade;"
        f" drop owned by {OWNER}, {CALLER.user}; drop role {OWNER}, {CALLER.user};"
        " notify ringlog_catalogue".encode()
    )


@pytest.fixture(autouse=True)
def nothing_seen(admin: Admin, site: None) -> None:
    admin.execute("truncate recording.seen, recording.stored")


def check(admin: Admin, places: set[str]) -> None:
    """All of these have run, each as the caller or inside a definer's body."""
    seen = admin.execute("select * from recording.seen").fetchall()
    assert {where for where, *_ in seen} >= places
    for where, session_user, current_user, role in seen:
        assert (session_user, role) == (CALLER.user, "none"), where
        assert current_user in (CALLER.user, OWNER), where


CALLS = cases(__file__, "calls")
GENERAL = {"put_any": "1", "put_variadic": "1"}
"""Functions whose arguments have no types of their own: PostgreSQL says which for each call."""


def test_calls_by_7_4(clients: Clients, admin: Admin) -> None:
    with clients.pymssql(CALLER, database="recording") as connection:
        # the second time as a call of known shape
        for _ in range(3):
            for name, values in CALLS.items():
                connection.cursor().callproc(name, tuple(map(int, values.split(", "))) if values else ())
    check(admin, PLACES - {"polymorphic", "variadic"})


@pytest.mark.parametrize("section", ["5.0", "7.4"])
def test_calls_by_ct_library(clients: Clients, admin: Admin, section: str) -> None:
    with clients.ct(CALLER, section) as client:
        assert client.language("use recording").errors == []
        for _ in range(3):
            for name, values in CALLS.items():
                params = [Param("int", value) for value in values.split(", ")] if values else []
                assert client.call(name, params).errors == []
    check(admin, PLACES - {"polymorphic", "variadic"})


@pytest.mark.parametrize("section", ["5.0", "7.4"])
def test_calls_of_functions_without_types(clients: Clients, admin: Admin, section: str) -> None:
    """Polymorphic and variadic functions are refused, or run as the caller."""
    with clients.ct(CALLER, section) as client:
        assert client.language("use recording").errors == []
        for _ in range(3):
            for name, value in GENERAL.items():
                answer = client.call(name, [Param("int", value)])
                assert answer.errors or answer.statuses == [0], name
    check(admin, set())


def texts() -> list[str]:
    """Every call as part of a text."""
    calls = [f"{name} {values}" for name, values in CALLS.items()]
    return [
        *(f"exec {call}" for call in calls),
        *(f"begin transaction exec {call} commit" for call in calls),
        *(f"exec sp_executesql N'exec {call}'" for call in calls),
        "insert into recording..stored (a) values (1)",
        "select a, c from recording..stored",
        "select recording.put_any(1)",
        "select recording.put_variadic(1)",
        "select recording.put_variadic(1, 2)",
        "select * from recording.put_rows(1)",
        "declare over_rows cursor for select a from recording..stored open over_rows fetch over_rows "
        "close over_rows deallocate over_rows",
    ]


@pytest.mark.parametrize("section", ["5.0", "7.4"])
def test_texts(clients: Clients, admin: Admin, section: str) -> None:
    with clients.ct(CALLER, section) as client:
        assert client.language("use recording").errors == []
        for text in texts():
            if section == "7.4" or not text.startswith("exec sp_executesql"):
                assert client.language(text).errors == [], text
    check(admin, PLACES)


def test_prepared(clients: Clients, admin: Admin) -> None:
    with clients.ct(CALLER) as client:
        assert client.language("use recording").errors == []
        for number, (name, values) in enumerate(CALLS.items()):
            marks = ", ".join("?" for _ in values.split(", ")) if values else ""
            assert client.prepare(f"d{number}", f"exec {name} {marks}").errors == []
            params = [Param("int", value) for value in values.split(", ")] if values else []
            for _ in range(2):
                assert client.execute(f"d{number}", params).errors == []
    check(admin, PLACES - {"polymorphic", "variadic"})


def test_bulk_copy(clients: Clients, admin: Admin) -> None:
    # PostgreSQL refuses COPY where a table has policies
    admin.execute("alter table recording.stored disable row level security")
    try:
        with clients.pymssql(CALLER, database="recording") as connection:
            connection.bulk_copy("stored", [(1, 1), (2, 2)], column_ids=[1, 3])
    finally:
        admin.execute("alter table recording.stored enable row level security")
    check(admin, {"check of a table", "generated column", "index", "trigger", "deferred trigger"})


@pytest.mark.parametrize("statement", cases(__file__, "a_site_attaches_nothing_to_ringlogs_objects"))
def test_a_site_attaches_nothing_to_ringlogs_objects(admin: Admin, site: None, statement: str) -> None:
    """So no code of a site runs inside ringlog's own procedures."""
    admin.execute(f"grant daq_writer, daq_reader, parameter_writer to {OWNER}; set role {OWNER}".encode())
    try:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            admin.execute(statement.encode())
    finally:
        admin.execute("reset role")
