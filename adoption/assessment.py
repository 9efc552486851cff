"""The assessment of a migration: each object of the old database compiled or refused, and open decisions."""

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ringlog.adoption.conversion.rights import Rights
from ringlog.adoption.conversion.tables import TableScript
from ringlog.adoption.rings import Ring, Sorted
from ringlog.adoption.server.objects import Module, Old
from ringlog.gateway import TsqlError, translate

BY_GATEWAY = "run by the gateway, with the rights of its callers"


@dataclass(frozen=True)
class Verdict:
    """The outcome for a procedure, view, trigger, function, or table of the site."""

    kind: str
    name: str
    compiled: bool
    lines: int
    number: int | None = None
    line: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Assessment:
    server: str
    database: str
    rings: tuple[dict[str, object], ...]
    site_tables: tuple[dict[str, object], ...]
    modules: tuple[Verdict, ...]
    grants: int
    logins: tuple[str, ...]
    decisions: tuple[str, ...]
    """those first without which something does not work"""
    descriptions: tuple[dict[str, str], ...] = ()
    """the old server's descriptions of columns of the site's tables"""

    @property
    def refused(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.modules if not verdict.compiled)

    @property
    def rows(self) -> int:
        every = (*self.rings, *self.site_tables)
        return sum(_whole(entry["rows"]) + _whole(entry.get("log_rows", 0)) for entry in every)


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def assess(
    old: Old,
    found: Sorted,
    tables: Sequence[TableScript],
    rights: Rights,
    database: str,
    of_texts: Sequence[str] = (),
) -> Assessment:
    """Compiles every module with the gateway's compiler, and lists the remaining work."""
    modules = (
        *(_verdict(module, old.is_ase) for module in old.modules),
        *(
            Verdict("table", made.table.name, False, 0, None, None, made.refused)
            for made in tables
            if made.refused
        ),
    )
    refused = [verdict for verdict in modules if not verdict.compiled]
    reasons = Counter(verdict.why for verdict in refused)
    by_gateway = sum(verdict.why == BY_GATEWAY for verdict in modules)
    decisions = [
        *(f"{count} objects are refused: {why}" for why, count in reasons.most_common()),
        *(
            [f"{by_gateway} procedures are {BY_GATEWAY}: grant these what the procedures need"]
            if by_gateway
            else []
        ),
        *(f"the old server does not report its {line}" for line in old.unread),
        *old.hidden,
        *old.left,
        *_undescribed(tables),
        *(lost for made in tables for lost in made.lost),
        *of_texts,
        *rights.decisions,
        *found.decisions,
        *(f"login {login} needs a password of its own here: none can be read" for login in old.logins),
    ]
    rings: tuple[dict[str, object], ...] = tuple(
        {
            "name": ring.table.name,
            "seq_no": ring.seq_no,
            "time": ring.time,
            "cycle": ring.cycle,
            "rows": ring.table.rows,
            "bytes": ring.table.bytes,
            "log": _log(ring),
            "log_rows": ring.log.rows if ring.log else 0,
            "log_bytes": ring.log.bytes if ring.log else 0,
        }
        for ring in found.rings
    )
    site: tuple[dict[str, object], ...] = tuple(
        {"name": table.name, "rows": table.rows, "bytes": table.bytes} for table in found.site
    )
    return Assessment(
        old.version,
        database,
        rings,
        site,
        modules,
        len(old.grants),
        old.logins,
        tuple(decisions),
        tuple(_descriptions(tables)),
    )


def _log(ring: Ring) -> str | None:
    if ring.log is None:
        return None
    is_away = ring.log.database != ring.table.database
    return f"{ring.log.database}..{ring.log.name}" if is_away else ring.log.name


def _descriptions(tables: Sequence[TableScript]) -> Iterator[dict[str, str]]:
    for made in tables:
        for column in made.table.columns:
            if column.description:
                yield {"table": made.table.name, "column": column.name, "description": column.description}


def _undescribed(tables: Sequence[TableScript]) -> Iterator[str]:
    if count := len([*_descriptions(tables)]):
        yield f"descriptions of {count} columns of the site's tables are kept in assessment.json only"


def _verdict(module: Module, sybase: bool) -> Verdict:
    lines = module.text.count("\n") + 1
    if not module.text.strip():
        return Verdict(
            module.kind, module.name, False, 0, None, None, "the old server does not return its text"
        )
    if module.refused:
        return Verdict(module.kind, module.name, False, lines, None, None, module.refused)
    try:
        made = translate(module.text, database="dbo", sybase=sybase, quoted_identifiers=module.quoted)
    except TsqlError as error:
        number, line, why = error.args
        return Verdict(module.kind, module.name, False, lines, number, line, why)
    why = BY_GATEWAY if any("tsql.refuse_call(" in statement for statement in made) else ""
    return Verdict(module.kind, module.name, True, lines, why=why)


def as_json(assessments: Sequence[Assessment]) -> str:
    """The assessment of a database; those of several as the list `databases`."""
    whole = [asdict(each) for each in assessments]
    return json.dumps(whole[0] if len(whole) == 1 else {"databases": whole}, indent=1, ensure_ascii=False)


_STYLE = """
body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0 } td, th { border-bottom: 1px solid #ccc; padding: .2em .8em;
text-align: left; vertical-align: top } td.n { text-align: right }
h1 ~ h1 { margin-top: 2em }
.refused { color: #a00 } .compiled { color: #060 }
"""


def as_html(assessments: Sequence[Assessment]) -> str:
    """The assessment of one or several databases as one HTML file."""
    names = ", ".join(html.escape(each.database) for each in assessments)
    parts = [
        "<!doctype html><meta charset='utf-8'><title>Migration</title>",
        f"<style>{_STYLE}</style><h1>Migration: {names}</h1>",
        f"<p>{html.escape(assessments[0].server)}</p>",
    ]
    if len(assessments) > 1:
        parts.append(
            _table(
                ("database", "objects", "refused", "rings", "other tables", "rows to copy"),
                [
                    (
                        each.database,
                        len(each.modules),
                        len(each.refused),
                        len(each.rings),
                        len(each.site_tables),
                        each.rows,
                    )
                    for each in assessments
                ],
            )
        )
    for each in assessments:
        if len(assessments) > 1:
            parts.append(f"<h1>{html.escape(each.database)}</h1>")
        parts += _of_database(each)
    return "\n".join(parts) + "\n"


def _of_database(assessment: Assessment) -> list[str]:
    compiled = len(assessment.modules) - len(assessment.refused)
    return [
        f"<p><b>{compiled} of {len(assessment.modules)}</b> objects compile; "
        f"{len(assessment.rings)} rings, {len(assessment.site_tables)} other tables, "
        f"{assessment.rows:,} rows to copy; {assessment.grants} grants, {len(assessment.logins)} logins.</p>",
        "<h2>To be decided</h2><ol>",
        *(f"<li>{html.escape(decision)}" for decision in assessment.decisions),
        "</ol><h2>Objects</h2>",
        _table(
            ("kind", "name", "lines", "outcome"),
            [
                (verdict.kind, verdict.name, verdict.lines, _outcome(verdict))
                for verdict in sorted(
                    assessment.modules, key=lambda each: (each.compiled, each.kind, each.name)
                )
            ],
        ),
        "<h2>Rings</h2>",
        _table(
            ("ring", "rows", "cycle in s", "log", "its rows"),
            [
                (ring["name"], ring["rows"], ring["cycle"], ring["log"] or "none", ring["log_rows"])
                for ring in assessment.rings
            ],
        ),
        "<h2>Other tables</h2>",
        _table(
            ("table", "rows", "about bytes"),
            [(table["name"], table["rows"], table["bytes"]) for table in assessment.site_tables],
        ),
    ]


def _outcome(verdict: Verdict) -> str:
    if verdict.compiled:
        return verdict.why or "compiled"
    where = f"line {verdict.line}: " if verdict.line else ""
    return f"refused, {where}{verdict.why}" + (f" ({verdict.number})" if verdict.number else "")


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = ["<table><tr>" + "".join(f"<th>{html.escape(name)}" for name in head)]
    for row in rows:
        cells = []
        for value in row:
            text = html.escape(f"{value:,}" if isinstance(value, int) else str(value))
            kind = "n" if isinstance(value, int) else re.split(r"\W", text)[0]
            cells.append(f"<td class='{kind}'>{text}")
        lines.append("<tr>" + "".join(cells))
    return "\n".join([*lines, "</table>"])
