"""The first server and its nodes: their addresses, their tables, and which can be reached."""

from collections.abc import Iterator, Mapping

import psycopg
from psycopg.conninfo import make_conninfo

from ringlog.errors import ServerError, UsageError
from ringlog.schema import catalogue, session
from ringlog.schema.layout import GATEWAY

_PATIENCE = 5
"""seconds that a node may take to answer"""


def reached(dsn: str) -> str:
    """The connection string of a node, with a timeout of a few seconds."""
    return make_conninfo(dsn, connect_timeout=_PATIENCE)


def nodes_of(conninfo: str) -> dict[str, tuple[str, str]]:
    """The nodes in a first server's registry: administrators' connection strings, the gateway's passwords."""
    with session.connect(conninfo) as connection:
        if not catalogue.exists(connection, "ringlog", "node"):
            return {}
        found = connection.execute("select name, dsn, password from ringlog.node order by name")
        return {name: (dsn, password) for name, dsn, password in found}


def nodes_of_tables(conninfo: str) -> dict[str, str | None]:
    """The installed tables, and the server to which calls for each go; None is the first one."""
    with session.connect(conninfo) as connection:
        return node_of_each_table(connection)


def node_of_each_table(connection: psycopg.Connection) -> dict[str, str | None]:
    """The same, on a connection to the first server."""
    found: dict[str, str | None] = {}
    for (name,) in connection.execute("select table_name from ringlog.every_table order by 1"):
        found[name] = None
    if catalogue.exists(connection, "ringlog", "stand_in"):
        found |= dict(connection.execute("select distinct table_name, node from ringlog.stand_in").fetchall())
    return found


def server_of(conninfo: str, table: str) -> str:
    """The connection string of the server that has a table. Raises UsageError for one that is nowhere, and
    ServerError for a node that is away."""
    with session.connect(conninfo) as connection:
        found = node_of_each_table(connection)
    if table not in found:
        raise UsageError(f"there is no table '{table}': ringlog status lists them")
    node = found[table]
    if node is None:
        return conninfo
    server = reached(nodes_of(conninfo)[node][0])
    if why := _why_away(server):
        raise ServerError(f"table {table} is on node {node}, which cannot be reached: {why}")
    return server


def _why_away(server: str) -> str:
    """Why a server cannot be reached; empty if it can."""
    try:
        session.connect(server).close()
    except psycopg.OperationalError as error:
        return " ".join(str(error).split())
    return ""


def gateway_conninfo(dsn: str, password: str) -> str:
    """The connection string by which the gateway reaches a node."""
    return make_conninfo(dsn, user=GATEWAY, password=password)


def label(name: str | None) -> str:
    """A server's name in messages; None is the first one."""
    return "the first server" if name is None else f"node {name}"


class Everywhere:
    """The first server and, one after the other, its nodes that can be reached: the node's
    name, or None, and the connection string. `away` then has why the others cannot."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo
        self.nodes = nodes_of(conninfo)
        self.away: dict[str, str] = {}

    def __iter__(self) -> Iterator[tuple[str | None, str]]:
        yield None, self.conninfo
        for name, (dsn, _) in self.nodes.items():
            server = reached(dsn)
            if why := _why_away(server):
                self.away[name] = why
            else:
                yield name, server

    def with_headlines(self) -> Iterator[tuple[str | None, str]]:
        """The same, each with a headline where there are several. Raises ServerError at the end for those
        that are away."""
        for name, server in self:
            if self.nodes:
                print(f"{label(name)}:", flush=True)
            yield name, server
        self.demand_all()

    def demand_all(self) -> None:
        """Raises ServerError for nodes that are away."""
        if self.away:
            whys = (f"node {name} cannot be reached: {why}" for name, why in self.away.items())
            raise ServerError(f"{'; '.join(whys)}. Everything else was done")


def servers_there(conninfo: str) -> tuple[list[str], dict[str, str]]:
    """The connection strings of all servers that can be reached, the first one last; why the nodes that are
    away cannot, by their names.
    """
    servers = Everywhere(conninfo)
    first, *others = servers
    return [*(server for _, server in others), first[1]], servers.away


def every_server(conninfo: str) -> list[str]:
    """The connection strings of all servers, the first one last. Raises ServerError for one that is away."""
    there, away = servers_there(conninfo)
    if away:
        name, why = next(iter(away.items()))
        raise ServerError(f"node {name} cannot be reached, and nothing was changed: {why}")
    return there


def known_by_gateway(nodes: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {name: gateway_conninfo(dsn, password) for name, (dsn, password) in nodes.items()}
