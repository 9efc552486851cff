"""Kills machines while rows arrive, and counts every acknowledged row.

    python -m ringlog_lab.machines --kills 20 --cuts 5 --switchovers 20 --writers 60

Two machines and a witness, as `ringlog ha init` makes them, in namespaces of this machine with a network
of their own. The primary's machine is killed (all its processes at once), cut off from the network, or gives
its place to the other (`ringlog ha switchover`); then it comes back, and when all is well again the next one
goes.
It takes root, or a kernel that lets users make namespaces, and Debian's packages etcd-server and iproute2.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ringlog_lab.machines.cluster import Cluster
from ringlog_lab.machines.host import Host, enclosed
from ringlog_lab.machines.writers import Count, Writers

_INSIDE = "--inside"


@dataclass(frozen=True)
class Pauses:
    """Seconds from a writer's last acknowledged row before a fault to its next one, over all writers and
    faults of a kind."""

    faults: int
    median: float
    p99: float
    longest: float

    @classmethod
    def of(cls, faults: list[list[float]]) -> "Pauses | None":
        found = sorted(pause for fault in faults for pause in fault)
        if not found:
            return None
        p99 = found[min(len(found) - 1, int(0.99 * len(found)))]
        return cls(len(faults), statistics.median(found), p99, found[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=0, help="how often the primary's machine dies")
    parser.add_argument("--cuts", type=int, default=0, help="how often it is cut off from the network")
    parser.add_argument("--standbys", type=int, default=0, help="how often the standby's machine dies")
    parser.add_argument("--switchovers", type=int, default=0, help="how often it gives its place away")
    parser.add_argument("--writers", type=int, default=60)
    parser.add_argument("--rate", type=float, default=10.0, help="rows a second of each writer")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no fault begins")
    parser.add_argument(
        "--keep", action="store_true", help="leave the machines' folders and logs where they are"
    )
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument(_INSIDE, action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.inside:
        command = [sys.executable, "-P", "-m", "ringlog_lab.machines", _INSIDE, *sys.argv[1:]]
        os.execvp("unshare", enclosed(command))
    folder = Path(tempfile.mkdtemp(prefix="ringlog-machines-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        _run(given, folder)
    finally:
        if given.keep:
            print(folder, file=sys.stderr)
        else:
            shutil.rmtree(folder)


def _run(given: argparse.Namespace, folder: Path) -> None:
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {text}", file=sys.stderr, flush=True)

    facility = folder / "facility.toml"
    facility.write_text(
        'timezone = "UTC"\n'
        + "".join(
            f'[[table]]\nname = "machine_{number}"\nrows = 1000\ncycle = {1 / given.rate}\n'
            f'column = [{{ name = "count", signal = "s{number}", type = "int" }}]\n'
            for number in range(given.writers)
        )
    )
    wanted = {
        "switchover": given.switchovers,
        "standby": given.standbys,
        "cut": given.cuts,
        "kill": given.kills,
    }
    pauses: dict[str, list[list[float]]] = {kind: [] for kind in wanted}
    cluster = Cluster(folder, facility, say)
    try:
        writers = Writers(cluster.urls, cluster.password, facility, folder / "spool", given.rate)
        try:
            for kind in (kind for kind, times in wanted.items() for _ in range(times)):
                if time.monotonic() - begun > 60 * given.minutes:
                    say("the time is over")
                    break
                pauses[kind].append(_fault(cluster, writers, kind))
        except RuntimeError:
            say("a fault has failed\n" + writers.log())
            raise
        finally:
            writers.stop()
        # a returning primary has not received the missed changes yet
        cluster.wait_well()
        count = writers.count(lambda _: cluster.dsn)
    finally:
        cluster.switch_off()
    _print(count, {kind: Pauses.of(faults) for kind, faults in pauses.items()}, given.json)
    if count.lost or count.repeated or count.acknowledged < count.produced:
        say("rows are missing or repeated\n" + writers.log())
        sys.exit(1)


def _fault(cluster: Cluster, writers: Writers, kind: str) -> list[float]:
    """Makes a fault; when every writer writes again, the machine or network returns."""
    host = _ready(cluster, writers)
    if kind == "switchover":
        switch = partial(cluster.ringlog, "ha", "switchover", "--config", str(cluster.config))
        return _paused(cluster, writers, kind, lambda: cluster.say(switch().strip()))
    if kind == "standby":
        (host,) = (other for other in cluster.members if other is not host)
    found = _paused(cluster, writers, f"{kind} of {host.name}", host.cut if kind == "cut" else host.die)
    if kind == "cut":
        host.mend()
    else:
        cluster.switch_on(host)
    return found


def _ready(cluster: Cluster, writers: Writers) -> Host:
    """The primary, when every writer writes to it and all is well."""
    _written(cluster, writers)
    cluster.wait_well()
    return cluster.primary


def _written(cluster: Cluster, writers: Writers) -> None:
    now = datetime.now(UTC)
    cluster.wait("every writer's rows", lambda: writers.wrote_since(now))


def _paused(cluster: Cluster, writers: Writers, what: str, harm: Callable[[], None]) -> list[float]:
    """The longest pause of each writer around a fault."""
    begin = time.monotonic() - 1.0
    harm()
    _written(cluster, writers)
    found = writers.pauses(begin, time.monotonic())
    cluster.say(f"{what}: writers paused for {min(found):.2f} to {max(found):.2f} s")
    return found


def _print(count: Count, pauses: dict[str, Pauses | None], machine: bool) -> None:
    if machine:
        by_kind = {kind: asdict(one) for kind, one in pauses.items() if one}
        print(json.dumps({"count": asdict(count), "pauses": by_kind}))
        return
    for kind, one in pauses.items():
        if one:
            print(
                f"{one.faults} times {kind}: pauses of the writers: median {one.median:.2f} s, "
                f"p99 {one.p99:.2f} s, longest {one.longest:.2f} s"
            )
    print(
        f"{count.produced} rows produced, {count.acknowledged} acknowledged: {count.lost} lost, "
        f"{count.repeated} repeated"
    )


if __name__ == "__main__":
    main()
