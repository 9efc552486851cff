"""Every command says what it does and takes."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from ringlog.cli import app
from servers import run


def commands(of: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group of commands."""
    yield words
    if isinstance(of, TyperGroup):
        for name in of.list_commands(None):
            yield from commands(of.get_command(None, name), *words, name)


@pytest.mark.parametrize("words", [*commands(get_command(app))], ids=" ".join)
def test_help_is_there(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0, shown.exception
    assert f"Usage: ringlog {' '.join(words)}".strip() in shown.output.replace("root", "ringlog")
    assert "--help" in shown.output


def test_the_help_shows_the_whole_url() -> None:
    shown = CliRunner().invoke(app, ["load", "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert "tds://user@host:port[,host:port …][/database]" in shown.output


def test_an_unknown_command_names_a_similar_one() -> None:
    shown = CliRunner().invoke(app, ["statsu"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 2
    assert "Did you mean 'status'" in shown.output


def test_a_command_loads_what_it_needs() -> None:
    """Whoever starts many commands, as these tests do, pays for each import."""
    loaded = "import sys; from ringlog.cli import app; app(['dsn', '--help'], standalone_mode=False); "
    found = run(sys.executable, "-P", "-c", loaded + "print(*sys.modules)").stdout.splitlines()[-1].split()
    assert "ringlog.commands.dsn" in found
    assert not {"sqlalchemy", "numpy", "pyarrow", "ringlog.loadtest"}.intersection(found)
