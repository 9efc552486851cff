"""The clock by which weeks leave the log: PostgreSQL's, unless it has jumped.

PostgreSQL's clock is the machine's, and may be wrong for one start. Each round of housekeeping notes it
(ringlog.housekeeping). A clock that is within a day of the last trusted round's is trusted. Any other has
jumped: the machine was off for long, or its clock is wrong. Until it is trusted, weeks are dropped and
archived as if a day had passed since the last trusted round, or as of that clock if it is behind. It is
trusted when rows that arrive have agreed with it for a day of rounds, or when the operator says so.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import psycopg
import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.access.roles import become_owner
from ringlog.schema.moments import in_utc
from ringlog.schema.relations.tiers import housekeeping
from ringlog.schema.trusted_clock import JUMP, Clock

_AGREES = timedelta(hours=1)
"""The greatest distance of the newest rows from a clock that they agree with."""


def sure(now: datetime) -> Clock:
    """A clock with a time that the caller trusts."""
    return Clock(now, now)


def read(connection: psycopg.Connection) -> Clock:
    """The clock now, by the latest round."""
    query = "select now(), coalesce((select trusted from ringlog.housekeeping), now())"
    ((now, trusted),) = connection.execute(query).fetchall()
    return Clock(in_utc(now), in_utc(trusted))


def judge(
    connection: sa.Connection, weeks: Iterable[datetime], tables: Iterable[str], now: datetime | None = None
) -> Clock:
    """Records the clock of a new round, and whether it is trusted.

    `weeks` are the ends of the coming weeks that earlier rounds have made: they date the last round of a
    database that has no note of it. `now` is PostgreSQL's clock when it is left out.
    """
    become_owner(connection)
    state = connection.execute(sa.select(housekeeping, sa.func.now().label("now"))).one()
    now = now or state.now.astimezone(UTC)
    trusted = (state.trusted or min(now, max(weeks, default=now))).astimezone(UTC)
    clock = Clock(now, trusted)
    since = None
    if clock.doubt is not None:
        followed = state.jumped is not None and abs(now - state.seen) <= JUMP
        since = state.jumped if followed and _rows_agree(connection, clock, tables) else now
        if now - since >= JUMP:
            clock, since = sure(now), None
    else:
        clock = sure(now)
    connection.execute(housekeeping.update().values(trusted=clock.round, seen=now, jumped=since))
    return clock


def trust(connection: sa.Connection) -> None:
    """Trusts PostgreSQL's clock, as requested by the operator."""
    become_owner(connection)
    now = sa.func.now()
    connection.execute(housekeeping.update().values(trusted=now, seen=now, jumped=None))


def _rows_agree(connection: sa.Connection, clock: Clock, tables: Iterable[str]) -> bool:
    """Whether rows have arrived since the trusted round, most of them with times near this clock's."""
    agree = differ = 0
    for table in tables:
        query = sql.SQL('select max(ring."time") from {} as ring').format(sql.Identifier("online", table))
        newest = connection.exec_driver_sql(query.as_string()).scalar()
        if newest is None:
            continue
        if abs(newest - clock.now) <= _AGREES:
            agree += 1
        elif newest > clock.round:  # others have had no row since
            differ += 1
    return agree > differ
