"""The packages, and their requirements."""

import configparser
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ringlog import procedures
from ringlog.gateway import tsql_schema

ROOT = Path(__file__).parents[2]


def listed(section: str, option: str) -> list[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser[section][option].split("\n")[1:]


def test_every_part_is_a_package_below_ringlog() -> None:
    links = {link.name: link.readlink() for link in (ROOT / "ringlog").iterdir() if link.is_symlink()}
    parts = {file.parent.name for file in ROOT.glob("*/__init__.py")} - {"ringlog"}
    assert links == {part: Path("..") / part for part in parts}


def test_the_source_distribution_has_every_crate() -> None:
    members = tomllib.loads((ROOT / "gateway/Cargo.toml").read_text())["workspace"]["members"]
    grafted = set(re.findall(r"(?m)^graft gateway/(\S+)$", (ROOT / "MANIFEST.in").read_text()))
    assert {"src" if member == "." else member for member in members} == grafted


@pytest.mark.parametrize(
    "folder",
    [
        *("adoption", "clients", "gateway/sql", "history", "loadtest", "procedures", "retrieval", "schema"),
        *("ringlog/commands", "ringlog/monitoring", "ringlog/nodes"),
    ],
)
def test_every_sql_file_is_in_the_wheel(folder: str) -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    every = [file.parent for file in (ROOT / folder.partition("/")[0]).glob("**/__init__.py")]
    packed = {
        file
        for package, patterns in parser["options.package_data"].items()
        for pattern in patterns.split(", ")
        for source in (every if package == "*" else [ROOT.joinpath(*package.split(".")).resolve()])
        for file in source.glob(pattern)
    }
    existing = {*(ROOT / folder).glob("**/*.sql")}
    assert existing
    assert existing <= packed


@pytest.mark.parametrize(
    ("folder", "files"), [("gateway/sql", tsql_schema.ORDER), ("procedures/system", procedures.SYSTEM)]
)
def test_every_sql_file_is_installed(folder: str, files: tuple[str, ...]) -> None:
    existing = [str(file.relative_to(ROOT / folder)) for file in (ROOT / folder).glob("**/*.sql")]
    assert sorted(existing) == sorted(f"{file}.sql" for file in files)


def test_all_parts_have_the_version_that_the_changelog_begins_with() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    version = parser["metadata"]["version"]
    gateway = tomllib.loads((ROOT / "gateway/Cargo.toml").read_text())["workspace"]["package"]["version"]
    lab = tomllib.loads((ROOT / "lab/pyproject.toml").read_text())["project"]["version"]
    (newest, *_) = re.findall(r"(?m)^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text())
    assert [gateway, lab, newest] == [version] * 3


BLOCKED = """
import sys

class Blocked:
    names = set(sys.argv.pop(1).split(","))

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from ringlog.cli import main
main()
"""


def without_extras(*words: str) -> subprocess.CompletedProcess[str]:
    """`ringlog` with only its required packages installed."""
    required = {name(line) for line in listed("options", "install_requires") if not line.startswith("#")}
    extras = {name(line) for extra in extra_names() for line in listed("options.extras_require", extra)}
    blocked = {package for package in extras - required if package not in ("", "ringlog")}
    assert {"pymssql", "locust", "matplotlib"} <= blocked
    return without(",".join(sorted(blocked)), *words)


def without(packages: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`ringlog` without some packages, which are separated by commas."""
    command = [sys.executable, "-P", "-c", BLOCKED, packages, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def extra_names() -> list[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return [extra for extra in parser["options.extras_require"] if extra != "test"]


def name(requirement: str) -> str:
    """The module of a requirement in setup.cfg."""
    found = re.match(r"[\w-]+", requirement)
    return found[0].lower().replace("-", "_") if found else ""


@pytest.mark.long
def test_the_server_needs_no_extra(temporary_directory: Path, tmp_path: Path) -> None:
    """A facility is installed and maintained; `serve` is `init` and the gateway, which is Rust."""
    facility = tmp_path / "facility.toml"
    facility.write_text(
        '[[table]]\nname = "t"\nrows = 9\ncycle = 1\n[[table.column]]\nname = "a"\ntype = "real"\n'
    )
    ran = without_extras(
        "init", "--facility", str(facility), "--data", str(temporary_directory / "no-extras")
    )
    assert ran.returncode == 0, ran.stderr
    assert without_extras("serve", "--help").returncode == 0


@pytest.mark.parametrize(
    "words", [("bench",), ("plan", "--nodes"), ("loadtest", "half"), ("loadtest", "soak")]
)
def test_a_command_of_the_lab_names_its_installation(words: tuple[str, ...]) -> None:
    ran = without("ringlog_lab", *words)
    assert ran.returncode == 2
    assert ran.stderr == "ringlog: ringlog-lab is not installed: run `make lab` in ringlog's sources\n"


def test_commands_are_listed_without_the_lab() -> None:
    ran = without("ringlog_lab", "loadtest", "--help")
    assert ran.returncode == 0, ran.stderr
    assert "Part of ringlog-lab, which is not installed." in ran.stdout


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    ran = without_extras("loadtest", "normal", "--time", "1s", "--output", str(tmp_path / "report"))
    assert ran.returncode == 2
    assert "is not installed: pip install 'ringlog[loadtest]'" in ran.stderr
