"""Every command has a help text with its options."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from ringlog.cli import EXPECTED, OF_POSTGRESQL, app
from servers import ringlog, run


def commands(of: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group of commands."""
    yield words
    if isinstance(of, TyperGroup):
        for name in of.list_commands(None):
            yield from commands(of.get_command(None, name), *words, name)


@pytest.mark.parametrize("words", [*commands(get_command(app))], ids=" ".join)
def test_each_command_has_help(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0, shown.exception
    assert f"Usage: ringlog {' '.join(words)}".strip() in shown.output.replace("root", "ringlog")
    assert "--help" in shown.output


def test_the_help_shows_the_whole_url() -> None:
    shown = CliRunner().invoke(app, ["load", "--help"], terminal_width=200)
    assert "tds://user@host:port[,host:port …][/database]" in " ".join(shown.output.split())


def test_commands_of_the_lab_are_listed_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "  bench " in CliRunner().invoke(app, ["--help"]).output
    monkeypatch.setattr("ringlog.commands.group.find_spec", lambda _: None)
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "  status " in shown
    assert not [name for name in ("bench", "plan") if f"  {name} " in shown]


def test_an_unknown_command_names_a_similar_one() -> None:
    shown = CliRunner().invoke(app, ["statsu"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 2
    assert "Did you mean 'status'" in shown.output


def test_expected_errors_exist() -> None:
    for name in (*EXPECTED, *OF_POSTGRESQL):
        module, _, error = name.rpartition(".")
        assert issubclass(getattr(import_module(module), error), Exception), name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("adopt somewhere", "the URL has no scheme: write tds://user@host:port"),
        ("adopt tds://sa@127.0.0.1:1/plant", "no password for tds://sa@127.0.0.1:1/plant: give "),
        ("loadtest normal --time soon", "'soon' is not a duration"),
    ],
)
def test_a_wrong_word_gets_one_line(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RINGLOG_PASSWORD", raising=False)
    ended = ringlog(*words.split(), HOME=str(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"ringlog: {message}")
    assert len(ended.stderr.splitlines()) == 1


HEAVY = {"sqlalchemy", "numpy", "pyarrow", "rich", "orjson", "starlette", "pydantic", "ringlog.loadtest"}


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("--help", {"psycopg", "psutil", "importlib.metadata", "tempfile"}),
        ("--version", {"psycopg", "psutil"}),
        ("dsn --help", set()),
        ("status --help", set()),
        ("signals --help", set()),
        ("latest --help", set()),
        ("user --help", set()),
        ("report losses --help", set()),
        ("doctor --help", set()),
        ("export --help", {"psycopg", "psutil", "urllib.request"}),
        ("plot --help", {"psycopg", "psutil", "urllib.request"}),
    ],
)
def test_a_command_imports_only_its_modules(words: str, others: set[str]) -> None:
    """Each import costs time at every start: none of these packages, and few modules in total."""
    loaded = f"import sys; from ringlog.cli import app; app({words.split()!r}, standalone_mode=False); "
    found = run(sys.executable, "-P", "-c", loaded + "print(*sys.modules)").stdout.splitlines()[-1].split()
    assert "ringlog.commands.group" in found
    assert not (HEAVY | others).intersection(found)
    assert len(found) < (250 if others else 460)


def test_the_list_of_commands_describes_each() -> None:
    """The list has its own texts: no command is imported for it."""
    shown = CliRunner().invoke(app, ["-h"], terminal_width=120)
    group = get_command(app)
    for name in group.list_commands(None):  # type: ignore[attr-defined]
        (line,) = (line for line in shown.output.splitlines() if line.split()[:1] == [name])
        assert len(line) <= 120
        assert len(line.split()) > 2 or name in ("user", "facility")


def test_no_option_is_cut_on_a_narrow_terminal() -> None:
    shown = CliRunner().invoke(app, ["serve", "-h"], env={"COLUMNS": "80", "TERM": "dumb"})
    assert "--housekeeping" in shown.output or "--http-role" in shown.output
    assert "…" not in shown.output
