"""The owner of archive files that root creates."""

import os
from pathlib import Path

_owner: tuple[int, int] | None = None


def give_files_to(uid: int, gid: int) -> None:
    """Gives files that this process creates as root from now on to the account under which HTTP reads
    them."""
    global _owner
    _owner = uid, gid


def give(path: str | Path) -> None:
    if _owner is not None:
        os.chown(path, *_owner)
