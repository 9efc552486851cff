"""Procedures, functions, triggers and views are compiled with the types of the columns that they name, and
compiled again when these change (SQL Server: "Recompile a stored procedure", error 2801; "ISNULL", "CASE",
"Precision, scale, and length")."""

from collections.abc import Iterator
from typing import Any

import pytest
from case_tables import cases
from talks import hold, talks

from authors import author_and_caller
from servers import Login, RunningServer
from tds_clients import Admin, Clients

AUTHOR = Login("bound_author", "author")
CALLER = Login("bound_caller", "caller")
LOGINS = {"author": AUTHOR, "caller": CALLER}


@pytest.fixture(scope="module")
def site(server: RunningServer) -> Iterator[Admin]:
    """A schema of a login that makes procedures, and a login that calls them."""
    with author_and_caller(server, AUTHOR, CALLER, "bound") as admin:
        yield admin


@talks(__file__, versions=("7.4",))
def test_talks(clients: Clients, site: Admin, version: str, talk: dict[str, Any]) -> None:
    site.execute("drop table if exists bound.t cascade")
    hold(talk, version, clients, site, LOGINS, "author", "bound", begin=cases(__file__, "begin"))
