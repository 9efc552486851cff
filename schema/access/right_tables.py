"""The tables of rights to single tables and groups of them, which `rights.py` reads and writes."""

import sqlalchemy as sa

from ringlog.schema.own_columns import text

metadata = sa.MetaData(schema="ringlog")

table_right = sa.Table(
    "table_right",
    metadata,
    text("login", key=True),
    text("role", "the right: daq_table_writer or daq_table_reader", key=True),
    text("table_name", key=True),
    comment="logins with rights to single tables",
)

group_right = sa.Table(
    "group_right",
    metadata,
    text("login", key=True),
    text("role", "the right: daq_table_writer or daq_table_reader", key=True),
    text("group_name", key=True),
    comment="logins with rights to groups of tables",
)

table_group = sa.Table(
    "table_group",
    metadata,
    text("group_name", key=True),
    text("table_name", key=True),
    comment="the groups of tables that the facility file names",
)
