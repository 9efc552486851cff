"""Faults in random order, by a seed."""

import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from chaos.comparison import Figures, compare, longest_wait
from chaos.crowds import slow_requests, unread_results, wrong_passwords
from chaos.kills import kill_all
from chaos.site import LOADED, Site, build_ct_client

_MEAN = 5.0
"""seconds between two faults"""
_DRAINED = 600.0
"""seconds after which `ringlog load` has ended"""
CLOCKS = ("+42d", "-42d", "+3650d", "+2h", "-2h")

Fault = Callable[[Site, random.Random], object]


def _clock(site: Site, draw: random.Random) -> None:
    """A start with a wrong clock; the next start has the correct one."""
    site.restart(draw.choice(CLOCKS))
    time.sleep(draw.uniform(5, 20))
    site.restart()


def _beside(work: Callable[..., object], *values: object) -> None:
    threading.Thread(target=partial(work, *values), daemon=True).start()


def _slow(site: Site, draw: random.Random) -> None:
    sessions, length = draw.choice([(64, 70_000), (8, 1_100_000), (2, 8_500_000)])
    _beside(slow_requests, site, sessions, length, draw.uniform(5, 20))


FAULTS: dict[str, tuple[int, Fault]] = {
    "gateway killed": (2, lambda site, draw: site.kill_gateway()),
    "PostgreSQL killed": (2, lambda site, draw: site.kill_postgresql()),
    "backend killed": (2, lambda site, draw: site.kill_backend(draw)),
    "restart": (2, lambda site, draw: site.restart()),
    "wrong clock": (2, _clock),
    "ring damaged": (4, lambda site, draw: site.damage_ring(draw)),
    "old week damaged": (1, lambda site, draw: site.damage_old_week(draw)),
    "spool damaged": (4, lambda site, draw: site.damage_spool(draw)),
    "load killed": (2, lambda site, draw: site.restart_load()),
    "writer of load killed": (3, lambda site, draw: site.kill_writer(draw)),
    "columns": (6, lambda site, draw: site.change_columns(draw)),
    "slow clients": (4, _slow),
    "crowd": (3, lambda site, draw: _beside(unread_results, site, 150, draw.uniform(5, 20))),
    "wrong passwords": (2, lambda site, draw: _beside(wrong_passwords, site, draw.uniform(3, 10))),
    "maintain": (2, lambda site, draw: site.command("maintain", demanded=False)),
}
"""The weight of each fault, and its function."""


def live(
    seed: int, seconds: float, say: Callable[[str], object] = print, *, only_kills: bool = False
) -> Figures:
    """Runs for this many seconds. Raises RuntimeError if a process does not restart."""
    folder = Path(tempfile.mkdtemp(prefix="ringlog-chaos-", dir="/tmp"))
    folder.chmod(0o755)
    draw = random.Random(seed)
    figures = Figures()
    site = Site(folder, build_ct_client(folder), seed, seconds, retains=only_kills)
    try:
        site.begin()
        site.begun = time.monotonic()
        if only_kills:
            kill_all(site, seconds, draw, figures)
        else:
            _faults_of_all_kinds(site, seconds, draw, figures, say)
        site.end_writers()
        site.restart()
        _drain(site)
        site.command("maintain", demanded=False)
        for table in (*(writer.table for writer in site.writers), *LOADED):
            if table in site.damaged_rings:
                say(site.command("refill", table).stdout.strip())
        compare(site, figures)
        longest_wait(site, figures)
        for writer in site.writers:
            for words, number in writer.answers.most_common(12):
                say(f"{writer.table}: {number} x {words}")
    except BaseException:
        say(str(figures))
        say((folder / "serve.log").read_text(errors="replace")[-4000:])
        raise
    finally:
        site.close()
        if figures.good:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            say(f"kept: {folder}")
    return figures


def _faults_of_all_kinds(
    site: Site, seconds: float, draw: random.Random, figures: Figures, say: Callable[[str], object]
) -> None:
    # each kind once, and then by weight
    first = draw.sample([*FAULTS], len(FAULTS))
    while (at := time.monotonic() - site.begun) < seconds:
        kind = first.pop() if first else draw.choices([*FAULTS], [weight for weight, _ in FAULTS.values()])[0]
        say(f"{at:7.1f} s: {kind}")
        FAULTS[kind][1](site, draw)
        figures.faults[kind] += 1
        site.tend()
        time.sleep(min(draw.expovariate(1 / _MEAN), 3 * _MEAN))
        if not first or at < seconds:
            site.tend()


def _drain(site: Site) -> None:
    end = time.monotonic() + _DRAINED
    while site.tend():
        if time.monotonic() > end:
            raise RuntimeError(f"load does not end: {(site.folder / 'load.log').read_text()[-2000:]}")
        time.sleep(0.2)
