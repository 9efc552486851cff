"""`ringlog load` as a writer of the plant: it takes PVs of a PV Access server in the plant's process."""

import math
import random
import time as clock
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from iocs import Programs

from plant.sample_model import DEADBANDS, NAME, Sample
from plant.samples import NO_NUMBERS
from plant.site import Different
from plant.waves import Waves
from ringlog_lab.epics import own_ports
from servers import free_port
from waiting import wait_until

LOST = None, 3, 0
HIHI = 3
"""Channel Access's number of this alarm status"""
NEVER = (0, 631_152_000 * 10**9)
"""times of a record that was never processed: of 1970, and EPICS's first one"""


@dataclass
class _Loaded:
    """The samples that a signal's events become (docs/how-to/load.md, "Tables of samples"), each with its
    time; None: the time at which the writer stores it."""

    deadband: float | str | None
    latest: int
    expected: list[tuple[int | None, Sample]] = field(default_factory=list)
    received: list[tuple[int, Sample]] = field(default_factory=list)
    taken: Sample | None = None
    begins: bool = True
    """no event has been received since the writer's start, or since the loss"""

    def receive(self, at: int, sample: Sample) -> None:
        self.received.append((at, sample))
        if at in NEVER:
            return
        is_back, self.begins = self.begins, False
        if not is_back and self.taken is not None and not self._moved(self.taken, sample):
            return
        self.taken = sample
        self.expected.append((None if is_back and at < self.latest else at, sample))

    def lose(self) -> None:
        self.taken, self.begins, self.latest = None, True, clock.time_ns()
        self.expected.append((None, LOST))

    def _moved(self, before: Sample, after: Sample) -> bool:
        if self.deadband is None or before[1:] != after[1:]:
            return True
        old, new = before[0], after[0]
        assert old is not None
        assert new is not None
        if not math.isfinite(old) or not math.isfinite(new):
            # NaN differs from itself
            return old != new
        number, *percent = str(self.deadband).split()
        return abs(new - old) > float(number) * (abs(old) / 100 if percent else 1)


@cache
def _reals() -> Any:
    """The one type of all updates: a PV accepts updates of only the type object with which it was opened."""
    # p4p is in the environment of the long tests: others have lives without `load`
    from p4p.nt import NTScalar

    return NTScalar("d")


def _update(at: int, sample: Sample) -> object:
    value, severity, status = sample
    update = _reals().wrap(value)
    update["timeStamp.secondsPastEpoch"], update["timeStamp.nanoseconds"] = divmod(at, 10**9)
    update["alarm.severity"], update["alarm.status"] = severity, 1 if status else 0
    update["alarm.message"] = "HIHI" if status else ""
    return update


@contextmanager
def _served(name: str, ports: dict[str, str], update: object) -> Iterator[Any]:
    from p4p.server import Server
    from p4p.server.thread import SharedPV

    pv = SharedPV(initial=update)
    with Server(providers=[{name: pv}], conf=ports, useenv=False):
        yield pv


class Loads(Waves):
    """A writer with deadbands, losses and returns of its source, and records that were never processed."""

    def load(self, draw: random.Random) -> None:
        name = draw.choice([*DEADBANDS])
        signal = self.signals[name]
        if signal.is_paused:
            return
        before = set(signal.samples)
        loaded = _Loaded(DEADBANDS[name], max(before, default=0))
        ports = own_ports(free_port)
        begin = clock.time_ns()
        at, sample = self._event(draw)
        loaded.receive(at, sample)
        with ExitStack() as programs:
            run = Programs(self.folder, ports)
            programs.callback(run.stop)
            loader = None
            for number in range(draw.randint(1, 2)):
                if number:
                    # the source returns with the event of before
                    loaded.receive(at, sample)
                with _served(name, ports, _update(at, sample)) as pv:
                    loader = loader or run.load(self.server, "pva", NAME, "--facility", str(self.file))
                    if at in NEVER:
                        wait_until(lambda: self._is_unprocessed(name), loader.output)
                    self._arrived(name, loaded, before, begin)
                    for _ in range(draw.randint(at in NEVER, 2)):
                        # so few wait for the writer
                        events = [self._event(draw) for _ in range(draw.randint(0, 3))]
                        for event in events:
                            pv.post(_update(*event))
                            loaded.receive(*event)
                        # a change of the alarm is always stored
                        value, severity, status = loaded.taken or sample
                        at, sample = self._time(draw, late=False), (value, 2 - severity, HIHI - status)
                        pv.post(_update(at, sample))
                        loaded.receive(at, sample)
                        self._arrived(name, loaded, before, begin)
                loaded.lose()
                self._arrived(name, loaded, before, begin)
            assert loader is not None
            loader.stop()
        signal.samples |= dict(self._arrived(name, loaded, before, begin))

    def _event(self, draw: random.Random) -> tuple[int, Sample]:
        value = draw.choice([draw.uniform(-9, 9), draw.randint(0, 9) / 8, 5.0, 5.0, *NO_NUMBERS])
        at = draw.choice([*NEVER, *[self._time(draw, late=False)] * 8])
        return at, (value, *draw.choice([(0, 0), (0, 0), (2, HIHI)]))

    def _is_unprocessed(self, name: str) -> bool:
        query = "select from ringlog.signal_states(%s) where silent like '%%never processed%%'"
        return bool(self._asked(query, name))

    def _arrived(self, name: str, loaded: _Loaded, before: set[int], begin: int) -> list[tuple[int, Sample]]:
        """Waits for the expected samples of a signal, and compares all since `begin`."""

        def new() -> list[tuple[int, Sample]]:
            rows = self._rows_of_samples(f"log.{NAME} where signal = %s", name)
            return sorted((row for row in rows if row[0] not in before), key=lambda row: row[0])

        def enough() -> list[list[tuple[int, Sample]]]:
            rows = new()
            return [rows] if len(rows) >= len(loaded.expected) else []

        (rows,) = wait_until(enough, lambda: (name, new(), loaded.expected))
        given = {at: sample for at, sample in loaded.expected if at is not None}
        own = [row for row in rows if row[0] not in given]
        what = f"load of {name} since {begin}, of {loaded.received}: {loaded.expected}"
        self._wanted(what, [row for row in rows if row[0] in given], sorted(given.items()))
        self._wanted(what, [row[1] for row in own], [one for at, one in loaded.expected if at is None])
        if any(not begin <= at <= clock.time_ns() for at, _ in own):
            raise Different(f"{what}: {own} are not of the time of the loss or return")
        return rows
