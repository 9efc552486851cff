"""PostgreSQL's own figures of half a day: what changes when rows take longer."""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg.rows import dict_row

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.server import Server
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog.schema.sql_files import sql_file
from ringlog_lab.soak.cpu import Stretch, by_kind, cpu_of_parts, table_of
from ringlog_lab.soak.watch import Look
from ringlog_lab.stage import memory_of

SETTINGS = """\
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track = 'all'
"""
_INSTALL = """
create schema if not exists soak;
create extension if not exists pg_stat_statements with schema soak;
create extension if not exists pageinspect with schema soak;
"""
_SHOWN, _KEPT = 10, 60
"""Statements in the report, as many inside procedures, and in each record."""
_PATIENCE = 60.0
_PLANS = ("CachedPlan", "CachedPlanSource", "CachedPlanQuery")


@dataclass(frozen=True)
class Statement:
    """A statement since the record before, without its values. Those inside procedures are not `outer`."""

    text: str
    outer: bool
    calls: int
    seconds: float
    hit: int
    read: int
    """pages of 8 KiB"""
    wal: int
    images: int
    """whole pages in the write-ahead log"""


@dataclass(frozen=True)
class Inside:
    """Figures since the record before, or of its moment. Sizes in bytes."""

    seconds: float
    """simulated, since the first row"""
    start: int
    rows: int
    """acknowledged so far"""
    statements: list[Statement]
    """those that took longest"""
    put: float
    """seconds of calls of put procedures"""
    other: float
    """seconds of all other statements of callers: housekeeping's and those of the experiment"""
    hit: int
    read: int
    wal: int
    images: int
    heights: dict[str, int]
    """indexes of rings and logs by their number of levels, 0: a single page"""
    dead: dict[str, int]
    """rows that wait for vacuum, by schema"""
    vacuums: int
    analyzes: int
    """by autovacuum, since the server was made"""
    relations: int
    catalogue: int
    backends: list[tuple[str, int]]
    """the memory of each process that it does not share"""
    plans: int
    """of the plans that backends keep"""
    contexts: int
    """all memory that backends have asked for"""
    cpu: float
    """of gateway and PostgreSQL since this start, in seconds"""
    cpu_of_parts: dict[str, float]
    """those of them that are there"""


def install(server: Server) -> None:
    server.administrator.execute(_INSTALL)
    server.administrator.execute("select soak.pg_stat_statements_reset()")


def inside(server: Server, seen: Look) -> Inside:
    """The figures from the last call to this look. Raises LoadTestError if PostgreSQL does not say them."""
    administrator = server.administrator
    with administrator.cursor(row_factory=dict_row) as cursor:
        statements = cursor.execute(sql_file(__file__, "inside_statements")).fetchall()
        figures = cursor.execute(sql_file(__file__, "inside")).fetchone() or {}
        administrator.execute("select soak.pg_stat_statements_reset()")
    outer = {True: 0.0, False: 0.0}
    for one in statements:
        outer["put_" in one["text"]] += one["seconds"] if one["outer"] else 0.0
    processes = administrator.execute(
        "select pid, coalesce(nullif(application_name, ''), backend_type), backend_type = 'client backend'"
        " from pg_stat_activity where pid <> pg_backend_pid() order by 2, 1"
    ).fetchall()
    parts = cpu_of_parts(server, {pid: name for pid, name, _ in processes})
    plans, contexts = _contexts(administrator, [pid for pid, _, is_client in processes if is_client])
    backends = []
    for pid, name, _ in processes:
        # it may have ended since
        with suppress(psutil.NoSuchProcess):
            backends.append((name, round(memory_of([psutil.Process(pid)], "Pss_Anon"))))
    return Inside(
        seconds=seen.seconds,
        start=seen.start,
        rows=seen.rows,
        statements=[Statement(**one) for one in statements[:_KEPT]],
        put=outer[True],
        other=outer[False],
        backends=backends,
        plans=plans,
        contexts=contexts,
        cpu=seen.cpu,
        cpu_of_parts=parts,
        **figures,
    )


def _contexts(administrator: psycopg.Connection, pids: Sequence[int]) -> tuple[int, int]:
    """Bytes of cached plans and of everything, of these backends: each writes them into PostgreSQL's log when
    it next has time."""
    file, begin = _log(administrator)
    asked = 0
    for pid in pids:
        (there,) = administrator.execute("select pg_log_backend_memory_contexts(%s)", [pid]).fetchone() or (
            False,
        )
        asked += bool(there)
    until = time.monotonic() + _PATIENCE
    while True:
        # a backend that has ended meanwhile says nothing
        text = file.read_bytes()[begin:].decode(errors="replace")
        totals = re.findall(r"Grand total: (\d+) bytes", text)
        if len(totals) >= asked:
            break
        if _log(administrator)[0] != file:
            return _contexts(administrator, pids)
        if time.monotonic() > until:
            if not _ended(administrator, pids):
                raise LoadTestError(f"{asked - len(totals)} backends did not say their memory")
            break
        time.sleep(0.05)
    found = re.findall(r"level: \d+; (\w+): (\d+) total", text)
    return sum(int(size) for name, size in found if name in _PLANS), sum(map(int, totals))


def _ended(administrator: psycopg.Connection, pids: Sequence[int]) -> bool:
    query = "select count(*) from pg_stat_activity where pid = any(%s)"
    (there,) = administrator.execute(query, [[*pids]]).fetchone() or (0,)
    return int(there) < len(pids)


def _log(administrator: psycopg.Connection) -> tuple[Path, int]:
    """PostgreSQL's present log and its size."""
    query = "select current_setting('data_directory'), pg_current_logfile()"
    folder, name = administrator.execute(query).fetchone() or ("", "")
    file = Path(folder, name)
    return file, file.stat().st_size


def tables_of(records: Sequence[Inside], day: float) -> list[TextTable]:
    """The records half day by half day, and the statements that took longest in the last one."""
    rows, stretches = [], []
    for before, one in zip([None, *records], records, strict=False):
        since = before if before and before.start == one.start else None
        title, count = f"{one.seconds / day:.2f}", max(1, one.rows - (since.rows if since else 0))
        if since:
            kinds = by_kind(since.cpu_of_parts, one.cpu_of_parts)
            stretches.append(Stretch(title, count, one.cpu - since.cpu, kinds))
        memory = [size for _, size in one.backends]
        rows.append(
            [
                title,
                f"{1e6 * one.put / count:.1f}",
                f"{100 * one.other / max(1e-9, one.put + one.other):.1f}",
                *(f"{each / count:.3g}" for each in (one.hit, one.read, one.wal, one.images)),
                f"{sum(one.dead.values()):,}",
                f"{one.vacuums:,} / {one.analyzes:,}",
                ", ".join(f"{number} of {height}" for height, number in sorted(one.heights.items())),
                f"{one.relations:,}",
                f"{one.catalogue / 1e6:.1f}",
                f"{one.plans / 1e6:.2f}",
                f"{one.contexts / 1e6:.1f}",
                f"{sum(memory) / 1e6:.1f} / {max(memory, default=0) / 1e6:.1f}",
            ]
        )
    headings = [
        *(
            "until day",
            "put, µs a row",
            "other statements, %",
            "pages hit a row",
            "read a row",
            "WAL, B a row",
        ),
        *(
            "page images a row",
            "dead rows",
            "vacuums / analyzes",
            "index levels",
            "relations",
            "catalogue, MB",
        ),
        *("plans, MB", "backends, MB", "private, MB: all / largest"),
    ]
    tables = [TextTable("PostgreSQL's own figures", headings, rows), table_of(stretches)]
    # the last half days may have only the rounds at the end
    if loaded := [one for one in records if one.put]:
        first = {(one.text, one.outer): one for one in loaded[0].statements}
        latest = loaded[-1].statements
        outer, inner = ([one for one in latest if one.outer is which][:_SHOWN] for which in (True, False))
        shown = []
        for last in (*outer, *inner):
            then = first.get((last.text, last.outer))
            was = f"{1e6 * then.seconds / then.calls:.1f}" if then else "-"
            pages = (last.hit / last.calls, last.read / last.calls)
            shown.append(
                [
                    ("" if last.outer else "inside: ") + last.text,
                    f"{last.calls:,}",
                    was,
                    f"{1e6 * last.seconds / last.calls:.1f}",
                    *(f"{each:.3g}" for each in pages),
                ]
            )
        headings = ["statement", "calls", "µs, first", "µs, last", "pages hit", "read"]
        tables.append(TextTable("The statements that took longest, in the last half day", headings, shown))
    return tables
