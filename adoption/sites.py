"""The databases of a site, one or several, and their equivalents in one facility."""

from collections.abc import Sequence
from dataclasses import replace

import pymssql

from ringlog.adoption.conversion.across import across
from ringlog.adoption.conversion.rights import rights
from ringlog.adoption.conversion.roles import with_distinct_roles
from ringlog.adoption.conversion.scripts import Database
from ringlog.adoption.conversion.tables import table_scripts
from ringlog.adoption.conversion.writers import decisions, replaced
from ringlog.adoption.databases import demand_names, listed, reason_against, site_databases
from ringlog.adoption.errors import AdoptionError
from ringlog.adoption.rings import Rules, bounds_by, sort
from ringlog.adoption.server.catalogue import read
from ringlog.adoption.server.objects import Old
from ringlog.adoption.server.session import connected, is_of_server, message_of
from ringlog.clients import Address


def chosen(
    address: Address, password: str, version: str, named: Sequence[str], every: bool
) -> tuple[list[str], list[str]]:
    """The databases to be migrated, those that are named first; with a line for each that cannot be.

    Raises AdoptionError, and pymssql.Error for one that is named.
    """
    names, left_out = list(dict.fromkeys(named)), []
    if every:
        with connected(address, password, version) as connection:
            others = [name for name in site_databases(listed(connection)) if name not in names]
        for name in others:
            if why := reason_against(name):
                left_out.append(f"database {name}: {why}")
                continue
            try:
                with connected(replace(address, database=name), password, version):
                    names.append(name)
            except pymssql.Error as error:
                if not is_of_server(error):
                    raise
                left_out.append(f"database {name}: {message_of(error)}")
    if not names:
        raise AdoptionError("the old server has no database of a site that this login may use")
    demand_names(names)
    return names, left_out


def read_all(
    address: Address, password: str, version: str, names: Sequence[str], rules: Rules
) -> list[Database]:
    """Reads the databases of these names. Raises AdoptionError for the rules, and pymssql.Error."""
    there: list[Old] = []
    for name in names:
        with connected(replace(address, database=name), password, version) as connection:
            there.append(read(connection, name))
    with connected(replace(address, database=names[0]), password, version) as connection:
        found = sort(there, rules, bounds_by(connection))
        known = {name.lower() for name in (*names, *_listed(connection))}
    own = [replaced(old.modules, each.rings) for old, each in zip(there, found, strict=True)]
    olds = [
        replace(
            old,
            modules=tuple(module for module in old.modules if module.name not in instead),
            left=(*decisions(old.modules, each.rings, each.away), *old.left),
            # the server reports the same logins in every database
            begins=there[0].begins,
        )
        for old, each, instead in zip(there, found, own, strict=True)
    ]
    olds = with_distinct_roles(
        across(olds, known, {old.database: [*each] for old, each in zip(olds, own, strict=True)})
    )
    return [
        Database(
            old.database,
            old,
            each,
            table_scripts(each.site, old.is_ase),
            rights(old, each, old.database, instead, olds[0].database),
        )
        for old, each, instead in zip(olds, found, own, strict=True)
    ]


def _listed(connection: pymssql.Connection) -> list[str]:
    """All databases of the server, as far as it reports them."""
    try:
        return listed(connection)
    except pymssql.Error as error:
        if not is_of_server(error):
            raise
        return []
