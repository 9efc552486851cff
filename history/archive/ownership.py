"""Ownership of an archive: one database writes it, and a copy of the database does not.

The folder and the database have the same identity and the same token, and each round gives both a new token.
The second of two copies of a database therefore finds an unknown token in the folder. A copy in another
cluster or under another name differs in PostgreSQL's system identifier or in the database's oid; a standby
has the same ones. Only `adopt` changes the owner.
"""

import json
import re
import secrets
import socket
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg

from ringlog.history.archive.folder import Damaged, Folder, aside
from ringlog.history.archive.manifest import ColdWeek, manifest, settings, write_manifest
from ringlog.schema.access.roles import become_owner
from ringlog.schema.relations.partitions import alone
from ringlog.schema.session import connect

IDENTITY = "ringlog.json"

_WEEK = re.compile(r"[^/]+/(_replaced/)?\d{4}w\d\d(-\d+)?\.parquet")


class NotOurs(Exception):
    """This database does not own the archive, or its ownership is unknown."""

    def __init__(self, folder: Folder, why: str) -> None:
        super().__init__(
            f"nothing is written to the archive {folder}: {why}. A copy of a database needs a folder of its"
            " own (archive in the facility file); if this database is the one to write this archive from now"
            " on, run ringlog archive adopt"
        )


class NotThere(NotOurs):
    """The folder has none of the files, as a mount point without its disk: files written there would hide
    the weeks."""

    def __init__(self, folder: Folder, weeks: int) -> None:
        Exception.__init__(self, f"archive {folder} has none of its {weeks} weeks: is its disk mounted?")


@dataclass(frozen=True)
class _Owner:
    """The database's record of its archive: the row of ringlog.archive_owner."""

    archive: str
    token: str | None
    previous: str | None
    system: str
    database: int


_COLUMNS = "archive, token, previous, system_identifier, database"


@dataclass(frozen=True)
class _Identity:
    """The folder's record of its owner."""

    archive: str
    token: str
    writer: str

    @classmethod
    def of(cls, folder: Folder) -> "_Identity | None":
        if not folder.exists(IDENTITY):
            return None
        try:
            with folder.opened(IDENTITY) as stream:
                content = json.loads(stream.read())
            return cls(
                str(content["archive"]), str(content["token"]), f"{content['writer']} at {content['written']}"
            )
        except (Damaged, OSError, ValueError, KeyError, TypeError):
            raise NotOurs(folder, f"its file {IDENTITY} cannot be read") from None


def demand(
    connection: psycopg.Connection, folder: Folder, there: Collection[str], known: Collection[ColdWeek]
) -> None:
    """Raises NotOurs unless the database owns the folder, which has the files `there`."""
    _demand_weeks(folder, there, known)
    # the folder is read first, because a claim writes to the database first
    identity = _Identity.of(folder)
    owner = _owner(connection)
    if identity is None:
        foreign = weeks_in(there) - {name for week in known for name in (week.file, aside(week.file))}
        if known and owner is not None:
            raise NotOurs(folder, f"it has no file {IDENTITY}, which names its owner")
        if foreign and not known:
            raise NotOurs(folder, f"it has {len(foreign)} weeks that are not in this database's manifest")
        return
    if owner is None or owner.archive != identity.archive:
        raise NotOurs(folder, f"it belongs to another database ({identity.writer})")
    if (owner.system, owner.database) != _database(connection):
        raise NotOurs(folder, "this database is a copy of the one that writes it")
    if owner.token is None:
        raise NotOurs(folder, "this database was restored from a backup")
    if identity.token not in (owner.token, owner.previous):
        raise NotOurs(folder, f"a copy of this database has written it since ({identity.writer})")


def _demand_weeks(folder: Folder, there: Collection[str], known: Collection[ColdWeek]) -> None:
    """Raises NotThere when the folder has none of the weeks."""
    if known and not any(week.file in there or aside(week.file) in there for week in known):
        raise NotThere(folder, len(known))


def claim(conninfo: str, folder: Folder, *, anew: bool = False) -> None:
    """Gives folder and database a new token; with `anew` regardless of the previous ones."""
    try:
        identity = _Identity.of(folder)
    except NotOurs:
        if not anew:
            raise
        identity = None
    token = secrets.token_hex(16)
    with connect(conninfo) as connection:
        become_owner(connection)
        system, database = _database(connection)
        name = connection.info.dbname
        archive = str(uuid.uuid4()) if identity is None else identity.archive
        # the token of the folder until the new one is written there
        previous = None if identity is None else identity.token
        connection.execute("delete from ringlog.archive_owner")
        connection.execute(
            f"insert into ringlog.archive_owner ({_COLUMNS}) values (%s, %s, %s, %s, %s)".encode(),
            [archive, token, previous, system, database],
        )
    content = {
        "archive": archive,
        "token": token,
        "writer": f"database {name} of PostgreSQL {system} from {socket.gethostname()}",
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with folder.created(IDENTITY) as stream:
        stream.write(json.dumps(content, indent=1).encode())


def still_ours(connection: psycopg.Connection, folder: Folder) -> None:
    """Raises NotOurs when another database has claimed the folder since this one's claim."""
    owner, identity = _owner(connection), _Identity.of(folder)
    if owner is None or identity is None or identity.token != owner.token:
        raise NotOurs(folder, "another database has taken it meanwhile")


def adopt(conninfo: str) -> Iterator[str]:
    """Makes this database the owner, and the folder agree with its manifest. Deletes nothing: weeks outside
    the manifest are set aside. Yields a line for each change. Raises NotThere."""
    with alone(conninfo):
        with connect(conninfo) as connection:
            chosen, known = settings(connection), manifest(connection)
        if chosen is None:
            return
        folder = Folder(chosen[1])
        there = dict(folder.names())
        _demand_weeks(folder, there, known)
        claim(conninfo, folder, anew=True)
        yield f"{folder} is this database's now: {len(known)} weeks"
        for file in put_back(folder, there, known):
            yield f"put back {file}"
        named = {week.file for week in known}
        for name in sorted(weeks_in(there)):
            if name not in named and "/_replaced/" not in name:
                folder.set_aside(name)
                yield f"set aside {name}, which this database does not know: it is {aside(name)} now"
        for file in sorted(named):
            if file not in there and aside(file) not in there:
                yield f"{file} is not there: restore it from a backup of the folder"
        with connect(conninfo) as connection:
            write_manifest(connection, folder)


def weeks_in(there: Collection[str]) -> set[str]:
    """The names of weeks among the files of a folder; the nodes' own folders do not count."""
    return {name for name in there if _WEEK.fullmatch(name)}


def put_back(folder: Folder, there: Mapping[str, float], known: Collection[ColdWeek]) -> Iterator[str]:
    """Files of the manifest that were set aside, by another database or before a restore."""
    for week in known:
        if week.file not in there and aside(week.file) in there:
            folder.put_back(week.file)
            yield week.file


def examine(connection: psycopg.Connection) -> None:
    """Raises NotOurs when the database has an archive that it does not own."""
    chosen = settings(connection)
    if chosen is not None:
        folder, known = Folder(chosen[1]), manifest(connection)
        # read after the files: a round writes a file before its entry in the manifest
        demand(connection, folder, dict(folder.names()), known)


def unknown_files(conninfo: str) -> list[str]:
    """Weeks in the folder that this database has no record of."""
    with connect(conninfo) as connection:
        chosen = settings(connection)
        if chosen is None:
            return []
        # the files first: a round records a name before it writes the file
        there = dict(Folder(chosen[1]).names())
        known = {week.file for week in manifest(connection)}
        known |= {file for (file,) in connection.execute("select file from ringlog.archive_file")}
    return sorted(weeks_in(there) - known - {aside(file) for file in known})


def _owner(connection: psycopg.Connection) -> _Owner | None:
    found = connection.execute(f"select {_COLUMNS} from ringlog.archive_owner".encode()).fetchone()
    return None if found is None else _Owner(*found)


def _database(connection: psycopg.Connection) -> tuple[str, int]:
    query = (
        "select system_identifier::text, oid::bigint from pg_control_system(), pg_database"
        " where datname = current_database()"
    )
    ((system, database),) = connection.execute(query).fetchall()
    return system, database
