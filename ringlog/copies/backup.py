"""Backups of the embedded PostgreSQL: copies of the whole cluster, and the write-ahead log since the oldest.

A backup folder holds

    base/<moment>/   copies of the cluster, named by the moment (UTC) from which each can be restored
    wal/             the write-ahead log, segment by segment, as PostgreSQL archives it

Both together give the database as it was at any moment from the end of the oldest copy on. Where there are
nodes, or a first server of one's own, see ringlog.copies.backup_set.
"""

import re
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import psycopg
from psycopg import sql

from ringlog.copies.backup_set import NODES, SETS, Member, drop_sets, folder_of, write_set
from ringlog.copies.base_copy import copies_in, delete_older, make_copy
from ringlog.errors import ServerError, UsageError
from ringlog.nodes.servers import Everywhere, label
from ringlog.nodes.under_way import moves_under_way, no_other_move
from ringlog.schema import catalogue, session
from ringlog.schema.session import engine
from ringlog.server.database import Embedded, External
from ringlog.server.embedded.account import Account, account_for
from ringlog.server.embedded.cluster import ADMINISTRATOR
from ringlog.server.embedded.programs import programs_for

# Seconds after which PostgreSQL archives a segment that is not full: the most that a lost disk costs.
_ARCHIVE_TIMEOUT = 60


def back_up(database: Embedded | External, folder: Path, keep: int | None) -> Everywhere:
    """Copies the first server and its nodes into a folder, to which an embedded one archives its log.

    Deletes older copies than the `keep` newest of each server. Returns the servers, some of which may not
    have been reached.
    """
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
    return servers


def _note(conninfo: str, folder: Path) -> None:
    """Records the time of the latest copy, for the metrics."""
    with session.connect(conninfo) as connection:
        if catalogue.exists(connection, "ringlog", "backup"):
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
            print(f"{label(name)} copied to {copy}" if servers.nodes else f"copied to {copy}", flush=True)
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
                f"{move}: unfinished, so its rows are on two servers: finish it first (ringlog node list)"
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
    # an identical segment was archived before a crash; a different one is never overwritten
    command = (
        f"if test -e {target}/%f; then cmp -s %p {target}/%f; else"
        f" cp %p {target}/%f.part && sync {target}/%f.part && mv {target}/%f.part {target}/%f; fi"
    )
    for name, value in (("archive_command", command), ("archive_timeout", str(_ARCHIVE_TIMEOUT))):
        statement = sql.SQL("alter system set {} = {}").format(sql.Identifier(name), sql.Literal(value))
        connection.execute(statement)
    connection.execute("select pg_reload_conf()")


def _first_segment(copy: Path) -> str:
    """The name of the first segment of the log that a copy needs, from its label."""
    found = re.search(
        r"^START WAL LOCATION: .* \(file ([0-9A-F]{24})\)", (copy / "backup_label").read_text(), re.M
    )
    if found is None:
        raise ServerError(f"{copy / 'backup_label'} does not name the first segment of its log")
    return found[1]
