"""Procedures that compose and run SQL: names in such texts are reported, and not changed."""

import re
from collections.abc import Iterator, Mapping, Sequence

from ringlog.adoption.conversion.owners import without_owners
from ringlog.adoption.server.objects import Module

_SKIPPED = r"(?P<text>'(?:[^']|'')*')|--[^\n]*|/\*.*?\*/"
# a text or variable in parentheses, sp_executesql, or a procedure that a variable names (not its status)
_RUN = re.compile(
    rf"(?is){_SKIPPED}"
    r"|(?P<run>\bexec(?:ute)?\s*\(|\bsp_executesql\b|\bexec(?:ute)?\s+@[\w$#@]+(?![\w$#@]|\s*=)|\bopenquery\b)"
)
_QUOTED = r"|(?P<quoted>\"(?:[^\"]|\"\")*\")"
_MOST = 8  # names reported of a module


def names_in_dynamic_sql(
    modules: Sequence[Module], names: Mapping[str, Mapping[str, str]], database: str, is_ase: bool
) -> Iterator[str]:
    """A line for each module that runs such texts: their lines, and the names in them that differ here.

    `names`: by owner and name, in small letters, the name here.
    """
    for module in modules:
        texts_in_quotes = module.quoted is False or (module.quoted is None and is_ase)
        pattern = re.compile(_RUN.pattern + _QUOTED) if texts_in_quotes else _RUN
        parts = [*pattern.finditer(module.text)]
        lines = sorted({_line(module.text, part.start()) for part in parts if part["run"]})
        if not lines:
            continue
        changed: list[str] = []
        for part in parts:
            literal = part["text"] or (part["quoted"] if texts_in_quotes else None)
            if literal is not None:
                changed += _changed(module.text, part.start(), literal, names, database)
        where = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
        line = f"{module.kind} {module.name} runs SQL that it composes ({where}): names in it are not changed"
        if changed:
            more = ", …" if len(changed) > _MOST else ""
            line += f"; change there {', '.join(changed[:_MOST])}{more}"
        yield line


def _changed(
    text: str, start: int, literal: str, names: Mapping[str, Mapping[str, str]], database: str
) -> Iterator[str]:
    """Names with an owner in a text, each with its line and its name here."""
    inner = literal[1:-1].replace("''", "'")
    for name in re.finditer(r"[\w$#@\[\]\"]+(?:\s*\.\s*[\w$#@\[\]\"]+)+", inner):
        here = without_owners(name[0], names, database)
        if here != name[0]:
            yield f"{name[0]} to {here} (line {_line(text, start) + inner.count(chr(10), 0, name.start())})"


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
