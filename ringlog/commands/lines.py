"""Terminal output: columns, ages as text, colours."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence

_COLOURS = {"red": 31, "yellow": 33, "green": 32, "quiet": 2, "bold": 1}


def age_text(seconds: float) -> str:
    """A duration as text, as `3 min` or `2 days`."""
    for length, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def coloured(text: str, colour: str) -> str:
    """The text in a colour of _COLOURS, on a terminal without NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def plain(text: object) -> str:
    """The text without control characters."""
    return "" if text is None else "".join(each if each.isprintable() else "?" for each in str(text))


def width_of(text: str) -> int:
    """The columns that a text takes; wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def screen() -> int:
    """Columns of the terminal; lines to a file or a pipe are not cut."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 1000


def columns(rows: Sequence[Sequence[object]], right: Sequence[int] = ()) -> Iterator[str]:
    """Rows as lines, in columns as wide as they need; `right` are columns aligned to the right. Lines are cut
    at the width of the terminal."""
    texts = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(*texts, strict=True)]
    most = screen()
    for row in texts:
        parts = []
        for index, (text, width) in enumerate(zip(row, widths, strict=True)):
            room = " " * (width - width_of(text))
            parts.append(room + text if index in right else text + room)
        yield fitting("  ".join(parts).rstrip(), most)


def fitting(line: str, most: int) -> str:
    """The line, cut at this width."""
    if width_of(line) <= most:
        return line
    while width_of(line) > most - 1:
        line = line[:-1]
    return f"{line}…"
