"""The owner of the archive's files that root makes."""

import os
from pathlib import Path

_owner: tuple[int, int] | None = None


def give_files_to(uid: int, gid: int) -> None:
    """Lets files that this process, root's, makes from now on belong to an account: HTTP reads under it."""
    global _owner
    _owner = uid, gid


def give(path: str | Path) -> None:
    if _owner is not None:
        os.chown(path, *_owner)
