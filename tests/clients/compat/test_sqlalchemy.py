"""SQLAlchemy.

Its dialect for SQL Server over pymssql, as reading programs use it.
"""

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
    missing: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    not_yet: dict[str, str] = field(default_factory=dict)
    version: Callable[[], str] = lambda: f"{version('SQLAlchemy')}, pymssql {version('pymssql')}"

    @property
    def id(self) -> str:
        return f"{self.name} {self.protocol}"


CLIENTS = [Dialect()]


@pytest.fixture
def engine(server: RunningServer) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(
        sqlalchemy.URL.create(
            "mssql+pymssql", server.reader.user, server.reader.password, server.host, server.port, "online"
        )
    )


def test_connect(client: Dialect, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection:
        assert connection.dialect.default_schema_name == "dbo"


def test_text(client: Dialect, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection:
        query = sqlalchemy.text("select seq_no from every_type where seq_no <= :most order by seq_no")
        assert connection.execute(query, {"most": 3}).scalars().all() == [1, 2, 3]
        with pytest.raises(sqlalchemy.exc.ProgrammingError):
            connection.execute(sqlalchemy.text("select * from nowhere"))


def test_reflection(client: Dialect, engine: sqlalchemy.Engine) -> None:
    table = sqlalchemy.Table("every_type", sqlalchemy.MetaData(), autoload_with=engine)
    found = {column.name: type(column.type).__name__ for column in table.columns}
    assert found == {
        "seq_no": "INTEGER",
        "time": "DATETIME2",
        "a_real": "REAL",
        "a_double": "FLOAT",
        "an_int": "INTEGER",
        "a_smallint": "SMALLINT",
        "a_bigint": "BIGINT",
        "a_bit": "BIT",
        "a_varchar": "NVARCHAR",
    }
    assert [column.name for column in table.primary_key] == ["seq_no"]
