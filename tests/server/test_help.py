"""Every command says what it does and takes."""

from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from ringlog.cli import app


def commands(of: typer.Typer, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group of commands."""
    yield words
    for command in of.registered_commands:
        assert command.callback is not None
        yield (*words, command.name or command.callback.__name__.replace("_", "-"))
    for group in of.registered_groups:
        assert group.typer_instance is not None
        assert group.name is not None
        yield from commands(group.typer_instance, *words, group.name)


@pytest.mark.parametrize("words", [*commands(app)], ids=" ".join)
def test_help_is_there(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0, shown.exception
    assert f"Usage: ringlog {' '.join(words)}".strip() in shown.output.replace("root", "ringlog")
    assert "--help" in shown.output


def test_the_url_is_told_in_full() -> None:
    shown = CliRunner().invoke(app, ["load", "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert "tds://user@host:port[,host:port …][/database]" in shown.output
