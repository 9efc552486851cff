"""The words of a search for signals, as parts of its query."""

import re
from collections.abc import Sequence

from psycopg import sql

from ringlog.retrieval.texts import query
from ringlog.schema.layout import SCALARS

FIELDS = ("signal", "table", "column", "device", "unit", "description")
"""fields to which a word can be restricted, as in `unit:Pa`; a signal's device is its name before the last
/"""


def search_query(text: str, limit: int, offset: int = 0) -> sql.Composed:
    """The query for signals that contain all words of a text, in any order.

    A word is searched in the signal's name, table, column, description and unit, or in one of FIELDS if that
    and a colon precede it (a unit must match as a whole). * stands for any characters, ? for one; /…/ is a
    regular expression of PostgreSQL without regard to case, and ^ and $ are the ends of the name, the
    description and so on. Scalars of a waveform (history.summaries.waveforms) are found if a word names them.
    """
    words, fields, patterns = [], [], []
    scalars = set()
    for each in text.split():
        field, colon, rest = each.partition(":")
        if not colon or not rest or field not in FIELDS:
            field, rest = "", each
        words.append(rest.lower())
        fields.append(field)
        patterns.append(_pattern(rest, whole=field == "unit"))
        scalars |= {scalar for scalar in SCALARS if rest.lower().rpartition(".")[2] == scalar}
    plain = [word for word, pattern in zip(words, patterns, strict=True) if pattern is None]
    return query(
        "search",
        words=_array(words),
        fields=_array(fields),
        patterns=_array(patterns),
        first=sql.Literal(plain[0] if plain else ""),
        scalars=_array(sorted(scalars)),
        limit=sql.Literal(limit),
        offset=sql.Literal(offset),
    )


def _pattern(word: str, *, whole: bool) -> str | None:
    """The regular expression of a word; None: a plain text."""
    if len(word) > 2 and word.startswith("/") and word.endswith("/"):
        return f"(?n){word[1:-1]}"
    if not whole and not set(word) & {"*", "?"}:
        return None
    parts = (
        ".*" if part == "*" else "." if part == "?" else re.escape(part) for part in re.split(r"([*?])", word)
    )
    return f"(?n)^{''.join(parts)}$" if whole else f"(?n){''.join(parts)}"


def _array(values: Sequence[str | None]) -> sql.Composable:
    return sql.SQL("{}::text[]").format(sql.Literal([*values]))
