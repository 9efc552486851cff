"""`ringlog facility drop`: a table of each kind goes with all of it, after a question."""

from pathlib import Path
from typing import Any

import psycopg

from servers import ringlog, serving

KEPT = """
timezone = "UTC"

[[table]]
name = "kept"
rows = 3
cycle = 1.0
column = [{ name = "a", type = "real" }]
"""
DROPPED = """
[[table]]
name = "waves"
rows = 3
cycle = 1.0
column = [{ name = "trace", type = "real[]", points = 8 }, { name = "a", type = "real" }]

[[table]]
name = "gauges"
kind = "samples"
type = "double"

[[parameter]]
name = "set_points"
key = "device"

[[parameter.column]]
name = "device"
type = "varchar(20)"

[[parameter.column]]
name = "current"
type = "double"
"""


TABLES = ("waves", "gauges", "set_points")


def test_dropped_tables_leave_nothing(data: Path, tmp_path: Path) -> None:
    facility = tmp_path / "plant.toml"
    facility.write_text(KEPT + DROPPED)
    with serving(data, facility=facility) as server, psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute("select ringlog.put_waves(row (1, now(), '{1,2}', 3)::online.waves)")
        admin.execute("analyze weeks.waves")
        facility.write_text(KEPT)
        for answer in ("kept\n", ""):
            refused = ringlog("facility", "drop", TABLES[0], "--data", data, stdin=answer)
            assert refused.returncode == 1
            assert "nothing was dropped" in refused.stderr
        for number, table in enumerate(TABLES):
            is_dropped(data, table, admin)
            refused = ringlog("facility", "diff", facility, "--data", data)
            # the others are still there
            assert f" {table}" not in refused.stderr
            assert refused.stderr.count("ringlog facility drop") == len(TABLES) - 1 - number, refused.stderr
        assert (refused.returncode, refused.stdout) == (0, "no difference\n")


def is_dropped(data: Path, table: str, admin: psycopg.Connection[tuple[Any, ...]]) -> None:
    dropped = ringlog("facility", "drop", table, "--data", data, stdin=f"{table}\n")
    assert dropped.returncode == 0, dropped.stderr
    assert f"This deletes all of {table}:" in dropped.stdout
    assert dropped.stdout.endswith(f"dropped {table}\n")
    if table == "waves":
        assert "log: about 1 rows, 0.1 MB in 6 partitions" in dropped.stdout
    for query in (
        "select relname from pg_class where relname like %s",
        "select proname from pg_proc where proname like %s",
    ):
        assert admin.execute(query, [f"%{table}%"]).fetchall() == []
    again = ringlog("facility", "drop", table, "--data", data)
    assert again.returncode == 2
    assert f"there is no table '{table}'" in again.stderr
