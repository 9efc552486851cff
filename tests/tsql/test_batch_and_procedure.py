"""A text has the same effect as a batch and as a procedure: rows, messages, errors, and state."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from authors import author_with_schema
from servers import Login, RunningServer
from tds_clients import Answer, Clients

AUTHOR = Login("both_ways", "both")

BODIES = {
    "rowcount of every statement": """
        declare @a int
        insert both_t values (5, 'e', 5)
        print @@rowcount
        print @@rowcount
        update both_t set v = v + 1 where id > 2
        select @a = @@rowcount
        select @a, @@rowcount
        set @a = 7
        select @@rowcount
        select id from both_t where id > 1
        select @@rowcount
        if @@rowcount = 1 select @@rowcount
        delete both_t where id = 99
        select @@rowcount
        select @a = id from both_t where id < 3 order by id
        select @@rowcount, @a
        select @a = id from both_t where id > 300
        select @@rowcount, @a""",
    "error of every statement": """
        declare @e int
        insert both_t values (1, 'again', 0)
        select @e = @@error
        select @e, @@error
        insert both_t values (2, 'again', 0)
        if @@error <> 0 print 'seen' else print 'not seen'
        select @@error
        raiserror ('raised %d', 16, 1, 5)
        select @@error
        raiserror ('only said', 10, 1)
        select @@error
        update both_t set v = (select 1 union select 2)
        print 'after'
        select @@error
        select count(*), @@error from both_t""",
    "errors that end a statement": """
        set xact_abort off
        insert both_t values (1, 'again', 0)
        insert both_t values (null, 'x', 0)
        insert both_t values (7, 'much too long for it', 0)
        insert both_t values (8, 'kept', 0)
        select (select 1 union select 2)
        select id from both_t""",
    "try and catch": """
        declare @n int
        select @n = 0
        begin try
            insert both_t values (6, 'f', 6)
            insert both_t values (1, 'again', 0)
            print 'not here'
        end try
        begin catch
            print 'caught'
            select error_number(), error_severity(), error_state()
            begin try
                raiserror ('inner', 14, 9)
            end try
            begin catch
                select error_message(), error_severity(), error_state()
            end catch
            select error_number()
            set @n = 5
        end catch
        select @n, count(*) from both_t""",
    "messages": """
        declare @f float, @d datetime, @s varchar(10), @i int
        select @f = 2.5, @d = '20260102 03:04:05', @s = 'words', @i = -7
        print @s
        print @i
        print 'a' + @s
        raiserror ('%s and %d and %5d and %-5d| and %x', 11, 2, @s, @i, @i, 3, 255)
        select convert(varchar(30), @d, 112), @f * 2, @i / 2, @i % 4
        print ''
        declare @null varchar(5)
        print @null
        print 'end'""",
    "loops": """
        declare @i int, @j int, @t varchar(100)
        select @i = 0, @t = ''
        while @i < 5
        begin
            set @i = @i + 1
            if @i = 2 continue
            set @j = 0
            while 1 = 1
            begin
                set @j = @j + 1
                if @j > @i break
                set @t = @t + convert(varchar(3), @j)
            end
            if @i = 4 break
        end
        print @t
        while (select min(v) from both_t) < 3
            update both_t set v = v + 1
        select id, v from both_t order by id""",
    "transactions": """
        begin tran
        update both_t set v = 100
        select @@trancount
        if (select count(*) from both_t where v = 100) = 3
            print 'all'
        commit tran
        select @@trancount, max(v) from both_t
        begin tran
        delete both_t
        print 'gone'
        rollback tran
        select count(*), @@trancount from both_t""",
    "temporary tables": """
        create table #both (id int, w float null)
        insert #both select id, v * 2 from both_t
        select @@rowcount
        select id, w from #both order by id
        update #both set w = null where id = 1
        select count(*), count(w), sum(w) from #both
        drop table #both
        select id as i, name into #other from both_t where id > 1
        select @@rowcount
        select i, name from #other order by i""",
    "values of every type": """
        set xact_abort off
        declare @b bit, @t tinyint, @s smallint, @l bigint, @r real, @m money, @n numeric(8, 3), @c char(5),
            @v varchar(3), @x varbinary(4), @d datetime
        select @b = 5, @t = 255, @s = -32768, @l = 9000000000, @r = 0.1, @m = 12.34567, @n = 1.23456,
            @c = 'ab', @v = 'abcdef', @x = 0x0102, @d = '2026-01-02 03:04:05.678'
        select @b, @t, @s, @l, @r, @m, @n
        select '[' + @c + ']', '[' + @v + ']', @x, convert(varchar(30), @d, 109)
        set @s = 3.99
        set @n = @n * 2
        set @v = @s
        select @s, @n, @v, len(@c), datalength(@c)
        set @t = 256
        print 'after overflow'
        select @t""",
    "nothing but a return": """
        print 'before'
        if (select count(*) from both_t) = 3
            return
        print 'never'""",
}


@pytest.fixture(scope="module")
def clients(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    directory: Path = tmp_path_factory.mktemp("both")
    with author_with_schema(server, AUTHOR, "both_ways"):
        yield Clients.of(server, directory / "none", directory)


def outcome(
    clients: Clients, section: str, *batches: str
) -> tuple[list[list[str | None]], list[tuple[int, int, str]]]:
    """Rows and messages of the batches, and the contents of the table after them."""
    fill = (
        "insert both_t values (1, 'a', 1) insert both_t values (2, 'b', 2) insert both_t values (3, 'c', 3)"
    )
    answer: Answer = clients.tsql(
        AUTHOR,
        "if object_id('both_t') is not null drop table both_t",
        "create table both_t (id int not null primary key, name varchar(10) null, v float null)",
        f"set nocount on {fill}",
        *batches,
        "select id, name, v from both_t order by id",
        section=section,
        database="both_ways",
    )
    return answer.rows, [(message.number, message.severity, message.text) for message in answer.messages]


@pytest.mark.parametrize("section", ["5.0", "7.4"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_batch_and_procedure(clients: Clients, body: str, section: str) -> None:
    if section == "5.0":
        # an overflow ends the batch in ASE, and undoes the rows that a compiled procedure has selected
        body = body.replace("set @t = 256", "insert both_t values (1, 'again', 0)")
    rows, messages = outcome(clients, section, body)
    assert rows
    drop = "if object_id('both_p') is not null drop procedure both_p"
    again, sent = outcome(clients, section, drop, f"create procedure both_p as{body}", "exec both_p")
    assert again == rows
    assert sent == messages
