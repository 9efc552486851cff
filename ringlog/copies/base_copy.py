"""Copies of a whole cluster, as pg_basebackup makes them, named by the moment (UTC) of their end."""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from psycopg.conninfo import make_conninfo

from ringlog.errors import ServerError, UsageError
from ringlog.schema import session
from ringlog.server.embedded.account import Account
from ringlog.server.embedded.programs import programs_for

_NAME = "%Y%m%dT%H%M%S.%fZ"


def make_copy(base: Path, account: Account, conninfo: str) -> Path:
    """Copies a server into a new folder of `base`, with the log that it needs, and reads the copy back.

    `conninfo` is that of an administrator with the right to replicate. Raises ServerError.
    """
    unfinished = base / "unfinished"
    with account.acting():
        shutil.rmtree(unfinished, ignore_errors=True)
    with session.connect(conninfo, autocommit=True) as connection:
        # the account may not be able to read the file of passwords
        password = connection.info.password
        command = [
            *(str(programs_for(account) / "pg_basebackup"), "--pgdata", str(unfinished)),
            *("--checkpoint", "fast", "--wal-method", "stream", "--manifest-checksums", "SHA256"),
            *("--no-password", "--dbname", make_conninfo(conninfo, password=None)),
        ]
        try:
            account.run(command, cwd=base, variables={"PGPASSWORD": password} if password else {})
        except ServerError as error:
            hint = "alter role … replication, and a line for replication in pg_hba.conf, allow it"
            may_not = "replication" in str(error) or "pg_hba.conf" in str(error)
            raise ServerError(f"{error} ({hint})" if may_not else str(error)) from None
        check(unfinished)
        ended = connection.execute("select clock_timestamp()").fetchone()
    assert ended is not None
    copy = base / str(ended[0].astimezone(UTC).strftime(_NAME))
    with account.acting():
        unfinished.rename(copy)
    return copy


def check(copy: Path) -> None:
    """Reads every file of a copy and compares it with the list that PostgreSQL made, which has all but the
    WAL. Links, by which PostgreSQL would write elsewhere, are those of tablespaces. Raises ServerError."""
    try:
        listed = {
            _name(entry): entry for entry in json.loads((copy / "backup_manifest").read_text())["Files"]
        }
        there = {*_files(copy)}
        for name in sorted(there - listed.keys() - {"backup_manifest"}):
            if not name.startswith("pg_wal/"):
                raise ServerError(f"{copy / name} is not a file of this copy")
        for name, entry in listed.items():
            if name not in there:
                raise ServerError(f"the copy {copy} is incomplete: it lacks {name}")
            with (copy / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != entry["Checksum"]:
                raise ServerError(f"{copy / name} differs from its checksum: this copy is damaged")
    except (OSError, ValueError, KeyError) as error:
        raise ServerError(f"the copy {copy} is incomplete: {error}") from None


def _name(entry: dict[str, str]) -> str:
    return entry["Path"] if "Path" in entry else os.fsdecode(bytes.fromhex(entry["Encoded-Path"]))


def _files(copy: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(copy):
        for each in (*folders, *files):
            path = Path(folder, each)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield str(path.relative_to(copy))
            elif not (stat.S_ISDIR(mode) or (stat.S_ISLNK(mode) and path.parent == copy / "pg_tblspc")):
                raise ServerError(f"{path} is neither a file nor a folder: this copy was changed")


def copies_in(folder: Path) -> list[Path]:
    """The copies in a backup folder, oldest first. Raises UsageError."""
    base = folder / "base"
    try:
        there = [entry for entry in base.iterdir() if re.fullmatch(r"\d{8}T\d{6}\.\d{6}Z", entry.name)]
    except OSError as error:
        raise UsageError(f"{folder} is not a backup folder ({base}: {error.strerror})") from None
    return sorted(there)


def moment_of(copy: Path) -> datetime:
    return datetime.strptime(copy.name, _NAME).replace(tzinfo=UTC)


def delete_older(folder: Path, account: Account, keep: int) -> None:
    """Deletes all copies in a backup folder but the newest."""
    for old in copies_in(folder)[:-keep]:
        with account.acting():
            shutil.rmtree(old)
        print(f"deleted {old}")
