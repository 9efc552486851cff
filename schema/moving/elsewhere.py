"""The signals of other servers: a procedure called with one raises an error that names its node."""

import sqlalchemy as sa

from ringlog.schema.own_columns import boolean, double, smallint, text, timestamp

metadata = sa.MetaData(schema="ringlog")

signal_elsewhere = sa.Table(
    "signal_elsewhere",
    metadata,
    text("signal"),
    text("table_name"),
    text("column_name"),
    text("type"),
    text("unit"),
    text("description"),
    double("limit_low", null=True),
    double("limit_high", null=True),
    double("alarm_low", null=True),
    double("alarm_high", null=True),
    text("states", null=True),
    boolean("held", default=sa.false()),
    smallint("decimals", null=True),
    timestamp("valid_from"),
    timestamp("valid_to", null=True),
    text("node"),
    sa.Index("signal_elsewhere_idx", "signal"),
    comment="the registry of tables on nodes, as ringlog init and node move last read it; that of tables of"
    " samples is read every two seconds",
)
