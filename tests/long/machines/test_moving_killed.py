"""Tables move under random kills of the command, the gateway, the servers and their backends: MOVING_KILLS of
them, by MOVING_SEED."""

import os
import random
import re
import subprocess
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest
from site_load import Load, loaded

from servers import RINGLOG, ringlog
from sites import WHERE, Site, start
from waiting import wait_until, wait_until_reachable

KILLS = int(os.environ.get("MOVING_KILLS", "20"))
SEED = int(os.environ.get("MOVING_SEED") or random.randrange(2**31))
LONGEST = 4.0
"""seconds from the begin of a command until a kill"""

pytestmark = pytest.mark.timeout(600 + 30 * KILLS)


def command(site: Site) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [RINGLOG, "node", "move", "--facility", site.facility],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"RINGLOG_DSN": site.dsn},
    )


def kill(site: Site, load: Load, draw: random.Random, moving: "subprocess.Popen[bytes]") -> str:
    """Kills a process, and starts it again if others need it. Returns its kind."""
    what = draw.choice(["command", "gateway", "server", "backend", "backend of the command"])
    name = draw.choice([*site.servers])
    if what == "command":
        moving.kill()
    elif what == "gateway":
        load.gateway_dies()
        load.gateway_starts()
    elif what == "server":
        site.servers[name].die()
        start(site.servers[name])
    else:
        user = "keeper" if "command" in what else "%"
        with suppress(psycopg.Error, psutil.Error), site.admin(name) as connection:
            query = "select pid from pg_stat_activity where usename like %s and pid <> pg_backend_pid()"
            pids = [pid for (pid,) in connection.execute(query, [user])]
            if not pids:
                return "none"
            psutil.Process(draw.choice(pids)).kill()
    return what


def reached(site: Site, name: str) -> bool:
    with site.admin(name):
        return True


def is_moved(site: Site) -> bool:
    done = ringlog("node", "move", "--facility", site.facility, RINGLOG_DSN=site.dsn)
    # PostgreSQL takes a moment to notice that a backend was killed, and then ends all connections
    is_lost = re.search("PostgreSQL: .*connection", done.stderr)
    assert done.returncode == 0 or is_lost, f"seed {SEED}: {done.stderr}"
    return done.returncode == 0


def test_no_row_is_lost_by_a_kill(site: Site, tmp_path: Path) -> None:
    draw = random.Random(SEED)
    where = dict(WHERE)
    kills: Counter[str] = Counter()
    moves = 0
    with loaded(site) as load:
        load.go_on(where)
        while kills.total() < KILLS:
            table = draw.choice([*where])
            where[table] = draw.choice([name for name in site.servers if name != where[table]])
            site.write_facility(where)
            for _ in range(draw.randrange(1, 4)):
                moving = command(site)
                time.sleep(draw.uniform(0, LONGEST))
                if (killed := kill(site, load, draw, moving)) != "none":
                    kills[killed] += 1
                with suppress(subprocess.TimeoutExpired):
                    moving.wait(draw.uniform(0, LONGEST))
                moving.kill()
                moving.wait()
            for name in site.servers:
                # the end of a backend or a server is recovered first
                wait_until_reachable(partial(reached, site, name))
            wait_until(partial(is_moved, site), lambda: f"seed {SEED}, {kills}")
            moves += 1
            load.go_on(where)
    load.all_are_there(where)
    rows = sum(load.given(table) for table in where)
    print(f"seed {SEED}: {kills.total()} kills ({dict(kills)}), {moves} moves, {rows} rows")
