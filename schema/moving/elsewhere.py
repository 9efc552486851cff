"""The tables about other servers: their signals, and tables on the way from one server to another."""

import sqlalchemy as sa

from ringlog.schema.own_tables import boolean, double, integer, own_table, smallint, text, timestamp

signal_elsewhere = own_table(
    "signal_elsewhere",
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

move = own_table(
    "move",
    text("table_name", key=True),
    text("source", "the node that it leaves; null: the first server", null=True),
    text("target", "the node that gets it; null: the first server", null=True),
    timestamp("began", default=sa.func.now()),
    timestamp(
        "switched",
        "since when calls go to the target and the old copy is to be dropped; null: not yet",
        null=True,
    ),
    comment="on the first server: tables on their way from one server to another (ringlog node move)",
)

moved_row = own_table(
    "moved_row",
    text("table_name"),
    timestamp("time"),
    integer("seq_no"),
    boolean(
        "chosen",
        "whether put chose seq_no, and chooses another one when it is called again elsewhere",
        default=sa.false(),
    ),
    sa.Index("moved_row_idx", "table_name"),
    comment="on the server that a table leaves: rows that arrived since its copying began",
)

moved_part = own_table(
    "moved_part",
    text("table_name", key=True),
    text("part", "partition of the log there, or summaries", key=True),
    text("as_of", "transaction there from which on changes may be missing", null=True),
    comment="on the server that gets a table: its copied parts",
)
