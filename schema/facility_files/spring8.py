"""SPring-8 as a facility file: it has the figures that papers/004 gives of SPring-8's on-line database.

A. Yamashita et al., "RDBMS on Linux for Accelerator Control", ICALEPCS 1999, section 5.1: 60 tables of 2,000
to 4,000 rows, 9,152 columns with sequential number and time, up to 250 data to a table every 1 to 30 seconds,
6.4 KB/s. The paper does not list the columns of each equipment; they are made up in spring8.toml after the
machine: a storage ring, its booster synchrotron, linac and beamlines, and New SUBARU.

Section 2 has 226 tables of parameters and does not list them. Here each of the 60 tables has three: where its
devices are, the calibration of its signals, and when to raise an alarm. The 23 whose devices are driven have
two more: set points, and how they are reached. 60 · 3 + 23 · 2 = 226.

    python -m ringlog.schema.facility_files.spring8 > spring8.toml
"""

import json
import os
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

_DRIVEN = ("mag_ps", "sth", "stv", "rf", "llrf", "klystron", "id")
"""Kinds of equipment that set points drive, as the tables are named after the machine."""
_COLUMN = ("name", "count", "signal", "type", "unit", "description", "limits")
"""the keys of a column in their order"""


def _tables(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The tables, each with the keys of a facility file and its columns."""
    for part in parts:
        for each in part.get("each", "-"):
            for table in part["tables"]:
                text = json.dumps(table).replace("{each}", each).replace("{EACH}", each.upper())
                yield {"log": '"every"', "retention": "10 years", **json.loads(text)}


def _columns(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    device = table.get("device", f"{table['name']}_{{n}}")
    for kind, unit, low, high in table.get("readings", ()):
        yield {
            "name": f"{kind}_{{n}}",
            "count": table["devices"],
            "signal": f"{device}/{kind}",
            "type": "real",
            "unit": unit,
            "description": f"{table['what']} {{n}}, {kind}",
            "limits": [low, high],
        }
    for column in table.get("columns", ()):
        yield {"type": "real", **column}


def _is_driven(name: str) -> bool:
    kind = name.partition("_")[2]
    return any(kind == one or kind.startswith(f"{one}_") for one in _DRIVEN)


def _value(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else str(value)


def toml() -> Iterator[str]:
    """The lines of the facility file."""
    equipment = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    tables = [*_tables(equipment["part"])]
    yield "# SPring-8 with the figures of papers/004."
    yield 'name = "SPring-8"'
    yield 'timezone = "Asia/Tokyo"'
    for table in tables:
        yield "\n[[table]]"
        for key in ("name", "description", "rows", "cycle"):
            yield f"{key} = {_value(table[key])}"
        yield f"log = {table['log']}"
        yield f'retention = "{table["retention"]}"'
        for column in _columns(table):
            yield "\n[[table.column]]"
            yield from (f"{key} = {_value(column[key])}" for key in _COLUMN if key in column)
    for table in tables:
        driven = equipment["driven"] if _is_driven(table["name"]) else {}
        for kind, parameters in (equipment["parameters"] | driven).items():
            yield "\n[[parameter]]"
            yield f'name = "{table["name"]}_{kind}"'
            yield f'description = "{table["description"]}: {parameters["what"]}"'
            yield f'key = "{parameters["columns"][0][0]}"'
            yield "column = ["
            for name, type_, unit, description in parameters["columns"]:
                unit_key = f', unit = "{unit}"' if unit else ""
                yield f'  {{ name = "{name}", type = "{type_}"{unit_key}, description = "{description}" }},'
            yield "]"


def file() -> Path:
    """The facility file, in the user's cache."""
    text = "\n".join(toml()) + "\n"
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = caches / "ringlog" / sha256(text.encode()).hexdigest()[:16] / "spring8.toml"
    if not found.exists():
        found.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=found.parent, delete=False) as written:
            written.write(text)
        # others may write it at the same moment
        Path(written.name).replace(found)
    return found


if __name__ == "__main__":
    print("\n".join(toml()))
