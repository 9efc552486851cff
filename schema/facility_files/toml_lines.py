"""The lines of a TOML file: of its tables and their keys, which tomllib does not report."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Path = tuple[tuple[str, int], ...]
"""Names of tables from the outside to the inside, with their numbers from 1 on."""

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([\w-]+))\s*[.=]""")
_QUOTES = re.compile(r'"""|\'\'\'')


@dataclass
class _Section:
    line: int
    keys: dict[str, int] = field(default_factory=dict)


class Lines:
    """The lines of tables with a header of their own; inline tables are found with the table around them."""

    def __init__(self, text: str) -> None:
        self._sections: dict[Path, _Section] = {(): _Section(1)}
        numbers: dict[Path, int] = {}
        here: Path = ()
        is_in_text = False
        for number, line in enumerate(text.splitlines(), 1):
            was_in_text = is_in_text
            is_in_text ^= len(_QUOTES.findall(line)) % 2 == 1
            if was_in_text:
                continue
            if header := _HEADER.match(line):
                names = [part.strip(" \"'") for part in header[2].split(".")]
                here = self._entered(names, header[1], numbers)
                self._sections.setdefault(here, _Section(number))
            elif key := _KEY.match(line):
                self._sections[here].keys.setdefault(key[1] or key[2] or key[3], number)

    @staticmethod
    def _entered(names: Sequence[str], bracket: str, numbers: dict[Path, int]) -> Path:
        path: Path = ()
        for name in names[:-1]:
            path += ((name, numbers.get((*path, (name, 0)), 1)),)
        counted = (*path, (names[-1], 0))
        numbers[counted] = numbers.get(counted, 0) + 1 if bracket == "[[" else 1
        return (*path, (names[-1], numbers[counted]))

    def of(self, path: Path, key: str = "") -> int | None:
        """The line of a key, else of its table's header, else of the nearest table around it that has one."""
        section = self._sections.get(path)
        if section is not None:
            return section.keys.get(key, section.line if path else None)
        return self.of(path[:-1], path[-1][0]) if path else None


@dataclass(frozen=True)
class Known:
    """The lines of a file, for the entries that are read from it."""

    lines: Lines
    path: Path = ()

    def inner(self, name: str, number: int) -> "Known":
        return Known(self.lines, (*self.path, (name, number)))

    def line(self, rule: str, content: Mapping[str, object]) -> int | None:
        """The line that a rule is about: of the key that it begins with, if there is one."""
        first = rule.partition(" ")[0].strip("':")
        return self.lines.of(self.path, first if first in content else "")


class Problem(str):
    """A rule that a file breaks, with the line, where it is known."""

    line: int | None

    def __new__(cls, message: str, line: int | None = None) -> "Problem":
        made = super().__new__(cls, message)
        made.line = line
        return made
