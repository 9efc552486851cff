"""Roles of several databases: in ringlog a role belongs to the server, in the old one to a database."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ringlog.adoption.conversion.rights import CALLED, OF_TABLES, OWNERS, is_system, of_fixed_roles
from ringlog.adoption.server.objects import Grant, Member, Old

_EVERYBODY = frozenset({"public", "guest", "dbo", "sys", "INFORMATION_SCHEMA"})


def with_distinct_roles(databases: Sequence[Old]) -> list[Old]:
    """The databases, with roles renamed so that those of one name have the same members.

    A role whose members differ from those in an earlier database gets its database's name as a prefix. An
    owner of some of the databases only gets all rights on their objects instead.
    """
    if len(databases) == 1:
        return [*databases]
    of_all = set.intersection(*map(_owners, databases))
    first: dict[str, tuple[str, frozenset[str]]] = {}
    done = []
    for old in databases:
        names: dict[str, str] = {}
        lines = []
        given = (*old.grants, *of_fixed_roles(old, old.members))
        for role, members in _roles(old):
            database, others = first.setdefault(role, (old.database, members))
            if members != others:
                names[role] = f"{old.database}_{role}"
                lines.append(
                    f"role {role} is {names[role]} here: {database} has one of this name with other members, "
                    "and roles are those of the server"
                )
        some = sorted(_owners(old) - of_all)
        lines += [
            f"{who} owns {old.database} (db_owner) and not all the databases: here {who} has all rights on "
            "its tables, views and procedures, and cannot make or alter any"
            for who in some
        ]
        done.append(
            replace(
                old,
                members=tuple(
                    Member(names.get(each.role, each.role), names.get(each.who, each.who))
                    for each in old.members
                    if each.role != OWNERS or _logins(old).get(each.who, each.who) not in some
                ),
                grants=(
                    *(replace(each, who=names.get(each.who, each.who)) for each in given),
                    *(grant for who in some for grant in _of_owner(old, who)),
                ),
                left=(*old.left, *lines),
            )
        )
    return done


def _owners(old: Old) -> set[str]:
    """Logins of the members of db_owner."""
    of = {each.who for each in old.members if each.role == OWNERS} - _EVERYBODY
    return {_logins(old).get(who, who) for who in of}


def _logins(old: Old) -> dict[str, str]:
    return {user: login or user for user, login in old.users}


def _roles(old: Old) -> Iterator[tuple[str, frozenset[str]]]:
    """The roles of a database, each with its members by their logins."""
    logins = _logins(old)
    named = {each.role for each in old.members} | {each.who for each in old.grants}
    users = {*logins, *logins.values(), *old.logins} - {each.role for each in old.members}
    for role in sorted(named - users - _EVERYBODY):
        if not is_system(role):
            members = (each.who for each in old.members if each.role == role)
            yield role, frozenset(logins.get(who, who) for who in members)


def _of_owner(old: Old, who: str) -> Iterator[Grant]:
    views = (each.name for each in old.modules if each.kind == "view")
    for name in (*(table.name for table in old.tables), *views):
        yield from (Grant(who, right, name) for right in OF_TABLES)
    for module in old.modules:
        if module.kind in CALLED:
            yield Grant(who, "EXECUTE", module.name)
