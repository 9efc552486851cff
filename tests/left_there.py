"""Checks that a file's tests leave nothing behind on the shared server."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from waiting import wait_until

# of objects above 16384, which initdb has not made
_THERE = r"""
select 'role', rolname, concat_ws(' ', rolsuper, rolcreaterole, rolcanlogin, rolconfig) from pg_roles
union all select 'member', roleid::regrole::text, member::regrole::text from pg_auth_members
union all select 'setting', name, setting from pg_file_settings where applied
union all select 'settings', setrole::regrole::text, setconfig::text from pg_db_role_setting
union all select 'schema', nspname, null from pg_namespace where nspname !~ '^pg_(toast_)?temp_'
union all select 'relation', oid::regclass::text, null from pg_class
  where oid >= 16384 and relkind in ('r', 'p', 'v', 'S', 'f') and not relispartition and relpersistence <> 't'
-- not as regprocedure, which looks up every type: this runs twice a file
union all select 'routine', concat_ws(' ', pronamespace::regnamespace, proname, proargtypes), md5(prosrc)
  from pg_proc where oid >= 16384 and pronamespace::regnamespace::text !~ '^pg_temp_'
"""


@contextmanager
def nothing(dsn: str) -> Iterator[None]:
    """Fails if roles, settings, schemas, tables or routines have changed at the end.

    Those of a session disappear soon after its end.
    """
    before = _there(dsn)
    yield
    wait_until(
        lambda: _there(dsn) == before,
        lambda: f"more: {_there(dsn) - before}, less: {before - _there(dsn)}, for the tests of other files",
    )


def _there(dsn: str) -> set[tuple[object, ...]]:
    with psycopg.connect(dsn, options="-c search_path=") as connection:
        return set(connection.execute(_THERE).fetchall())
