"""Locust with its own interface: its web page, or as a part of a distributed load."""

import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ringlog.clients import Address
from ringlog.loadtest.load import LocustLoad, Pace
from ringlog.loadtest.spring8.python_run import check
from ringlog.loadtest.spring8.recorded import Recorded
from ringlog.loadtest.spring8.swarm import locust_command, locust_environment
from ringlog.loadtest.spring8.target import Target, own_target
from ringlog.schema.facility_files.facility_file import load_facility

_LOOK = 0.2  # seconds between two checks of locust's end


def work(
    pace: Pace, facility: Path, writer: Address, reader: Address | None, arguments: Sequence[str]
) -> int:
    """Runs users for a master on another machine, which keeps the records; returns locust's exit code."""
    load = LocustLoad(facility, str(writer), str(reader) if reader else None, pace)
    return _locust(load, writer.password, arguments)


def run_locust(
    pace: Pace, facility: Path, given: Target | None, data: Path, folder: Path, arguments: Sequence[str]
) -> int:
    """Runs locust, alone or as a master, on a given server or our own; then looks for every acknowledged row.
    Returns locust's exit code, or 1 if a row is lost.
    """
    loaded = load_facility(facility)
    with ExitStack() as stack:
        if given is None:
            print(f"Starting a server with {facility.name} on {data}", flush=True)
            shutil.copy(facility, folder / "facility.toml")
            given = stack.enter_context(own_target(folder / "facility.toml", data))
        reader = str(given.reader) if pace is Pace.NORMAL and given.reader else None
        load = LocustLoad(facility, str(given.writer), reader, pace, calls=folder / "calls")
        one_of_each = len(loaded.tables) * (2 if reader else 1)
        # later options override earlier ones
        usual = ["--users", str(one_of_each), "--spawn-rate", str(min(100, one_of_each))]
        code = _locust(load, given.password, [*usual, *arguments])
        print("Looking for every acknowledged row", flush=True)
        records = Recorded(folder / "calls")
        records.catch_up()
        found = check(given.conninfo, loaded, records)
    print(found, flush=True)
    return code if found.good else 1


def _locust(load: LocustLoad, password: str | None, arguments: Sequence[str]) -> int:
    ended = threading.Event()
    # Before locust starts, which must not survive this process. Ctrl-C reaches locust by itself, and
    # afterwards this process has more work. Handlers, unlike SIG_IGN, are not inherited by locust.
    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: ended.set()),
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
    }
    try:
        with subprocess.Popen(locust_command(arguments), env=locust_environment(load, password)) as process:
            while process.poll() is None:
                if ended.wait(_LOOK):
                    process.terminate()
                    break
        return process.returncode
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
