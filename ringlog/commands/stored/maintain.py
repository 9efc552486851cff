"""The commands `ringlog maintain`, `ringlog refill` and `ringlog summarise`."""

from collections.abc import Mapping
from datetime import UTC
from typing import Annotated

import typer

from ringlog.commands.options import Data, Dsn, From, Table, To
from ringlog.errors import UsageError
from ringlog.history.closing import close
from ringlog.history.summaries.resummarising import summarise_again
from ringlog.history.summaries.summarising import summarise
from ringlog.nodes.servers import Everywhere, server_of
from ringlog.schema import clock
from ringlog.schema.relations import rings
from ringlog.schema.relations.partitions import maintain as maintain_partitions
from ringlog.schema.relations.statistics import turn_off_near
from ringlog.schema.session import engine
from ringlog.server.database import facility_opened


def maintain(
    clock_is_right: Annotated[
        bool,
        typer.Option(
            "--clock-is-right",
            help="Confirm that PostgreSQL's clock is right after a jump: weeks leave the log by it again.",
        ),
    ] = False,
    data: Data = None,
    dsn: Dsn = None,
) -> None:
    """Make the log's coming weeks and set aside those past retention, on all servers. A running server does
    this hourly. Code 1: a part failed or was postponed, or the clock has jumped and is not trusted."""
    complete = True
    with facility_opened(data, dsn) as conninfo:
        for _, server in Everywhere(conninfo).with_headlines():
            administrator = engine(server)
            if clock_is_right:
                with administrator.begin() as connection:
                    clock.trust(connection)
            report = maintain_partitions(administrator)
            print(report, flush=True)
            for line in turn_off_near(administrator):
                print(line)
            complete &= not report.failed and not report.postponed and report.doubt is None
            _print_work("summaries", "summarised", summarise(server, enough=1))
            _print_work("closed rows", "packed", close(server, pauses=0).rows)
    if not complete:
        raise typer.Exit(1)


def _print_work(subject: str, done: str, rows: Mapping[str, int]) -> None:
    for table, number in rows.items():
        print(f"{done} {number} rows of log.{table}")
    if not rows:
        print(f"{subject}: all rows that are old enough are {done}")


def refill(table: Table, data: Data = None, dsn: Dsn = None) -> None:
    """Make lost rows of a table's ring again from its log, after a page of the ring was damaged.

    `ringlog status` and the event name the table. Readers and writers continue."""
    with facility_opened(data, dsn) as conninfo:
        made, empty = rings.refill(engine(server_of(conninfo, table)), table)
    print(f"ring {table}: {made} rows from the log, {empty} are empty")


def summarise_table(table: Table, start: From, end: To, data: Data = None, dsn: Dsn = None) -> None:
    """Make the summaries of a table again from its rows, in the log and in the archive.

    A running server makes those of new and late rows itself. Use this for rows that were changed or deleted
    by hand, and for differences that `ringlog verify` reports. Readers and writers continue."""
    with facility_opened(data, dsn) as conninfo:
        bounds = (start.replace(tzinfo=UTC), end.replace(tzinfo=UTC))
        try:
            for begin, rows in summarise_again(server_of(conninfo, table), table, *bounds):
                print(f"summarised {table} from {begin:%Y-%m-%d} on: {rows} rows", flush=True)
        except ValueError as error:
            raise UsageError(str(error)) from None
