"""Backups of the embedded PostgreSQL: copies of the whole cluster, and the write-ahead log since the oldest.

A backup folder holds

    base/<moment>/   copies of the cluster, named by the moment (UTC) from which each can be restored
    wal/             the write-ahead log, segment by segment, as PostgreSQL archives it

Both together give the database as it was at any moment from the end of the oldest copy on. Where there are
nodes, or a first server of one's own, see ringlog.copies.backup_set.
"""

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg import sql

from ringlog.commands.options import Data, Dsn, Programs
from ringlog.copies.backup_set import (
    NODES,
    SETS,
    Member,
    copy_of,
    demand_new,
    drop_sets,
    folder_of,
    nodes_in,
    restore_copy,
    write_set,
)
from ringlog.copies.base_copy import check, copies_in, delete_older, make_copy, moment_of
from ringlog.errors import ServerError, UsageError
from ringlog.nodes.everywhere import Everywhere, place
from ringlog.nodes.moving import moves_under_way, no_other_move
from ringlog.schema import session
from ringlog.schema.session import engine
from ringlog.server.account import Account, account_for
from ringlog.server.database import Embedded, chosen_database
from ringlog.server.postgres import ADMINISTRATOR, Postgres
from ringlog.server.programs import programs_for
from ringlog.server.settings import GENERATED

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
            help="Delete older copies than the N newest of each server. Default: none.",
        ),
    ] = None,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Copy all servers while they run, and archive the embedded one's log from now on for a restore to any
    moment.

    Nodes, and a first server of your own, are copied by pg_basebackup through their connection strings. Code
    1: a node cannot be reached.
    """
    database = chosen_database(data, dsn)
    folder = folder.resolve()
    if isinstance(database, Embedded):
        postgres = database.postgres
        postgres.demand()
        account = account_for(postgres.data)
        _make_folders(folder, account, ("base", "wal"))
        with postgres.reachable():
            administrator = postgres.conninfo(ADMINISTRATOR)
            with session.connect(administrator, autocommit=True) as connection:
                _archive_to(connection, folder / "wal")
                servers = _copy_all(folder, account, administrator, postgres.conninfo())
                connection.execute("select pg_switch_wal()")
            _note(postgres.conninfo(), folder)
    else:
        account = account_for(folder)
        if (folder / "wal").exists():
            raise UsageError(f"{folder} has the backups of an embedded PostgreSQL: choose another folder")
        _make_folders(folder, account, ("base",))
        with database.opened() as conninfo:
            servers = _copy_all(folder, account, conninfo, conninfo)
            _note(conninfo, folder)
    if keep:
        for each in (folder, *(folder / NODES).glob("*")):
            delete_older(each, account, keep)
        drop_sets(folder, account)
        if isinstance(database, Embedded):
            first = _first_segment(copies_in(folder)[0])
            cleanup = programs_for(account) / "pg_archivecleanup"
            account.run([str(cleanup), str(folder / "wal"), first], cwd=folder)
    servers.demand_all()


def _note(conninfo: str, folder: Path) -> None:
    """Lets the metrics know how old the latest copy is."""
    with session.connect(conninfo) as connection:
        if connection.execute("select to_regclass('ringlog.backup')").fetchone() != (None,):
            connection.execute(
                "insert into ringlog.backup (folder, made) values (%s, now())"
                " on conflict on constraint backup_pkey do update set made = excluded.made",
                [str(folder)],
            )


def _copy_all(folder: Path, account: Account, administrator: str, conninfo: str) -> Everywhere:
    """Copies the first server, by either connection string of an administrator's, and its nodes."""
    with ExitStack() as stack:
        servers = Everywhere(conninfo)
        if servers.nodes:
            stack.enter_context(no_other_move(conninfo))
            _demand_no_move(conninfo)
        members = []
        for name, server in servers:
            if name is not None:
                _make_folders(folder, account, (NODES, f"{NODES}/{name}", f"{NODES}/{name}/base"))
            at = administrator if name is None else server
            copy = make_copy(folder_of(folder, name) / "base", account, at)
            print(f"{place(name)} copied to {copy}" if servers.nodes else f"copied to {copy}", flush=True)
            version = (copy / "PG_VERSION").read_text().strip()
            members.append(Member(name, str(copy.relative_to(folder)), version))
    if servers.nodes:
        _make_folders(folder, account, (SETS,))
        write_set(folder, account, members)
    return servers


def _demand_no_move(conninfo: str) -> None:
    with engine(conninfo).connect() as connection:
        for move in moves_under_way(connection):
            raise ServerError(
                f"{move}: half way, so its rows are on two servers: end it first (ringlog node list)"
            )


def restore(
    folder: Folder,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            show_default=False,
            help=(
                "The time to restore to, as 2026-11-20T14:00+01:00; without an offset it is in this "
                "machine's time zone. Default: the end of the archived log. Of servers without an archived "
                "log, such as nodes: the name of one of their copies."
            ),
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Restore this node, as of its latest copy, or of the one that --to names.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Restore all servers, to first and nodes/NAME in --data.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="A new data directory, which must not exist yet."),
    ] = None,
    postgres: Programs = None,
) -> None:
    """Make a new data directory with the database as of a given time. The backup is not changed."""
    if data is None:
        raise UsageError("name a new data directory with --data: restore does not overwrite an existing one")
    if every and (node or to):
        raise UsageError("--all restores the latest copies of all servers: give neither --node nor --to")
    folder, data = folder.resolve(), data.resolve()
    if every:
        data.mkdir(parents=True, exist_ok=True)
    if node is not None or not (folder / "wal").exists():
        restore_copy(copy_of(folder, node, to), data / "first" if every else data, node)
    else:
        _restore_embedded(folder, to, Postgres(data / "first" if every else data, postgres))
    for each in nodes_in(folder) if every else ():
        restore_copy(copy_of(folder, each, None), data / NODES / each, each)


def _restore_embedded(folder: Path, to: str | None, postgres: Postgres) -> None:
    moment = None if to is None else _moment(to)
    if moment is not None and moment > datetime.now(UTC):
        raise UsageError(f"{to} is in the future: omit --to to restore to the end of the archived log")
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
    if has_archive:
        print("nor does it archive old weeks: run ringlog archive adopt if it takes the old server's place")


def _disown_archive(postgres: Postgres) -> bool:
    """Leaves the archive of old weeks to the database that the backup is of; False: there is none."""
    with session.connect(postgres.conninfo(), autocommit=True) as connection:
        if connection.execute("select to_regclass('ringlog.archive_owner')").fetchall() == [(None,)]:
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


def _make_folders(folder: Path, account: Account, names: Sequence[str]) -> None:
    last = folder / names[-1]
    try:
        for each in (folder, *(folder / name for name in names)):
            if not each.exists():
                each.mkdir(mode=0o700, parents=account.is_self)
                account.own(each)
    except OSError as error:
        raise ServerError(f"{error.filename}: {error.strerror}: choose another folder for backups") from None
    if not account.is_self and (barrier := account.barrier(last)):
        raise ServerError(
            f"PostgreSQL runs as {account.name}, which cannot enter {barrier}: choose another folder"
        )
    if not account.can("w", last):
        raise ServerError(f"PostgreSQL runs as {account.name}, which cannot write to {last}")


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


def _moment(text: str) -> datetime:
    with suppress(ValueError):
        return datetime.fromisoformat(text).astimezone(UTC)
    raise UsageError(f"{text!r} is not a time: write it as 2026-11-20T14:00+01:00")


def _first_segment(copy: Path) -> str:
    """The name of the first segment of the log that a copy needs, from its label."""
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
