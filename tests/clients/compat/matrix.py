"""Writes docs/reference/clients-matrix.md from the record that a run of tests/clients/compat leaves."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "build" / "client_compat" / "record.json"
PAGE = ROOT / "docs" / "reference" / "clients-matrix.md"

INTRODUCTION = """\
# Tested clients

Each client runs against `ringlog serve` with its own library (`tests/clients/compat`; `make matrix` writes
this page). A section lists the tested features, values and error numbers included. Clients have all of them,
except:

- **no**: ringlog refuses it, with a message that the client shows.
- **not yet**: it fails, for the reason given.
- **-**: the client does not have it.
- **but**: it works, with this restriction.
"""

SECTIONS = ("Clients that programs are written with", "Consoles", "Bulk copy", "SQLAlchemy", "Encryption")
"""in the page's order, by the first lines of tests/clients/compat/test_*.py"""


@dataclass(frozen=True)
class Entry:
    """The result of one client for one feature."""

    section: str
    position: int
    """of the feature in its section"""
    feature: str
    client: str
    protocol: str
    served: str
    """yes, no, not yet, - or failed"""
    version: str = ""
    """of the client; empty without a refusal"""
    why: str = ""
    received: str = ""
    """the refusal as the client shows it"""


def save(entries: list[Entry]) -> None:
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps([asdict(entry) for entry in entries], indent=1, ensure_ascii=False))


def load() -> list[Entry]:
    return [Entry(**entry) for entry in json.loads(RECORD.read_text())]


def rendered(entries: list[Entry]) -> str:
    unknown = {entry.section for entry in entries} - set(SECTIONS)
    assert not unknown, f"sections without a place: {unknown}"
    found = {section: [entry for entry in entries if entry.section == section] for section in SECTIONS}
    return INTRODUCTION + "".join(_section(section, entries) for section, entries in found.items() if entries)


def without_versions(page: str) -> str:
    return re.sub(r"^(\| [^|]+ \|)[^|]+\|", r"\1 … |", page, flags=re.M)


def _section(title: str, entries: list[Entry]) -> str:
    features = dict.fromkeys(entry.feature for entry in sorted(entries, key=lambda entry: entry.position))
    versions: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.version:
            protocols = versions.setdefault((entry.client, entry.version), [])
            if entry.protocol not in protocols:
                protocols.append(entry.protocol)
    lines = [f"\n## {title}\n", f"{', '.join(features)}.\n"]
    lines += [_row("client", "version", "TDS", "except"), _row(*["---"] * 4)]
    for (client, version), protocols in versions.items():
        lines.append(_row(client, version, ", ".join(protocols), _exceptions(client, protocols, entries)))
    return "\n".join(lines) + "\n"


def _exceptions(client: str, protocols: list[str], entries: list[Entry]) -> str:
    """Features that a client restricts, with the reason; then those that it lacks."""
    found: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.position):
        if entry.client == client and (entry.why or entry.served != "yes"):
            kind = "but" if entry.served == "yes" else entry.served
            found.setdefault((kind, "" if kind == "-" else entry.why, entry.feature), []).append(entry)
    texts: dict[tuple[str, str, str, str], list[str]] = {}
    for (kind, why, feature), alike in found.items():
        where = list(dict.fromkeys(entry.protocol for entry in alike))
        at = f" at {', '.join(where)}" if set(where) != set(protocols) else ""
        texts.setdefault((kind, why, at, alike[0].received), []).append(feature)
    lines = []
    for (kind, why, at, received), features in sorted(texts.items(), key=lambda text: text[0][0] == "-"):
        shown = f" (“{received}”)" if received else ""
        lines.append(f"{', '.join(features)}{at} **{kind}**{': ' if why else ''}{why}{shown}")
    return "; ".join(lines)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(rendered(load()))
