"""Backups of the embedded PostgreSQL: copies of the whole cluster, and the write-ahead log since the oldest.

A backup folder holds

    base/<moment>/   copies of the cluster, named by the moment (UTC) from which each can be restored
    wal/             the write-ahead log, segment by segment, as PostgreSQL archives it

Both together give the database as it was at any moment from the end of the oldest copy on.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg import sql

from ringlog.account import Account, account_for
from ringlog.database import Embedded, chosen_database
from ringlog.errors import ServerError, UsageError
from ringlog.nodes import nodes_of
from ringlog.options import Data
from ringlog.postgres import ADMINISTRATOR, Postgres
from ringlog.programs import programs_for
from ringlog.settings import GENERATED

_NAME = "%Y%m%dT%H%M%S.%fZ"
_SETTINGS = "99-restore.conf"
# PostgreSQL's words for a log that ends before the moment that was asked for
_NOT_REACHED = "recovery ended before configured recovery target was reached"
# Seconds after which PostgreSQL archives a segment that is not full: what a lost disk costs at most.
_ARCHIVE_TIMEOUT = 60

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The backup folder; it should be on another machine's disk.")
]


def backup(
    folder: Folder,
    keep: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            show_default=False,
            help="Delete older copies than the N newest. Default: none.",
        ),
    ] = None,
    data: Data = None,
) -> None:
    """Copy the whole database while it runs, and archive its log from now on for a restore to any moment."""
    postgres = _embedded(data)
    postgres.demand()
    account = account_for(postgres.data)
    folder = folder.resolve()
    _make_folders(folder, account)
    programs = programs_for(account)
    with postgres.reachable():
        with psycopg.connect(postgres.conninfo(ADMINISTRATOR), autocommit=True) as connection:
            _archive_to(connection, folder / "wal")
            unfinished = folder / "base" / "unfinished"
            with account.acting():
                shutil.rmtree(unfinished, ignore_errors=True)
            account.run(
                [
                    *(str(programs / "pg_basebackup"), "--pgdata", str(unfinished), "--checkpoint", "fast"),
                    *(
                        "--wal-method",
                        "stream",
                        "--manifest-checksums",
                        "SHA256",
                        "--dbname",
                        postgres.conninfo(ADMINISTRATOR),
                    ),
                ],
                cwd=folder,
            )
            _check(unfinished)
            ended = connection.execute("select clock_timestamp()").fetchone()
            connection.execute("select pg_switch_wal()")
        assert ended is not None
        copy = folder / "base" / ended[0].astimezone(UTC).strftime(_NAME)
        with account.acting():
            unfinished.rename(copy)
        elsewhere = nodes_of(postgres.conninfo())
    print(f"copied to {copy}")
    for name, (dsn, _) in elsewhere.items():
        print(f"not in this copy: node {name} ({dsn}); back it up there with pg_basebackup")
    for old in _copies(folder)[: -keep if keep else 0]:
        with account.acting():
            shutil.rmtree(old)
        print(f"deleted {old}")
    if keep:
        first = _first_segment(_copies(folder)[0])
        account.run([str(programs / "pg_archivecleanup"), str(folder / "wal"), first], cwd=folder)


def restore(
    folder: Folder,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            show_default=False,
            help=(
                "The time to restore to, as 2026-11-20T14:00+01:00; without an offset it is in this "
                "machine's time zone. Default: the end of the archived log."
            ),
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="A new data directory, which must not exist yet."),
    ] = None,
) -> None:
    """Make a new data directory with the database as of a given time. The backup is not changed."""
    if data is None:
        raise UsageError("name a new data directory with --data: restore does not overwrite an existing one")
    moment = None if to is None else _moment(to)
    if moment is not None and moment > datetime.now(UTC):
        raise UsageError(f"{to} is in the future: omit --to to restore to the end of the archived log")
    folder = folder.resolve()
    postgres = Postgres(data)
    if postgres.data.exists() and any(postgres.data.iterdir()):
        raise UsageError(f"{postgres.data} exists already: restore makes a new data directory")
    copies = [copy for copy in _copies(folder) if moment is None or _moment_of(copy) <= moment]
    if not copies:
        first = _copies(folder)
        since = f"its oldest copy is of {_moment_of(first[0])}" if first else "it contains no copy"
        raise UsageError(f"{folder} has no backup of that time: {since}")
    _check(copies[-1])
    account = account_for(postgres.data)
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
    except ServerError as error:
        if _NOT_REACHED not in str(error):
            raise
        until = _end_of_archive(postgres)
        shutil.rmtree(postgres.data)
        raise ServerError(
            f"the archived log in {folder} does not reach {to}: {until}. A running server archives its "
            "log every minute: wait a minute and try again, or omit --to to restore to the end of the "
            "archived log"
        ) from None
    with account.acting():
        (postgres.cluster / "conf.d" / _SETTINGS).unlink()
    print(f"restored to {postgres.data} from {copies[-1].name}")
    if last is not None:
        print(f"the last transaction in it was committed at {last.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC")
    print("the restored server does not archive its log: run ringlog backup with a new folder")


def _recovered(postgres: Postgres, process: "subprocess.Popen[bytes]") -> datetime | None:
    """Waits until PostgreSQL has reached its recovery target. Returns the time of the last transaction."""
    while True:
        try:
            with psycopg.connect(postgres.conninfo(ADMINISTRATOR), autocommit=True) as connection:
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


def _embedded(data: Path | None) -> Postgres:
    database = chosen_database(data, None)
    if not isinstance(database, Embedded):
        raise UsageError("ringlog backup is for the embedded PostgreSQL; for your own use pg_basebackup")
    return Postgres(database.data)


def _make_folders(folder: Path, account: Account) -> None:
    try:
        for each in (folder, folder / "base", folder / "wal"):
            if not each.exists():
                each.mkdir(mode=0o700, parents=account.is_self)
                account.own(each)
    except OSError as error:
        raise ServerError(f"{error.filename}: {error.strerror}: choose another folder for backups") from None
    if not account.is_self and (barrier := account.barrier(folder / "wal")):
        raise ServerError(
            f"PostgreSQL runs as {account.name}, which cannot enter {barrier}: choose another folder"
        )
    if not account.can("w", folder / "wal"):
        raise ServerError(f"PostgreSQL runs as {account.name}, which cannot write to {folder / 'wal'}")


def _archive_to(connection: psycopg.Connection, wal: Path) -> None:
    """Lets PostgreSQL archive each segment of its log in this folder, from now on."""
    ((mode,),) = connection.execute("show archive_mode").fetchall()
    if mode != "on":
        raise ServerError(
            "this PostgreSQL was started with archive_mode off: restart ringlog serve, then back up again"
        )
    target = shlex.quote(str(wal).replace("%", "%%"))
    # a segment that is there already, whole, was archived before a crash; no other one is ever written over
    command = (
        f"if test -e {target}/%f; then cmp -s %p {target}/%f; else"
        f" cp %p {target}/%f.part && sync {target}/%f.part && mv {target}/%f.part {target}/%f; fi"
    )
    for name, value in (("archive_command", command), ("archive_timeout", str(_ARCHIVE_TIMEOUT))):
        statement = sql.SQL("alter system set {} = {}").format(sql.Identifier(name), sql.Literal(value))
        connection.execute(statement)
    connection.execute("select pg_reload_conf()")


def _check(copy: Path) -> None:
    """Reads every file of a copy and compares it with the list that PostgreSQL made. Raises ServerError."""
    try:
        listed = json.loads((copy / "backup_manifest").read_text())["Files"]
        for entry in listed:
            name = entry["Path"] if "Path" in entry else os.fsdecode(bytes.fromhex(entry["Encoded-Path"]))
            with (copy / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != entry["Checksum"]:
                raise ServerError(f"{copy / name} differs from its checksum: this copy is damaged")
    except (OSError, ValueError, KeyError) as error:
        raise ServerError(f"the copy {copy} is incomplete: {error}") from None


def _copies(folder: Path) -> list[Path]:
    """The copies in a backup folder, oldest first."""
    base = folder / "base"
    try:
        there = [entry for entry in base.iterdir() if re.fullmatch(r"\d{8}T\d{6}\.\d{6}Z", entry.name)]
    except OSError as error:
        raise UsageError(f"{folder} is not a backup folder ({base}: {error.strerror})") from None
    return sorted(there)


def _moment_of(copy: Path) -> datetime:
    return datetime.strptime(copy.name, _NAME).replace(tzinfo=UTC)


def _moment(text: str) -> datetime:
    with suppress(ValueError):
        return datetime.fromisoformat(text).astimezone(UTC)
    raise UsageError(f"{text!r} is not a time: write it as 2026-11-20T14:00+01:00")


def _first_segment(copy: Path) -> str:
    """The name of the first segment of the log that a copy needs, as its label says."""
    found = re.search(
        r"^START WAL LOCATION: .* \(file ([0-9A-F]{24})\)", (copy / "backup_label").read_text(), re.M
    )
    if found is None:
        raise ServerError(f"{copy / 'backup_label'} does not name the first segment of its log")
    return found[1]


def _let_recover(cluster: Path, wal: Path, moment: datetime | None) -> None:
    """Prepares a copied cluster for its first start."""
    values = {"restore_command": f"cp {shlex.quote(str(wal).replace('%', '%%'))}/%f %p"}
    if moment is not None:
        values["recovery_target_time"] = moment.isoformat()
        values["recovery_target_action"] = "promote"
    lines = [f"{name} = {sql.Literal(value).as_string()}\n" for name, value in values.items()]
    (cluster / "conf.d" / _SETTINGS).write_text("".join(lines))
    (cluster / "recovery.signal").touch()
    # its port may be in use: by the server it was copied of
    (cluster / "conf.d" / GENERATED).unlink(missing_ok=True)
    # what `alter system` has said of archiving is for the one that was copied
    automatic = cluster / "postgresql.auto.conf"
    kept = [
        line for line in automatic.read_text().splitlines(keepends=True) if not line.startswith("archive_")
    ]
    automatic.write_text("".join(kept))
