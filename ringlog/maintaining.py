"""The command `ringlog maintain`."""

from ringlog.database import chosen_database, demand_facility, engine
from ringlog.history.summaries import summarise
from ringlog.nodes import Everywhere
from ringlog.options import Data, Dsn
from ringlog.schema.merging import merge
from ringlog.schema.partitions import maintain as maintain_partitions


def maintain(data: Data = None, dsn: Dsn = None) -> None:
    """Make the log's coming weeks and drop those past retention, on all servers. A running server does this
    hourly."""
    with chosen_database(data, dsn).opened() as conninfo:
        demand_facility(conninfo)
        for _, server in Everywhere(conninfo).with_headlines():
            administrator = engine(server)
            print(maintain_partitions(administrator))
            for line in merge(administrator):
                print(line)
            for table, rows in summarise(server, enough=1).items():
                print(f"summarised {rows} rows of log.{table}")
