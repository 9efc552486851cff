"""docs/reference/figures.md: medians with their spread."""

from ringlog_lab.bench.reports.results import Results
from ringlog_lab.native_load import CONTENDERS, Measurement
from ringlog_lab.published import page


def run(part: str, contender: str, number: int, calls: int) -> Measurement:
    """A run of ten seconds whose calls took a millisecond each, of which 100 µs in PostgreSQL."""
    times = {"p50": 0.001, "p99": 0.002, "p999": 0.003, "max": 0.004, "silence": 0.004}
    cpu = {
        "clients": 1.0,
        "gateway": calls * 20e-6,
        "postgres": 1.0,
        "backends": calls * 100e-6,
        "others": 0.1,
    }
    return Measurement(
        part,
        contender,
        number,
        200,
        60,
        calls,
        calls,
        10.0,
        **times,
        **cpu,
        cores=2,
        wal=0,
        memory=0,
        by_second=[],
    )


def test_a_cell_is_the_median_and_its_range() -> None:
    machine: dict[str, str | int | float] = {"processor": "a processor", "cores": 2, "file_system": "ext4"}
    results = Results("abc", "2034-01-01 00:00:00 UTC", machine, {})
    for number, calls in enumerate((1000, 3000, 2000)):
        for contender in CONTENDERS:
            faster = 2 if contender == "tds74" else 1
            results.measurements += [
                run(part, contender, number, calls * faster) for part in ("write", "lone")
            ]
    text = page(results)
    assert "| calls/s | 200 (100 to 300) | 200 (100 to 300) | 200 (100 to 300) | 400 (200 to 600) |" in text
    assert "| calls/s ÷ direct, one by one | 1.00 (1.00 to 1.00) |" in text
    assert "| 2.00 (2.00 to 2.00) |" in text
    assert "| CPU of PostgreSQL, µs a call | 100.0 (100.0 to 100.0) |" in text
    assert "used 0.01 cores" in text
