"""The running servers of a database: each keeps a session with its name, which `ringlog status` lists.

The list is pg_stat_activity, from which PostgreSQL removes a process however it ends.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import psycopg
from psycopg.conninfo import make_conninfo

from ringlog.schema import session
from ringlog.schema.layout import OWNER
from ringlog.server.processes.background import in_background

_NAME, _TIME = "ringlog serve", "%Y%m%dT%H%M%SZ"
_PAUSE = 1.0  # seconds between two checks
_LONGEST = 63  # bytes of an application_name


@dataclass(frozen=True)
class Server:
    """A `ringlog serve` that runs."""

    host: str | None
    """None: it is on PostgreSQL's machine"""
    since: datetime
    note: str
    """trouble of its parts; empty: none"""

    def __str__(self) -> str:
        host = "" if self.host is None else f" on {self.host}"
        note = f"; {self.note}" if self.note else ""
        return f"ringlog serve runs{host} since {self.since.astimezone():%Y-%m-%d %H:%M:%S}{note}"


@contextmanager
def present(conninfo: str, note: Callable[[], str]) -> Iterator[None]:
    """Keeps a connection whose application_name shows this server and `note()`, until the context is left."""
    end = threading.Event()
    began = f"{_NAME} {datetime.now(UTC):{_TIME}}"

    def name() -> str:
        return f"{began} {note()}".strip()[:_LONGEST]

    def keep() -> None:
        while not end.is_set():
            try:
                known = name()
                with session.connect(
                    make_conninfo(conninfo, application_name=known, connect_timeout=5), autocommit=True
                ) as connection:
                    while not end.wait(_PAUSE):
                        now = name()
                        # the statement also checks the connection
                        connection.execute("select set_config('application_name', %s, false)", [now])
            except psycopg.Error:
                # PostgreSQL has stopped or moved; the parts that need it report that
                end.wait(_PAUSE)

    with in_background("presence", keep, end):
        yield


def servers(connection: psycopg.Connection) -> list[Server]:
    """The running servers of this connection's database."""
    query = """
        select host(client_addr), application_name from pg_stat_activity
        where datname = current_database() and starts_with(application_name, %s)
          -- any login can choose such a name
          and pg_has_role(usesysid, to_regrole(%s), 'member')
        order by client_addr, backend_start
    """
    found = []
    for host, name in connection.execute(query, [f"{_NAME} ", OWNER]):
        began, _, note = str(name).removeprefix(f"{_NAME} ").partition(" ")
        with suppress(ValueError):  # somebody else's session of such a name
            found.append(Server(host, datetime.strptime(began, _TIME).replace(tzinfo=UTC), note))
    return found


def as_json(running: list[Server]) -> list[dict[str, str | None]]:
    return [asdict(one) | {"since": one.since.isoformat()} for one in running]
