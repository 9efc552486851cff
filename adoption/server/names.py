"""Names of an old database's objects, quoted for T-SQL of both servers."""

import re
from functools import cache
from importlib.resources import files


def quoted(name: str) -> str:
    """A name quoted for both servers, under all settings of a session."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _reserved():
        return name
    return "[" + name.replace("]", "]]") + "]"


@cache
def _reserved() -> frozenset[str]:
    """Reserved keywords of SQL Server and of ASE."""
    words = files(__name__.rpartition(".")[0]).joinpath("sql", "reserved_words.txt").read_text()
    return frozenset(words.split())
