"""File systems that are small enough to be filled."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A separate file system in memory, of a size such as 600m. Mounting requires root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        # a process that was just killed may still use it
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fills the folder's disk, which must be a small one."""
    taken = folder / "taken"
    with suppress(OSError), taken.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    try:
        yield
    finally:
        taken.unlink()
