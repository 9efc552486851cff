"""Violated constraints are reported with the texts that programs search for.

SQL Server: Database Engine events and errors, 515, 547, 2601, 2627. ASE: Error messages, 233, 546, 547, 548,
2601.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from case_tables import cases

from authors import author_with_schema
from servers import Login, RunningServer
from tds_clients import Clients

AUTHOR = Login("violating", "violating")
SITE = "violations"

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
@pytest.mark.parametrize("case", cases(__file__, "case"), ids=lambda case: case["name"])
def test_texts_of_violations(clients: Clients, case: dict[str, Any], section: str) -> None:
    """In a batch, in a transaction, in procedures with and without a check of the error, and in CATCH."""
    statement = case["text"]
    number, text = case["sybase" if section == "5.0" else "microsoft"]
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
    assert told <= {(number, text), (50000, f"{number}: {text}")}
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
