"""SQLAlchemy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version

import pytest
import sqlalchemy

from servers import RunningServer


@dataclass(frozen=True)
class Dialect:
    name: str = "SQLAlchemy, mssql+pymssql"
    protocol: str = "7.4"
    lacks: dict[str, str] = field(default_factory=dict)
    not_yet: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.name} {self.protocol}"

    def version(self) -> str:
        return f"{version('SQLAlchemy')}, pymssql {version('pymssql')}"


CLIENTS = [Dialect()]


def test_connect(client: Dialect, server: RunningServer, not_served: Callable[[str, str], None]) -> None:
    url = sqlalchemy.URL.create(
        "mssql+pymssql", server.reader.user, server.reader.password, server.host, server.port, "online"
    )
    engine = sqlalchemy.create_engine(url)
    with pytest.raises(sqlalchemy.exc.ProgrammingError) as refused:
        engine.connect()
    number, text = refused.value.orig.args  # type: ignore[union-attr]
    assert number == 2812
    refusal = "function schema_name() does not exist"
    assert refusal in text.decode()
    not_served(
        "it first asks schema_name() and a version of four parts; reflection asks sys and INFORMATION_SCHEMA",
        refusal,
    )
