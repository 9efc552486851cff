"""The signals of other servers: a procedure called with one raises an error that names its node."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

metadata = sa.MetaData(schema="ringlog")

signal_elsewhere = sa.Table(
    "signal_elsewhere",
    metadata,
    sa.Column("signal", sa.TEXT, nullable=False),
    sa.Column("table_name", sa.TEXT, nullable=False),
    sa.Column("column_name", sa.TEXT, nullable=False),
    sa.Column("type", sa.TEXT, nullable=False),
    sa.Column("unit", sa.TEXT, nullable=False),
    sa.Column("description", sa.TEXT, nullable=False),
    sa.Column("limit_low", sa.DOUBLE_PRECISION),
    sa.Column("limit_high", sa.DOUBLE_PRECISION),
    sa.Column("alarm_low", sa.DOUBLE_PRECISION),
    sa.Column("alarm_high", sa.DOUBLE_PRECISION),
    sa.Column("states", sa.TEXT),
    sa.Column("held", sa.BOOLEAN, nullable=False, server_default=sa.false()),
    sa.Column("decimals", sa.SMALLINT),
    sa.Column("valid_from", postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column("valid_to", postgresql.TIMESTAMP(timezone=True)),
    sa.Column("node", sa.TEXT, nullable=False),
    sa.Index("signal_elsewhere_idx", "signal"),
    comment="the registry of tables on nodes, as ringlog init and node move last read it; that of tables of"
    " samples is read every two seconds",
)
