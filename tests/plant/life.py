"""The life of a plant: operations drawn from a seed, and reads compared with the model."""

import random
import shutil
import time as clock
from collections.abc import Iterator

from places import new_folder

from plant.loads import Loads
from plant.operations import Operations
from plant.site import Step

# The weight of each operation.
WEIGHTS = {
    "write": 40,
    "write_late": 14,
    "write_again": 8,
    "write_conflict": 4,
    "write_bad": 3,
    "write_ahead": 3,
    "write_together": 4,
    "write_empty": 3,
    "write_night": 5,
    "compare": 20,
    "maintain": 4,
    "archive_weeks": 3,
    "recall": 2,
    "add_column": 1,
    "rename_column": 1,
    "retire_column": 1,
    "change_type": 1,
    "set_retention": 1,
    "restart": 1,
    "crash": 1,
    "kill": 1,
    "backup_and_restore": 1,
    "send_samples": 16,
    "send_one": 4,
    "send_again": 3,
    "send_other": 3,
    "send_ahead": 1,
    "change_signals": 3,
    "compare_samples": 12,
    "send_waves": 8,
    "send_wave": 2,
    "send_other_wave": 1,
    "compare_waves": 8,
    "load": 1,
}


def drawn(seed: int) -> Iterator[Step]:
    """The endless operations of a life; the first one creates the plant."""
    draw = random.Random(seed)
    yield "begin", draw.getrandbits(32)
    while True:
        yield draw.choices([*WEIGHTS], [*WEIGHTS.values()])[0], draw.getrandbits(32)


class Life(Operations, Loads):
    """A plant with its operations."""

    def step(self, step: Step) -> None:
        self.history.append(step)
        name, seed = step
        getattr(self, name)(random.Random(seed))


def live(steps: Iterator[Step], seconds: float) -> Life:
    """Runs the steps for this many seconds after the first. Raises Different, with the history so far."""
    folder = new_folder("plant")
    life = Life(folder)
    try:
        with life.alive():
            try:
                life.step(next(steps))
                until = clock.monotonic() + seconds
                for step in steps:
                    if clock.monotonic() > until:
                        break
                    life.step(step)
                life.compare_all()
                life.compare_every_sample()
                life.compare_every_wave()
            except Exception as error:
                error.history = life.history  # type: ignore[attr-defined]
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return life
