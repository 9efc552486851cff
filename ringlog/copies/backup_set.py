"""Copies of several servers that belong together: those of one run of `ringlog backup`.

    sets/<moment>.json            the copies of that run
    nodes/<name>/base/<moment>/   copies of a node

No table moves while a set is made, so each is in one of its copies. Each copy is of a moment of its own.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ringlog.copies.base_copy import check, copies_in, moment_of
from ringlog.errors import ServerError, UsageError
from ringlog.nodes.servers import label
from ringlog.server.embedded.account import Account, account_for

SETS = "sets"
NODES = "nodes"


@dataclass(frozen=True)
class Member:
    """A server's copy, `path` as below the backup folder; the first server has no name."""

    node: str | None
    path: str
    postgresql: str


def folder_of(folder: Path, node: str | None) -> Path:
    """The folder of a server's copies."""
    return folder if node is None else folder / NODES / node


def write_set(folder: Path, account: Account, members: list[Member]) -> None:
    """Notes copies of the first server, which is named first, and of the nodes."""
    first = Path(members[0].path).name
    text = json.dumps([member.__dict__ for member in members], indent=2) + "\n"
    with account.acting():
        file = folder / SETS / f"{first}.json"
        unfinished = file.with_suffix(".part")
        unfinished.write_text(text)
        unfinished.rename(file)


def drop_sets(folder: Path, account: Account) -> None:
    """Deletes the files of sets with a deleted copy."""
    for file, members in _sets(folder):
        if not all((folder / member.path).is_dir() for member in members):
            with account.acting():
                file.unlink()


def nodes_in(folder: Path) -> list[str]:
    """The nodes with copies in a backup folder."""
    return sorted(each.name for each in (folder / NODES).glob("*"))


def copy_of(folder: Path, node: str | None, name: str | None) -> Path:
    """A server's copy of this name; None: the latest. Raises UsageError."""
    if node is not None and node not in nodes_in(folder):
        named = ", ".join(nodes_in(folder)) or "no node"
        raise UsageError(f"{folder} has no copy of node {node}; it has copies of {named}")
    copies = copies_in(folder_of(folder, node))
    if not copies:
        raise UsageError(f"{folder} has no copy of {label(node)}")
    if name is None:
        return copies[-1]
    for copy in copies:
        if copy.name == name:
            return copy
    raise UsageError(
        f"{folder} has no log of {label(node)} since its copies: --to is the name of one of them, "
        + ", ".join(copy.name for copy in copies)
    )


def demand_new(data: Path) -> None:
    """Raises UsageError for a data directory with something in it."""
    if data.exists() and any(data.iterdir()):
        raise UsageError(f"{data} exists already: restore makes a new data directory")


def restore_copy(copy: Path, data: Path, node: str | None) -> None:
    """Makes a data directory of a copy, for the PostgreSQL of that server. Raises ServerError, UsageError."""
    demand_new(data)
    check(copy)
    account = account_for(data)
    try:
        account.make_folder(data)
        with account.acting():
            shutil.copytree(copy, data, symlinks=True, dirs_exist_ok=True)
            data.chmod(0o700)
    except (OSError, shutil.Error) as error:
        raise ServerError(f"{copy} could not be copied: {error}") from None
    version = (data / "PG_VERSION").read_text().strip()
    print(f"{label(node)} restored to {data}, as of {moment_of(copy):%Y-%m-%d %H:%M:%S.%f} UTC")
    print(f"start it with PostgreSQL {version}, under the account {account.name}")


def checked(folder: Path) -> Iterator[str]:
    """Reads all copies in a backup folder. A line for each defect."""
    named = {member.path: member for _, members in _sets(folder) for member in members}
    for node in (None, *nodes_in(folder)):
        for copy in copies_in(folder_of(folder, node)):
            print(f"{copy}", flush=True)
            named.pop(str(copy.relative_to(folder)), None)
            try:
                check(copy)
            except ServerError as error:
                yield str(error)
    for member in named.values():
        yield f"{folder / member.path}: this copy of {label(member.node)} is missing"


def _sets(folder: Path) -> Iterator[tuple[Path, list[Member]]]:
    for file in sorted((folder / SETS).glob("*.json")):
        try:
            yield file, [Member(**each) for each in json.loads(file.read_text())]
        except (ValueError, TypeError) as error:
            raise ServerError(f"{file} cannot be read: {error}") from None
