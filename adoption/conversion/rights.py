"""Rights at the old server, and the statements that grant the same in ringlog.

Rights that T-SQL can grant here are written as T-SQL. Roles and their members, rights on single columns, and
rights of names with capitals are SQL for psql, since ringlog's T-SQL cannot express them.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from ringlog.adoption.rings import Sorted
from ringlog.adoption.server.collations import BINARY
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Grant, Member, Old
from ringlog.schema.installing.database import SEARCH_PATH

OF_TABLES = ("SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES")
_CHANGES = ("INSERT", "UPDATE", "DELETE")
CALLED = ("procedure", "function")
_READERS, _WRITERS, OWNERS = "db_datareader", "db_datawriter", "db_owner"
# here from the beginning
_OWN_ROLES = frozenset({"daq_reader", "daq_writer", "daq_table_reader", "daq_table_writer"})
# not reported: owners, who have all rights, and the server's own
_NOBODY = frozenset({"dbo", "sys", "INFORMATION_SCHEMA"})


@dataclass(frozen=True)
class Rights:
    """The statements to run, and the decisions that are left."""

    roles: tuple[str, ...]
    """SQL that makes the owner, the schema, and the roles"""
    tsql: tuple[str, ...]
    """grants for the console"""
    sql: tuple[str, ...]
    """for psql, when all the rest has been made"""
    writers: frozenset[str]
    """logins that call procedures or change rows, themselves or by a role"""
    decisions: tuple[str, ...]


def _rings(old: Old, found: Sorted) -> set[str]:
    """The tables of the database that are rings, or their logs."""
    return {
        table.name
        for ring in (*found.rings, *found.away)
        for table in (ring.table, ring.log)
        if table is not None and table.database.lower() == old.database
    }


def rights(old: Old, found: Sorted, database: str, replaced: Collection[str] = (), owner: str = "") -> Rights:
    """The statements that give users and roles the rights that they have at the old server.

    `replaced` are procedures in whose place are ringlog's own; `owner` is the role that everything belongs
    to, which has the database's name if it is empty.
    """
    owner = owner or database
    login_of = {user: login or user for user, login in old.users}
    kinds = {module.name: module.kind for module in old.modules}
    rings = _rings(old, found)
    members = [Member(each.role, login_of.get(each.who, each.who)) for each in old.members]
    users = {login_of.get(user, user) for user, _ in old.users} | set(old.logins)
    decisions: list[str] = []
    tsql: list[str] = []
    beside: list[str] = []
    grants = [
        replace(grant, who=login_of.get(grant.who, grant.who))
        for grant in (*old.grants, *of_fixed_roles(old, members))
    ]
    others: Counter[tuple[str, str]] = Counter()
    for grant in grants:
        who = grant.who
        if who in _NOBODY:
            continue
        if grant.state != "denied" and (not grant.what or grant.right not in (*OF_TABLES, "EXECUTE")):
            others[who, grant.right] += 1
            continue
        if grant.what in replaced:
            if who not in _OWN_ROLES:
                decisions.append(f"{who} calls {grant.what}: give the login --writer")
            continue
        if why := _refused(grant, who, kinds, rings):
            decisions.append(why)
            continue
        if grant.state == "grantable":
            decisions.append(f"{who} may grant {_shown(grant)} to others there; here only its owner may")
        line = _written(grant, who, database)
        (beside if grant.columns or who != who.lower() else tsql).append(line)
    decisions += [
        f"{who} has {right}{f' on {count} objects' if count > 1 else ''}: there is no such right here"
        for (who, right), count in others.items()
    ]
    roles = _roles(grants, members, users)
    for member in members:
        if member.role == OWNERS and member.who != "dbo":
            beside.append(f"grant {_name(owner)} to {_name(member.who)};")
        elif member.role in roles:
            beside.append(f"grant {_name(member.role)} to {_name(member.who)};")
        elif member.who not in _NOBODY and is_system(member.role):
            decisions.append(
                f"{member.who} has the role {member.role} of the old server, which ringlog does not have"
            )
    path = ", ".join(map(_name, (database, *SEARCH_PATH)))
    beside += [
        f"alter role {_name(login)} set search_path = {path};"
        for login in old.logins
        if old.begins.get(login) == database
    ]
    loose = sorted(user for user, login in old.users if not login)
    decisions += [f"user {user} has no login there: it is a role that cannot log in" for user in loose]
    return Rights(
        (
            f"create role {_name(owner)} nologin;",
            f"create schema {_name(database)} authorization {_name(owner)};",
            *_default_collation(database, old.collation),
            f"grant usage on schema {_name(database)} to public;",
            f"grant daq_reader, daq_writer to {_name(owner)};",
            *(
                f"create role {_name(role)} nologin;"
                for role in sorted({*roles, *loose} - _OWN_ROLES - {owner})
            ),
        ),
        tuple(dict.fromkeys(tsql)),
        tuple(dict.fromkeys(beside)),
        frozenset(_writers(grants, members, users)),
        tuple(dict.fromkeys(decisions)),
    )


def _roles(grants: Sequence[Grant], members: Sequence[Member], users: set[str]) -> list[str]:
    """Those that have rights of their own or by membership."""
    needed = {grant.who for grant in grants}
    names = {member.role for member in members}
    while more := {member.who for member in members if member.role in needed} & names - needed:
        needed |= more
    named = needed - users - _NOBODY - {"public", "guest", OWNERS}
    return sorted(role for role in named if not is_system(role))


def _refused(grant: Grant, who: str, kinds: dict[str, str], rings: set[str]) -> str:
    """Why a right has no equivalent here; empty where it has one."""
    if grant.state == "denied":
        return (
            f"{who} is denied {_shown(grant)}: ringlog has no denied rights, so no role of {who} may have it"
        )
    if who == "guest":
        return f"guest, a login without a user there, has {_shown(grant)}: here each login needs its rights"
    if grant.what in rings:
        if grant.right == "SELECT" and not grant.columns:
            whose = "every login" if who == "public" else "the login"
            return f"{who} reads {grant.what}: give {whose} --reader"
        return f"{who} has {_shown(grant)}, a ring or log, which only its put procedure writes (--writer)"
    if grant.right == "EXECUTE" and kinds.get(grant.what) not in CALLED:
        return f"{who} has {_shown(grant)}, of which the old server reports nothing"
    return ""


def of_fixed_roles(old: Old, members: Sequence[Member]) -> Iterator[Grant]:
    """The rights of SQL Server's db_datareader and db_datawriter, if these have members."""
    there = {member.role for member in members}
    read = [
        *(table.name for table in old.tables),
        *(each.name for each in old.modules if each.kind == "view"),
    ]
    for name in read:
        if _READERS in there:
            yield Grant(_READERS, "SELECT", name)
        if _WRITERS in there:
            yield from (Grant(_WRITERS, right, name) for right in _CHANGES)


def is_system(role: str) -> bool:
    """A fixed role of either server, with rights that are none of a table's or a procedure's."""
    return role.endswith("_role") or (role.startswith("db_") and role not in (_READERS, _WRITERS))


def _writers(grants: Sequence[Grant], members: Sequence[Member], users: set[str]) -> Iterator[str]:
    writing = {
        grant.who for grant in grants if grant.right in (*_CHANGES, "EXECUTE") and grant.state != "denied"
    }
    yield from users if "public" in writing else writing & users
    yield from (member.who for member in members if member.role in writing or member.role == OWNERS)


def _shown(grant: Grant) -> str:
    columns = f" ({', '.join(grant.columns)})" if grant.columns else ""
    return f"{grant.right}{columns}" + (f" on {grant.what}" if grant.what else "")


def _written(grant: Grant, who: str, database: str) -> str:
    """A grant as T-SQL, or as PostgreSQL's SQL where ringlog's T-SQL cannot express it."""
    right = grant.right.lower()
    if not grant.columns and who == who.lower():
        return f"grant {right} on {quoted(grant.what)} to {who if who == 'public' else quoted(who)}"
    # names are lower case in PostgreSQL
    columns = f" ({', '.join(_name(column.lower()) for column in grant.columns)})" if grant.columns else ""
    kind = "routine" if right == "execute" else "table"
    return (
        f"grant {right}{columns} on {kind} {_name(database)}.{_name(grant.what.lower())} to "
        f"{'public' if who == 'public' else _name(who)};"
    )


def _default_collation(database: str, collation: str) -> Iterator[str]:
    if collation not in ("", BINARY):
        call = sql.SQL("call tsql.declare_schema({}, {});").format(database, collation)
        yield call.as_string(None)


def _name(name: str) -> str:
    return sql.Identifier(name).as_string(None)
