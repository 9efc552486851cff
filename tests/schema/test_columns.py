"""The widest tables of PostgreSQL, and columns whose names have a meaning in SQL or in a procedure."""

import pickle
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from psycopg import errors, sql
from sqlalchemy.dialects import postgresql

from ringlog.schema.column_type import NUMBERS, TYPES, ColumnType, Kind
from ringlog.schema.facility import Column, Facility, SampleTable, Table
from ringlog.schema.facility_files.facility_file import FacilityError, load_facility
from ringlog.schema.installing.install import install
from ringlog.schema.layout import SCHEMAS
from ringlog.schema.relations import closed

from .conftest import Connect

NOW = datetime.now().astimezone()


def put(connection: psycopg.Connection, table: Table, value: object) -> None:
    call = sql.SQL("select ringlog.{}(row (1, {}, {})::online.{})").format(
        sql.Identifier(f"put_{table.name}"),
        NOW,
        sql.SQL(", ").join([sql.Literal(value)] * len(table.columns)),
        sql.Identifier(table.name),
    )
    connection.execute(call)


@pytest.mark.long
@pytest.mark.parametrize(
    ("columns", "kind", "value"),
    [
        (1598, "real", 1.5),
        (999, "double", 1e300),
        (336, "varchar(40)", "\N{GRINNING FACE}" * 40),
        (384, "varchar(5)", "\N{GRINNING FACE}" * 5),
    ],
)
def test_the_widest_tables(
    engine: sa.Engine, connect: Connect, tmp_path: Path, columns: int, kind: str, value: object
) -> None:
    """The widest permitted table holds its largest values, and one more column is refused."""
    text = '[[table]]\nname = "wide"\nrows = 1\ncycle = 1\n[[table.column]]\nname = "c{n}"\n'
    file = tmp_path / "facility.toml"
    file.write_text(text + f'count = {columns + 1}\nsignal = "c{{n}}"\ntype = "{kind}"\n')
    with pytest.raises(FacilityError, match=r"PostgreSQL's (limit|page)"):
        load_facility(file)
    file.write_text(text + f'count = {columns}\nsignal = "c{{n}}"\ntype = "{kind}"\n')
    facility = load_facility(file)
    install(engine, facility)
    connection = connect()
    put(connection, facility.tables[0], value)
    for procedure in ("get_wide()", "get_wide_at(now())", "get_wide_range()"):
        row = connection.execute(sql.SQL("select * from ringlog." + procedure)).fetchone()
        assert row is not None
        assert row[2:] == (value,) * columns


@pytest.mark.long
def test_the_rule_of_the_page_is_postgresqls(engine: sa.Engine, connect: Connect) -> None:
    """It assumes a null in the row, which adds 128 bytes of header, and thus one column less."""
    doubles = [Column(f"c{n}", f"c{n}", "double") for n in range(1000)]
    table = Table("wide", 1, 1.0, (*doubles, Column("b", "b", "bit")))
    install(engine, Facility("test", "UTC", (table,)))
    call = sql.SQL("select ringlog.put_wide(row (1, now(), {}, null)::online.wide)")
    with pytest.raises(errors.ProgramLimitExceeded, match="row is too big: size 8168, maximum size 8160"):
        connect().execute(call.format(sql.SQL(", ").join([sql.Literal(1.5)] * 1000)))


def test_a_put_of_many_columns_takes_little_memory(engine: sa.Engine, connect: Connect) -> None:
    """Each of a server's sessions keeps a plan per table: megabytes would soon be gigabytes."""
    columns = tuple(Column(f"c{n}", f"c{n}", "real") for n in range(200))
    table = Table("magnets", 1, 1.0, columns)
    install(engine, Facility("test", "UTC", (table,)))
    connection = connect()
    for _ in range(10):
        put(connection, table, 1.5)
    memory = connection.execute(
        "select sum(total_bytes) from pg_backend_memory_contexts where name ~ 'CachedPlan|PL/pgSQL'"
    ).fetchone()
    assert memory is not None
    assert memory[0] < 2 * 2**20


AWKWARD = (
    # names in the procedures
    "r", "n", "at", "ring", "log", "logged", "latest", "newest", "next", "period", "found", "in_force",
    "rows", "from_time", "to_time", "max_rows", "name", "value", "location", "chosen", "signal", "put_t",
    "get_t", "online",
    # words of SQL
    "select", "order", "user", "table", "desc", "end", "row", "values", "limit", "null", "default", "all",
    "date", "timestamp", "current_user", "when", "check",
)  # fmt: skip


def test_names_that_mean_something_else(engine: sa.Engine, connect: Connect) -> None:
    table = Table("t", 2, 1.0, tuple(Column(name, f"t/{name}", "int") for name in AWKWARD))
    select = Table("select", 2, 1.0, (Column("order", "select/order", "int"),))
    install(engine, Facility("test", "UTC", (table, select)))
    connection = connect()
    for each in (table, select):
        put(connection, each, 7)
        put(connection, each, 7)
        for procedure in ("get_{}(2)", "get_{}_at(now())", "get_{}_range(null, now(), 9)"):
            statement = "select * from ringlog." + procedure.format(each.name)
            assert [row[2:] for row in connection.execute(sql.SQL(statement))] == [(7,) * len(each.columns)]
        assert connection.execute(sql.SQL(f"select seq_no from ringlog.last_{each.name}()")).fetchone() == (
            1,
        )
    call = sql.SQL("select ringlog.put_t(row (null, now(), {})::online.t)")
    connection.execute(call.format(sql.SQL(", ").join([sql.Literal(8)] * len(AWKWARD))))
    for name in AWKWARD:
        get_signal = "select value from ringlog.get_signal(%s)"
        assert connection.execute(get_signal, [f"t/{name}"]).fetchall() == [(7,), (8,)]
        assert connection.execute("select value from ringlog.get_latest(%s)", [f"t/{name}"]).fetchone() == (
            8,
        )


# --- a column's type is one value with its forms in other systems ---

TEXTS = (
    *NUMBERS,
    *(f"{kind}[]" for kind in NUMBERS),
    *("numeric(10,2)", "datetime", "varchar(40)", "varchar(40)[]", "text"),
)
NO_TYPES = (
    *("", "float", "varchar", "varchar(0)", "varchar(10485761)", "varchar(4,2)", "real(4)", "real[][]"),
    *("numeric(39,0)", "numeric(0,0)", "numeric(2,3)", "numeric(5)", "numeric(9,2)[]"),
    *("datetime[]", "text[]", "text(3)"),
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_is_its_text(text: str) -> None:
    kind = ColumnType.of(text)
    assert str(kind) == text
    assert pickle.loads(pickle.dumps(kind)) == kind == Column("a", "s", text).type
    # SQLAlchemy's text is compared with the catalogue
    assert kind.sqlalchemy.compile(dialect=postgresql.dialect()) == kind.sql


def test_every_kind_has_a_text() -> None:
    assert {ColumnType.of(text).kind for text in TEXTS} == {*Kind}


@pytest.mark.parametrize("text", NO_TYPES)
def test_no_other_text_is_a_type(text: str) -> None:
    with pytest.raises(ValueError, match="is not a column type"):
        ColumnType.of(text)


@pytest.mark.parametrize("kind", [ColumnType(kind) for kind in NUMBERS], ids=str)
def test_numbers_have_the_same_width_everywhere(kind: ColumnType) -> None:
    assert np.dtype(kind.numpy).itemsize == np.dtype(kind.array).itemsize == kind.width
    if kind.kind is not Kind.BIT:
        assert pa.from_numpy_dtype(np.dtype(kind.numpy)) == kind.arrow
    waveform = ColumnType.of(f"{kind}[]")
    assert waveform.arrow == pa.list_(kind.arrow)
    assert (waveform.element, waveform.width) == (kind, None)


@pytest.mark.parametrize("text", TEXTS)
def test_types_of_postgresql_with_and_without_size(text: str) -> None:
    """In format_type's form, with and without the type's modifier."""
    kind = ColumnType.of(text)
    name = kind.sql.lower().replace("varchar", "character varying").replace(", ", ",")
    assert ColumnType.of_postgresql(name) == kind
    of_any_size = replace(kind, length=None, digits=None, scale=None)
    assert ColumnType.of_postgresql(re.sub(r"\(.*\)", "", name)) == of_any_size


@pytest.mark.parametrize("name", ["uuid", "numeric(3,1)[]", "text[]", "timestamp(3) with time zone"])
def test_other_types_of_postgresql_are_refused(name: str) -> None:
    assert ColumnType.of_postgresql(name) is None


def test_a_type_is_of_one_family() -> None:
    for text in TEXTS:
        kind = ColumnType.of(text)
        families = (kind.is_text, kind.is_number, kind.is_packed, kind.kind is Kind.DATETIME)
        assert sum(families) == 1, text


def test_types_have_postgresql_s_oids(postgres_url: sa.URL) -> None:
    query = sa.text("select oid::integer, format_type(oid, null) from unnest(:oids ::oid[]) as oid")
    with sa.create_engine(postgres_url).connect() as connection:
        names = connection.execute(query, {"oids": [*TYPES]}).all()
    assert {oid: ColumnType.of_postgresql(name) for oid, name in names} == TYPES
    assert {replace(ColumnType.of(text), length=None, digits=None, scale=None) for text in TEXTS} == {
        *TYPES.values()
    }


# --- comments of PostgreSQL's catalogue, which `\d+` and other clients show ---

POWER = Column("power", "sr_rf/power", "real", "kW", "forward power")
TURNS = Column("turns", "sr_rf/turns", "real[]", points=10)
RF = Table(
    "sr_rf", rows=4, cycle=1.0, columns=(POWER, TURNS), description="radio frequency", summaries=(60, 3600)
)
# functions of a range type belong to PostgreSQL's first superuser
UNEXPLAINED = """
with schema as (select oid, nspname from pg_namespace where nspname = any (%s))
select nspname from schema where obj_description(oid, 'pg_namespace') is null
union all
select format('%%I.%%I', nspname, relname) from pg_class join schema on schema.oid = relnamespace
where relkind in ('r', 'p', 'v', 'f') and not relispartition
  and obj_description(pg_class.oid, 'pg_class') is null
union all
select format('%%I.%%I.%%I', nspname, relname, attname)
from pg_attribute
join pg_class on pg_class.oid = attrelid
join schema on schema.oid = relnamespace
where relkind in ('r', 'p', 'v', 'f') and not relispartition and attnum > 0 and not attisdropped
  and col_description(attrelid, attnum) is null
union all
select pg_proc.oid::regprocedure::text from pg_proc join schema on schema.oid = pronamespace
where obj_description(pg_proc.oid, 'pg_proc') is null
  and to_regtype(format('%%I.%%I', nspname, proname)) is null
"""


def of_column(connection: psycopg.Connection, relation: str, column: str) -> str:
    found = connection.execute(
        "select col_description(attrelid, attnum) from pg_attribute"
        " where attrelid = %s::regclass and attname = %s",
        [relation, column],
    ).fetchone()
    assert found is not None
    return str(found[0])


def test_all_objects_of_ringlog_have_a_comment(engine: sa.Engine, connect: Connect) -> None:
    vacuum = SampleTable("vac", ColumnType.of("double"))
    install(engine, Facility("test", "UTC", (RF,), sample_tables=(vacuum,)))
    connection = connect()
    connection.execute("set role ringlog_owner")
    closed.create_missing(connection, "sr_rf")
    assert connection.execute(UNEXPLAINED, [[*SCHEMAS]]).fetchall() == []
    assert of_column(connection, "log.sr_rf", "power") == "kW: forward power (signal sr_rf/power)"
    assert of_column(connection, "online.sr_rf", "turns") == "signal sr_rf/turns"
    assert of_column(connection, "minute.sr_rf", "mean") == "mean of the readings"


def test_comments_follow_the_facility_file(engine: sa.Engine, connect: Connect) -> None:
    install(engine, Facility("test", "UTC", (RF,)))
    more = replace(POWER, name="reflected", signal="sr_rf/reflected", description="it's 100 % \\ reflected")
    changed = replace(RF, columns=(replace(POWER, unit="MW"), TURNS, more), description="RF")
    install(engine, Facility("test", "UTC", (changed,)))
    connection = connect()
    assert of_column(connection, "log.sr_rf", "power") == "MW: forward power (signal sr_rf/power)"
    reflected = "kW: it's 100 % \\ reflected (signal sr_rf/reflected)"
    for relation in ("log.sr_rf", "online.sr_rf", "ring.sr_rf", "recent.sr_rf"):
        assert of_column(connection, relation, "reflected") == reflected
    described = connection.execute("select obj_description('online.sr_rf'::regclass, 'pg_class')").fetchone()
    assert described == ("RF: the ring of its latest rows",)
    assert connection.execute(UNEXPLAINED, [[*SCHEMAS]]).fetchall() == []


# --- log.<table> as a view of the table in which a log is stored ---

TABLE = Table("magnets", 5, 1.0, (Column("current", "m/current", "real"),))
FACILITY = Facility("test", "UTC", (TABLE,))


def test_rows_are_inserted_and_deleted_as_in_a_table(engine: sa.Engine, connect: Connect) -> None:
    install(engine, FACILITY)
    connection = connect()
    insert = "insert into log.magnets values (1, '2026-01-01', 1) on conflict (time, seq_no) do nothing"
    assert [connection.execute(insert).rowcount for _ in range(2)] == [1, 0]
    assert connection.execute("select * from weeks.magnets for update").rowcount == 1
    assert connection.execute("update log.magnets set current = 2").rowcount == 1
    assert connection.execute("delete from log.magnets where current = 2").rowcount == 1


@pytest.mark.parametrize("name", ["magnets", "renamed"])
def test_an_additional_column(engine: sa.Engine, connect: Connect, name: str) -> None:
    """Users' views remain."""
    install(engine, FACILITY)
    connection = connect()
    connection.execute("create view public.on_it as select seq_no from log.magnets")
    columns = (*TABLE.columns, Column("field", "m/field", "double"))
    grown = replace(TABLE, name=name, columns=columns, renamed_from=None if name == "magnets" else "magnets")
    install(engine, replace(FACILITY, tables=(grown,)))
    connection.execute(f"insert into log.{name} values (1, '2026-01-01', 1, 2)".encode())
    assert connection.execute("select count(*) from public.on_it").fetchone() == (1,)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("select current, field, more from log.magnets")
