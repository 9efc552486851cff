"""Names with an owner in the texts of an old server.

In ringlog names have no owner: the first part of `a.b` is a database, and `db.a.b` is refused except for dbo.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Module

_PLAIN_OWNERS = frozenset({"dbo", "sys", "information_schema"})
SKIPPED = r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/"
PART = r"\[[^\]\n]+\]|\"[^\"\n]+\"|[\w$#@]+"
BEFORE = r"(?:\s|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
"""Blanks and comments in front of a statement. It does not backtrack: a line of dashes has many matches."""
_HEAD = re.compile(
    rf"(?is)\A({BEFORE}create\s+(?:or\s+(?:alter|replace)\s+)?(?:proc(?:edure)?|view|function|trigger)\s+)({PART})"
)


def renamed(module: Module, names: Mapping[str, Mapping[str, str]], database: str) -> Module:
    """The module with the names that objects have here.

    The module is refused if it has a name without owner that means another object here. Owners, names and
    database are in small letters.
    """
    there = module.name.lower()
    here = names.get(module.owner.lower(), {}).get(there, module.name)
    text = without_owners(module.text, names, database)
    if here != module.name:
        text = _HEAD.sub(lambda found: found[1] + _instead(found[2], there, here), text)
    moved = {name for name, new in names.get(module.owner.lower(), {}).items() if new.lower() != name}
    refused = next(
        (
            f"line {line}: {name} has no owner; it is {module.owner}.{name} there, "
            f"and {names[module.owner.lower()][name]} here: write the owner"
            for line, name in _bare(text, moved)
        ),
        "",
    )
    return replace(module, name=here, text=text, refused=refused)


def _instead(written: str, there: str, here: str) -> str:
    return quoted(here) if plain(written) == there else written


def plain(written: str) -> str:
    return written.strip('[]"').lower()


def _bare(text: str, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """Names without an owner, each with its line."""
    if names:
        pattern = re.compile(rf"(?is){SKIPPED}|(?<![\w$#@])(?P<name>{_any(names)})(?![\w$#@])|\[[^\]\n]*\]")
        for found in pattern.finditer(text):
            if found["name"] and not re.search(r"\.\s*\Z", text[max(found.start() - 9, 0) : found.start()]):
                yield text.count("\n", 0, found.start()) + 1, plain(found["name"])


def _any(names: Collection[str]) -> str:
    plain = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return rf"\[(?:{plain})\]|\"(?:{plain})\"|(?:{plain})"


def without_owners(text: str, names: Mapping[str, Mapping[str, str]], database: str) -> str:
    """The text with the name here in place of `owner.name` and `database.owner.name`.

    `names`: by owner and name, in small letters, the name here. Literals, comments and names of other
    databases stay as they are.
    """
    owners = {owner: those for owner, those in names.items() if owner not in _PLAIN_OWNERS and those}
    if not owners:
        return text
    pattern = re.compile(
        rf"(?is){SKIPPED}"
        # a name in quotation marks, or else a whole text in them
        rf"|(?<![\w$#@.\]\"])(?:(?:{_any([database])})\s*\.\s*)?(?P<owner>{_any(owners)})\s*\.\s*(?P<name>{PART})"
        r"|\"(?:[^\"]|\"\")*\""
    )

    def shortened(found: re.Match[str]) -> str:
        if found["owner"] is None or re.search(r"\.\s*\Z", text[max(found.start() - 9, 0) : found.start()]):
            return found[0]
        owner, name = plain(found["owner"]), plain(found["name"])
        here = owners[owner].get(name)
        if here is None:
            return found[0]
        return found["name"] if here.lower() == name else quoted(here)

    return pattern.sub(shortened, text)
