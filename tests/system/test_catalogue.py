"""T-SQL's catalogue views and functions, through PostgreSQL's own clients."""

from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import pytest
from case_tables import cases
from psycopg import sql

from servers import RunningServer

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module")
def reader(server: RunningServer) -> Iterator[Connection]:
    with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def writer(server: RunningServer) -> Iterator[Connection]:
    with psycopg.connect(server.dsn_of(server.writer), autocommit=True) as connection:
        yield connection


def rows(connection: Connection, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(query, values).fetchall()


def value(connection: Connection, query: LiteralString, *values: object) -> Any:
    ((found,),) = rows(connection, query, *values)
    return found


RINGS = ["every_type", "sr_mag_ps", "sr_rf", "sr_vac"]


@pytest.mark.parametrize("database", ["online", "log"])
def test_tables_are_those_of_the_current_database(reader: Connection, database: str) -> None:
    with reader.transaction():
        reader.execute("select set_config('search_path', %s, true)", [database])
        assert [name for (name,) in rows(reader, "select name from sys.tables order by name")] == RINGS
        listed = "select name from sys.sysobjects where type = 'U' order by name"
        assert [name for (name,) in rows(reader, listed)] == RINGS
        assert rows(
            reader,
            "select distinct table_catalog, table_schema, table_type from tsql_information_schema.tables",
        ) == [(database, "dbo", "BASE TABLE")]


def test_another_databases_views_are_functions(reader: Connection) -> None:
    listed = (
        "select name from sys.sysobjects('log') where type = 'U' and id = 'log.sr_rf'::regclass::oid::integer"
    )
    assert rows(reader, listed) == [("sr_rf",)]
    assert rows(reader, "select distinct table_catalog from tsql_information_schema.columns('log')") == [
        ("log",)
    ]
    # and only there
    assert value(reader, "select sys.db_name()") == "online"
    with pytest.raises(psycopg.errors.InvalidSchemaName, match="'nowhere'"):
        rows(reader, "select * from sys.tables('nowhere')")


def test_columns_have_the_types_that_the_gateway_describes(reader: Connection) -> None:
    columns = rows(
        reader,
        "select c.name, t.name, c.max_length, c.precision, c.scale, c.is_nullable"
        " from sys.columns c join sys.types t on t.user_type_id = c.user_type_id"
        " where c.object_id = sys.object_id('every_type') order by c.column_id",
    )
    assert columns == [
        ("seq_no", "int", 4, 10, 0, False),
        ("time", "datetime2", 8, 26, 6, True),
        ("a_real", "real", 4, 24, 0, True),
        ("a_double", "float", 8, 53, 0, True),
        ("an_int", "int", 4, 10, 0, True),
        ("a_smallint", "smallint", 2, 5, 0, True),
        ("a_bigint", "bigint", 8, 19, 0, True),
        ("a_bit", "bit", 1, 1, 0, True),
        ("a_varchar", "nvarchar", 80, 0, 0, True),
    ]


@pytest.mark.parametrize("key", ["xtype = t.xtype", "xusertype = t.xusertype", "usertype = t.usertype"])
def test_the_old_ways_to_join_a_column_with_its_type(reader: Connection, key: str) -> None:
    columns = reader.execute(
        sql.SQL(
            "select c.name, t.name, c.length from sys.syscolumns c join sys.systypes t on c.{}"
            " where c.id = sys.object_id('sr_rf') and t.name <> 'sysname' order by c.colid"
        ).format(sql.SQL(key))  # type: ignore[arg-type]
    ).fetchall()
    assert columns == [
        ("seq_no", "int", 4),
        ("time", "datetime2", 8),
        ("power", "real", 4),
        ("arcs", "int", 4),
    ]


def test_each_type_has_its_own_usertype(reader: Connection) -> None:
    """Otherwise that join returns a column twice."""
    assert rows(reader, "select usertype from sys.systypes group by usertype having count(*) > 1") == []


@pytest.mark.parametrize(
    ("type", "name", "length", "precision", "scale", "ase"),
    cases(__file__, "types_beyond_those_of_a_facility"),
)
def test_types_beyond_those_of_a_facility(
    admin: Connection, type: str, name: str, length: int, precision: int, scale: int, ase: str
) -> None:
    with admin.transaction(force_rollback=True):
        admin.execute(sql.SQL("create table online.t (c {})").format(sql.SQL(type)))  # type: ignore[arg-type]
        found = rows(
            admin,
            "select described.name, bytes, digits, scale, ase_name"
            " from pg_attribute, sys.described_type(atttypid, atttypmod) as described"
            " where attrelid = 'online.t'::regclass and attname = 'c'",
        )
    assert found == [(name, length, precision, scale, ase)]


@pytest.mark.parametrize(
    ("type", "declaration", "characters"),
    # Date and time data types (SQL Server documentation); Babelfish's sp_columns_100 has 14 for time(5)
    cases(__file__, "the_precision_of_a_moment_is_its_characters"),
)
def test_the_precision_of_a_moment_is_its_characters(
    admin: Connection, type: str, declaration: str, characters: int
) -> None:
    found = value(
        admin,
        "select odbc_precision from sys.described_type(to_regtype(%s)::oid, -1, %s)",
        type,
        declaration,
    )
    assert found == characters


def test_a_domain_is_its_base_type(admin: Connection) -> None:
    with admin.transaction(force_rollback=True):
        admin.execute(
            "create domain online.volt as numeric(8, 3); create domain online.kilovolt as online.volt"
        )
        admin.execute("create table online.t (c online.kilovolt)")
        column = rows(
            admin,
            "select data_type, numeric_precision, numeric_scale from tsql_information_schema.columns"
            " where table_name = 't'",
        )
    assert column == [("numeric", 8, 3)]


def test_a_login_sees_only_objects_that_it_may_use(reader: Connection, writer: Connection) -> None:
    procedures = "select name from sys.procedures where name like '%%sr_rf' order by name"
    assert [name for (name,) in rows(reader, procedures)] == ["get_sr_rf", "last_sr_rf"]
    assert [name for (name,) in rows(writer, procedures)] == ["import_sr_rf", "last_sr_rf", "put_sr_rf"]
    columns = "select name from sys.columns where object_id = sys.object_id('sr_rf') order by column_id"
    assert [name for (name,) in rows(reader, columns)] == ["seq_no", "time", "power", "arcs"]
    # a writer may only query its position
    assert [name for (name,) in rows(writer, columns)] == ["seq_no", "time"]
    with writer.transaction():
        writer.execute("select set_config('search_path', 'log', true)")
        assert rows(writer, "select * from sys.tables") == []


def test_parameters_are_those_of_callers(writer: Connection) -> None:
    parameters = rows(
        writer,
        "select p.name, t.name, p.is_output, p.has_default_value from sys.parameters p"
        " join sys.types t on t.user_type_id = p.user_type_id"
        " where p.object_id = sys.object_id('put_sr_rf') order by p.parameter_id",
    )
    # a row argument is unfolded, and each of its fields may be omitted
    assert parameters == [
        ("@seq_no", "int", False, True),
        ("@time", "datetime2", False, True),
        ("@power", "real", False, True),
        ("@arcs", "int", False, True),
    ]
    outputs = rows(
        writer,
        "select parameter_name, parameter_mode, data_type from tsql_information_schema.parameters"
        " where specific_name = 'last_sr_rf' order by ordinal_position",
    )
    assert outputs == [("@seq_no", "INOUT", "int"), ("@time", "INOUT", "datetime2")]


def test_parameters_that_have_defaults(reader: Connection) -> None:
    assert rows(
        reader,
        "select name, has_default_value from sys.parameters"
        " where object_id = sys.object_id('get_signal') order by parameter_id",
    ) == [("@name", False), ("@from_time", True), ("@to_time", True), ("@max_rows", True), ("@every", True)]


def test_indexes_and_keys(reader: Connection) -> None:
    assert rows(
        reader,
        "select i.index_id, i.name, i.type_desc, i.is_unique, i.is_primary_key, c.key_ordinal,"
        " sys.col_name(c.object_id, c.column_id) from sys.indexes i"
        " left join sys.index_columns c on c.object_id = i.object_id and c.index_id = i.index_id"
        " where i.object_id = sys.object_id('sr_rf') order by 1, 6",
    ) == [
        (1, "sr_rf_pkey", "CLUSTERED", True, True, 1, "seq_no"),
        (2, "sr_rf_time_idx", "NONCLUSTERED", False, False, 1, "time"),
        (2, "sr_rf_time_idx", "NONCLUSTERED", False, False, 2, "seq_no"),
    ]
    assert rows(
        reader,
        "select name, type, unique_index_id from sys.key_constraints"
        " where parent_object_id = sys.object_id('sr_rf')",
    ) == [("sr_rf_pkey", "PK", 1)]
    # SQL Server: a table and each of its indexes is a partition at least
    assert rows(
        reader,
        "select index_id, partition_number from sys.partitions"
        " where object_id = sys.object_id('sr_rf') order by 1",
    ) == [(1, 1), (2, 1)]
    assert rows(
        reader,
        "select index_id, used_page_count >= 0 from sys.dm_db_partition_stats"
        " where object_id = sys.object_id('sr_rf') order by 1",
    ) == [(1, True), (2, True)]
    # the number of rows of a table, by the old query
    assert (
        value(reader, "select name from sys.sysindexes where id = sys.object_id('sr_rf') and indid < 2")
        == "sr_rf_pkey"
    )


def test_the_numbers_of_an_identity(admin: Connection) -> None:
    """SQL Server's documentation: IDENT_CURRENT is the seed where no value has been given yet."""
    with admin.transaction(force_rollback=True):
        admin.execute(
            "create table online.counted (a integer,"
            " id integer generated always as identity (start with 5 increment by 3))"
        )
        numbers = "select sys.ident_seed('counted'), sys.ident_incr('counted'), sys.ident_current('counted')"
        assert rows(admin, numbers) == [(5, 3, 5)]
        admin.execute("insert into online.counted (a) values (1), (2)")
        assert rows(admin, numbers) == [(5, 3, 8)]
        assert value(admin, "select sys.ident_seed('sr_rf')") is None


def test_references_between_objects(admin: Connection) -> None:
    with admin.transaction(force_rollback=True):
        admin.execute(
            "create table online.parent (a integer, b integer, primary key (a, b));"
            "create table online.child (id integer generated always as identity, x integer, y integer,"
            " n integer default 7, twice integer generated always as (n * 2) stored, check (n > 0),"
            " constraint child_parent foreign key (x, y) references online.parent on delete cascade)"
        )
        assert rows(
            admin,
            "select k.name, k.delete_referential_action_desc, k.update_referential_action_desc,"
            " sys.object_name(k.referenced_object_id) from sys.foreign_keys k",
        ) == [("child_parent", "CASCADE", "NO_ACTION", "parent")]
        assert rows(
            admin,
            "select sys.col_name(parent_object_id, parent_column_id),"
            " sys.col_name(referenced_object_id, referenced_column_id)"
            " from sys.foreign_key_columns order by 1",
        ) == [("x", "a"), ("y", "b")]
        keys = rows(
            admin,
            'select "PKCOLUMN_NAME", "FKCOLUMN_NAME", "DELETE_RULE", "UPDATE_RULE"'
            " from sys.sp_fkeys('parent')",
        )
        assert keys == [("a", "x", 0, 1), ("b", "y", 0, 1)]
        assert rows(
            admin,
            "select unique_constraint_name, delete_rule from tsql_information_schema.referential_constraints",
        ) == [("parent_pkey", "CASCADE")]
        assert rows(admin, "select name, seed_value from sys.identity_columns") == [("id", 1)]
        assert rows(admin, "select definition from sys.default_constraints") == [("(7)",)]
        assert rows(admin, "select name, definition from sys.computed_columns") == [("twice", "((n * 2))")]
        assert value(admin, "select definition from sys.check_constraints") == "(n > 0)"


def test_names_of_keys_are_those_of_the_tables(admin: Connection) -> None:
    """SQL Server, "sp_pkeys", "sp_fkeys", "REFERENTIAL_CONSTRAINTS": the names of tables, columns and
    constraints, as all other views have them; for a unique index its name."""
    with admin.transaction(force_rollback=True):
        admin.execute(
            "create table online.parent (a integer, b integer, constraint pk_parent primary key (a));"
            'create unique index "parent.ix_b" on online.parent (b);'
            "create table online.child (x integer, y integer,"
            " constraint one foreign key (x) references online.parent (a),"
            " constraint two foreign key (y) references online.parent (b));"
            "comment on table online.parent is 'T-SQL \"Parent\"';"
            "comment on column online.parent.a is 'T-SQL \"A\"';"
            "comment on column online.parent.b is 'T-SQL \"B\"';"
            "comment on column online.child.x is 'T-SQL \"X\"';"
            "comment on constraint pk_parent on online.parent is 'T-SQL \"PK_Parent\"'"
        )
        primary = """select "TABLE_NAME", "COLUMN_NAME", "PK_NAME" from sys.sp_pkeys('parent')"""
        assert rows(admin, primary) == [("Parent", "A", "PK_Parent")]
        foreign = """
            select "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "PK_NAME" from sys.sp_fkeys('parent')"""
        assert rows(admin, foreign) == [("Parent", "A", "X", "PK_Parent"), ("Parent", "B", "y", "ix_b")]
        assert rows(
            admin,
            "select constraint_name, unique_constraint_name"
            " from tsql_information_schema.referential_constraints order by 1",
        ) == [("one", "PK_Parent"), ("two", "ix_b")]
        assert rows(
            admin,
            "select used.column_name, named.column_name from tsql_information_schema.key_column_usage used"
            " join tsql_information_schema.constraint_column_usage named using (constraint_name)"
            " where constraint_name in ('PK_Parent', 'one', 'two') order by constraint_name",
        ) == [("A", "A"), ("X", "X"), ("y", "y")]
        assert value(admin, "select sys.index_col('parent', 2, 1)") == "B"
        assert rows(admin, "select index_name, index_keys from sys.sp_helpindex('parent')") == [
            ("PK_Parent", "A"),
            ("ix_b", "B"),
        ]


def test_operators_of_t_sql_are_shown_as_written(admin: Connection) -> None:
    """SQL Server, "sys.computed_columns": the SQL text that defines the column."""
    with admin.transaction(force_rollback=True):
        admin.execute(
            "create table online.counted (n integer,"
            " more integer generated always as (n operator(tsql.+) 5) stored,"
            " constraint few check (n operator(tsql.%) 3 operator(tsql.<>) 1));"
            'create index "counted.high" on online.counted (n) where n operator(tsql.>) 5'
        )
        assert value(admin, "select definition from sys.computed_columns") == "((n + 5))"
        assert value(admin, "select definition from sys.check_constraints") == "((n % 3) <> 1)"
        assert value(admin, "select sys.object_definition(sys.object_id('few'))") == "((n % 3) <> 1)"
        filters = "select filter_definition from sys.indexes where name = 'high'"
        assert value(admin, filters) == "((n > 5))"


NAMES: list[tuple[LiteralString, object]] = [
    ("sys.object_id('sr_rf') = sys.object_id('dbo.SR_RF', 'U')", True),
    ("sys.object_id('[sr_rf]') = 'online.sr_rf'::regclass::oid::integer", True),
    ("sys.object_id('log..sr_rf') = 'log.sr_rf'::regclass::oid::integer", True),
    ("sys.object_id('log.dbo.sr_rf') = 'log.sr_rf'::regclass::oid::integer", True),
    ("sys.object_id('sr_rf', 'V')", None),
    ("sys.object_id('nowhere..sr_rf')", None),
    ("sys.object_name(sys.object_id('get_sr_rf'))", "get_sr_rf"),
    ("sys.object_name(1)", None),
    ("sys.col_name(sys.object_id('sr_rf'), 2)", "time"),
    ("sys.col_length('sr_rf', 'time')", 8),
    ("sys.index_col('sr_rf', 2, 2)", "seq_no"),
    ("sys.type_name(61)", "datetime"),
    ("sys.type_id('real')", 59),
    ("sys.schema_name()", "dbo"),
    ("sys.schema_name(4)", "sys"),
    ("sys.db_name()", "online"),
    ("sys.db_name(sys.db_id('log'))", "log"),
    ("sys.db_id('nowhere')", None),
    ("sys.user_name()", "reader"),
    ("sys.user_name(sys.user_id('reader'))", "reader"),
    ("sys.suser_name(sys.suser_id())", "reader"),
    ("sys.is_member('daq_reader')", 1),
    ("sys.is_member('daq_writer')", 0),
    ("sys.is_member('nobody_knows')", None),
    ("sys.is_member('daq_reader ')", 1),
    # null for an unknown login (Babelfish's is_srvrolemember-vu-verify)
    ("sys.is_srvrolemember('PUBLIC  ')", 1),
    ("sys.is_srvrolemember('public', 'nobody_knows')", None),
    ("sys.is_srvrolemember('serveradmin', 'reader')", 0),
    ("sys.is_srvrolemember('serveradmin', 'nobody_knows')", None),
    ("sys.is_srvrolemember('no such role')", None),
    ("sys.parsename('a.b..d', 1)", "d"),
    ("sys.parsename('a.b..d', 2)", None),
    ("sys.parsename('a.b..d', 3)", "b"),
    ('sys.parsename(\'[a.b]."c""d"\', 1)', 'c"d'),
    ("sys.parsename('a.b.c.d.e', 1)", None),
    # not identifiers: letters after a closing bracket, brackets in a name without them, more than 128 letters
    ("sys.parsename('a.[b]c', 1)", None),
    ("sys.parsename('a.b[c]', 1)", None),
    ("sys.parsename('a.b\"c', 2)", None),
    ("sys.parsename(repeat('a', 129) || '.b', 1)", None),
    ("sys.parsename(repeat('a', 128) || '.b', 1)", "b"),
    ("sys.quotename('a]b')", "[a]]b]"),
    ("sys.quotename('a', 'x')", None),
    ("sys.objectproperty(sys.object_id('sr_rf'), 'IsUserTable')", 1),
    ("sys.objectproperty(sys.object_id('get_sr_rf'), 'IsProcedure')", 1),
    ("sys.objectproperty(sys.object_id('sr_rf'), 'NoSuchProperty')", None),
    # trailing blanks are ignored in comparisons
    ("sys.objectpropertyex(sys.object_id('sr_rf'), 'BaseType  ')", "U"),
    ("sys.columnproperty(sys.object_id('sr_rf'), 'SEQ_NO', 'Precision ')", 10),
    ("sys.columnproperty(sys.object_id('sr_rf'), 'seq_no', 'AllowsNull')", 0),
    ("sys.databasepropertyex('log', 'Status')", "ONLINE"),
    ("sys.databasepropertyex('nowhere', 'Status')", None),
    ("sys.serverproperty('productversion')", "12.0.2000.8"),
    # SQL Server: sys.databases has its own, which come first
    ("(sys.db_id('master'), sys.db_id('tempdb'))::text", "(1,2)"),
    ("sys.db_id('online') > 4", True),
    # COLLATIONPROPERTY: 196609 ignores case, kana and width
    ("sys.collationproperty('Latin1_General_CI_AS', 'ComparisonStyle ')", 196609),
    ("sys.collationproperty('Latin1_General_100_BIN2_UTF8', 'CodePage')", 65001),
    ("sys.collationproperty('nowhere', 'LCID')", None),
    # HAS_PERMS_BY_NAME: null for what does not exist
    ("sys.has_perms_by_name('sr_rf', 'OBJECT', 'SELECT')", 1),
    ("sys.has_perms_by_name('sr_rf', 'OBJECT', 'insert')", 0),
    ("sys.has_perms_by_name('sr_rf', 'OBJECT', 'SELECT', 'power', 'COLUMN')", 1),
    ("sys.has_perms_by_name('get_sr_rf', 'OBJECT', 'EXECUTE')", 1),
    ("sys.has_perms_by_name('nothing', 'OBJECT', 'SELECT')", None),
    ("sys.has_perms_by_name(null, null, 'VIEW SERVER STATE')", 0),
    ("sys.has_perms_by_name('log', 'DATABASE', 'CONNECT')", 1),
    ("sys.has_perms_by_name('log', 'DATABASE', 'NO SUCH PERMISSION')", None),
]


@pytest.mark.parametrize(("expression", "expected"), NAMES)
def test_functions_of_names(reader: Connection, expression: LiteralString, expected: object) -> None:
    assert value(reader, sql.SQL("select {}").format(sql.SQL(expression)).as_string()) == expected  # type: ignore[arg-type]


def test_a_temporary_table_is_found_by_the_name_of_tempdb(reader: Connection) -> None:
    assert value(reader, "select sys.object_id('tempdb..#readings')") is None
    reader.execute('create temporary table "#readings" (a integer)')
    assert value(reader, "select sys.object_id('tempdb..#readings')") is not None
    assert value(reader, "select sys.object_id('#readings', 'U')") is not None
    reader.execute('drop table "#readings"')


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("sr_rf", "sr%", True),
        ("sr_rf", "SR_RF", True),
        ("sr_rf", "sr[_]rf", True),
        ("srxrf", "sr[_]rf", False),
        ("srxrf", "sr\\_rf", False),
        ("sr_rf", "sr\\_rf", True),
        ("sr_rf", "[r-t]%", True),
        ("sr_rf", "[^s]%", False),
        # an inverted range is empty (SQL Server, LIKE: a character within the range)
        ("c", "[c-a]", False),
        ("c", "[^c-a]", True),
        ("c", "[c-ac]", True),
        ("-", "[a-]", True),
        ("a[b", "a[[]b", True),
        ("a.b", "a_b", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("sr_rf", "sr[", False),
        ("sr_rf", "", False),
        ("sr_rf", None, True),
    ],
)
def test_patterns_of_names(reader: Connection, name: str, pattern: str | None, expected: bool) -> None:
    assert (value(reader, "select sys.matches(%s, %s)", name, pattern) or False) is expected


@pytest.mark.parametrize(("name", "is_found"), [("SR_RF", True), ("sr%", False), ("%", False)])
def test_an_exact_name_is_no_pattern(reader: Connection, name: str, is_found: bool) -> None:
    """@fUsePattern (SQL Server documentation, sp_columns and sp_stored_procedures)"""
    columns = "select count(*) > 0 from sys.sp_columns_100(%s, null, 'online', fusepattern => false)"
    assert value(reader, columns, name) == is_found
    procedure = name.replace("SR", "GET_SR")
    procedures = "select count(*) > 0 from sys.sp_stored_procedures(%s, null, 'online', fusepattern => false)"
    assert value(reader, procedures, procedure) == is_found


def test_the_text_of_a_procedure_in_pieces(writer: Connection) -> None:
    whole = value(
        writer, "select definition from sys.sql_modules where object_id = sys.object_id('put_sr_rf')"
    )
    pieces = rows(
        writer, "select text from sys.syscomments where id = sys.object_id('put_sr_rf') order by colid"
    )
    assert "".join(text for (text,) in pieces) == whole
    assert max(len(text) for (text,) in pieces) == 255
    lines = rows(writer, "select * from sys.sp_helptext('put_sr_rf')")
    assert "\n".join(text for (text,) in lines) == whole
