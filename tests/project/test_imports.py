"""Imports go one way: there are no circles of modules, and no package imports from ringlog/."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from servers import READER, WRITER

ROOT = Path(__file__).parents[2]


def modules() -> dict[str, Path]:
    """The file of each module of the package, by its name."""
    folders = {"ringlog": ROOT / "ringlog", "ringlog_lab": ROOT / "lab/ringlog_lab"}
    folders |= {f"ringlog.{file.parent.name}": file.parent for file in ROOT.glob("*/__init__.py")}
    found = {}
    for package, folder in folders.items():
        for file in folder.rglob("*.py"):
            inner = file.relative_to(folder).with_suffix("").parts
            found[".".join((package, *(part for part in inner if part != "__init__")))] = file
    return found


def imported(file: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in known else node.module


@cache
def graph() -> dict[str, set[str]]:
    known = modules()
    return {
        name: {one for one in imported(file, known) if one in known and one != name}
        for name, file in known.items()
    }


def test_there_are_no_circles() -> None:
    found = graph()
    assert "ringlog.schema.facility" in found["ringlog.clients.writer"]
    # raises CycleError, which names the modules of a circle
    assert len([*TopologicalSorter(found).static_order()]) == len(found)


def test_only_the_tests_import_the_lab() -> None:
    used = {
        name: {one for one in used if one.startswith("ringlog_lab")}
        for name, used in graph().items()
        if not name.startswith("ringlog_lab")
    }
    assert {name: of_the_lab for name, of_the_lab in used.items() if of_the_lab} == {}


def test_no_package_imports_from_the_command_line() -> None:
    known = modules()
    face = {name for name, file in known.items() if ROOT / "ringlog" in file.parents}
    below = {
        name: used & face for name, used in graph().items() if known[name].parts[len(ROOT.parts)] != "ringlog"
    }
    assert "ringlog.server.server" in face
    assert {name: used for name, used in below.items() if used} == {}


def test_the_process_of_http_begins_without_large_libraries() -> None:
    words = (
        "import sys, ringlog.server.processes.web_process;"
        " print(*{'sqlalchemy', 'pyarrow.dataset'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert found.stdout == "\n"


def test_the_server_has_none_of_the_libraries_that_its_processes_read_with() -> None:
    words = (
        "import sys, ringlog.commands.serve; from ringlog.server.processes import archive_server, web;"
        " web.demand_parts(); web.settings('127.0.0.1', 0, 'host=127.0.0.1');"
        " print(*{'numpy', 'pyarrow', 'duckdb', 'uvicorn', 'starlette'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert found.stdout == "\n"


# --- no test depends on another, according to the sources of the tests ---

TESTS = Path(__file__).parents[1]
# logins that many tests of one server use
SHARED = (WRITER.user, READER.user, "plain", "display")


def test_no_test_counts_the_sessions_of_a_shared_login() -> None:
    """A session of another test may remain: `own_login` has sessions of one test only."""
    by_login = re.compile(rf"usename\W{{0,5}}(=|in)\W{{0,5}}({'|'.join(SHARED)})\b")
    found = [
        f"{path.relative_to(TESTS)}: {line.strip()}"
        for path in TESTS.rglob("*.py")
        for line in path.read_text().splitlines()
        if by_login.search(line) and "re.compile" not in line
    ]
    assert found == []
