"""Restores the embedded PostgreSQL to a moment, from a copy and the archived log."""

import re
import shlex
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from psycopg import sql

from ringlog.copies.backup_set import demand_new
from ringlog.copies.base_copy import check, copies_in, moment_of
from ringlog.errors import ServerError, UsageError
from ringlog.schema import catalogue, session
from ringlog.server.embedded.cluster import ADMINISTRATOR
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.settings import GENERATED

_SETTINGS = "99-restore.conf"
# PostgreSQL's message for a log that ends before the requested moment
_NOT_REACHED = "recovery ended before configured recovery target was reached"


def restore_embedded(folder: Path, moment: datetime | None, postgres: Postgres) -> None:
    """Makes a new data directory with the database as of a moment; None: as of the end of the archived log.

    Raises UsageError for a moment that no copy of the folder reaches, or a copy of another major release, and
    ServerError when the log ends before it.
    """
    demand_new(postgres.data)
    copies = [copy for copy in copies_in(folder) if moment is None or moment_of(copy) <= moment]
    if not copies:
        first = copies_in(folder)
        since = f"its oldest copy is of {moment_of(first[0])}" if first else "it contains no copy"
        raise UsageError(f"{folder} has no backup of that time: {since}")
    check(copies[-1])
    version = (copies[-1] / "PG_VERSION").read_text().strip()
    if version != str(postgres.version):
        raise UsageError(
            f"{copies[-1]} is of PostgreSQL {version}: name its programs with --postgres DIR, as "
            f"/usr/lib/postgresql/{version}"
        )
    account = postgres.account
    postgres.prepare()
    with account.acting():
        try:
            shutil.copytree(copies[-1], postgres.cluster, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise ServerError(f"{copies[-1]} could not be copied: {error}") from None
        _let_recover(postgres.cluster, folder / "wal", moment)
    try:
        with postgres.running() as process:
            last = _recovered(postgres, process)
            has_archive = _disown_archive(postgres)
    except ServerError as error:
        if _NOT_REACHED not in str(error):
            raise
        until = _end_of_archive(postgres)
        shutil.rmtree(postgres.data)
        raise ServerError(
            f"the archived log in {folder} does not reach {moment}: {until}. A running server archives its "
            "log every minute: wait a minute and try again, or omit --to to restore to the end of the "
            "archived log"
        ) from None
    with account.acting():
        (postgres.cluster / "conf.d" / _SETTINGS).unlink()
    print(f"restored to {postgres.data} from {copies[-1].name}")
    if last is not None:
        print(f"the last transaction in it was committed at {last.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC")
    print("the restored server does not archive its log: run ringlog backup with a new folder")
    if has_archive:
        print("nor does it archive old weeks: run ringlog archive adopt if it takes the old server's place")


def _disown_archive(postgres: Postgres) -> bool:
    """Leaves the archive of old weeks to the original database. False: there is no archive."""
    with session.connect(postgres.conninfo(), autocommit=True) as connection:
        if not catalogue.exists(connection, "ringlog", "archive_owner"):
            return False
        owner = connection.execute("update ringlog.archive_owner set token = null, previous = null")
        return owner.rowcount > 0


def _recovered(postgres: Postgres, process: "subprocess.Popen[bytes]") -> datetime | None:
    """Waits until PostgreSQL has reached its recovery target. Returns the time of the last transaction."""
    while True:
        try:
            with session.connect(postgres.conninfo(ADMINISTRATOR), autocommit=True) as connection:
                query = "select pg_is_in_recovery(), pg_last_xact_replay_timestamp()"
                recovering, last = connection.execute(query).fetchall()[0]
        except psycopg.OperationalError:
            recovering, last = True, None
        if not recovering:
            return last if isinstance(last, datetime) else None
        if process.poll() is not None:
            raise ServerError(f"the restore did not reach the requested time: {postgres.complaint()}")
        time.sleep(0.2)


def _end_of_archive(postgres: Postgres) -> str:
    """The end of the log that a restore has read, as recorded by PostgreSQL."""
    log = postgres.cluster / (postgres.cluster / "current_logfiles").read_text().split()[1]
    found = re.findall(r"last completed transaction was at log time (.+)", log.read_text(errors="replace"))
    return (
        f"the last transaction in it is of {found[-1]}" if found else "it has no transaction after the copy"
    )


def _let_recover(cluster: Path, wal: Path, moment: datetime | None) -> None:
    """Prepares a copied cluster for its first start."""
    values = {"restore_command": f"cp {shlex.quote(str(wal).replace('%', '%%'))}/%f %p"}
    if moment is not None:
        values["recovery_target_time"] = moment.isoformat()
        values["recovery_target_action"] = "promote"
    lines = [f"{name} = {sql.Literal(value).as_string()}\n" for name, value in values.items()]
    (cluster / "conf.d" / _SETTINGS).write_text("".join(lines))
    (cluster / "recovery.signal").touch()
    # the original server may be using this port
    (cluster / "conf.d" / GENERATED).unlink(missing_ok=True)
    # archive settings of `alter system` are for the original server
    automatic = cluster / "postgresql.auto.conf"
    kept = [
        line for line in automatic.read_text().splitlines(keepends=True) if not line.startswith("archive_")
    ]
    automatic.write_text("".join(kept))
