"""A site whose schema has traps: operators, functions and aggregates that PostgreSQL prefers to its own for
operands of the types that ringlog's queries have.

Each behaves like PostgreSQL's own, and writes a line into PostgreSQL's log when it runs in a session of
another login than the developer's.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import psycopg

from servers import Login

DEVELOPER = Login("trapper", "trap-1")
SITE = "trapping"
MARK = "a trap ran"

# As in docs/how-to/procedures.md.
_ACCOUNTS = f"""
create role {SITE} nologin;
create schema {SITE} authorization {SITE};
grant usage on schema {SITE} to daq_writer, daq_reader;
grant daq_reader, daq_writer to {SITE};
create role {DEVELOPER.user} login password '{DEVELOPER.password}' in role {SITE};
grant {DEVELOPER.user} to ringlog_gateway with inherit false, set true;
alter role {DEVELOPER.user} set role = {SITE};
alter database ringlog set search_path = online, log, ringlog, public, {SITE};
"""

_TYPES = [
    "bool",
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "numeric",
    "text",
    "varchar",
    "bpchar",
    "name",
    "char",
    "oid",
    "regclass",
    "regtype",
    "regproc",
    "regprocedure",
    "regnamespace",
    "regrole",
    "timestamptz",
    "timestamp",
    "date",
    "time",
    "interval",
    "xid",
    "xid8",
    "jsonb",
    "json",
    "bytea",
    "pg_lsn",
    "inet",
    "_text",
    "_name",
    "_oid",
    "_int2",
    "_int4",
    "_int8",
    "_float4",
    "_float8",
    "_timestamptz",
    "_regclass",
    "int2vector",
    "oidvector",
    "_bool",
    "_char",
]
_COMMON = [
    "bool",
    "int2",
    "int4",
    "int8",
    "float8",
    "numeric",
    "text",
    "varchar",
    "name",
    "char",
    "oid",
    "regclass",
    "regtype",
    "regnamespace",
    "timestamptz",
]
_OPERATORS = """
select oprname, l.typname, r.typname, o.typname
from pg_operator
left join pg_type l on l.oid = oprleft
join pg_type r on r.oid = oprright
join pg_type o on o.oid = oprresult
where oprnamespace = 'pg_catalog'::regnamespace
"""
_FUNCTIONS = """
select n.nspname, proname,
  array(
    select typname from unnest(proargtypes::oid[]) with ordinality as a (oid, place)
    join pg_type on pg_type.oid = a.oid order by place
  ),
  o.typname, proretset, prokind::text, provariadic = '"any"'::regtype
from pg_proc
join pg_type o on o.oid = prorettype
join pg_namespace n on n.oid = pronamespace
where n.nspname in ('pg_catalog', 'ringlog')
  and not exists (
    select from unnest(proargtypes || prorettype) as used (oid) join pg_type on pg_type.oid = used.oid
    where typnamespace <> 'pg_catalog'::regnamespace
  )
  and proallargtypes is null and prokind in ('f', 'a') and pronargs between 1 and 4
  and (provariadic = 0 or provariadic = '"any"'::regtype)
"""
_MOST = 60  # traps of a function
_POLYMORPHIC = {"anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"}
_ARRAYS = {"anyarray", "anycompatiblearray"}


class _Catalogue:
    """PostgreSQL's operators, by the names of types."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        rows = connection.execute(
            "select t.typname, e.typname, t.typtype from pg_type t left join pg_type e on e.typarray = t.oid"
            " where t.typnamespace = 'pg_catalog'::regnamespace"
        ).fetchall()
        self.element = {name: element for name, element, _ in rows if element is not None}
        self.pseudo = {name for name, _, kind in rows if kind == "p"}
        self.array = {element: name for name, element in self.element.items()}
        self.sources: dict[str, list[str]] = {}
        for source, target in connection.execute(
            "select s.typname, t.typname from pg_cast join pg_type s on s.oid = castsource"
            " join pg_type t on t.oid = casttarget where castcontext = 'i' and s.typname = any(%s)",
            [_TYPES],
        ):
            self.sources.setdefault(target, []).append(source)
        self.operators = connection.execute(_OPERATORS).fetchall()
        self.functions = connection.execute(_FUNCTIONS).fetchall()

    def options(self, declared: str) -> list[str]:
        if declared in _POLYMORPHIC or declared == "any":
            return _COMMON
        if declared in _ARRAYS:
            return [self.array[name] for name in _COMMON]
        return [] if declared in self.pseudo else [declared, *self.sources.get(declared, [])]

    def signatures(self, declared: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str | None]]:
        """Types that may be passed for the declared ones, and the one that replaces the polymorphic ones."""
        polymorphic = [name in _POLYMORPHIC | _ARRAYS for name in declared]
        for chosen in product(*map(self.options, declared)):
            elements = {
                self.element[name] if of in _ARRAYS else name
                for name, of, is_one in zip(chosen, declared, polymorphic, strict=True)
                if is_one
            }
            if len(elements) <= 1:
                yield chosen, next(iter(elements), None)

    def result(self, declared: str, element: str | None) -> str | None:
        if declared in _POLYMORPHIC:
            return element
        if declared in _ARRAYS:
            return self.array.get(element or "")
        return declared if declared not in self.pseudo or declared in ("void", "record") else None


def _type(name: str) -> str:
    return f'pg_catalog."{name}"'


def statements(connection: psycopg.Connection[Any]) -> list[str]:
    """The developer's statements."""
    catalogue = _Catalogue(connection)
    numbers = iter(range(1_000_000))
    made: dict[tuple[str, tuple[str, ...]], None] = {}
    there = {(name, tuple(declared)) for _, name, declared, *_ in catalogue.functions}
    found: list[str] = []

    def function(name: str, taken: Sequence[str], result: str, many: bool, value: str) -> None:
        arguments = ", ".join(map(_type, taken))
        answer = f"return query select {value}" if many else f"return {value}"
        if result == "void":
            answer = f"perform {value}"
        title = f"{name.replace('%', '%%')}({', '.join(taken)})"
        found.append(
            f'create function {SITE}."{name}"({arguments}) returns {"setof " if many else ""}{_type(result)}'
            " language plpgsql set search_path = pg_catalog as $trap$ begin"
            f" if session_user <> '{DEVELOPER.user}' then raise log '{MARK}: {title} as % and %, by %',"
            " session_user, current_user, translate(current_query(), E'\\n', ' '); end if;"
            f" {answer}; end $trap$;"
        )

    for schema, name, declared, result, many, kind, variadic in catalogue.functions:
        forms = [declared]
        if variadic:
            forms = [[*declared[:-1], *["any"] * more] for more in (1, 2)]
        for form in forms:
            for taken, element in islice(catalogue.signatures(form), _MOST):
                own = catalogue.result(result, element)
                if own is None or (own == "record") or (name, taken) in there or (name, taken) in made:
                    continue
                made[name, taken] = None
                if kind == "a":
                    if len(taken) != 1 or taken[0] not in catalogue.array or many:
                        continue
                    number = next(numbers)
                    array = catalogue.array[taken[0]]
                    value = f'(select {schema}."{name}"(x{_as(form[0], catalogue)}) from unnest($1) as x)'
                    function(f"final_{number}_{name}", [array], own, False, value)
                    found.append(
                        f"create function {SITE}.collect_{number} ({_type(array)}, {_type(taken[0])})"
                        f" returns {_type(array)} language plpgsql set search_path = pg_catalog as $trap$"
                        f" declare all_of {_type(array)} := $1; begin all_of[cardinality($1) + 1] := $2;"
                        " return all_of; end $trap$;"
                        f'create aggregate {SITE}."{name}"({_type(taken[0])})'
                        f" (sfunc = {SITE}.collect_{number}, stype = {_type(array)},"
                        f" initcond = '{{}}', finalfunc = {SITE}.\"final_{number}_{name}\");"
                    )
                    continue
                values = ", ".join(f"${position}{_as(of, catalogue)}" for position, of in enumerate(form, 1))
                function(name, taken, own, many, f'{schema}."{name}"({values})')
    known = {(name, left, right) for name, left, right, _ in catalogue.operators}
    for name, left, right, result in catalogue.operators:
        declared = [right] if left is None else [left, right]
        for taken, element in catalogue.signatures(declared):
            own = catalogue.result(result, element)
            key = (name, None if left is None else taken[0], taken[-1])
            if own is None or key in known:
                continue
            known.add(key)
            trap = f"operator_{next(numbers)}"
            operands = [f"${position}{_as(of, catalogue)}" for position, of in enumerate(declared, 1)]
            symbol = f" operator(pg_catalog.{name}) "
            value = symbol.join(operands) if left is not None else symbol + operands[0]
            function(trap, taken, own, False, value)
            sides = f"rightarg = {_type(taken[-1])}"
            if left is not None:
                sides = f"leftarg = {_type(taken[0])}, " + sides
            found.append(f"create operator {SITE}.{name} ({sides}, function = {SITE}.{trap});")
    return found


def _as(declared: str, catalogue: _Catalogue) -> str:
    return "" if declared in catalogue.pseudo else f"::{_type(declared)}"


def make_developer(administrator: psycopg.Connection[Any]) -> None:
    administrator.execute(_ACCOUNTS)


def set_traps(administrator: psycopg.Connection[Any], developer: str) -> int:
    wanted = statements(administrator)
    with psycopg.connect(developer) as connection:
        connection.execute("".join(wanted).encode())
    return len(wanted)


def sprung(log: Path) -> list[str]:
    """The lines that traps have written to PostgreSQL's log."""
    lines: list[str] = []
    for file in sorted(log.iterdir()):
        lines += [line for line in file.read_text(errors="replace").splitlines() if MARK in line]
    return lines
