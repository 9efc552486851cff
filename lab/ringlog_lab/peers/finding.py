"""Finds other servers: by an option, by the environment, in the usual places."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from ringlog.loader.cli import option
from ringlog.loadtest.experiment.errors import LoadTestUsageError

TIMESCALEDB, QUESTDB, INFLUXDB = NAMES = ("timescaledb", "questdb", "influxdb")
TITLES = {TIMESCALEDB: "TimescaleDB", QUESTDB: "QuestDB", INFLUXDB: "InfluxDB"}

Timescaledb = Annotated[
    Path | None,
    option(
        "--timescaledb",
        metavar="DIR",
        help="PostgreSQL's folder of programs where TimescaleDB is installed. Default: the usual places.",
        envvar="RINGLOG_TIMESCALEDB",
    ),
]
Questdb = Annotated[
    Path | None,
    option(
        "--questdb",
        metavar="FILE",
        help="QuestDB's jar. Without it QuestDB is not in the run.",
        envvar="RINGLOG_QUESTDB",
    ),
]
Influxdb = Annotated[
    Path | None,
    option(
        "--influxdb",
        metavar="FILE",
        help="influxd of InfluxDB 1. Default: that of the PATH.",
        envvar="RINGLOG_INFLUXDB",
    ),
]
Beside = Annotated[
    str | None,
    option(
        "--beside",
        metavar="A,B,...",
        help=f"Servers of {', '.join(NAMES)} that the run requires; `none` for none. Default: all that are "
        "installed.",
    ),
]
_POSTGRESQL = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
"""Folders of Debian's packages, of PostgreSQL's own for Red Hat, and of a build by hand."""


@dataclass(frozen=True)
class Peers:
    """Programs of other servers by their names, and the reason why each of the others is not in the run."""

    programs: Mapping[str, Path]
    absent: Mapping[str, str]


def found(
    timescaledb: Path | None = None,
    questdb: Path | None = None,
    influxdb: Path | None = None,
    beside: str | None = None,
) -> Peers:
    """The installed ones. Raises LoadTestUsageError if a required one is missing."""
    given = {TIMESCALEDB: timescaledb, QUESTDB: questdb, INFLUXDB: influxdb}
    wanted = None if beside is None else [] if beside == "none" else [w.strip() for w in beside.split(",")]
    for word in wanted or ():
        if word not in NAMES:
            raise LoadTestUsageError(f"--beside '{word}' is not one of {', '.join(NAMES)}")
    programs: dict[str, Path] = {}
    absent: dict[str, str] = {}
    looks = {TIMESCALEDB: _timescaledb, QUESTDB: _questdb, INFLUXDB: _influxdb}
    for name, look in looks.items():
        if wanted is not None and name not in wanted:
            absent[name] = "not asked for"
            continue
        program = look(given[name])
        if isinstance(program, Path):
            programs[name] = program
        elif wanted is not None or given[name] is not None:
            raise LoadTestUsageError(f"{TITLES[name]} cannot be in the run: {program}")
        else:
            absent[name] = program
    return Peers(programs, absent)


def _timescaledb(given: Path | None) -> Path | str:
    folders = [*postgresql_folders()] if given is None else [given]
    for folder in folders:
        control = Path(_output(folder / "pg_config", "--sharedir")) / "extension" / "timescaledb.control"
        if control.is_file() and (folder / "initdb").exists():
            return folder.resolve()
    where = "no PostgreSQL here" if given is None else f"no PostgreSQL in {given}"
    return f"{where} has TimescaleDB installed (--timescaledb names its folder of programs)"


def postgresql_folders() -> Iterator[Path]:
    """The folders of PostgreSQL's programs, newest first of each kind."""
    if program := shutil.which("pg_config"):
        yield Path(_output(Path(program), "--bindir"))
    for pattern in _POSTGRESQL:
        yield from sorted(Path("/").glob(pattern[1:]), key=_version, reverse=True)


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(word) for word in folder.parent.name.split("-")[-1].split(".") if word.isdecimal())


def _questdb(given: Path | None) -> Path | str:
    if given is None:
        return "its jar is not named (--questdb)"
    if not given.is_file():
        return f"there is no file {given}"
    if shutil.which("java") is None:
        return "there is no java on the PATH"
    return _client("questdb") or given.resolve()


def _influxdb(given: Path | None) -> Path | str:
    program = str(given) if given else shutil.which("influxd")
    if program is None:
        return "there is no influxd on the PATH (--influxdb names one)"
    version = _output(Path(program), "version")
    if not version.startswith(("InfluxDB v1.", "InfluxDB 1.")):
        return f"{program} says '{version.partition(chr(10))[0]}': only version 1 is known"
    return _client("influxdb") or Path(program).resolve()


def _client(package: str) -> str:
    """The reason why a client cannot be used; empty if it can."""
    return "" if find_spec(package) else f"its client is not installed: pip install {package}"


def _output(program: Path, argument: str) -> str:
    """The output of a program; empty when it cannot be run."""
    try:
        done = subprocess.run([program, argument], capture_output=True, text=True, env=dict(os.environ))
    except OSError:
        return ""
    return done.stdout.strip()
