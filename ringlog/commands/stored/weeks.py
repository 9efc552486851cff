"""The commands `ringlog weeks`: weeks past retention."""

from datetime import UTC

import typer

from ringlog.commands.options import Data, Dsn, From, Table, To
from ringlog.nodes.servers import Everywhere, server_of
from ringlog.schema.session import connect
from ringlog.server.database import facility_opened

weeks_app = typer.Typer(help="Weeks past retention that are set aside.", no_args_is_help=True)


@weeks_app.command("list")
def weeks_list(data: Data = None, dsn: Dsn = None) -> None:
    """List the weeks of all servers that are set aside, and until when."""
    from ringlog.schema.relations.dropping import weeks_aside

    with facility_opened(data, dsn) as conninfo:
        for _, server in Everywhere(conninfo).with_headlines():
            with connect(server) as connection:
                found = weeks_aside(connection)
            for week in found:
                print(
                    f"{week.table} {week.begins:%Y-%m-%d} to {week.ends:%Y-%m-%d}, set aside"
                    f" {week.since:%Y-%m-%d %H:%M}, dropped after {week.until:%Y-%m-%d %H:%M} UTC"
                )
            if not found:
                print("no weeks are set aside")


@weeks_app.command("restore")
def weeks_restore(table: Table, start: From, end: To, data: Data = None, dsn: Dsn = None) -> None:
    """Put weeks that are set aside back into the log. Code 1: none are."""
    from ringlog.history.archive.restoring import restore

    with facility_opened(data, dsn) as conninfo:
        bounds = (start.replace(tzinfo=UTC), end.replace(tzinfo=UTC))
        restored = 0
        for line in restore(server_of(conninfo, table), table, *bounds):
            restored += 1
            print(line, flush=True)
    if not restored:
        print(f"no weeks of {table} in this time are set aside")
        raise typer.Exit(1)
