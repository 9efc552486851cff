"""The queries over a log: in T-SQL, and in the SQL that PostgreSQL and DuckDB have in common."""

import operator
import re
from collections.abc import Callable, Mapping

from ringlog_lab.partitioned import tsql
from ringlog_lab.partitioned.checks import Check, greatest, is_combined, is_same, is_union, least, parts_of
from ringlog_lab.partitioned.trees import Tree, grammar

ARCHIVED, NEW = 1, 2
"""seq_no of the rows that were put on time: of archived weeks, and of later ones"""

# --- T-SQL: the queries of tables, over the log and a small table ---


def _over_log(query: str) -> str:
    query = re.sub(r"\b[tu] c\b", "plain..u c", query)
    for column, other in {
        "a.id": "a.seq_no",
        "a.y": "convert(date, a.time)",
        "a.t": "convert(datetime, a.time)",
        "b.t": "convert(datetime, a.time)",
        "b.y": "convert(date, a.time)",
        "b.n": "b.s",
        "b.f": "a.f",
        "b.b": "a.b",
    }.items():
        query = re.sub(rf"\b{re.escape(column)}\b", other, query)
    return query


TSQL = grammar(
    """
source: log..parts a join plain..u b on b.id = 1; log..parts a left join plain..u b on b.i = a.i;
  log..parts a join plain..u b on b.id < 3 and {p}; log..parts a left join plain..u b on b.id = 2 and {p};
  plain..u b left join log..parts a on a.i = b.i and a.m = 7
night: '2026-10-25 02:30'; '2026-10-25 03:00'; '2026-03-29 01:59:59'; '2026-03-29 03:30'; getdate()
p: a.time {cmp} {night}; a.time between {night} and {night}; a.time in ({night}, {night});
  a.time {cmp} dateadd(day, {small}, {night}); datepart(hour, a.time) {cmp} {small};
  a.k {cmp} {i}; a.m in ({i}, {i})
""",
    {kind: forms for kind, forms in tsql.GRAMMAR.items() if kind != "source"},
)


def _copied(queries: Callable[[Tree], list[str]], log: str, plain: str) -> Check:
    """The same query over the plain table."""

    def both(case: Tree) -> list[str]:
        query = queries(case)[1]
        return [query, query.replace(log, plain)]

    return Check(both, is_same)


def _checked(check: Check) -> Check:
    return Check(lambda case: [*map(_over_log, check.queries(case))], check.are_equal)


_TSQL = {name: _checked(check) for name, check in tsql.CHECKS.items()}
TSQL_CHECKS: Mapping[str, Check] = _TSQL | {
    f"{name} of a copy": _copied(_TSQL[name].queries, "log..parts", "plain..parts")
    for name in ("rows", "aggregates", "having")
}

# --- PostgreSQL and DuckDB ---

COMMON = grammar(
    """
case: {p} {i} {s} {group}
p: 1 = 1; 1 = 0; ({p} and {p}); ({p} or {p}); not ({p}); ({p} and not {p}); a.b; a.b is not true;
  {i} {cmp} {d}; {f} {cmp} {i}; a.r {cmp} {f}; a.r = 'NaN'::real; {s} like 'a%'; {s} not like '%a_'
p (i f d s t): # {cmp} #; # between # and #; # not in (#, #); # in (#, null); # is null; # is distinct from #
cmp: =; <; >; <>; <=; >=
i: a.i; a.m; a.k; a.seq_no; 0; 1; 7; (-8); ({i} + {i}); ({i} - {i}); (- {i}); abs({i}); nullif({i}, {i});
  coalesce({i}, {i}); case when {p} then {i} else {i} end; length({s})
d: a.d; 1.5; (-1.500); ({d} + {d}); case when {p} then {d} end; coalesce({d}, 2.125)
f: a.f; a.r; 1e0; abs({f}); (- {f}); case when {p} then {f} else {f} end
s: a.s; a.n; ''; 'a'; ({s} || {s}); coalesce({s}, {s}); replace({s}, 'a', 'b')
t: a.time; timestamptz '2026-10-25 02:30:00+02'; timestamptz '2026-10-25 02:30:00+01';
  timestamptz '2026-03-29 03:00:00+02'; timestamptz '2026-11-20 00:00:00Z'; ({t} + interval '36 hours');
  case when {p} then {t} end
group: a.i; a.b; a.n; a.m; a.r
"""
)
POSTGRES = grammar(
    """
p: exists (select 1 from plain.u c where c.i {cmp} {i}); {i} in (select c.i from plain.u c where {p});
  {s} = any (select c.s from plain.u c); {s} ~ '^a'; {i} = any (array[{i}, {i}]); extract(hour from {t}) < 3;
  date_trunc('hour', {t}) = {t}; ({t} at time zone 'Europe/Berlin')::date {cmp} '2026-10-25'
i: ({i} % 3); ({i} / 2); ({i} & 6); (select max(c.i) from plain.u c where {p})
s: upper({s}); lower({s})
""",
    COMMON,
)


def _checks(source: str, plain: str) -> Mapping[str, Check]:
    def rows(case: Tree) -> list[str]:
        p, i, s, _ = case.parts
        listed = "a.seq_no, a.time, a.k, a.d, a.f, a.b, a.n"
        return parts_of(f"select {listed}, {i}, {s} from {source}", "where", p)

    def groups(case: Tree) -> list[str]:
        p, i, _, group = case.parts
        figures = (
            f"count(*), count({i}), sum({i}), sum(a.k), sum(a.d), min({i}), max(a.d), min(a.time),"
            " max(a.time), min(a.f), max(a.f), min(a.r), max(a.r)"
        )
        return parts_of(f"select {group}, {figures} from {source}", "where", p, f" group by {group}")

    def reference(case: Tree) -> list[str]:
        p, *_ = case.parts
        return [
            f"select count(*) from {source} where {p}",
            f"select coalesce(sum(case when {p} then 1 else 0 end), 0) from {source}",
        ]

    combine = (*(operator.add,) * 5, min, max, min, max, least, greatest, least, greatest)
    return {
        "rows": Check(rows, is_union),
        "aggregates": Check(groups, is_combined(*combine)),
        "reference": Check(reference, is_same),
        "rows of a copy": _copied(rows, source, plain),
        "aggregates of a copy": _copied(groups, source, plain),
    }


def _old(relation: str) -> str:
    return f"(select * from {relation} where seq_no = {ARCHIVED}) a"


OF_LOG = _checks("log.parts a", "plain.parts a")
OF_ARCHIVE = _checks(_old("archive.parts"), _old("plain.parts"))
OF_DUCKDB = {
    "arrow_rows": _checks("arrow_rows a", "plain.parts a"),
    "archive_files": _checks(_old("archive_files"), _old("plain.parts")),
}
