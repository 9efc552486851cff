"""A server with a week of two tables in the archive, published as Iceberg tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from pyiceberg.catalog.rest import RestCatalog

from servers import READER, Login, RunningServer, free_port, ringlog, serving

ALL, ONE = READER, Login("one", "só-1:x")
"""ONE reads pumps only"""
FACILITY = """
timezone = "UTC"
[history]
online = "2 weeks"
archive = "{archive}"
[[table]]
name = "magnets"
rows = 10
cycle = 3600.0
[[table.column]]
name = "current"
type = "real"
[[table]]
name = "pumps"
rows = 10
cycle = 3600.0
[[table.column]]
name = "speed"
type = "double"
"""
ROWS = 7 * 24
FILL = """
insert into weeks.{} (seq_no, time, {})
select 1, date_trunc('week', now() at time zone 'UTC') at time zone 'UTC' - interval '5 weeks'
  + n * interval '1 hour', n
from generate_series(0, %s) as n
"""


@dataclass(frozen=True)
class Catalogue:
    server: RunningServer
    url: str

    def of(self, login: Login, **more: str) -> RestCatalog:
        return RestCatalog(
            "ringlog",
            uri=self.url,
            credential=f"{login.user}:{login.password}",
            **{"oauth2-server-uri": f"{self.url}/v1/oauth/tokens"},
            **more,
        )


@contextmanager
def published(folder: Path, archive: str) -> Iterator[Catalogue]:
    """No request is served without a login. `folder` is new."""
    folder.chmod(0o755)
    facility, port = folder / "f.toml", free_port()
    facility.write_text(FACILITY.format(archive=archive))
    with serving(folder / "data", "--http", f"127.0.0.1:{port}", facility=facility) as server:
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            for table, column in (("magnets", "current"), ("pumps", "speed")):
                admin.execute(FILL.format(table, column).encode(), [ROWS - 1])
            # of this name the catalogue has one too
            admin.execute("create table public.other (); create policy readers on public.other")
        words = ("user", "add", ONE.user, "--reader", "--tables", "pumps", "--password-stdin")
        added = ringlog(*words, "--data", server.data, stdin=ONE.password)
        assert added.returncode == 0, added.stderr
        for words in (("maintain",), ("archive", "now"), ("archive", "publish")):
            done = ringlog(*words, "--data", server.data)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
        yield Catalogue(server, f"http://127.0.0.1:{port}/iceberg")
