"""Procedures of a site that write its rings and logs, which only ringlog's own put procedures do here."""

import re
from collections.abc import Sequence

from ringlog.adoption.objects import Module
from ringlog.adoption.rings import Ring

_BY = r"(?:insert(?:\s+into)?|update|delete(?:\s+from)?|truncate\s+table|merge(?:\s+into)?)"
_OWNER = r'(?:[\["]?\w+[\]"]?\s*\.+\s*)*'


def replaced(modules: Sequence[Module], rings: Sequence[Ring]) -> dict[str, Ring]:
    """The procedures whose place is taken by ringlog's own of the same name, each with its ring."""
    own = {f"put_{ring.table.name.lower()}": ring for ring in rings}
    return {
        module.name: own[module.name.lower()]
        for module in modules
        if module.kind == "procedure" and module.name.lower() in own
    }


def decisions(modules: Sequence[Module], rings: Sequence[Ring]) -> list[str]:
    """A line for each procedure, trigger or function that is replaced, or that cannot write as it did."""
    instead = replaced(modules, rings)
    lines = []
    for name, ring in instead.items():
        readings = [each.name for each in ring.table.columns if each.name not in (ring.seq_no, ring.time)]
        parameters = ", ".join(f"@{each.lower()}" for each in ("seq_no", "time", *readings))
        lines.append(
            f"procedure {name} is not migrated: ringlog's own writes the ring {ring.table.name}, with "
            f"{parameters} by name or in this order (without @seq_no: the next row)"
        )
    for module in modules:
        if module.name in instead:
            continue
        for ring in rings:
            tables = [ring.table.name, *([ring.log.name] if ring.log is not None else [])]
            changed = [table for table in tables if _changes(module.text, table)]
            if changed:
                lines.append(
                    f"{module.kind} {module.name} changes {' and '.join(changed)}, which only "
                    f"put_{ring.table.name.lower()} does here: call that in it, or keep the ring and its log "
                    "as tables of the site (--rules)"
                )
    return lines


def _changes(text: str, table: str) -> bool:
    plain = re.sub(r"(?s)/\*.*?\*/|--[^\n]*", " ", text)
    return re.search(rf'(?i)\b{_BY}\s+{_OWNER}[\["]?{re.escape(table)}[\]"]?(?![\w$#@.])', plain) is not None
