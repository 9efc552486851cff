"""Tables and queries of another PostgreSQL, TimescaleDB for one, by ADBC."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from zoneinfo import ZoneInfo

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog.history.archive.parquet.files import BATCH_BYTES
from ringlog.history.connection import Connection, ReadError, rows, run
from ringlog.history.incoming import Description, IncomingError, Source, fraction_of
from ringlog.schema import session

_HOUR = timedelta(hours=1)
_PATH = sql.SQL('set search_path to "$user", public')
"""the query is of the source's owner, and its server is not ringlog's"""


class PostgresRows(Source):
    """The result of a query, in one snapshot. Tables without a schema are those of the login and of public.
    The password is libpq's: in ~/.pgpass or PGPASSWORD."""

    def __init__(self, conninfo: str, query: str, described: Description) -> None:
        self._conninfo = conninfo
        self._query = query.strip().rstrip(";")
        self._described = described
        self._bounds: tuple[datetime, datetime] | None = None
        self._reached: datetime | None = None

    def __str__(self) -> str:
        shown = {
            name: value for name, value in conninfo_to_dict(self._conninfo).items() if name != "password"
        }
        digest = sha256(self._query.encode()).hexdigest()[:12]
        return f"postgresql: {make_conninfo('', **shown)} query {digest}"

    def fraction(self) -> float | None:
        return fraction_of(self._bounds, self._reached)

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See Source. Its server sorts the rows by time and seq_no, by an index if it has one."""
        of = sql.SQL("({}) as came").format(sql.SQL(self._query))
        try:
            connection = Connection(self._conninfo, lambda pid: None)
            run(connection, _PATH)
        except ReadError as error:
            raise IncomingError(f"{self}: {error}") from None
        try:
            with session.connect(self._conninfo) as small:
                small.execute(_PATH)
                names = [
                    column.name
                    for column in small.execute(sql.SQL("select * from {} limit 0").format(of)).description
                    or ()
                ]
                chosen = self._described.chosen(names, wanted.names)
                if "time" not in chosen:
                    raise IncomingError(
                        f"the query has no column {self._described.time!r}: it has {', '.join(names)}"
                    )
                time = sql.Identifier(chosen["time"])
                bounds = sql.SQL("select min({0}), max({0}) from {1}").format(time, of)
                first, last = small.execute(bounds).fetchone() or (None, None)
            if first is None or last is None:
                return
            self._bounds = self._there(first), min(self._there(last), end)
            is_zoned = first.tzinfo is not None
            within = sql.SQL("{} < {}").format(time, sql.Literal(self._bound(end, is_zoned, _HOUR)))
            if start is not None:
                begin = self._bound(start, is_zoned, -_HOUR)
                within += sql.SQL(" and {} >= {}").format(time, sql.Literal(begin))
            order = [sql.Identifier(chosen[name]) for name in ("time", "seq_no") if name in chosen]
            query = sql.SQL("select {} from {} where {} order by {}").format(
                sql.SQL(", ").join(map(sql.Identifier, chosen.values())),
                of,
                within,
                sql.SQL(", ").join(order),
            )
            for batch in rows(connection, query, BATCH_BYTES):
                if batch.num_rows:
                    self._reached = self._there(batch[chosen["time"]][-1].as_py())
                yield batch
        except (ReadError, psycopg.Error) as error:
            raise IncomingError(f"{self}: {' '.join(str(error).split())}") from None
        finally:
            connection.close()

    def _there(self, moment: datetime) -> datetime:
        """A time of the source, with a zone."""
        return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(self._described.timezone))

    def _bound(self, moment: datetime, is_zoned: bool, more: timedelta) -> datetime:
        """A bound as the source has its times; without a zone an hour wider, since an hour is repeated."""
        if is_zoned:
            return moment
        return moment.astimezone(ZoneInfo(self._described.timezone)).replace(tzinfo=None) + more
