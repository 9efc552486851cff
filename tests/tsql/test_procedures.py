"""Procedures written in T-SQL, as PostgreSQL runs them: compiled, made, called, and read as the gateway reads
them, result sets by the cursors that notices name."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import tuple_row

from ringlog.gateway._core import TsqlError, translate
from servers import RunningServer

Row = tuple[Any, ...]


@dataclass
class Called:
    """What a call has brought."""

    status: int | None = None
    error: int = 0
    left: int | None = None
    """@@rowcount, where no count and no rows say it"""
    """@@error after it"""
    outputs: dict[str, Any] = field(default_factory=dict)
    rows: list[list[Row]] = field(default_factory=list)
    """of each result set"""
    columns: list[list[str]] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    """in order: ("rows", n), ("count", n), ("print", text), ("error" or "message", number, severity, state,
    line, text)"""
    ended: list[str] = field(default_factory=list)
    """"failed" or "" for each statement of which only the end is told."""

    @property
    def errors(self) -> list[tuple[Any, ...]]:
        return [event[1:] for event in self.events if event[0] == "error"]

    @property
    def counts(self) -> list[int]:
        return [event[1] for event in self.events if event[0] == "count"]

    @property
    def prints(self) -> list[str]:
        return [event[1] for event in self.events if event[0] == "print"]


class Refused(Exception):
    """A text that does not compile."""

    def __init__(self, error: TsqlError) -> None:
        super().__init__(error.args[2])
        self.number, self.line, self.text = error.args


class Site:
    """A schema with a site's own tables and procedures, both of the role site_owner, who cannot log in."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection

    def run(self, statement: str) -> None:
        with self.connection.transaction():
            self.connection.execute("set local role site_owner")
            self.connection.execute("set local search_path = site, online, log, ringlog, public")
            self.connection.execute(statement.encode())

    def define(self, text: str, *, sybase: bool = False) -> None:
        """Runs CREATE, ALTER or DROP PROCEDURE, or GRANT."""
        self.run("; ".join(self.compile(text, sybase=sybase)))

    @staticmethod
    def compile(text: str, *, sybase: bool = False) -> list[str]:
        try:
            return translate(text, database="site", sybase=sybase)
        except TsqlError as error:
            raise Refused(error) from None

    def refusal(self, body: str) -> Refused:
        """Why a procedure of this body is refused; its first line is line 2 of the text."""
        with pytest.raises(Refused) as refused:
            self.compile(f"create procedure refused_one @n int as\n{body}")
        return refused.value

    def call(self, name: str, /, *values: Any, **named: Any) -> Called:
        """A call as the gateway makes it; the transaction ends with it."""
        called = Called()
        cursors: list[tuple[str, str | None]] = []

        def hear(notice: psycopg.errors.Diagnostic) -> None:
            message = notice.message_primary or ""
            match notice.sqlstate:
                case "01R01":
                    called.events.append(("rows", len(cursors)))
                    cursors.append((message, notice.message_detail))
                case "01R04":
                    called.error = int(message)
                case "01R05":
                    called.left = int(message)
                case "01R07":
                    called.ended.append(notice.message_detail or "")
                case "01R02":
                    kind = {None: "count", "select": "assigned"}.get(notice.message_detail, "in trigger")
                    called.events.append((kind, int(message)))
                case "01R03":
                    number, severity, state, line, _ = (notice.message_detail or "").split(" ", 4)
                    kind = "error" if int(severity) > 10 else "message"
                    called.events.append((kind, int(number), int(severity), int(state), int(line), message))
                case _:
                    called.events.append(("print", message))

        found = self.connection.execute(
            "select oid, prokind, proretset, coalesce(proargnames, '{}'), coalesce(proargmodes::text[], '{}')"
            " from pg_proc where pronamespace = 'site'::regnamespace and proname = %s",
            [name],
        ).fetchone()
        assert found is not None, f"there is no procedure {name}"
        _, kind, _, names, modes = found
        arguments = [sql.SQL("%s") for _ in values]
        arguments += [sql.SQL("{} => %s").format(sql.Identifier(f"@{key}")) for key in named]
        if kind == "p":
            arguments.insert(0, sql.SQL("null"))
        call = sql.SQL("{}({})").format(sql.Identifier("site", name), sql.SQL(", ").join(arguments))
        outputs = [one for one, mode in zip(names, modes or ["i"] * len(names), strict=True) if mode in "bo"]
        statement = sql.SQL("call {}" if kind == "p" else "select * from {}").format(call)
        self.connection.add_notice_handler(hear)
        try:
            with self.connection.transaction():
                gave = self.connection.execute(statement, [*values, *named.values()]).fetchone()
                assert gave is not None
                if not outputs:
                    (called.status,) = gave
                else:
                    returned = dict(zip(outputs, gave, strict=True))
                    called.status = returned.pop("return_status")
                    called.outputs = {key.removeprefix("@"): value for key, value in returned.items()}
                for cursor, shown in cursors:
                    fetched = self.connection.execute(sql.SQL("fetch all {}").format(sql.Identifier(cursor)))
                    assert fetched.description is not None
                    called.columns.append(
                        json.loads(shown) if shown else [column.name for column in fetched.description]
                    )
                    called.rows.append(fetched.fetchall())
        finally:
            self.connection.remove_notice_handler(hear)
        return called

    def rows(self, query: str) -> list[Row]:
        return self.connection.execute(query.encode()).fetchall()


@pytest.fixture(scope="module")
def site(server: RunningServer) -> Iterator[Site]:
    with psycopg.connect(server.dsn, autocommit=True, row_factory=tuple_row) as connection:
        connection.execute(
            "create role site_owner nologin; create schema site authorization site_owner;"
            " grant usage on schema site, tsql, online, log, ringlog to site_owner;"
            " grant daq_writer, daq_reader to site_owner"
        )
        yield Site(connection)
        connection.execute("drop schema site cascade; drop owned by site_owner; drop role site_owner")


@pytest.fixture
def points(site: Site) -> Iterator[None]:
    """A table to write to."""
    site.run("create table site.points (id integer primary key, name varchar(10), value double precision)")
    yield
    site.run("drop table site.points")


def test_parameters_defaults_outputs_and_status(site: Site) -> None:
    site.define(
        """create procedure scaled
            @value float, @factor float = 2.5, @name varchar(4) = 'none', @result float output
        as
        begin
            set @result = @value * @factor
            if @name = 'none' return 1
            return 2
        end"""
    )
    assert site.call("scaled", 2.0, result=None).outputs == {"result": 5.0}
    assert site.call("scaled", 2.0, result=None).status == 1
    assert site.call("scaled", value=3.0, factor=1.0, name="long name", result=0.0).status == 2
    with pytest.raises(psycopg.Error, match="expects parameter '@result', which was not supplied") as missing:
        site.call("scaled", 2.0)
    assert missing.value.sqlstate == "TS001"
    assert (missing.value.diag.message_detail or "").startswith("201 16 ")


def test_a_parameter_left_out_takes_its_default_and_null_stays_null(site: Site) -> None:
    site.define("create procedure shown @a int = 7, @b varchar(10) = word as select @a, @b")
    assert site.call("shown").rows == [[(7, "word")]]
    assert site.call("shown", b="x").rows == [[(7, "x")]]
    assert site.call("shown", None, None).rows == [[(None, None)]]


def test_a_procedure_that_only_writes_is_a_function_that_may_share_transactions(
    site: Site, points: None
) -> None:
    site.define(
        """create procedure put_point @id int, @value float as
        set nocount on
        update points set value = @value where id = @id
        if @@rowcount = 0 insert points (id, value) values (@id, @value)"""
    )
    (kind,) = site.rows(
        """select p.prokind, p.prosecdef, p.provolatile, p.proretset, p.proconfig, o.rolcanlogin
        from pg_proc p join pg_roles o on o.oid = p.proowner where p.proname = 'put_point'"""
    )
    assert kind == ("f", True, "v", False, ["search_path=site, online, log, ringlog, pg_temp"], False)
    assert site.call("put_point", 1, 2.5).status == 0
    assert site.call("put_point", 1, 3.5).events == []
    assert site.rows("select id, value from site.points") == [(1, 3.5)]
    site.define("create procedure point_told @id int as select value from points where id = @id")
    (kind,) = site.rows("select prokind from pg_proc where proname = 'point_told'")
    assert kind == ("p",), "what sends rows runs on a connection of its own"


def test_variables_keep_their_values_apart_from_columns(site: Site, points: None) -> None:
    """A column is never taken for a parameter of the same name, nor for a variable of PL/pgSQL."""
    site.define(
        """create procedure named @id int, @name varchar(10), @value float as
        insert points (id, name, value) values (@id, @name, @value)
        update points set value = value + @value, name = name + @name where id = @id"""
    )
    site.call("named", 1, "a", 1.0)
    site.call("named", 2, "b", 2.0)
    assert site.rows("select * from site.points order by id") == [(1, "aa", 2.0), (2, "bb", 4.0)]
    site.define("create procedure no_column @value int, @status int as select status from points")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        site.call("no_column", 1, 2)


def test_control_flow(site: Site) -> None:
    site.define(
        """create procedure flow @n int as
        declare @i int, @sum int = 0
        set @i = 0
        while 1 = 1
        begin
            set @i = @i + 1
            if @i > @n break
            if @i % 2 = 0 continue
            begin
                set @sum = @sum + @i
            end
        end
        if @sum > 10
            print 'much'
        else if @sum = 0
            print 'nothing'
        else
        begin
            print 'little'
            print @sum
        end
        return @sum"""
    )
    assert site.call("flow", 0).prints == ["nothing"]
    assert site.call("flow", 4).prints == ["little", "4"]
    assert site.call("flow", 7).prints == ["much"]
    assert site.call("flow", 7).status == 16


def test_a_value_is_cut_to_its_variable_and_its_parameter(site: Site) -> None:
    site.define(
        """create procedure cut @in varchar(3), @out varchar(4) output as
        declare @local varchar(2)
        set @local = @in
        set @out = @local + 'xyz'"""
    )
    assert site.call("cut", "abcdef", None).outputs == {"out": "abxy"}


def test_select_assigns_the_last_row_or_leaves_the_variable(site: Site, points: None) -> None:
    site.run("insert into site.points values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    site.define(
        """create procedure last_name @from int, @name varchar(10) output, @n int output as
        select @name = name, @n = id from points where id >= @from order by id
        return @@rowcount"""
    )
    called = site.call("last_name", 2, "?", 0)
    assert called.outputs == {"name": "c", "n": 3}
    assert called.status == 2
    # SQL Server reports how many rows gave the variables their values
    assert called.events == [("assigned", 2)]
    called = site.call("last_name", 9, "kept", 5)
    assert called.outputs == {"name": "kept", "n": 5}
    assert called.status == 0
    assert called.rows == []


def test_result_sets_counts_and_messages_come_in_order(site: Site, points: None) -> None:
    site.define(
        """create procedure several as
        print 'first'
        insert points values (1, 'a', 1.5)
        select id, name from points
        update points set value = 2 where id = 1
        select value as v from points
        print 'last'"""
    )
    called = site.call("several")
    assert called.rows == [[(1, "a")], [(2.0,)]]
    assert called.events == [
        ("print", "first"), ("count", 1), ("rows", 0), ("count", 1), ("rows", 1), ("print", "last"),
    ]  # fmt: skip
    assert called.status == 0


def test_ends_of_messages_and_cursor_statements_are_told(site: Site) -> None:
    """microsoft/go-mssqldb, TestSprocWithCursorNoResult. Conditions and assignments are not told."""
    body = """
        declare @n int
        declare c cursor for select 1 n union select 2
        open c
        fetch next from c into @n
        while @@fetch_status = 0
        begin
            print @n
            fetch next from c into @n
        end
        close c
        deallocate c
        raiserror ('last', 5, 1)"""
    site.define("create procedure told as" + body)
    called = site.call("told")
    assert (called.prints, called.ended) == (["1", "2"], [""] * (1 + 1 + 3 + 2 + 1 + 1 + 1))
    site.define("create procedure not_told as set nocount on" + body)
    assert not site.call("not_told").ended


def test_ends_of_failed_statements_and_of_definitions_are_told(site: Site) -> None:
    """MS-TDS 2.2.7.7: DONEINPROC for each executed statement, with DONE_ERROR after an error."""
    site.define(
        """create procedure told_failed as
        create table #t (a int not null)
        raiserror ('no', 16, 1)
        insert #t values (null)
        if @@error = 515 drop table #t"""
    )
    called = site.call("told_failed")
    assert called.ended == ["", "failed", "failed", ""]
    assert [error[0] for error in called.errors] == [50000, 515]


def test_a_result_set_has_the_rows_of_its_moment(site: Site, points: None) -> None:
    site.define(
        """create procedure before_and_after as
        set nocount on
        select count(*) from points
        insert points values (1, 'a', 1)
        select count(*) from points
        delete points
        select @@rowcount, (select count(*) from points)"""
    )
    assert site.call("before_and_after").rows == [[(0,)], [(1,)], [(1, 0)]]


def test_rowcount_of_each_kind_of_statement(site: Site, points: None) -> None:
    site.define(
        """create procedure counted as
        set nocount on
        declare @a int, @b int, @c int, @d int, @e int, @f int
        insert points values (1, 'a', 1)
        insert points select 2, 'b', 2 union select 3, 'c', 3
        set @a = @@rowcount
        set @b = @@rowcount
        update points set value = 0 where id > 5
        select @c = @@rowcount
        select id from points
        set @d = @@rowcount
        delete points where id < 3
        if @@rowcount = 2 set @e = @@rowcount
        print 'x'
        set @f = @@rowcount
        select @a, @b, @c, @d, @e, @f"""
    )
    # SET leaves 1, IF and PRINT leave 0
    assert site.call("counted").rows[1] == [(2, 1, 0, 3, 0, 0)]


def test_raiserror_of_both_dialects_goes_on(site: Site) -> None:
    site.define(
        """create procedure complains @n int as
        raiserror ('value %d of %s', 16, 3, @n, 'magnet')
        raiserror ('just so', 10, 1)
        print 'went on'
        return -5"""
    )
    called = site.call("complains", 4)
    assert called.events == [
        ("error", 50000, 16, 3, 2, "value 4 of magnet"),
        ("message", 50000, 10, 1, 3, "just so"),
        ("print", "went on"),
    ]
    assert called.status == -5
    site.define(
        """create procedure complains5 @n int as
        if @n > 3
        begin
            raiserror 20001 "seq_no %1! is beyond %2!", @n, "the ring"
            return -100
        end
        return 0""",
        sybase=True,
    )
    called = site.call("complains5", 4)
    assert called.events == [("error", 20001, 16, 1, 4, "seq_no 4 is beyond the ring")]
    assert called.status == -100
    assert site.call("complains5", 1).status == 0


def test_an_error_ends_a_procedure_that_does_not_ask_for_it_and_undoes_it(site: Site, points: None) -> None:
    site.define(
        """create procedure plain @id int as
        insert points values (10, 'kept?', 0)
        insert points values (@id, 'b', 0)"""
    )
    with pytest.raises(psycopg.errors.UniqueViolation):
        site.call("plain", 10)
    assert site.rows("select * from site.points") == []


def test_a_procedure_that_asks_for_error_goes_on(site: Site, points: None) -> None:
    site.define(
        """create procedure asks @id int as
        declare @error int, @rows int
        insert points values (10, 'a', 0)
        insert points values (@id, 'b', 0)
        select @error = @@error, @rows = @@rowcount
        if @error <> 0
        begin
            print 'failed'
            insert points values (11, 'instead', 0)
        end
        if @@error = 0 print 'well'
        select @error, @rows"""
    )
    called = site.call("asks", 10)
    ((number, severity, _, line, text),) = called.errors
    assert (number, severity, line) == (2627, 14, 4)
    assert "duplicate key" in text
    assert called.prints == ["failed", "well"]
    assert called.rows == [[(2627, 0)]]
    assert site.rows("select id from site.points order by id") == [(10,), (11,)]
    assert site.call("asks", 12).errors[0][0] == 2627, "10 is there already"


def test_an_error_that_ends_a_batch_ends_the_procedure_whatever_it_asks_for(site: Site, points: None) -> None:
    site.define(
        """create procedure converts @text varchar(10) as
        declare @n int
        insert points values (1, 'a', 0)
        set @n = convert(int, @text)
        if @@error <> 0 print 'never'"""
    )
    with pytest.raises(psycopg.Error):
        site.call("converts", "no number")
    assert site.rows("select * from site.points") == []


def test_xact_abort_says_which(site: Site, points: None) -> None:
    site.define(
        """create procedure aborts as
        set xact_abort on
        insert points values (1, 'a', 0)
        insert points values (1, 'b', 0)
        if @@error <> 0 print 'never'"""
    )
    with pytest.raises(psycopg.errors.UniqueViolation):
        site.call("aborts")
    site.define(
        """create procedure goes_on as
        set xact_abort off
        insert points values (1, 'a', 0)
        insert points values (1, 'b', 0)
        insert points values (2, 'c', 0)"""
    )
    called = site.call("goes_on")
    assert [number for number, *_ in called.errors] == [2627]
    assert called.counts == [1, 1]
    assert site.rows("select id from site.points order by id") == [(1,), (2,)]


def test_try_and_catch(site: Site, points: None) -> None:
    site.define(
        """create procedure tries @id int, @divisor int as
        set nocount on
        begin try
            insert points values (1, 'before', 0)
            insert points values (@id, 'second', 100 / @divisor)
            print 'all well'
        end try
        begin catch
            print 'caught'
            select error_number() as number, error_severity(), error_state(), error_line(), error_procedure()
            insert points values (99, 'catch', 0)
        end catch
        print 'after'"""
    )
    called = site.call("tries", 2, 1)
    assert called.prints == ["all well", "after"]
    site.run("delete from site.points")
    called = site.call("tries", 1, 1)
    assert called.errors == [], "a caught error is not sent"
    assert called.prints == ["caught", "after"]
    assert called.rows == [[(2627, 14, 1, 5, "tries")]]
    # what was done before the error stays
    assert site.rows("select id from site.points order by id") == [(1,), (99,)]
    site.run("delete from site.points")
    assert site.call("tries", 2, 0).rows == [[(8134, 16, 1, 5, "tries")]]


def test_raiserror_in_try_goes_to_catch_and_throw_passes_on(site: Site) -> None:
    site.define(
        """create procedure rethrows @how int as
        begin try
            raiserror ('small', 10, 1)
            raiserror ('big', 15, 7)
            print 'never'
        end try
        begin catch
            declare @message varchar(100)
            set @message = error_message()
            print @message
            if @how = 1
                throw
            if @how = 2
                throw 51000, 'my own', 3
            raiserror ('again', 16, 1)
        end catch
        return 4"""
    )
    called = site.call("rethrows", 0)
    assert called.events == [
        ("message", 50000, 10, 1, 3, "small"), ("print", "big"), ("error", 50000, 16, 1, 15, "again"),
    ]  # fmt: skip
    assert called.status == 4
    for how, detail in ((1, "50000 15 7 4 rethrows"), (2, "51000 16 3 14 rethrows")):
        with pytest.raises(psycopg.Error) as thrown:
            site.call("rethrows", how)
        assert thrown.value.sqlstate == "TS001"
        assert thrown.value.diag.message_detail == detail


def test_try_inside_try_and_in_loops(site: Site) -> None:
    site.define(
        """create procedure nested as
        declare @i int = 0, @log varchar(200) = ''
        while @i < 3
        begin
            set @i = @i + 1
            begin try
                begin try
                    if @i = 2 raiserror ('two', 16, 1)
                    set @log = @log + 'a'
                end try
                begin catch
                    set @log = @log + 'b'
                    raiserror ('from catch', 16, 2)
                end catch
                if @i = 1 continue
                set @log = @log + 'c'
            end try
            begin catch
                set @log = @log + error_message()
                break
            end catch
        end
        print @log"""
    )
    assert site.call("nested").prints == ["abfrom catch"]


def test_nested_calls(site: Site, points: None) -> None:
    site.define(
        """create procedure inner_one @id int, @double int output, @factor int = 2 as
        if @id < 0
        begin
            raiserror ('negative', 16, 1)
            return -1
        end
        insert points values (@id, 'inner', 0)
        set @double = @id * @factor
        return 3"""
    )
    site.define(
        """create procedure outer_one @id int as
        declare @status int, @got int, @more int
        exec @status = inner_one @id, @got output
        exec inner_one @factor = 10, @id = 100, @double = @more output
        select @status, @got, @more"""
    )
    called = site.call("outer_one", 4)
    assert called.rows == [[(3, 8, 1000)]]
    assert called.counts == [1, 1]
    site.run("delete from site.points")
    called = site.call("outer_one", -4)
    assert called.errors == [(50000, 16, 1, 4, "negative")]
    assert called.rows == [[(-1, None, 1000)]]


def test_a_called_procedure_may_come_later_and_have_been_changed(site: Site) -> None:
    site.define("create procedure calls_later as declare @s int exec @s = comes_later return @s")
    with pytest.raises(psycopg.Error, match="Could not find stored procedure 'comes_later'"):
        site.call("calls_later")
    site.define("create procedure comes_later as return 5")
    assert site.call("calls_later").status == 5
    site.define("alter procedure comes_later @a int = 6 as select @a return @a")
    called = site.call("calls_later")
    assert called.status == 6
    assert called.rows == [[(6,)]]


def test_calls_of_postgresql_functions(site: Site) -> None:
    site.run(
        """create function site.pg_sum(a integer, b float, out total float, out n integer)
        language sql as 'select a + b, 2';
        create function site.pg_rows(n integer) returns table (i integer, half numeric)
        language sql as 'select i, i / 2.0 from generate_series(1, n) i';
        create function site.pg_status(n integer default 9) returns integer language sql as 'select n'"""
    )
    site.define(
        """create procedure calls_postgres as
        declare @total float, @n int, @status int, @b float
        set @b = 2.5
        exec pg_sum 1, @b, @total output, @n = @n output
        exec pg_rows 2
        exec @status = pg_status
        select @total, @n, @status"""
    )
    called = site.call("calls_postgres")
    assert [[*map(float, row)] for row in called.rows[0]] == [[1, 0.5], [2, 1]]
    assert called.rows[1] == [(3.5, 2, 9)]


def test_calls_of_put_with_its_columns_as_parameters(site: Site) -> None:
    site.define(
        """create procedure put_pair @seq_no int, @time datetime, @real float as
        declare @status int
        exec @status = put_every_type @seq_no = @seq_no, @time = @time, @a_real = @real,
            @a_varchar = 'by T-SQL'
        return @status"""
    )
    assert site.call("put_pair", 7, "2024-05-06 07:08:09", 1.25).status == 0
    assert site.rows("select a_real, a_varchar, an_int from online.every_type where seq_no = 7") == [
        (1.25, "by T-SQL", None)
    ]


def test_wrong_calls_inside_a_procedure(site: Site) -> None:
    site.define("create procedure takes_two @a int, @b int = 1 as return @a")
    for number, call, text in [
        (201, "takes_two", "expects parameter '@a'"),
        (8144, "takes_two 1, 2, 3", "too many arguments"),
        (8145, "takes_two @a = 1, @c = 2", "@c is not a parameter"),
        (8162, "takes_two @n output", "'@a' was not declared as an OUTPUT"),
        (2812, "takes_nothing", "Could not find stored procedure 'takes_nothing'"),
    ]:
        site.define(f"create or alter procedure calls_wrong as declare @n int exec {call}")
        with pytest.raises(psycopg.Error, match=text) as error:
            site.call("calls_wrong")
        assert (error.value.diag.message_detail or "").split()[0] == str(number)


def test_an_error_of_a_called_procedure_goes_to_the_callers_catch(site: Site) -> None:
    site.define("create procedure fails_inside as raiserror ('inside', 16, 5) print 'not reached'")
    site.define(
        """create procedure guards as
        begin try
            exec fails_inside
        end try
        begin catch
            print error_message()
        end catch
        exec fails_inside"""
    )
    called = site.call("guards")
    assert called.events == [
        ("print", "inside"), ("error", 50000, 16, 5, 1, "inside"), ("print", "not reached"),
    ]  # fmt: skip


def test_error_and_rowcount_after_a_call(site: Site, points: None) -> None:
    site.define("create procedure leaves_error as raiserror 20005 'left' return 0", sybase=True)
    site.define("create procedure leaves_none as insert points values (1, 'a', 0) if @@rowcount = 0 return 1")
    site.define(
        """create procedure looks as
        declare @a int, @b int
        exec leaves_error
        set @a = @@error
        exec leaves_none
        set @b = @@error
        select @a, @b"""
    )
    assert site.call("looks").rows == [[(20005, 0)]]
    site.define("create procedure counts_not as delete points")
    site.define("create procedure asks_count as exec counts_not select @@rowcount")
    with pytest.raises(psycopg.Error, match="@@rowcount is not known after the call"):
        site.call("asks_count")


TRANSACTIONS = {
    "commit": "begin tran insert points values (@n, 'a', 0) insert points values (2, 'b', 0) commit tran",
    "branches": """begin tran
        insert points values (@n, 'a', 0)
        insert points values (2, 'b', 0)
        if @@error = 0
            commit tran
        else
        begin
            rollback tran
            print 'undone'
        end
        print 'end'""",
    "return": """begin transaction
        insert points values (1, 'a', 0)
        if @n > 1
        begin
            rollback transaction
            raiserror ('too big', 16, 1)
            return -1
        end
        insert points values (2, 'b', 0)
        commit transaction
        print 'end'""",
    "inside_try": """begin try
            begin tran
            insert points values (1, 'a', 0)
            insert points values (@n, 'b', 0)
            commit tran
            print 'committed'
        end try
        begin catch
            if @@trancount > 0 rollback tran
            print 'undone'
            print @@trancount
        end catch
        print 'end'""",
    "around_try": """begin tran
        begin try
            insert points values (1, 'a', 0)
            insert points values (@n, 'b', 0)
            commit tran
        end try
        begin catch
            print error_number()
            rollback tran
            print 'undone'
            return -1
        end catch
        print 'end'""",
    "loop": """declare @i int = 0
        while @i < 3
        begin
            set @i = @i + 1
            begin tran
            insert points values (@i, 'a', 0)
            if @i = @n
                rollback
            else
                commit
        end""",
    "after_commit": """begin tran
        begin try
            insert points values (1, 'a', 0)
            if @n = 1
            begin
                commit
                insert points values (1, 'again', 0)
            end
            else
                rollback
            print 'not after an error'
        end try
        begin catch
            declare @message varchar(200)
            select @message = error_message()
            print error_number()
            if @@trancount > 0 rollback
        end catch
        print 'end'""",
    "continues": """declare @i int = 0
        while @i < 4
        begin
            set @i = @i + 1
            begin tran
            insert points values (@i, 'a', 0)
            if @i = @n
            begin
                rollback
                continue
            end
            commit
            print @i
        end""",
    "rolled_back": "begin tran insert points values (1, 'a', 0) print @@trancount rollback print @@trancount",
}


@pytest.mark.parametrize(
    ("name", "n", "stored", "prints", "errors", "status"),
    [
        ("commit", 1, [1, 2], [], [], 0),
        ("branches", 1, [1, 2], ["end"], [], 0),
        ("branches", 2, [], ["undone", "end"], [2627], 0),
        ("return", 1, [1, 2], ["end"], [], 0),
        ("return", 2, [], [], [50000], -1),
        ("inside_try", 2, [1, 2], ["committed", "end"], [], 0),
        ("inside_try", 1, [], ["undone", "0", "end"], [], 0),
        ("around_try", 2, [1, 2], ["end"], [], 0),
        ("around_try", 1, [], ["2627", "undone"], [], -1),
        ("loop", 2, [1, 3], [], [], 0),
        ("after_commit", 1, [1], ["2627", "end"], [], 0),
        ("after_commit", 2, [], ["not after an error", "end"], [], 0),
        ("continues", 3, [1, 2, 4], ["1", "2", "4"], [], 0),
        ("rolled_back", 1, [], ["1", "0"], [], 0),
    ],
)
def test_transactions(
    site: Site,
    points: None,
    name: str,
    n: int,
    stored: list[int],
    prints: list[str],
    errors: list[int],
    status: int,
) -> None:
    site.define(f"create or alter procedure transacts @n int as set nocount on {TRANSACTIONS[name]}")
    called = site.call("transacts", n)
    assert [id for (id,) in site.rows("select id from site.points order by id")] == stored
    assert called.prints == prints
    assert [number for number, *_ in called.errors] == errors
    assert called.status == status


BY_GATEWAY = [
    "insert points (n)\nexec flow 1",
    "begin tran\nif @n = 1 commit",
    "begin tran\nreturn 1",
    "begin tran\nwhile 1 = 1 commit",
    "begin tran\nbegin tran\ncommit\ncommit",
    "begin tran\nsave tran s\ncommit",
    "begin tran\nselect 1\nrollback",
    "while 1 = 1 begin\nbegin tran\nbreak\ncommit end",
    "execute ('select 1')",
    "exec sp_executesql N'select 1'",
    "again:\ngoto again",
    "execute ('x')\ndeclare @t table (a int)",
    "declare @p varchar(30)\nexec @p",
    "if @n = 1\nset nocount on",
    "set rowcount 5",
    "print @@spid",
    "waitfor time '12:00'",
    "select found\nfrom points",
    "select kept.n\nfrom points kept",
    "declare c cursor for select * from points\nopen c",
    f"declare @a int,\n@{'a' * 70} int",
]


@pytest.mark.parametrize("body", BY_GATEWAY)
def test_what_plpgsql_has_no_words_for_is_kept_as_it_is(site: Site, points: None, body: str) -> None:
    """tests/gateway/test_interpreted_procedures.py calls such."""
    text = f"create or alter procedure kept @n int as\n{body}"
    site.define(text)
    assert site.rows("select tsql.source('site.kept'::regproc)") == [(text,)]
    with pytest.raises(psycopg.Error, match="'kept' is run by the gateway"):
        site.call("kept", 1)


REFUSED = [
    ("use log", 2, "USE"),
    ("print 'a'\ngoto somewhere", 3, "somewhere"),
    ("create procedure inner_one as print 'x'", 2, "CREATE PROCEDURE"),
    ("print @missing", 2, "@missing"),
    ("declare @n int", 2, "@n"),
    ("execute ('x')\nprint @missing", 3, "@missing"),
    ("execute ('x')\ndbcc checkdb", 3, "dbcc"),
    ("execute ('x')\ndeclare @t table (a int)\nrollback", 4, "rollback"),
]


@pytest.mark.parametrize(("body", "line", "named"), REFUSED)
def test_what_is_refused_is_named_with_its_line(site: Site, body: str, line: int, named: str) -> None:
    refusal = site.refusal(body)
    assert refusal.line == line
    assert named in refusal.text


def test_rollback_of_a_callers_transaction_is_refused(site: Site, points: None) -> None:
    site.define("create procedure rolls_back as insert points values (1, 'a', 0) rollback tran")
    site.define(
        """create procedure begins as
        begin tran
        insert points values (2, 'b', 0)
        exec rolls_back
        commit tran"""
    )
    with pytest.raises(psycopg.Error, match="would undo the transaction of its caller"):
        site.call("begins")
    assert site.rows("select * from site.points") == []
    called = site.call("rolls_back")
    assert [number for number, *_ in called.errors] == [3903]
    site.define("create procedure commits as commit tran")
    assert [number for number, *_ in site.call("commits").errors] == [3902]


def test_temporary_tables_go_with_their_procedure(site: Site, points: None) -> None:
    site.run("insert into site.points values (1, 'a', 1), (2, 'b', 2)")
    site.define(
        """create procedure uses_temporary @n int as
        create table #work (id int, twice float)
        insert #work select id, value * 2 from points
        if @n = 1
        begin
            select * from #work order by id
            return 1
        end
        drop table #work
        select id into #work from points where id = 2
        exec reads_temporary"""
    )
    site.define("create procedure reads_temporary as select count(*) from #work")
    for _ in range(2):
        called = site.call("uses_temporary", 1)
        assert called.rows == [[(1, 2.0), (2, 4.0)]]
        assert site.call("uses_temporary", 2).rows == [[(1,)]]
    assert site.rows("select to_regclass('pg_temp.\"#work\"')") == [(None,)]


def test_a_temporary_table_goes_while_rows_are_read_from_it(site: Site) -> None:
    site.define(
        """create procedure drops_early as
        create table #early (id int)
        insert #early values (1)
        select * from #early
        drop table #early
        create table #early (id int, more int)
        insert #early values (2, 3)
        select * from #early
        drop table #early
        drop table if exists #early
        drop table #early"""
    )
    for _ in range(3):
        with pytest.raises(psycopg.Error, match="Cannot drop the table '#early'"):
            site.call("drops_early")
    site.define("alter procedure drops_early as select id = 1 into #early select * from #early")
    for _ in range(3):
        assert site.call("drops_early").rows == [[(1,)]]
    (left,) = site.rows(
        "select count(*) from pg_class where relnamespace = pg_my_temp_schema() and relname like '#%'"
    )
    assert left == (1,), "the one whose rows were read last"


def test_a_result_set_has_the_time_of_its_select(site: Site) -> None:
    site.define("create procedure waits as select getdate() waitfor delay '00:00:00.2' select getdate()")
    ((first,),), ((second,),) = site.call("waits").rows
    assert (second - first).total_seconds() > 0.15


def test_alter_keeps_rights_and_drop_takes_them(site: Site) -> None:
    site.define("create procedure changes @a int as return @a")
    with pytest.raises(psycopg.Error) as taken:
        site.define("create procedure changes as return 1")
    assert (taken.value.diag.message_detail or "").startswith("2714 ")
    assert site.rows("select has_function_privilege('daq_reader', 'site.changes(integer)', 'execute')") == [
        (False,)
    ]
    site.define("grant execute on changes to daq_reader")
    site.define("alter procedure changes @a varchar(10), @b int output as select @b = 5 select 1")
    assert site.rows(
        "select p.prokind, a.grantee::regrole::text from pg_proc p, aclexplode(p.proacl) a"
        " where p.proname = 'changes' order by 2"
    ) == [("p", "daq_reader"), ("p", "site_owner")]
    assert site.call("changes", "x", 0).outputs == {"b": 5}
    site.define("drop procedure changes")
    with pytest.raises(psycopg.Error) as gone:
        site.define("drop procedure changes")
    assert (gone.value.diag.message_detail or "").startswith("3701 11 ")
    site.define("drop procedure if exists changes")
    with pytest.raises(psycopg.Error) as nothing:
        site.define("alter procedure changes as return 1")
    assert (nothing.value.diag.message_detail or "").startswith("208 ")


def test_a_function_of_postgresql_is_not_replaced(site: Site) -> None:
    site.run("create function site.pg_own() returns integer language sql as 'select 1'")
    with pytest.raises(psycopg.Error, match="already a function of PostgreSQL named 'pg_own'"):
        site.define("create or alter procedure pg_own as return 2")
    assert site.rows("select site.pg_own()") == [(1,)]


def test_the_source_is_given_back_and_survives(site: Site) -> None:
    source = "-- it's a \\ test\r\ncreate procedure texts @a int = 1 as\n\tprint 'Größe; $$ \\n' /* no end */"
    site.define(source)
    assert site.rows("select tsql.source('site.texts'::regproc)") == [(source,)]
    assert site.call("texts").prints == ["Größe; $$ \\n"]
    site.connection.execute("comment on function site.texts(integer) is 'something else'")
    assert site.rows("select tsql.source('site.texts'::regproc)") == [(None,)]


def test_a_caller_needs_the_right_to_execute_and_no_other(
    site: Site, points: None, server: RunningServer
) -> None:
    site.define("create procedure reads_points as insert points values (1, 'a', 0) print suser_name()")
    with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as reader:
        heard: list[str] = []
        reader.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
        site.connection.execute("grant usage on schema site to daq_reader")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("select site.reads_points()")
        site.define("grant execute on reads_points to daq_reader")
        reader.execute("select site.reads_points()")
        # the number of rows, what is printed, its end, what @@rowcount is then
        assert heard == ["1", "reader", "end", "0"]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("select * from site.points")
        site.define("revoke execute on reads_points from daq_reader")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("select site.reads_points()")


def test_only_who_may_create_in_the_schema_creates(server: RunningServer, site: Site) -> None:
    first, *_ = site.compile("create procedure foreign_one as return 1")
    with (
        psycopg.connect(server.dsn_of(server.reader), autocommit=True) as reader,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        reader.execute(first.encode())


def test_cursors_of_both_dialects(site: Site, points: None) -> None:
    site.run("insert into site.points values (1, 'a', 1.5), (2, 'b', 2.5), (3, 'c', 4)")
    site.define(
        """create procedure walks @from int as
        declare @id int, @value float, @sum float, @rows int
        set @sum = 0
        declare c cursor local fast_forward for select id, value from points where id >= @from order by id
        set @from = 100
        open c
        fetch next from c into @id, @value
        while @@fetch_status = 0
        begin
            set @sum = @sum + @value
            delete points where id = @id
            fetch next from c into @id, @value
        end
        set @rows = @@fetch_status
        close c
        deallocate c
        select @id, @sum, @rows"""
    )
    called = site.call("walks", 2)
    # the value at DECLARE counts, a fetch after the last row leaves the variables, the rows are those at OPEN
    assert called.rows == [[(3, 6.5, -1)]]
    assert site.rows("select id from site.points") == [(1,)]
    site.define(
        """create procedure walks5 @from int as
        declare @id int
        declare crsr cursor for select id from points where id >= @from for read only
        select @from = 1
        open crsr
        fetch crsr into @id
        while (@@sqlstatus != 2)
        begin
            print "row %1!", @id
            fetch crsr into @id
        end
        close crsr
        open crsr
        fetch crsr into @id
        close crsr
        deallocate cursor crsr
        return @@sqlstatus""",
        sybase=True,
    )
    called = site.call("walks5", 50)
    assert called.prints == ["row 1"], "the value at OPEN counts"
    assert called.status == 0


def test_procid_and_database(site: Site) -> None:
    site.define("create procedure tells_itself as select @@procid, db_name(), user_name()")
    ((procid, database, user),) = site.call("tells_itself").rows[0]
    assert site.rows("select 'site.tells_itself'::regproc::oid::integer") == [(procid,)]
    assert (database, user) == ("site", "postgres")


def test_a_fetched_value_is_converted_as_an_assigned_one(site: Site, points: None) -> None:
    site.run("insert into site.points values (1, 'longer', 2.9)")
    site.define(
        """create procedure fetches as
        declare @n int, @t varchar(3)
        declare c cursor for select value, name from points
        open c
        fetch c into @n, @t
        close c
        deallocate c
        select @n, @t"""
    )
    assert site.call("fetches").rows == [[(2, "lon")]]


def test_arguments_are_converted_as_t_sql_does(site: Site) -> None:
    site.define("create procedure takes_all @i int, @t varchar(30), @d datetime as select @i, @t, @d")
    site.define(
        """create procedure gives_all as
        declare @f float, @d datetime, @t varchar(20)
        select @f = -2.9, @d = '20240506 07:08:09', @t = ' 12 '
        exec takes_all @f, @d, @d
        exec takes_all @t, @f, '2024-05-06'"""
    )
    first, second = site.call("gives_all").rows
    assert [(i, t, str(d)) for i, t, d in first] == [(-2, "May  6 2024  7:08AM", "2024-05-06 07:08:09")]
    assert [(i, t, str(d)) for i, t, d in second] == [(12, "-2.9", "2024-05-06 00:00:00")]
