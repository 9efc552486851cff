"""Violated constraints are reported with the texts that programs search for.

SQL Server: Database Engine events and errors, 515, 547, 2601, 2627. ASE: Error messages, 233, 546, 547, 548,
2601.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from authors import author_with_schema
from servers import Login, RunningServer
from tds_clients import Clients

AUTHOR = Login("violating", "violating")
SITE = "violations"

CHECK = (
    'conflicted with the CHECK constraint "ck_n".'
    ' The conflict occurred in database "violations", table "dbo.t"'
)
FOREIGN = 'The conflict occurred in database "violations", table "dbo.t", column \'id\'.'

# statement, SQL Server's number and text, ASE's
CASES: dict[str, tuple[str, tuple[int, str], tuple[int, str]]] = {
    "primary key": (
        "insert t values (1, 'z', 5, 1)",
        (
            2627,
            "Violation of PRIMARY KEY constraint 'pk_t'. Cannot insert duplicate key in object 'dbo.t'."
            " The duplicate key value is (1).",
        ),
        (2601, "Attempt to insert duplicate key row in object 't' with unique index 'pk_t'"),
    ),
    "unique": (
        "update t set name = 'a' where id = 2",
        (
            2627,
            "Violation of UNIQUE KEY constraint 'uq_name'. Cannot insert duplicate key in object 'dbo.t'."
            " The duplicate key value is (a).",
        ),
        (2601, "Attempt to insert duplicate key row in object 't' with unique index 'uq_name'"),
    ),
    "unique index of two columns, one NULL": (
        "insert t values (3, 'c', 7, null)",
        (
            2601,
            "Cannot insert duplicate key row in object 'dbo.t' with unique index 'ix_t'."
            " The duplicate key value is (7, <NULL>).",
        ),
        (2601, "Attempt to insert duplicate key row in object 't' with unique index 'ix_t'"),
    ),
    # the form of a datetime in these texts is documented nowhere
    "key of a time": (
        "insert moments values ('2026-01-02')",
        (
            2627,
            "Violation of PRIMARY KEY constraint 'pk_m'."
            " Cannot insert duplicate key in object 'dbo.moments'.",
        ),
        (2601, "Attempt to insert duplicate key row in object 'moments' with unique index 'pk_m'"),
    ),
    "check of a column": (
        "insert t values (3, 'c', 0, 1)",
        (547, f"The INSERT statement {CHECK}, column 'n'."),
        (
            548,
            "Check constraint violation occurred, dbname =  'violations', table name = 't',"
            " constraint name = 'ck_n'.",
        ),
    ),
    "check of two columns": (
        "update t set p = 100 where id = 1",
        (547, f"The UPDATE statement {CHECK.replace('ck_n', 'ck_both')}."),
        (
            548,
            "Check constraint violation occurred, dbname =  'violations', table name = 't',"
            " constraint name = 'ck_both'.",
        ),
    ),
    "foreign key": (
        "insert c values (1, 9)",
        (547, f'The INSERT statement conflicted with the FOREIGN KEY constraint "fk_c". {FOREIGN}'),
        (
            546,
            "Foreign key constraint violation occurred, dbname =  'violations', table name = 'c',"
            " constraint name = 'fk_c'.",
        ),
    ),
    "foreign key of the same table": (
        "update t set p = 9 where id = 2",
        (
            547,
            f'The UPDATE statement conflicted with the FOREIGN KEY SAME TABLE constraint "fk_p". {FOREIGN}',
        ),
        (
            546,
            "Foreign key constraint violation occurred, dbname =  'violations', table name = 't',"
            " constraint name = 'fk_p'.",
        ),
    ),
    "a row that others refer to": (
        "delete t where id = 2",
        (
            547,
            'The DELETE statement conflicted with the REFERENCE constraint "fk_c".'
            ' The conflict occurred in database "violations", table "dbo.c", column \'t\'.',
        ),
        (
            547,
            "Dependent foreign key constraint violation in a referential integrity constraint."
            " dbname =  'violations', table name = 't', constraint name = 'fk_c'.",
        ),
    ),
    "NULL": (
        "update t set n = null where id = 1",
        (
            515,
            "Cannot insert the value NULL into column 'n', table 'violations.dbo.t';"
            " column does not allow nulls. UPDATE fails.",
        ),
        (233, "The column n in table t does not allow null values."),
    ),
    # zillow/ctds, test_statement_terminated
    "a table variable": (
        "declare @t table (id int primary key) insert @t values (1) insert @t values (1)",
        (
            2627,
            "Violation of PRIMARY KEY constraint '#@t_pkey'. Cannot insert duplicate key in object 'dbo.@t'."
            " The duplicate key value is (1).",
        ),
        (2601, "Attempt to insert duplicate key row in object '@t' with unique index '#@t_pkey'"),
    ),
    "a temporary table": (
        "create table #t (id int not null constraint ck_id check (id > 0)) insert #t values (0)",
        (
            547,
            'The INSERT statement conflicted with the CHECK constraint "ck_id".'
            ' The conflict occurred in database "tempdb", table "dbo.#t", column \'id\'.',
        ),
        (
            548,
            "Check constraint violation occurred, dbname =  'tempdb', table name = '#t',"
            " constraint name = 'ck_id'.",
        ),
    ),
}
TABLES = """
create table t (
    id int not null constraint pk_t primary key,
    name varchar(10) null constraint uq_name unique,
    n int not null constraint ck_n check (n > 0),
    p int null constraint fk_p references t (id),
    constraint ck_both check (p < 50 or n > 50))
create unique index ix_t on t (n, p)
create table c (id int not null primary key, t int not null constraint fk_c references t (id))
create table moments (at datetime not null constraint pk_m primary key)
insert t values (1, 'a', 5, 1)
insert t values (2, 'b', 7, null)
insert c values (5, 2)
insert moments values ('2026-01-02')
"""


@pytest.fixture(scope="module")
def clients(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    directory: Path = tmp_path_factory.mktemp("violations")
    with author_with_schema(server, AUTHOR, SITE):
        clients = Clients.of(server, directory / "none", directory)
        assert clients.tsql(AUTHOR, f"set nocount on {TABLES}", database=SITE).errors == []
        yield clients


@pytest.mark.parametrize("section", ["5.0", "7.4"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_texts_of_violations(
    clients: Clients, case: tuple[str, tuple[int, str], tuple[int, str]], section: str
) -> None:
    """In a batch, in a transaction, in procedures with and without a check of the error, and in CATCH."""
    statement, of_sql_server, of_ase = case
    expected = of_ase if section == "5.0" else of_sql_server
    bodies = [statement, f"{statement} if @@error <> 0 print 'seen'"]
    batches = [statement, f"begin tran {statement} rollback"]
    if section == "7.4":
        bodies.append(
            f"begin try {statement} end try begin catch declare @n int, @text nvarchar(2048)"
            " select @n = error_number(), @text = error_message()"
            " raiserror ('%d: %s', 16, 1, @n, @text) end catch"
        )
        batches.append(bodies[-1])
    for body in bodies:
        batches += [f"create procedure p as {body}", "exec p", "drop procedure p"]
    if not statement.startswith(("insert", "update", "delete")):
        batches = [statement]
    answer = clients.tsql(AUTHOR, *batches, section=section, database=SITE)
    told = {(message.number, message.text) for message in answer.errors}
    assert told <= {expected, (50000, f"{expected[0]}: {expected[1]}")}
    assert len(answer.errors) == (1 if len(batches) == 1 else len(bodies) * 2)


def test_texts_of_other_errors_are_unchanged(clients: Clients) -> None:
    """A statement of uncertain kind, and errors raised by a procedure in PL/pgSQL itself."""

    clients.server.sql(
        "create function violations.raises() returns int language plpgsql as $$ begin"
        " raise unique_violation using message = 'there is such a signal', table = 't',"
        " schema = 'violations'; end $$"
    )
    answer = clients.tsql(AUTHOR, "select dbo.raises()", section="7.4", database=SITE)
    assert [(each.number, each.text) for each in answer.errors] == [
        (2601, "there is such a signal (SQLSTATE 23505)")
    ]
