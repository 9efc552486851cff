"""Record batches as Arrow IPC: equal to Arrow's own output, with large buffers not copied."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ringlog.retrieval.plain.forms import formed

TIME = pa.timestamp("us", tz="UTC")


def batch(rows: int, kind: pa.DataType) -> pa.RecordBatch:
    dice = np.random.default_rng(rows)
    times = pa.array(np.cumsum(dice.integers(0, 10**9, rows)), TIME)
    missing = dice.random(rows) < 0.1
    numbers = pa.array(dice.normal(size=rows), mask=missing)
    if pa.types.is_list(kind):
        bounds = np.concatenate([[0], np.cumsum(dice.integers(0, 9, rows))])
        points = pa.array(np.arange(bounds[-1]) % 1000, kind.value_type)
        numbers = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), points, mask=pa.array(missing))
    return pa.record_batch({"time": times, "value": numbers.cast(kind)})


def test_the_stream_is_arrows_own() -> None:
    for kind in (pa.float64(), pa.float32(), pa.string(), pa.list_(pa.int16())):
        whole = batch(100_000, kind)
        batches = [batch(0, kind), batch(7, kind), whole, whole.slice(3, 50_001), whole.slice(99_999)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            for each in batches:
                writer.write_batch(each)
        assert b"".join(formed("arrow", whole.schema, iter(batches))) == sink.getvalue().to_pybytes()


def test_a_large_buffer_is_passed_on_unchanged() -> None:
    made = pa.record_batch({"time": pa.array(np.arange(10**6), TIME)})
    addresses = [pa.py_buffer(part).address for part in formed("arrow", made.schema, iter([made]))]
    assert made["time"].buffers()[1].address in addresses


def test_parquet_is_read_unchanged() -> None:
    batches = [batch(100_000, pa.float64()), batch(3, pa.float64())]
    content = b"".join(formed("parquet", batches[0].schema, iter(batches)))
    assert pq.read_table(pa.BufferReader(content)).equals(pa.Table.from_batches(batches))


def test_names_at_the_head_of_csv_are_no_formulas() -> None:
    names = ["time", "=cmd|'/c calc'!A1", "+1", "-1", "@x", "a=b"]
    made = b"".join(formed("csv", pa.schema([pa.field(name, pa.int32()) for name in names]), iter(())))
    assert made.decode() == "time,'=cmd|'/c calc'!A1,'+1,'-1,'@x,a=b\n"
