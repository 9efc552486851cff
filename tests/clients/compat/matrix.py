"""Writes docs/clients-matrix.md from the record that a run of tests/clients/compat leaves."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "build" / "client_compat" / "record.json"
PAGE = ROOT / "docs" / "clients-matrix.md"

INTRODUCTION = """\
# Clients

What each client could do against `ringlog serve`, with its own library and as its programmers would write it.
This page is written by the tests (`make matrix`), and a test fails when it no longer agrees with them.
The programs are in `tests/clients/compat/programs`, what they are asked in `tests/clients/compat/test_*.py`.

**yes**: asserted, values and error numbers included. **no**: refused, with a message that the client shows.
**not yet**: fails, for the reason below the table; the test is kept, and fails as soon as it passes.
**-**: the client has no such thing.
"""

SECTIONS = (
    "Clients that programs are written with",
    "Consoles",
    "Bulk copy",
    "SQLAlchemy",
    "Encryption",
)
"""in the page's order, by the first lines of tests/clients/compat/test_*.py"""


@dataclass(frozen=True)
class Entry:
    """What one client could do of one thing."""

    section: str
    place: int
    """of the feature in its section"""
    feature: str
    client: str
    protocol: str
    served: str
    """yes, no, not yet, - or failed"""
    version: str = ""
    """of the client; empty where it was not asked"""
    why: str = ""
    received: str = ""
    """the refusal as the client shows it"""


def save(entries: list[Entry]) -> None:
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps([asdict(entry) for entry in entries], indent=1, ensure_ascii=False))


def load() -> list[Entry]:
    return [Entry(**entry) for entry in json.loads(RECORD.read_text())]


def rendered(entries: list[Entry]) -> str:
    """The page."""
    unknown = {entry.section for entry in entries} - set(SECTIONS)
    assert not unknown, f"sections without a place: {unknown}"
    found = {section: [entry for entry in entries if entry.section == section] for section in SECTIONS}
    return INTRODUCTION + "".join(_section(section, entries) for section, entries in found.items() if entries)


def without_versions(page: str) -> str:
    """The page as it is whatever the versions of the clients are."""
    return re.sub(r"^(\| [^|]+ \|)[^|]+\|", r"\1 … |", page, flags=re.M)


def _section(title: str, entries: list[Entry]) -> str:
    features = list(dict.fromkeys(entry.feature for entry in sorted(entries, key=lambda entry: entry.place)))
    versions = {(entry.client, entry.protocol): entry.version for entry in entries if entry.version}
    found = {(entry.client, entry.protocol, entry.feature): entry.served for entry in entries}
    lines = [
        f"\n## {title}\n",
        _row("client", "version", "TDS", *features),
        _row(*["---"] * (3 + len(features))),
    ]
    for (client, protocol), version in versions.items():
        cells = (found.get((client, protocol, feature), "") for feature in features)
        lines.append(_row(client, version, protocol, *cells))
    # of each client in the table's order; what holds for several things or protocols is said once
    order = list(versions)
    reasons: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in sorted(
        entries, key=lambda entry: (order.index((entry.client, entry.protocol)), entry.place)
    ):
        if entry.why:
            reasons.setdefault((entry.client, entry.why, entry.received), []).append(entry)
    if reasons:
        lines.append("")
    for (client, why, received), alike in reasons.items():
        about = ", ".join(dict.fromkeys(entry.feature for entry in alike))
        protocols = ", ".join(dict.fromkeys(entry.protocol for entry in alike))
        said = f" It receives: “{received}”" if received else ""
        lines.append(f"- **{client}** ({protocols}), {about}: {why}.{said}")
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(rendered(load()))
