"""The options of `ringlog adopt`, which its folder keeps: a later run has the same, or is refused."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from ringlog.adoption.errors import AdoptionError
from ringlog.schema import session
from ringlog.schema.sql_files import sql_file

_FILE = "options.json"
_RULES = "rules.toml"
_DEFAULTS = {"tds-version": "7.4", "timezone": "UTC", "charset": ""}

_ZONE = sql_file(__file__, "choices_zone")


@dataclass(frozen=True)
class Choices:
    databases: tuple[str, ...]
    """empty: all of the server"""
    tds_version: str
    timezone: str
    charset: str
    rules: Path | None

    def words(self) -> str:
        """The options as a command has them, where they are not the defaults."""
        options = {"tds-version": self.tds_version, "timezone": self.timezone, "charset": self.charset}
        words = [f"--{name} {value}" for name, value in options.items() if value != _DEFAULTS[name]]
        return " ".join([*words, *([] if self.rules is None else [f"--rules {self.rules}"])])

    def keep(self, folder: Path) -> "Choices":
        """Writes them into the folder, with a copy of the rules."""
        folder.mkdir(parents=True, exist_ok=True)
        rules = folder / _RULES
        if self.rules is not None and self.rules != rules:
            rules.write_text(self.rules.read_text())
        options = {
            "databases": self.databases,
            "tds-version": self.tds_version,
            "timezone": self.timezone,
            "charset": self.charset,
        }
        (folder / _FILE).write_text(json.dumps(options, indent=1) + "\n")
        return replace(self, rules=None if self.rules is None else rules)


def choices(
    folder: Path,
    databases: tuple[str, ...] = (),
    given: Mapping[str, str | None] = MappingProxyType({}),
    rules: Path | None = None,
) -> Choices:
    """The options of a run: those `given` (None: not given), otherwise those that the folder keeps.

    `databases` are those named: part of the folder's or none means all of the folder's. Raises AdoptionError
    for options that differ from the folder's; rules may come later, until rows are copied.
    """
    kept = _kept(folder)
    for name, value in given.items():
        if value is not None and kept.get(name, value) != value:
            raise AdoptionError(
                f"{folder} was made with --{name} {kept[name]!r}, not {value!r}: leave the option out, or "
                "choose another folder by --output"
            )
    before = tuple(kept.get("databases", ()))
    if before and not {*databases} <= {*before}:
        raise AdoptionError(
            f"{folder} is of the databases {', '.join(before)}, not {', '.join(databases)}: choose another "
            "folder by --output"
        )
    known = folder / _RULES
    if rules is None:
        rules = known if known.exists() else None
    elif (folder / "copied.json").exists() and rules.read_bytes() != (
        known.read_bytes() if known.exists() else b""
    ):
        raise AdoptionError(
            f"{rules} differs from the rules by which rows were copied already: choose another "
            "folder by --output"
        )
    chosen = {name: given.get(name) or kept.get(name) or default for name, default in _DEFAULTS.items()}
    try:
        ZoneInfo(chosen["timezone"])
    except (LookupError, ValueError, OSError):
        raise AdoptionError(
            f"--timezone {chosen['timezone']} is no name of the IANA time zone database"
        ) from None
    return Choices(before or databases, chosen["tds-version"], chosen["timezone"], chosen["charset"], rules)


def _kept(folder: Path) -> dict[str, Any]:
    file, facility = folder / _FILE, folder / "facility.toml"
    try:
        if file.exists():
            return dict(json.loads(file.read_text()))
        # of a version that kept no options
        return {"timezone": tomllib.loads(facility.read_text())["timezone"]} if facility.exists() else {}
    except (ValueError, KeyError) as error:
        raise AdoptionError(f"{folder}: its options cannot be read: {error}") from None


def demand_zone(conninfo: str, timezone: str | None) -> str:
    """The time zone of times without an offset in a facility's database; old rows are of the same, and None
    means that. Raises AdoptionError."""
    with session.connect(conninfo) as connection:
        row = connection.execute(_ZONE.encode()).fetchone()
    zone = str(row[0]) if row else "UTC"
    if timezone is not None and timezone != zone:
        raise AdoptionError(
            f"times of the old server are of {timezone} (--timezone), and those of the facility of {zone}: "
            "clients would see them shifted"
        )
    return zone
