"""The [[node]] entries of a facility file: other servers that have tables of their own."""

from collections.abc import Iterator

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ringlog.schema.facility import Node
from ringlog.schema.facility_files.entries import NAME_BYTES, Entry, check_identifier


def nodes_of(entry: Entry) -> Iterator[Node]:
    for node in entry.entries("node", needed=False):
        name = node.text("name", None)
        check_identifier(node, name, NAME_BYTES, "PostgreSQL")
        dsn = node.text("dsn", None)
        _check(node, dsn)
        node.end("node")
        yield Node(name, dsn)


def _check(entry: Entry, dsn: str) -> None:
    try:
        settings = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        entry.refuse(f"dsn cannot be read: {' '.join(str(error).split())}")
        return
    if "password" in settings:
        entry.refuse("dsn must not hold the password, which everyone reads here: put it into ~/.pgpass")
    for needed in ("host", "dbname"):
        if dsn and not settings.get(needed):
            entry.refuse(f"dsn must name {needed}")
