"""Views: states of the page with a name, an owner and a description."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ringlog.schema.own_tables import own_column, own_table, text, timestamp

saved_view = own_table(
    "saved_view",
    text("name", key=True),
    text("description"),
    text("state", "the part of the page's address behind #"),
    own_column(postgresql.ARRAY(sa.TEXT), "signals", "null: readers of any see it", null=True),
    text("owner", "the login that may change it"),
    text("program", "as the client reports it"),
    timestamp("made", "when this state was saved", default=sa.func.clock_timestamp()),
    comment="states of the page, by name",
)
