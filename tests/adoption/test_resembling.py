"""Old servers that resemble SQL Server, with other error numbers for missing features (Babelfish:
33557097).
"""

from collections.abc import Iterator
from typing import Any, Self

import pymssql
import pytest

from ringlog.adoption.server.catalogue import read
from servers import RunningServer

LACKING = b'relation "sys.security_policies" does not exist'


class Resembling:
    """A session whose server refuses one view of the catalogue, with this number."""

    def __init__(self, session: pymssql.Connection, number: int) -> None:
        self.session, self.number = session, number

    def cursor(self) -> Self:
        self.there = self.session.cursor()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.there.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.there, name)

    def execute(self, text: str) -> None:
        if "sys.security_policies" in text:
            raise pymssql.OperationalError(self.number, LACKING)
        self.there.execute(text)


@pytest.fixture
def session(server: RunningServer) -> Iterator[pymssql.Connection]:
    with server.connect(server.reader.user, server.reader.password, database="log") as connection:
        yield connection


def read_with(session: pymssql.Connection, number: int) -> tuple[str, ...]:
    return read(Resembling(session, number), "log").unread  # type: ignore[arg-type]


def test_missing_views_are_reported_and_the_rest_is_read(session: pymssql.Connection) -> None:
    (line,) = set(read_with(session, 33557097)) - set(read_with(session, 208))
    assert line == f"left_policies: {LACKING.decode()}"


def test_a_session_that_ends_is_an_error(session: pymssql.Connection) -> None:
    # DB-Library's own: no answer in time
    with pytest.raises(pymssql.OperationalError):
        read_with(session, 20003)
