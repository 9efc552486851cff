"""Hooks of mkdocs: reference pages get the parts that are generated from the code.

In a page `<!-- options -->` becomes the options of all commands, `<!-- routes -->` the routes of the
plain API, `<!-- procedures -->` signature and comment of the procedures for clients, `<!-- writers -->` the
metrics of `ringlog load`.
"""

import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from ringlog.cli import app
from ringlog.loader.metrics import Metrics
from ringlog.procedures import OF_A_SAMPLE_TABLE, OF_A_TABLE, OVER_ALL_TABLES
from ringlog.retrieval.plain.openapi import DESCRIPTION

_OF_TABLES = {
    **{f"rows/{file}.sql": name for file, name in OF_A_TABLE.items() if file != "import"},
    **{f"samples/{file}.sql": name for file, name in OF_A_SAMPLE_TABLE.items()},
}
_CALLED = (
    *(
        "get_signal",
        "get_latest",
        "get_trend",
        "get_trends",
        "get_statistics",
        "get_states",
        "get_distribution",
    ),
    *("get_spans", "get_statistics_while", "get_trend_while", "get_distribution_while"),
    *("get_waveform", "get_waveforms", "get_waveform_points", "get_waveform_trend"),
    *("find_signals", "describe_signal", "list_signals", "signal_states"),
    *("add_signal", "change_signal", "pause_signal", "resume_signal", "rename_signal", "retire_signal"),
    *("written_signals", "report_signals", "claim_writer", "release_claim"),
)


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


def _procedure(file: str, name: str) -> Iterator[str]:
    """Heading, signature and comment of the procedure that a file makes, which is a template for a table."""
    source = (files("ringlog.procedures") / file).read_text()
    ((signature, comment),) = re.findall(
        r"^create (?:or replace )?function (.*?)\nlanguage .*^comment on function [^$]*\$\$(.*?)\$\$;",
        source,
        re.M | re.S,
    )
    yield f"### {name}{' of samples' * file.startswith('samples/')}\n".replace("<", "&lt;")
    yield "```sql"
    for place, shown in (
        ("{procedure}", name),
        ("ringlog.", ""),
        ("{ring}", "online.<table>"),
        ("{log}", "log.<table>"),
        ("{lengths}", ",\n  lengths integer[] default null"),
    ):
        signature = signature.replace(place, shown)
    yield re.sub(r"\{(\w+)\}", r"<\1>", signature)
    yield "```\n"
    yield _cell(re.sub(r"\{\w+\}", "", comment)) + "\n"


def procedures() -> Iterator[str]:
    """A section for each procedure that clients call."""
    for file, name in _OF_TABLES.items():
        yield from _procedure(file, name.format("<table>"))
    for name in _CALLED:
        yield from _procedure(f"{OVER_ALL_TABLES[name]}.sql", name)


def writers() -> Iterator[str]:
    """A table of the writers' metrics, with the names of their samples."""
    yield "| metric | meaning |\n|---|---|"
    for metric in Metrics({}).collect():
        yield f"| `{metric.name}{'_total' * (metric.type == 'counter')}` | {_cell(metric.documentation)} |"


GENERATED: dict[str, Callable[[], Iterator[str]]] = {
    "<!-- options -->": options,
    "<!-- routes -->": routes,
    "<!-- procedures -->": procedures,
    "<!-- writers -->": writers,
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    for mark, generate in GENERATED.items():
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(generate()))
    return markdown
