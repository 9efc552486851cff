"""Hooks of mkdocs: reference pages get the parts that are generated from the code.

In a page `<!-- options -->` becomes the options of all commands, `<!-- routes -->` the routes of the
plain API.
"""

from collections.abc import Callable, Iterator
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from ringlog.cli import app
from ringlog.retrieval.plain.openapi import DESCRIPTION


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Each subcommand with its full name."""
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    for name in command.list_commands(None):  # type: ignore[arg-type]
        yield from _commands(command.get_command(None, name), f"{path} {name}")  # type: ignore[arg-type]


def _cell(text: object) -> str:
    return " ".join(str(text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def options() -> Iterator[str]:
    """A section for each command, with a table of its arguments and options."""
    for name, command in _commands(get_command(app), "ringlog"):
        yield f"### {name}\n"
        yield f"{_cell(command.help)}\n"
        shown = [
            each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"
        ]
        if shown:
            yield "| | value | meaning |\n|---|---|---|"
        for each in shown:
            names = ", ".join(f"`{option}`" for option in (*each.opts, *each.secondary_opts))
            label = f"`{each.name}`" if each.param_type_name == "argument" else names
            value = "" if getattr(each, "is_flag", False) else _cell(each.metavar)
            yield f"| {label} | {value} | {_cell(getattr(each, 'help', ''))} |"
        yield ""


def routes() -> Iterator[str]:
    """A section for each route of the plain API, with its parameters."""
    for path, methods in DESCRIPTION["paths"].items():
        for method, route in methods.items():
            yield f"### {method.upper()} {path}\n"
            yield f"{_cell(route.get('summary'))}\n"
            parameters = route.get("parameters", [])
            if parameters:
                yield "| parameter | meaning |\n|---|---|"
            for each in parameters:
                choices = ", ".join(each.get("schema", {}).get("enum", []))
                words = "; ".join(filter(None, (_cell(each.get("description")), choices)))
                yield f"| `{each['name']}`{' (required)' if each.get('required') else ''} | {words} |"
            yield ""


GENERATED: dict[str, Callable[[], Iterator[str]]] = {
    "<!-- options -->": options,
    "<!-- routes -->": routes,
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    for mark, generate in GENERATED.items():
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(generate()))
    return markdown
