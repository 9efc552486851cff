"""The registry's version, which changes with each change of signals, tables and marks.

Readers cache the registry and first ask whether the version is still the same. A trigger changes the version
in the transaction of each change of the registry.
"""

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.schema import registry
from ringlog.schema.change import run
from ringlog.schema.marks import mark
from ringlog.schema.moving.elsewhere import signal_elsewhere
from ringlog.schema.own_tables import boolean, own_column, own_table

registry_state = own_table(
    "registry_state",
    boolean("one", None, sa.CheckConstraint("one"), key=True, default=sa.true()),
    own_column(postgresql.UUID, "version", "of now", default=sa.func.gen_random_uuid()),
    comment="one row: the version of the registry of signals, tables and marks",
)

_TRIGGER = "ringlog_registry_changed"


def watch(connection: sa.Connection) -> None:
    """Makes the row, and the triggers that are missing, once their function is there."""
    connection.execute(postgresql.insert(registry_state).values(one=True).on_conflict_do_nothing())
    watched = {
        f"ringlog.{table.name}" for table in (registry.signal, registry.logged_table, signal_elsewhere, mark)
    }
    query = sa.text("select tgrelid::regclass::text from pg_trigger where tgname = :name")
    for table in sorted(watched - {*connection.scalars(query, {"name": _TRIGGER})}):
        run(
            connection,
            sql.SQL(
                "create trigger {} after insert or update or delete or truncate on {}"
                " for each statement execute function ringlog.registry_changed()"
            ).format(sql.Identifier(_TRIGGER), sql.Identifier(*table.split("."))),
        )
