"""Moves of tables between servers that are broken off."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg

from servers import RINGLOG
from sites import Site
from waiting import one_sleeps, wait_until


@dataclass(frozen=True)
class Stop:
    """The point where a move is interrupted: a trigger of this server, in which the command's session
    sleeps."""

    server: str | None
    relation: str
    when: str
    condition: str = "true"
    at_commit: bool = True

    @contextmanager
    def set_up(self, site: Site) -> Iterator[psycopg.Connection]:
        with site.admin(self.server) as connection:
            connection.execute(
                f"""
                create function public.sleep() returns trigger language plpgsql as $$
                begin
                  if session_user = 'keeper' and ({self.condition}) then
                    perform pg_sleep(600);
                  end if;
                  return null;
                end $$;
                create constraint trigger stop after {self.when} on {self.relation}
                  {"deferrable initially deferred" if self.at_commit else ""}
                  for each row execute function public.sleep()
                """.encode()
            )
            try:
                yield connection
            finally:
                with suppress(psycopg.OperationalError):  # the server has died
                    connection.execute(
                        "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'"
                    )
                    connection.execute(f"drop trigger stop on {self.relation}; drop function sleep".encode())


@contextmanager
def broken_off(site: Site, stop: Stop) -> Iterator[None]:
    """The moving command has reached this point, and is killed at the end."""
    with stop.set_up(site) as connection:
        command = [RINGLOG, "node", "move", "--facility", site.facility]
        with subprocess.Popen(
            command,
            env=os.environ | {"RINGLOG_DSN": site.dsn},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                wait_until(lambda: one_sleeps(connection) or process.poll() is not None)
                assert process.poll() is None, process.stdout and process.stdout.read().decode()
                yield
            finally:
                process.kill()
