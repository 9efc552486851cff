"""The life of a plant: operations drawn from a seed, and reads compared with the model."""

import random
import shutil
import time as clock
from collections.abc import Iterator

from places import new_folder

import random_operations
from plant.loads import Loads
from plant.operations import Operations
from plant.site import Step


class Life(Operations, Loads):
    def step(self, step: Step) -> None:
        self.history.append(step)
        name, seed = step
        OPERATIONS[name][1](self, random.Random(seed))


OPERATIONS: random_operations.Operations = {
    "begin": (0, Life.begin),
    "write": (40, Life.write),
    "write_late": (14, Life.write_late),
    "write_again": (8, Life.write_again),
    "write_conflict": (4, Life.write_conflict),
    "write_bad": (3, Life.write_bad),
    "write_ahead": (3, Life.write_ahead),
    "write_together": (4, Life.write_together),
    "write_empty": (3, Life.write_empty),
    "write_night": (5, Life.write_night),
    "compare": (20, Life.compare),
    "maintain": (4, Life.maintain),
    "archive_weeks": (3, Life.archive_weeks),
    "recall": (2, Life.recall),
    "add_column": (1, Life.add_column),
    "rename_column": (1, Life.rename_column),
    "retire_column": (1, Life.retire_column),
    "change_type": (1, Life.change_type),
    "set_retention": (1, Life.set_retention),
    "restart": (1, Life.restart),
    "crash": (1, Life.crash),
    "kill": (1, Life.kill),
    "backup_and_restore": (1, Life.backup_and_restore),
    "send_samples": (16, Life.send_samples),
    "send_one": (4, Life.send_one),
    "send_again": (3, Life.send_again),
    "send_other": (3, Life.send_other),
    "send_ahead": (1, Life.send_ahead),
    "change_signals": (3, Life.change_signals),
    "compare_samples": (12, Life.compare_samples),
    "send_waves": (8, Life.send_waves),
    "send_wave": (2, Life.send_wave),
    "send_other_wave": (1, Life.send_other_wave),
    "compare_waves": (8, Life.compare_waves),
    "load": (1, Life.load),
}


def drawn(seed: int) -> Iterator[Step]:
    """The endless operations of a life; the first one creates the plant."""
    draw = random.Random(seed)
    yield "begin", draw.getrandbits(32)
    for name in random_operations.drawn(OPERATIONS, draw, each_first=False):
        yield name, draw.getrandbits(32)


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
            except Exception as error:
                error.history = life.history  # type: ignore[attr-defined]
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return life
