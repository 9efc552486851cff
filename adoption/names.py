"""Names of an old database's objects, quoted for T-SQL of both servers."""

import re
from functools import cache
from importlib.resources import files


def quoted(name: str) -> str:
    """A name as either server takes it in a text, whatever the session's settings are."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _reserved():
        return name
    return "[" + name.replace("]", "]]") + "]"


@cache
def _reserved() -> frozenset[str]:
    """Words that are no names by themselves: SQL Server's reserved keywords, and those of ASE."""
    words = files(__name__.rpartition(".")[0]).joinpath("sql", "reserved_words.txt").read_text()
    return frozenset(words.split())
