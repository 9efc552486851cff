"""Rights to single tables, and to groups of them.

ringlog's own tables (`roles.py`) record which logins have them; PostgreSQL checks grants on the
objects of the tables. The installer and `ringlog user` make missing grants, so the rights survive new tables,
changed groups, renames and moves to another server.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from ringlog.procedures import OF_A_TABLE, WRITING
from ringlog.schema.layout import READABLE, READER, TABLE_READER, TABLE_WRITER
from ringlog.schema.sql_files import sql_file

_HELD = """
select login, role, table_name from ringlog.table_right
union
select login, role, table_name from ringlog.group_right join ringlog.table_group using (group_name)
"""

_OBJECTS = sql_file(__file__, "objects_of_tables")

_KINDS = [
    *((TABLE_WRITER, OF_A_TABLE[file]) for file in (*WRITING, "last")),
    *((TABLE_READER, OF_A_TABLE[file]) for file in OF_A_TABLE if file not in WRITING),
]


@dataclass(frozen=True)
class Held:
    """The tables and groups that a login may write, or read."""

    tables: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tables or self.groups)

    def __str__(self) -> str:
        """As text for messages."""
        return ", ".join([*self.tables, *(f"group {name}" for name in self.groups)])


def held(connection: psycopg.Connection) -> dict[tuple[str, str], Held]:
    """The rights of logins by roles (TABLE_WRITER or TABLE_READER)."""
    rights: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    query = (
        "select login, role, 0, table_name from ringlog.table_right"
        " union all select login, role, 1, group_name from ringlog.group_right order by 1, 2, 3, 4"
    )
    for login, role, index, name in connection.execute(query):
        rights.setdefault((login, role), ([], []))[index].append(name)
    return {key: Held(tuple(tables), tuple(groups)) for key, (tables, groups) in rights.items()}


def split(connection: psycopg.Connection, names: Iterable[str]) -> Held:
    """These names as tables, by the names they have now, and as groups. Raises LookupError for the first one
    that is neither."""
    tables, groups = [], []
    # tables of other servers are recognised by their procedures
    query = sql_file(__file__, "rights_named")
    for name in dict.fromkeys(names):
        ((table, is_table, is_group),) = connection.execute(query, {"name": name}).fetchall()
        if is_table:
            tables.append(table)
        elif is_group:
            groups.append(name)
        else:
            raise LookupError(name)
    return Held(tuple(tables), tuple(groups))


def hold(connection: psycopg.Connection, login: str, role: str, wanted: Held) -> None:
    """Gives a login these tables and groups, and revokes all others that it has by this role."""
    before = _pairs(connection)
    for noted, column, names in (
        ("table_right", "table_name", wanted.tables),
        ("group_right", "group_name", wanted.groups),
    ):
        names_of = {"noted": sql.Identifier("ringlog", noted), "column": sql.Identifier(column)}
        delete = "delete from {noted} where login = %s and role = %s"
        connection.execute(sql.SQL(delete).format(**names_of), [login, role])
        insert = "insert into {noted} (login, role, {column}) select %s, %s, unnest(%s::text[])"
        connection.execute(sql.SQL(insert).format(**names_of), [login, role, [*names]])
    _revoke(connection, before - _pairs(connection))
    grant_missing(connection)


def record_groups(connection: psycopg.Connection, groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Updates the groups from the facility file, and revokes rights that logins had by a changed group.
    Returns the changes."""
    there: dict[str, list[str]] = {}
    query = "select group_name, table_name from ringlog.table_group order by 1, 2"
    for group, table in connection.execute(query):
        there.setdefault(group, []).append(table)
    wanted = {group: sorted(tables) for group, tables in groups.items() if tables}
    if there == wanted:
        return []
    before = _pairs(connection)
    connection.execute("delete from ringlog.table_group")
    for group, tables in wanted.items():
        insert = "insert into ringlog.table_group (group_name, table_name) select %s, unnest(%s::text[])"
        connection.execute(insert, [group, tables])
    _revoke(connection, before - _pairs(connection))
    return [
        f"group {group}: {', '.join(there.get(group, ['none']))} → {', '.join(wanted.get(group, ['none']))}"
        for group in sorted({*there, *wanted})
        if there.get(group) != wanted.get(group)
    ]


def grant_missing(connection: psycopg.Connection) -> None:
    """Makes the grants that logins with rights to tables lack."""
    _mirror(connection)
    tables = {table for _, _, table in _pairs(connection)}
    if not tables:
        return
    query = f"""
        {_OBJECTS}
        select login, privilege, object.name
        from ({_HELD}) as held
        join object using (table_name, role)
        -- a login that ringlog has given such rights, not one that was created by hand under its name
        join pg_roles as its on its.rolname = login
        join pg_auth_members as membership on membership.member = its.oid
        join pg_roles as given on given.oid = membership.roleid and given.rolname = held.role
        where not exists (
          select from aclexplode(object.acl) as granted
          where granted.grantee = its.oid and granted.privilege_type in ('EXECUTE', 'SELECT')
        )
    """
    for login, privilege, name in connection.execute(query.encode(), _parameters(tables)).fetchall():
        grant = sql.SQL("grant {} on {} to {}")
        connection.execute(grant.format(sql.SQL(privilege), sql.SQL(name), sql.Identifier(login)))


def hide(connection: psycopg.Connection, table: str) -> None:
    """Revokes the rights to read a moving table, until `grant_missing`."""
    _revoke(connection, {pair for pair in _pairs(connection) if pair[1:] == (TABLE_READER, table)})


def forget(connection: psycopg.Connection, login: str) -> None:
    """Revokes all rights of a login on ringlog's objects."""
    for noted in ("table_right", "group_right"):
        connection.execute(
            sql.SQL("delete from {} where login = %s").format(sql.Identifier("ringlog", noted)), [login]
        )
    query = sql_file(__file__, "rights_forgotten")
    for (name,) in connection.execute(query, {"login": login}).fetchall():
        revoke = sql.SQL("revoke all on {} from {}")
        connection.execute(revoke.format(sql.SQL(name), sql.Identifier(login)))


def _mirror(connection: psycopg.Connection) -> None:
    """Lets readers of single tables read the registry and the ledger, as readers of all tables do."""
    query = sql_file(__file__, "rights_mirrored")
    names = {"reader": READER, "table_reader": TABLE_READER}
    for name, privilege in connection.execute(query, names).fetchall():
        grant = sql.SQL("grant {} on {} to {}")
        connection.execute(grant.format(sql.SQL(privilege), sql.SQL(name), sql.Identifier(TABLE_READER)))


def _pairs(connection: psycopg.Connection) -> set[tuple[str, str, str]]:
    """Login, role and table of every right, by itself or by a group."""
    return {(login, role, table) for login, role, table in connection.execute(_HELD)}


def _revoke(connection: psycopg.Connection, pairs: Collection[tuple[str, str, str]]) -> None:
    """Revokes what belongs to these; what a login holds by another right is to be granted again."""
    if not pairs:
        return
    query = f"""
        {_OBJECTS}
        select login, object.name
        from unnest(%(logins)s::text[], %(of)s::text[], %(its)s::text[]) as lost (login, role, table_name)
        join object using (table_name, role)
        join pg_roles as known on known.rolname = login
        where exists (select from aclexplode(object.acl) where grantee = known.oid)
    """
    logins, kinds, its = zip(*pairs, strict=True)
    parameters = _parameters(its) | {"logins": [*logins], "of": [*kinds], "its": [*its]}
    for login, name in connection.execute(query.encode(), parameters).fetchall():
        connection.execute(sql.SQL("revoke all on {} from {}").format(sql.SQL(name), sql.Identifier(login)))


def _parameters(tables: Iterable[str]) -> dict[str, Any]:
    return {
        "tables": sorted({*tables}),
        "roles": [role for role, _ in _KINDS],
        "patterns": [pattern for _, pattern in _KINDS],
        "reader": TABLE_READER,
        "writer": TABLE_WRITER,
        "schemas": [*READABLE],
    }
