"""Runs the tests of a folder on a server of its own, and prints how many are equal, different and refused."""

import argparse
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymssql

from ringlog.loadtest.experiment.running import temporary_folder
from ringlog_lab.sqllogictest.records import Record, is_expected, records_of
from ringlog_lab.tsql_database import database, server_without_tables

_OWNER = "sqllogictest"
"""the login, and its database"""
_SHOWN = 20
"""differences that are printed"""


@dataclass
class Counts:
    """Of queries; statements count when they do not end as the record says."""

    files: int = 0
    equal: int = 0
    different: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """by error"""
    statements: Counter[str] = field(default_factory=Counter)
    """by error; these create what later queries read"""
    examples: dict[str, str] = field(default_factory=dict)
    """the first place of each error"""

    def refuse(self, refused: Counter[str], error: str, where: str) -> None:
        refused[error] += 1
        self.examples.setdefault(error, where)

    def print(self) -> None:
        total = self.equal + self.different + self.refused.total()
        print(f"{self.files} files, {total} queries: {self.equal} equal, {self.different} different,")
        print(f"{self.refused.total()} refused; {self.statements.total()} statements ended otherwise")
        for what, errors in (("refused", self.refused), ("statement", self.statements)):
            for error, count in errors.most_common():
                print(f"{what} {count}: {error} ({self.examples[error]})")


def main() -> None:
    """Ends with an error if a query has another result."""
    arguments = argparse.ArgumentParser(prog="python -m ringlog_lab.sqllogictest", description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--seconds", type=float, default=float("inf"), help="begins no query after it")
    arguments.add_argument("--seed", type=int, default=1, help="decides the order of the files")
    asked = arguments.parse_args()
    files = sorted(asked.folder.rglob("*.test"))
    if not files:
        sys.exit(f"{asked.folder} has no file *.test")
    random.Random(asked.seed).shuffle(files)
    counts = Counts()
    end = time.monotonic() + asked.seconds
    with temporary_folder() as folder, server_without_tables(folder) as server:
        for file in files:
            if time.monotonic() > end:
                break
            with database(server, _OWNER) as connection:
                _run(file, connection, counts, end)
            counts.files += 1
    counts.print()
    sys.exit(counts.different > 0)


def _run(file: Path, connection: Any, counts: Counts, end: float) -> None:
    cursor = connection.cursor()
    for record in records_of(file):
        if time.monotonic() > end:
            return
        where = f"{file.parent.name}/{file.name}:{record.line}"
        try:
            cursor.execute(record.sql)
            rows = cursor.fetchall() if record.types else ()
        except pymssql.Error as error:
            if record.types:
                counts.refuse(counts.refused, _cause(error), where)
            elif not record.fails:
                counts.refuse(counts.statements, _cause(error), where)
            continue
        if not record.types:
            if record.fails:
                counts.refuse(counts.statements, "no error", where)
        elif is_expected(record, rows):
            counts.equal += 1
        else:
            counts.different += 1
            if counts.different <= _SHOWN:
                print(f"{where}: {_short(record)}: {list(rows)[:3]}, not {record.expected[:3]}", flush=True)


def _short(record: Record) -> str:
    return " ".join(record.sql.split())[:300]


def _cause(error: pymssql.Error) -> str:
    """An error's number and text, without the names and numbers in it."""
    number, text = error.args if len(error.args) == 2 else (0, str(error))
    text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", text.splitlines()[0])
    text = re.sub(r"\d+", "n", text)[:120]
    return f"{number}: {text}"


if __name__ == "__main__":
    main()
