"""Findings of `ringlog doctor` on a PostgreSQL that ringlog does not start and does not set."""

from collections.abc import Iterator

from ringlog.commands.machines.findings import Finding
from ringlog.schema import catalogue, session
from ringlog.server.guards import own_settings


def connections_of_writers(conninfo: str) -> Iterator[Finding]:
    """Settings which keep connections for writers."""
    roles = "daq_writer, daq_table_writer, parameter_writer, ringlog_gateway"
    with session.connect(conninfo) as connection:
        ((seconds, reserved, version),) = connection.execute(
            "select extract(epoch from current_setting('authentication_timeout')::interval)::int,"
            " coalesce(current_setting('reserved_connections', true)::int, 0),"
            " current_setting('server_version_num')::int / 10000"
        ).fetchall()
        lacking = connection.execute(
            "select string_agg(name, ', ') from unnest(string_to_array(%s, ', ')) as name"
            " where to_regrole(name) is not null and exists ("
            "  select from pg_roles where rolname = 'pg_use_reserved_connections'"
            "  and not pg_has_role(to_regrole(name), oid, 'usage'))",
            [roles],
        ).fetchone()
    why = "any login can take all connections, and puts then get error 17809"
    if version < 16:
        yield Finding(
            "note",
            f"PostgreSQL {version} cannot reserve connections for writers",
            why,
            "upgrade to 16 or later, or admit readers in pg_hba.conf from the host of ringlog serve only",
        )
    elif not reserved:
        yield Finding(
            "warning",
            "no connections are reserved for writers",
            why,
            "set reserved_connections to a sixth of max_connections, and restart PostgreSQL; admit readers in"
            " pg_hba.conf from the host of ringlog serve only",
        )
    if version >= 16 and lacking is not None and lacking[0]:
        yield Finding(
            "warning",
            f"{lacking[0]} may not use reserved connections",
            why,
            f"as a superuser: grant pg_use_reserved_connections to {lacking[0]} with inherit true",
        )
    if seconds > 10:
        yield Finding(
            "note",
            f"authentication_timeout is {seconds} s",
            "connections that never log in take all others for as long",
            "set authentication_timeout = 10s",
        )


def disk_of_logins(conninfo: str) -> Iterator[Finding]:
    """Rights of everybody with which any login can fill the disk."""
    with session.connect(conninfo) as connection:
        functions = catalogue.large_objects_of_all(connection)
        databases = catalogue.databases_of_all(connection)
        name = connection.info.dbname
        ((creates, prepared),) = connection.execute(
            "select coalesce(has_schema_privilege('public', to_regnamespace('public'), 'create'), false),"
            " current_setting('max_prepared_transactions')::int"
        ).fetchall()
        large = [row[::2] for row in own_settings.large(connection)]
    why = "any login can fill the disk, and puts then get error 1105"
    yield Finding(
        "note",
        "any login can write PostgreSQL's log and temporary tables without limit",
        why,
        "keep the log (log_directory) and temporary tables (temp_tablespaces) on other file systems than the"
        " data, and rotate the log by its size",
    )
    yield Finding(
        "note",
        "any login can use up transaction numbers and locks, and keep transactions open",
        "PostgreSQL refuses all writes when two billion numbers are used up, within hours, or its table of"
        " locks is full",
        "let alerts watch age(datfrozenxid) in pg_database and the number of pg_locks, and end such sessions",
    )
    if functions:
        yield Finding(
            "warning",
            f"every login may write large objects, or messages to the WAL, in database {name}",
            why,
            f"as a superuser, in {name}: revoke execute on function {', '.join(functions)} from public",
        )
    if creates:
        yield Finding(
            "warning",
            f"every login may make tables in schema public of database {name}",
            why,
            f"as a superuser, in {name}: revoke create on schema public from public",
        )
    if prepared:
        yield Finding(
            "warning",
            f"max_prepared_transactions is {prepared}",
            "a prepared transaction of any login keeps its locks and rows for ever",
            "set max_prepared_transactions = 0, and restart PostgreSQL",
        )
    for role, size in large:
        yield Finding(
            "note",
            f"login {role} has settings of {size} bytes",
            "each login can store settings of its own (alter role … set)",
            f"look at them: select setconfig from pg_db_role_setting; alter role {role} reset all",
        )
    for name in databases:
        yield Finding(
            "warning",
            f"every login may connect to database {name}, and write large objects there",
            why,
            f"as a superuser: revoke connect on database {name} from public",
        )
