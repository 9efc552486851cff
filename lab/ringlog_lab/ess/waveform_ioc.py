"""A real soft IOC whose waveform records are updated at their rate. As in papers/003 the first point of a
waveform is its update's number, the others stay the same.

python -m ringlog_lab.ess.waveform_ioc NAMES POINTS TYPE HZ, names with commas between.
"""

import sys
import threading
import time

import numpy as np

from ringlog_lab.ess.points import points_of

READY = "the IOC updates its waveforms"
_TYPES = {"int": np.int32, "double": np.float64}


def main() -> None:
    from softioc import asyncio_dispatcher, builder, softioc

    names, points, kind, rate = sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    values = np.frombuffer(points_of(kind, points), _TYPES[kind]).copy()
    records = [builder.WaveformIn(name, initial_value=values) for name in names]
    builder.LoadDatabase()
    softioc.iocInit(asyncio_dispatcher.AsyncioDispatcher())
    print(READY, flush=True)
    began, number = time.monotonic(), 0
    while True:
        values[0] = number
        moment = time.time()
        for record in records:
            record.set(values.copy(), timestamp=moment)
        number += 1
        threading.Event().wait(max(0.0, number / rate - (time.monotonic() - began)))


if __name__ == "__main__":
    main()
