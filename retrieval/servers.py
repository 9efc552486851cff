"""The servers that one request reads: the first server, and the nodes with tables of its signals."""

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from psycopg import sql

from ringlog.history.connection import Connection, ReadError, records
from ringlog.retrieval.serving.access import Login
from ringlog.retrieval.serving.connections import Connections
from ringlog.retrieval.serving.refused import Refused, refused
from ringlog.retrieval.texts import query


class Servers:
    """A login's connections for one request, each opened when it is first needed. Use it in a with statement.

    A failure closes all of them; otherwise they are kept for other requests.
    """

    def __init__(self, connections: Connections, login: Login) -> None:
        self._connections = connections
        self._login = login
        self._taken: dict[str | None, Connection] = {}
        self._registries: dict[str | None, dict[Any, Any]] = {}
        self._stack = ExitStack()
        self._cancelled = False

    def __enter__(self) -> "Servers":
        """Raises ReadError when the first server cannot be reached."""
        self._take(None, self._login)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def first(self) -> Connection:
        return self._taken[None]

    def of(self, node: str | None) -> Connection:
        """The connection to a node, or to the first server (None). Raises Refused for a node that cannot be
        reached."""
        if node in self._taken:
            return self._taken[node]
        try:
            return self._take(node, self._login if node is None else self._login.on_node(node))
        except ReadError as error:
            answer = refused(error)
            if answer.status == 401:
                remedy = "ringlog user passwd sets a password on all servers"
                raise Refused(403, f"node {node} refuses this login: {remedy}") from error
            raise Refused(answer.status, f"node {node}: {answer}", answer.headers) from error

    def registry(self, node: str | None) -> dict[Any, Any]:
        """The cache of a server's registry, kept between requests; callers add to it. Raises Refused for a
        node that cannot be reached."""
        if node not in self._registries:
            login = self._login if node is None else self._login.on_node(node)
            self._registries[node] = self._connections.registry(login, self.of(node))
        return self._registries[node]

    def each(self, table: str | None = None) -> Iterator[tuple[str | None, Connection | Refused, list[str]]]:
        """Every server: its node, its connection or the reason why there is none, and the tables that it may
        still have although they have moved. With `table` only the server that has it."""
        node_of = {row["table_name"]: row["node"] for row in records(self.first, query("nodes_of_tables"))}
        nodes = {*node_of.values(), None} if table is None else {node_of.get(table)}
        for node in sorted(nodes, key=lambda name: (name is not None, name or "")):
            others = [table for table, its_node in node_of.items() if its_node != node]
            try:
                yield node, self.of(node), others
            except Refused as error:
                yield node, error, others

    def cancel(self) -> None:
        """Cancels the running queries on all servers, and prevents new ones; called from another thread."""
        self._cancelled = True
        for connection in [*self._taken.values()]:
            connection.cancel()

    def _take(self, node: str | None, login: Login) -> Connection:
        # checked, so that an unreachable node is reported as such, and a restarted one is read
        borrowed = self._connections.borrowed(login, sure=node is not None)
        connection = self._stack.enter_context(borrowed)
        self._taken[node] = connection
        if self._cancelled:
            raise ReadError("the request has ended", "57014")
        return connection


def excluded(tables: list[str]) -> sql.Composable:
    """Table names as a list for the text of a query."""
    return sql.SQL("{}::text[]").format(sql.Literal(tables))
