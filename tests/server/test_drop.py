"""`ringlog facility drop`: a table of each kind goes with all of it, after a question."""

from pathlib import Path

import psycopg
import pytest

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


@pytest.mark.parametrize("table", ["waves", "gauges", "set_points"])
def test_a_dropped_table_leaves_nothing(data: Path, tmp_path: Path, table: str) -> None:
    facility = tmp_path / "plant.toml"
    facility.write_text(KEPT + DROPPED)
    with serving(data, facility=facility) as server, psycopg.connect(server.dsn, autocommit=True) as admin:
        if table == "waves":
            admin.execute("select ringlog.put_waves(row (1, now(), '{1,2}', 3)::online.waves)")
            admin.execute("analyze weeks.waves")
        for answer, code in (("kept\n", 1), ("", 1)):
            refused = ringlog("facility", "drop", table, "--data", data, stdin=answer)
            assert refused.returncode == code
            assert "nothing was dropped" in refused.stderr
        dropped = ringlog("facility", "drop", table, "--data", data, stdin=f"{table}\n")
        assert dropped.returncode == 0, dropped.stderr
        assert f"This deletes all of {table}:" in dropped.stdout
        assert dropped.stdout.endswith(f"dropped {table}\n")
        if table == "waves":
            assert "log: about 1 rows, 0.1 MB in 6 partitions" in dropped.stdout
        left = admin.execute("select relname from pg_class where relname like %s", [f"%{table}%"])
        assert left.fetchall() == []
        procedures = admin.execute("select proname from pg_proc where proname like %s", [f"%{table}%"])
        assert procedures.fetchall() == []
        again = ringlog("facility", "drop", table, "--data", data)
        assert again.returncode == 2
        assert f"there is no table '{table}'" in again.stderr
        facility.write_text(KEPT)
        refused = ringlog("facility", "diff", facility, "--data", data)
        # the other two are still there
        assert f" {table}" not in refused.stderr
        assert refused.stderr.count("ringlog facility drop") == 2, refused.stderr
