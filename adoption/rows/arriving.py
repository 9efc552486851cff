"""Rows of a query at an old server, staged in a temporary table here, with the checksum of what arrived."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
from psycopg import sql
from psycopg.types.numeric import FloatLoader

from ringlog.adoption.rows.digest import Digest, single
from ringlog.adoption.rows.source import Source
from ringlog.adoption.server.texts import Unreadable
from ringlog.gateway import OldServer, OldServerError
from ringlog.history.sources import tds
from ringlog.schema import session

ARRIVED = sql.Identifier("arrived")

Row: TypeAlias = tuple[Any, ...]


class OldSession:
    """A session at the old server. An answer that was not read to its end closes it; the next query opens
    another."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._server: OldServer | None = None

    def rows(self, query: str) -> Iterator[Row]:
        """The rows of a query. Raises Unreadable for one that the server refuses or that cannot be decoded,
        OldServerError where no session can be opened."""
        source = self._source
        if self._server is None:
            self._server = tds.session(source.address, source.password, source.version)
        try:
            for batch in tds.rows(self._server, query):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
        except OldServerError as error:
            self.close()
            raise Unreadable(str(error)) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None


class _Singles(FloatLoader):
    """Floats of single precision as the old server's reader gives them: the nearest double."""

    def load(self, data: Any) -> float:
        return single(super().load(data))


@contextmanager
def sessions(source: Source, conninfo: str) -> Iterator[tuple[OldSession, psycopg.Connection]]:
    """A session at the old server and one here. Raises psycopg.Error."""
    old = OldSession(source)
    with session.connect(conninfo, autocommit=True) as new:
        new.execute("set session timezone to 'UTC'")
        new.adapters.register_loader("float4", _Singles)
        try:
            yield old, new
        finally:
            old.close()


def stage(
    new: psycopg.Connection[Any],
    table: sql.Identifier,
    columns: Sequence[str],
    rows: Iterable[Row],
    stored: Callable[[Row], Iterable[Any]] = lambda row: row,
) -> Digest:
    """Copies rows to the temporary table `arrived` with columns of `table`, until the transaction ends.
    `stored` gives a row as it is stored. Returns the rows' checksum."""
    names = names_of(columns)
    like = sql.SQL("create temporary table {} on commit drop as select {} from {} limit 0")
    new.execute(like.format(ARRIVED, names, table))
    digest = Digest()
    statement = sql.SQL("copy {} ({}) from stdin").format(ARRIVED, names)
    with new.cursor() as cursor, cursor.copy(statement) as into:
        for row in rows:
            into.write_row([*stored(row)])
            digest.add(row)
    return digest


def digest_of(
    new: psycopg.Connection[Any], query: sql.Composed, compared: Callable[[Row], Row] = lambda row: row
) -> Digest:
    """The checksum of a query's rows here. `compared` gives a row as the old server has it."""
    digest = Digest()
    with new.cursor(name="stored") as cursor:
        for row in cursor.execute(query):
            digest.add(compared(row))
    return digest


def names_of(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def why(error: psycopg.Error) -> str:
    """PostgreSQL's reason, in a line."""
    return str(error).strip().replace("\n", "; ")
