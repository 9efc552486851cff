"""Procedures of a site that write its rings and logs, which only ringlog's own put procedures do here."""

import re
from collections.abc import Sequence

from ringlog.adoption.rings import Ring
from ringlog.adoption.server.objects import Module, OldTable

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


def decisions(modules: Sequence[Module], rings: Sequence[Ring], away: Sequence[Ring] = ()) -> list[str]:
    """A line for each procedure, trigger or function that is replaced, or that cannot write as it did.

    `away`: rings of other databases.
    """
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
        for ring in (*rings, *away):
            tables = [ring.table, *([ring.log] if ring.log is not None else [])]
            changed = [_shown(table, module) for table in tables if _changes(module, table)]
            if changed:
                lines.append(
                    f"{module.kind} {module.name} changes {' and '.join(changed)}, which only "
                    f"put_{ring.table.name.lower()} does here: call that in it, or keep the ring and its log "
                    "as tables of the site (--rules)"
                )
    return lines


def _changes(module: Module, table: OldTable) -> bool:
    plain = re.sub(r"(?s)/\*.*?\*/|--[^\n]*", " ", module.text)
    found = re.finditer(rf'(?i)\b{_BY}\s+({_OWNER})[\["]?{re.escape(table.name)}[\]"]?(?![\w$#@.])', plain)
    return any(not table.database or _database(each[1], module) == table.database.lower() for each in found)


def _database(before: str, module: Module) -> str:
    """The database of a name, in small letters, by the parts before it."""
    parts = [part.strip(' \t\r\n[]"') for part in before.split(".")]
    # `database.owner.` and `database..`
    return parts[-3].lower() if len(parts) > 2 else module.database


def _shown(table: OldTable, module: Module) -> str:
    return table.name if table.database.lower() == module.database else f"{table.database}..{table.name}"
