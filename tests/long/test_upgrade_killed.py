"""The first start on a released version's database is killed again and again, by UPGRADE_SEED."""

import os
import random
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from places import new_folder
from releases.site import answers, new_site, restored, structure
from releases.test_releases import SITES, archived_rows, without_t_sql

from ringlog.server.embedded.postgres import Postgres
from servers import RINGLOG, free_port, ringlog, serving
from waiting import wait_until_reachable

KILLS = int(os.environ.get("UPGRADE_KILLS", "12"))
SEED = int(os.environ.get("UPGRADE_SEED") or random.randrange(2**31))
LONGEST = 12.0
"""seconds from a start until its kill"""

pytestmark = pytest.mark.timeout(900 + 60 * KILLS)


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name.removesuffix(".tar.xz"))
def test_an_upgrade_survives_kills(site: Path) -> None:
    draw = random.Random(SEED)
    with new_site() as (server, new, _):
        todays = structure(server.dsn)
    shutil.rmtree(new)
    folder = new_folder("killed")
    given, _, answered = restored(site, folder)
    data, facility = folder / "data", folder / "plant.toml"
    command = [RINGLOG, "serve", "--data", data, "--facility", facility, "--listen", "127.0.0.1:0"]
    command += ["--memory", "512MB", "--pg-port", str(free_port())]
    with (folder / "serve.log").open("w") as log:
        for _ in range(KILLS):
            with subprocess.Popen([*map(str, command)], stdout=log, stderr=log) as process:
                time.sleep(draw.uniform(0.5, LONGEST))
                assert process.poll() is None, (folder / "serve.log").read_text()
                postmaster = Postgres(data).postmaster()
                with suppress(psutil.Error):
                    choice = draw.choice(["server", "postmaster", "backend"])
                    if choice == "server" or postmaster is None:
                        process.kill()
                    elif choice == "postmaster":
                        postmaster.kill()
                    else:
                        draw.choice(postmaster.children()).kill()
                process.kill()
    with serving(data, facility=facility) as server:
        adopted = ringlog("archive", "adopt", "--data", server.data)
        assert adopted.returncode == 0, f"seed {SEED}: {adopted.stderr}"
        wait_until_reachable(lambda: archived_rows(server))
        assert answers(server, given) == answered, f"seed {SEED}"
        became = structure(server.dsn)
        assert {*todays} <= {*became}, f"seed {SEED}"
        assert without_t_sql(became) == without_t_sql(todays), f"seed {SEED}"
        checked = ringlog("verify", "--data", server.data)
        assert checked.returncode == 0, f"seed {SEED}: {checked.stdout}"
    shutil.rmtree(folder)
