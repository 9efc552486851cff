"""Random queries in T-SQL over two tables with NULLs, joined in every way."""

import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from ringlog.loadtest.experiment.server import Server
from ringlog_lab.partitioned.asking import by_tds
from ringlog_lab.partitioned.checks import Check, is_combined, is_same, is_union, parts_of
from ringlog_lab.partitioned.running import Subject
from ringlog_lab.partitioned.trees import Tree, grammar
from ringlog_lab.tsql_database import database

_COLUMNS = (
    "id int primary key, i int null, d decimal(9, 3) null, s varchar(12) null,"
    " n nvarchar(12) collate Latin1_General_CI_AS null, t datetime null, y date null, f float null,"
    " b bit null"
)
_TABLES = ("t", "u")
_ROWS = 9
_VALUES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "i": ("0", "1", "-1", "2", "3", "7", "-8", "100"),
        "d": ("0", "1", "-1.5", "2.125", "0.001", "99.999", "-100"),
        "s": ("''", "' '", "'a'", "'A'", "'a '", "'ab'", "'b%'", "'_a'", "'10'", "'[x]'", "'zz top'"),
        "n": ("N''", "N'a'", "N'A'", "N'ab '", "N'AB'", "N'Ä'", "N'ä'", "N'ß'", "N'z'"),
        "t": ("'20260101'", "'20260329 02:30'", "'20261025 02:59:59.997'", "'20240229'", "'19991231 23:59'"),
        "y": ("'20260101'", "'20260329'", "'20240229'", "'19991231'"),
        "f": ("0e0", "1e0", "-2.5e0", "1e10", "1e-10", "3e0"),
        "b": ("0", "1"),
    }
)


def _tables(draw: random.Random) -> list[str]:
    """Statements that create the tables and fill them."""
    made = [f"create table {table} ({_COLUMNS})" for table in _TABLES]
    if draw.random() < 0.5:
        made += [f"create index by_{column} on t ({column})" for column in draw.sample("isnty", 2)]
    for table in _TABLES:
        for number in range(1, draw.randint(1, _ROWS) + 1):
            values = [draw.choice(["null", *each, *each]) for each in _VALUES.values()]
            made.append(f"insert {table} values ({number}, {', '.join(values)})")
    return made


_LITERALS = {
    kind: [f"({value})" if value[0] == "-" else value for value in values] if kind in "idsn" else []
    for kind, values in _VALUES.items()
}
# `one` is a predicate on a table `a` alone, `q` one on groups, of aggregates without subqueries (130)
GRAMMAR = grammar(
    """
case: {source} {p} {q} {i} {s} {d} {group}
source: t a cross join u b; t a, u b; t a join u b on {p}; t a left join u b on {p};
  t a right join u b on {p}; t a full join u b on a.i = b.i; t a full join u b on a.n = b.n;
  (select * from t a where {one}) a left join u b on {p};
  (select distinct i, d, s, n, t, y, f, b, id from u a where {one}) a join t b on {p};
  (select * from t a where {one} union all select * from u a where {one}) a join u b on {p};
  t a cross apply (select * from u c where c.i = a.i or {one}) b;
  t a outer apply (select top 2 * from u c where {one} order by c.id) b
one: a.i = 1; a.i <> 1; a.s like 'a%'; a.n = N'a'; a.d is null; not (a.i > 1); a.t > a.y
p: 1 = 1; 1 = 0; ({p} and {p}); ({p} or {p}); not {p}; not ({p}); ({p} and not {p}); ({p} or {p});
  {i} {cmp} {d}; {f} {cmp} {i}; {f} {cmp} {d}; {f} in ({f}, {i}, null); {b} {cmp} {b}; {t} {cmp} {y};
  {i} {cmp} null; {s} like {like}; {s} not like {like}; {n} like {like}; {s} like '%!%%' escape '!';
  {s} collate Latin1_General_CI_AS {cmp} {s}; {s} collate Latin1_General_CI_AS like {like};
  {s} collate Latin1_General_BIN2 in ({s}, {s});
  exists (select 1 from u c where c.i {cmp} {i}); not exists (select 1 from t c where c.s = {s} and {p});
  {i} in (select c.i from u c where {p}); {i} not in (select c.i from u c where c.i {cmp} {i});
  {s} not in (select c.s from t c); {i} {cmp} any (select c.i from u c where {p});
  {d} {cmp} all (select c.d from t c where c.d is not null)
p (i d s n t y): # {cmp} #; # between # and #; # not between # and #; # in (#, #, #); # not in (#, #);
  # is null; # is not null
(i d s n t y f b): case when {p} then # else # end; case when {p} then # end
(i d s n t y): coalesce(#, #)
(i d s t y): isnull(#, #); nullif(#, #)
cmp: =; <; >; <>; <=; >=; !=; !<; !>
like: 'a'; '%'; ''; 'a%'; '_'; '%a%'; '[a-b]%'; '[^a]%'; '%[%]'; 'a '; 'A_'; {s}
small: 0; 1; 2; 3; (-1)
i: a.id; b.id; ({i} + {i}); ({i} - {i}); ({i} * 3); (-{i}); ({i} % 3); ({i} / 2); ({i} & {i}); ({i} | {i});
  ({i} ^ {i}); ~{i}; abs({i}); sign({i}); len({s}); datalength({s}); charindex({s}, {s});
  patindex({like}, {s}); ascii({s}); unicode({n}); datediff(day, {t}, {t}); datepart(month, {y}); year({t});
  convert(int, {d}); case {i} when {i} then {i} when {i} then {i} end; (select max(c.i) from u c where {p});
  (select count(*) from t c where c.i = {i})
d: ({d} + {d}); ({d} - {d}); ({d} * 1.5); ({d} / 4); (-{d}); round({d}, 1); floor({d}); ceiling({d});
  convert(decimal(12, 2), {i}); (select sum(c.d) from u c where {p})
s: ({s} + {s}); upper({s}); lower({s}); ltrim({s}); rtrim({s}); substring({s}, {small}, 2); left({s}, 2);
  right({s}, 1); replace({s}, 'a', 'xy'); reverse({s}); replicate({s}, 2); stuff({s}, 1, 1, {s});
  convert(varchar(12), {i}); convert(varchar(12), {y}, 112); (select min(c.s) from t c where {p})
n: upper({n}); left({n}, 1)
t: convert(datetime, '20260329 02:30'); convert(datetime, '19991231 23:59'); dateadd(day, {small}, {t});
  dateadd(month, {small}, {t}); convert(datetime, {y})
y: convert(date, '20240229'); convert(date, '20260101'); dateadd(year, {small}, {y}); convert(date, {t})
f: 1e0; (-2.5e0); ({f} + {f}); (-{f}); abs({f}); convert(float, {d})
b: convert(bit, 1); convert(bit, {i})
group: a.i; b.b; a.n; b.y; a.d
q: 1 = 1; ({q} and {q}); ({q} or {q}); not ({q}); {whole} {cmp} {whole}; {whole} between {whole} and {whole};
  {whole} in ({whole}, {whole}, null); {whole} not in ({whole}, 1); {whole} is null; {exact} {cmp} {exact};
  {exact} {cmp} {whole}; max(a.s) like 'a%'; min(b.t) {cmp} max(a.t); min(a.n) = max(b.n)
plain: a.i; b.i; a.id; (a.i + b.i); len(b.s); case when a.s like b.s then a.i else b.i end
whole: count(*); 1; 0; sum({plain}); min({plain}); max(a.i); count(distinct {plain}); ({whole} - {whole});
  case when {q} then {whole} else {whole} end; coalesce({whole}, {whole}); nullif({whole}, 1)
exact: sum(a.d); min(a.d * b.d); max(b.d); avg(b.d); ({exact} + {exact}); isnull({exact}, 0)
""",
    {kind: [f"a.{kind}", f"b.{kind}", *literals] for kind, literals in _LITERALS.items()},
)


# a group's texts that are equal without case have one form
_SHOWN = "rtrim(upper(convert(nvarchar(12), {})))"


def _rows(case: Tree) -> list[str]:
    source, p, _, i, s, d, _ = case.parts
    return parts_of(f"select a.id, b.id, {i}, {s}, {d} from {source}", "where", p)


def _distinct(case: Tree) -> list[str]:
    source, p, _, _, s, _, group = case.parts
    whole, *parts = parts_of(f"select {_SHOWN.format(group)}, {s} from {source}", "where", p)
    return [whole.replace("select ", "select distinct ", 1), " union ".join(parts)]


def _groups(case: Tree) -> list[str]:
    source, p, _, i, _, d, group = case.parts
    figures = "count(*), count(i), sum(i), sum(d), min(i), max(i), min(d), max(d), min(t), max(y)"
    return [
        f"select {_SHOWN.format('g')}, {figures} from ({rows}) v group by g"
        for rows in parts_of(
            f"select {group} g, {i} i, {d} d, b.t t, convert(datetime, a.y) y from {source}", "where", p
        )
    ]


def _having(case: Tree) -> list[str]:
    source, p, q, _, _, _, group = case.parts
    select = f"select {_SHOWN.format(group)}, count(*), sum(a.i) from {source} where {p} group by {group}"
    return parts_of(select, "having", q)


def _reference(case: Tree) -> list[str]:
    source, p, *_ = case.parts
    return [
        f"select count(*) from {source} where {p}",
        f"select coalesce(sum(x), 0) from (select case when {p} then 1 else 0 end x from {source}) v",
    ]


_ADDED = (operator.add,) * 4
CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "rows": Check(_rows, is_union),
        "distinct": Check(_distinct, is_same),
        "aggregates": Check(_groups, is_combined(*_ADDED, min, max, min, max, min, max)),
        "having": Check(_having, is_union),
        "reference": Check(_reference, is_same),
    }
)


@contextmanager
def subjects(server: Server, draw: random.Random) -> Iterator[list[Subject]]:
    """The queries on new tables, by SQL Server's rules or by Sybase's."""
    version = draw.choice(["7.4", "7.4", "5.0"])
    with database(server, "partitioned", version) as connection, connection.cursor() as cursor:
        statements = _tables(draw)
        cursor.execute("\n".join(statements))

        def reduced_rows(fails: Callable[[], bool]) -> str:
            there = [*statements]
            for statement in statements:
                fewer = [one for one in there if one != statement]
                if statement.startswith("insert"):
                    _make_again(cursor, fewer)
                    there = fewer if fails() else there
            _make_again(cursor, there)
            return "\n".join(there)

        yield [Subject(f"T-SQL, TDS {version}", GRAMMAR, CHECKS, by_tds(connection), rows=reduced_rows)]


def _make_again(cursor: Any, statements: Sequence[str]) -> None:
    cursor.execute("\n".join([*(f"drop table {table}" for table in _TABLES), *statements]))
