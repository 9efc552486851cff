"""The tables of rights to single tables and groups of them, which `rights.py` reads and writes."""

import sqlalchemy as sa

metadata = sa.MetaData(schema="ringlog")

table_right = sa.Table(
    "table_right",
    metadata,
    sa.Column("login", sa.TEXT, primary_key=True),
    sa.Column("role", sa.TEXT, primary_key=True, comment="the right: daq_table_writer or daq_table_reader"),
    sa.Column("table_name", sa.TEXT, primary_key=True),
    comment="logins with rights to single tables",
)

group_right = sa.Table(
    "group_right",
    metadata,
    sa.Column("login", sa.TEXT, primary_key=True),
    sa.Column("role", sa.TEXT, primary_key=True, comment="the right: daq_table_writer or daq_table_reader"),
    sa.Column("group_name", sa.TEXT, primary_key=True),
    comment="logins with rights to groups of tables",
)

table_group = sa.Table(
    "table_group",
    metadata,
    sa.Column("group_name", sa.TEXT, primary_key=True),
    sa.Column("table_name", sa.TEXT, primary_key=True),
    comment="the groups of tables that the facility file names",
)
