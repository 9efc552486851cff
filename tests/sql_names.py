"""The names in ringlog's own SQL, read from its sources."""

import re
from pathlib import Path

import ringlog
from ringlog.history.archive.parquet.forms import ROWS

_NAME = r'"?([a-z][a-z0-9_]*)"?'
_TYPES = (
    r"(?:text|integer|bigint|timestamptz|boolean|double precision|interval|record|regclass|regtype|oid|real"
    r"|jsonb?|name|smallint)"
)
_IN_PYTHON = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'', re.DOTALL)


def names_in_sql() -> list[str]:
    """The aliases, parameters, variables and output columns of ringlog's own SQL."""
    found: set[str] = set()
    root = Path(ringlog.__file__).parent
    for file in (file for part in root.iterdir() for file in part.resolve().rglob("*")):
        if file.suffix == ".sql" and "system" not in file.parts and "gateway" not in file.parts:
            text = file.read_text()
            found.update(re.findall(rf"^  {_NAME} (?:constant )?{_TYPES}\b", text, re.MULTILINE))
            found.update(re.findall(rf"\b(?:out |[(] ?){_NAME} {_TYPES}\b", text))
            texts = [text]
        elif file.suffix == ".py" and "gateway" not in file.parts:
            texts = ["".join(match) for match in _IN_PYTHON.findall(file.read_text())]
            texts = [each for each in texts if re.search(r"\b(select|update|insert|delete|join)\b", each)]
        else:
            continue
        for each in texts:
            found.update(re.findall(rf"\bas {_NAME}", each))
            for listed in re.findall(r"\bas \w+ \(([a-z0-9_, \"]+)\)", each):
                found.update(re.findall(_NAME, listed))
    # a column nanoseconds is an option of its table
    return sorted(found - {*ROWS.key, "nanoseconds", "ringlog_owner"})
