"""Converts the blocks of a table of samples to samples in the archive's form."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HOUR = 3_600_000_000  # microseconds


def samples_of(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The samples of blocks that are ordered by signal and time: number, time, nanoseconds (below a
    microsecond), value, severity and status, ordered by number and time. There is at least one batch."""
    held: pa.RecordBatch | None = None
    for batch in blocks:
        together = batch if held is None else pa.concat_batches([held, batch])
        # blocks of one signal and hour may overlap, waveforms only in nanoseconds
        step = 1 if "points" in together.schema.names else _HOUR
        groups = [together["signal"].to_numpy(), together["time"].cast(pa.int64()).to_numpy() // step]
        n = together.num_rows
        changes = np.flatnonzero(np.logical_or.reduce([group[1:] != group[:-1] for group in groups])) + 1
        cut = int(changes[-1]) if len(changes) else 0
        if cut:
            yield _samples(together.slice(0, cut))
        held = together.slice(cut, n - cut)
    if held is not None:
        yield _samples(held)


def _samples(blocks: pa.RecordBatch) -> pa.RecordBatch:
    n = pc.list_value_length(blocks["times"]).cast(pa.int64()).to_numpy()
    number = np.repeat(blocks["signal"].to_numpy(), n)
    time = pc.list_flatten(blocks["times"]).to_numpy()
    alarms = [_alarms(blocks[name], n) for name in ("severities", "statuses")]
    columns = [
        pa.array(number, pa.int32()),
        pa.array(time // 1000).cast(pa.timestamp("us", "UTC")),
        pa.array((time % 1000).astype(np.int16)),
        blocks["points"] if "points" in blocks.schema.names else pc.list_flatten(blocks["samples"]),
        *map(pa.array, alarms),
    ]
    names = ["number", "time", "nanoseconds", "value", "severity", "status"]
    made = pa.RecordBatch.from_arrays(columns, names=names)
    if ((number[1:] == number[:-1]) & (time[1:] <= time[:-1])).any():
        return made.take(pa.array(np.lexsort((time, number))))
    return made


def _alarms(lists: pa.ListArray, n: np.ndarray) -> np.ndarray:
    """The severities or statuses of all samples; a block without them has 0."""
    found = np.zeros(int(n.sum()), np.int16)
    if lists.null_count < len(lists):
        there = np.repeat(lists.is_valid().to_numpy(zero_copy_only=False), n)
        found[there] = pc.list_flatten(lists).to_numpy()
    return found
