"""Compares the server's rows with the acknowledged ones, bit by bit."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

import psycopg
from psycopg import sql

from chaos.ledger import Row, microseconds
from chaos.recording import recorded
from chaos.site import LOADED, RETAINED, ROWS, VICTIM, Excuse, Site


@dataclass
class Figures:
    """The outcome. `good`: no rows are lost, repeated or wrong without being named by the server."""

    rows: int = 0
    lost: int = 0
    thinned: int = 0
    """rows of damaged spools that the server's ledger counts"""
    repeated: int = 0
    wrong: int = 0
    read: int = 0
    """answers of HTTP, all complete"""
    longest: float = 0.0
    """seconds that a writer of a sound table has waited, but for restarts"""
    longest_of: str = ""
    answers: list[str] = field(default_factory=list)
    """its answers meanwhile"""
    outage: float = 0.0
    """seconds that a writer has waited, restarts included"""
    faults: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.lost or self.repeated or self.wrong or self.problems)

    def __str__(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.faults.items()))
        return "\n".join(
            [
                f"{sum(self.faults.values())} faults ({kinds})",
                f"{self.rows} rows: {self.lost} lost, {self.repeated} repeated, {self.wrong} wrong;"
                f" {self.thinned} of damaged spools, which the ledger counts; {self.read} answers of HTTP",
                f"longest wait: {self.outage:.3f} s; but for restarts {self.longest:.3f} s"
                f" ({self.longest_of}), at a load of {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores",
                *self.answers[-20:],
                *self.problems,
            ]
        )


def compare(site: Site, figures: Figures) -> None:
    """Called after all writers have ended."""
    with psycopg.connect(site.server.dsn, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        for writer in site.writers:
            until = None
            if writer.table == VICTIM and site.damaged_week is not None:
                until = site.damaged_week.end
            acknowledged = [row for row in writer.ledger.rows() if until is None or row.moment >= until]
            stored = _rows(connection, "log", writer.table, until)
            if writer.table == RETAINED:
                stored += _set_aside(connection)
            figures.rows += len(acknowledged)
            _count(figures, writer.table, acknowledged, stored)
            _compare_ring(connection, figures, writer.table, [*writer.ledger.rows()])
        for name in LOADED:
            wanted = recorded(site.recordings / f"{name}.csv")
            stored = _rows(connection, "log", name, None)
            figures.rows += len(wanted)
            (thinned,) = connection.execute(
                "select coalesce(sum(thinned), 0)::int from ringlog.ledger where table_name = %s", [name]
            ).fetchone() or (0,)
            times = Counter(row.time for row in stored)
            lost = sum(moment not in times for moment in wanted)
            figures.thinned += min(lost, thinned)
            # rows lost with a damaged spool are counted, and no others may be missing
            if lost > thinned or (lost and not site.spools_damaged[name]):
                figures.lost += lost
                figures.problems.append(f"{name}: {lost} lost, and the ledger counts {thinned}")
            figures.repeated += sum(count - 1 for count in times.values())
            wrong = [row for row in stored if wanted.get(row.time) != (row.level, row.number)]
            figures.wrong += len(wrong)
            figures.problems += [f"log.{name} has {row}, not {wanted.get(row.time)}" for row in wrong[:3]]
            _compare_ring(connection, figures, name, stored)
    for line in site.command("verify", demanded=False).stdout.splitlines():
        told: tuple[str, ...] = ("table ", "summaries and archive", "no errors")
        if site.damaged_week is not None:
            week = site.damaged_week.partition(VICTIM)
            told += (f"log.{week}", f"log.{VICTIM}", f"index {week}", f"online.{VICTIM}", f"summary.{VICTIM}")
        # PostgreSQL counts the damaged pages that it has read
        if not line.startswith(told) and "pages had a wrong checksum" not in line:
            figures.problems.append(f"verify: {line}")


def _rows(connection: psycopg.Connection, schema: str, table: str, since: datetime | None) -> list[Row]:
    query = sql.SQL(
        'select seq_no, "time", level, number from {} where "time" >= {} order by "time", seq_no'
    ).format(sql.Identifier(schema, table), sql.Literal(since or "-infinity"))
    found = connection.execute(query, binary=True)
    return [Row(seq_no, microseconds(moment), level, number) for seq_no, moment, level, number in found]


def _set_aside(connection: psycopg.Connection) -> list[Row]:
    query = "select relname from pg_class where relnamespace = 'set_aside'::regnamespace and relkind = 'r'"
    names = [name for (name,) in connection.execute(query)]
    return [row for name in names for row in _rows(connection, "set_aside", name, None)]


def _count(figures: Figures, table: str, acknowledged: Iterable[Row], stored: Iterable[Row]) -> None:
    wanted, there = Counter(row.bits for row in acknowledged), Counter(row.bits for row in stored)
    lost, more = wanted - there, there - wanted
    repeated = sum(number for bits, number in more.items() if bits in wanted)
    figures.lost += lost.total()
    figures.repeated += repeated
    figures.wrong += more.total() - repeated
    for what, rows in (("lost", lost), ("not acknowledged", more)):
        if rows:
            shown = [row for row in (acknowledged if what == "lost" else stored) if row.bits in rows][:3]
            figures.problems.append(f"log.{table}: {rows.total()} {what}, as {shown}")


def _compare_ring(connection: psycopg.Connection, figures: Figures, table: str, rows: list[Row]) -> None:
    newest: dict[int, Row] = {}
    for row in rows:
        if row.seq_no not in newest or newest[row.seq_no].time <= row.time:
            newest[row.seq_no] = row
    there = {row.seq_no: row for row in _rows(connection, "online", table, None)}
    wrong = [
        (newest.get(place), there.get(place))
        for place in range(1, ROWS + 1)
        if (one := newest.get(place)) != (other := there.get(place))
        or (one is not None and other is not None and one.bits != other.bits)
    ]
    if wrong:
        figures.wrong += len(wrong)
        figures.problems.append(f"online.{table}: {len(wrong)} differ, as {wrong[:2]}")


def longest_wait(site: Site, figures: Figures) -> None:
    """The longest wait, without the time in which the server was down."""
    for writer in site.writers:
        own = [each for each in site.excuses if each.table in (None, writer.table)]
        for begin, end in writer.ledger.waits:
            figures.outage = max(figures.outage, end - begin)
            if end - begin <= figures.longest:
                continue
            rest = sum(stop - start for start, stop in _without(begin, end, own))
            if rest > figures.longest:
                since = begin - site.begun
                figures.longest, figures.longest_of = rest, f"{writer.table}, from {since:.1f} s on"
                figures.answers = [
                    f"  {at - site.begun:.3f} s: {words:.100}"
                    for at, words in (*writer.ledger.answers.get(begin, ()), (end, "acknowledged"))
                ]


def _without(begin: float, end: float, excuses: Iterable[Excuse]) -> list[tuple[float, float]]:
    left = [(begin, end)]
    for excuse in excuses:
        left = [
            part
            for start, stop in left
            for part in ((start, min(stop, excuse.begin)), (max(start, excuse.end), stop))
            if part[0] < part[1]
        ]
    return left
