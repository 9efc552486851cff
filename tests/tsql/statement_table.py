"""The table of statements: T-SQL and its results, as plain data in statements/*.toml.

Each file names the documentation its expectations are from (`source`). Its tables `both`, `microsoft` and
`sybase` have rows of a text and its answer by that server: the rows of one result set, or an error's number.
Its other cases have:

* `text`: the batch. `setup`: batches run before it, whose results do not matter; procedures are made in
  database `cases`.
* `only`: "microsoft" or "sybase" where the two servers differ; else both give the same.
* `rows`: shorthand for one result set. `error`: for one error by its number.
* `expect`: everything that comes, in order. Each has one of `rows` (with `columns`, if their names count),
  `count`, `message`, `error` (with `line` or `says`, a part of its text; `sybase` is ASE's number where it is
  another), `status`.

Cells are the text of the value: NULL, 0x0A, 2026-11-20 15:04:05, 1.50.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "statements"


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    setup: tuple[str, ...]
    only: str | None
    expect: tuple[dict[str, Any], ...]

    def runs_in(self, sybase: bool) -> bool:
        return self.only is None or self.only == ("sybase" if sybase else "microsoft")


@cache
def cases() -> tuple[Case, ...]:
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        file = tomllib.loads(path.read_text())
        rows = [
            {"text": text, "error" if isinstance(answer, int) else "rows": answer, "only": only}
            for only, table in ((None, "both"), ("microsoft", "microsoft"), ("sybase", "sybase"))
            for text, answer in file.get(table, [])
        ]
        for number, entry in enumerate([*rows, *file.get("case", [])], 1):
            expect = entry.get("expect")
            if expect is None:
                expect = [{key: entry[key] for key in ("rows", "error", "sybase") if key in entry}]
            setup = entry.get("setup", [])
            found.append(
                Case(
                    f"{path.stem}-{number}",
                    entry["text"],
                    (setup,) if isinstance(setup, str) else tuple(setup),
                    entry.get("only"),
                    tuple(expect),
                )
            )
    return tuple(found)
