"""The commands that find signals and print their newest values."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from webs import BPM

from ringlog.commands.signals import signals
from servers import FACILITY, RunningServer, ringlog, serving


@pytest.fixture(scope="module")
def found(temporary_directory: Path) -> Iterator[RunningServer]:
    facility = temporary_directory / "signals.toml"
    arcs = 'name = "arcs"\ntype = "int"\n'
    states = arcs + 'states = { 0 = "none", 2 = "some" }\n'
    facility.write_text(FACILITY.read_text().replace(arcs, states) + BPM)
    with serving(temporary_directory / "signals", facility=facility) as server:
        with psycopg.connect(server.dsn) as connection:
            put = "row (1, now() - interval '3 minutes', 1.5, null, null, null, '{3,4}', 0)::online.bpm"
            connection.execute(f"select ringlog.put_bpm({put})")
            connection.execute("update online.sr_vac set time = now(), valve_open = true where seq_no = 2")
        yield server


def names(server: RunningServer, *words: str) -> list[str]:
    """The signals that the command finds, without a separate process."""
    return [signals.name_of(row) for row in signals.found(server.dsn, " ".join(words), 300)]


def test_words_in_any_order(found: RunningServer) -> None:
    pressures = [f"sr_vac_ccg_{number}/pressure" for number in (1, 2, 3)]
    assert names(found, "pressure", "vac") == names(found, "sr_vac", "press") == pressures
    assert names(found, "sr*_2*sure") == pressures[1:2]
    assert names(found, "/^sr_vac.*[23].pres/") == pressures[1:]
    assert names(found, "unit:Pa") == pressures
    assert names(found, "unit:P") == []
    assert names(found, "table:sr_vac") == ["sr_vac/valve_open", *pressures]
    assert names(found, "device:ccg_3") == pressures[2:]
    assert names(found, "column:valve") == ["sr_vac/valve_open"]
    assert names(found, "zzzz") == []
    # scalars of waveforms, if they are named
    for words in (("rms",), ("turns", "rms"), ("turns.rms",)):
        assert names(found, *words) == ["bpm/turns.rms"]
    assert names(found, "turns") == ["bpm/turns"]
    ran = ringlog("signals", "--json", "pressure", "vac", "--data", found.data)
    assert (ran.returncode, [signal["signal"] for signal in json.loads(ran.stdout)]) == (0, pressures)
    assert ringlog("signals", "zzzz", "--data", found.data).returncode == 1
    wrong = ringlog("signals", "/(/", "--data", found.data)
    assert (wrong.returncode, "parentheses () not balanced" in wrong.stderr) == (2, True)
    few = ringlog("signals", "current_adc", "--limit", "3", "--data", found.data)
    assert len(few.stdout.splitlines()) == 3
    assert "the first 3" in few.stderr


def test_the_newest_values(found: RunningServer) -> None:
    ran = ringlog("latest", "bpm/x", "sr_vac/valve*", "bpm/turns.rms", "--data", found.data)
    assert ran.returncode == 0, ran.stderr
    x, valve, rms = (line.split() for line in ran.stdout.splitlines())
    assert (x[:3], x[4:6]) == (["bpm/x", "1.5", "mm"], ["min", "ago"])
    assert int(x[3]) >= 3
    assert valve[:2] == ["sr_vac/valve_open", "on"]
    assert rms[:2] == ["bpm/turns.rms", f"{12.5**0.5:.7g}"]
    empty = ringlog("latest", "--json", "sr_rf/power", "--data", found.data)
    assert empty.returncode == 1
    assert json.loads(empty.stdout)[0]["time"] is None
    near = ringlog("latest", "bpm/xx", "bpm/x", "--data", found.data)
    assert near.returncode == 2
    assert "there is no signal bpm/xx" in near.stderr
    assert "did you mean bpm/x.SEVR?" in ringlog("latest", "x.SEV", "--data", found.data).stderr


def test_status_has_a_line_per_table_with_problems_first(found: RunningServer) -> None:
    shown = ringlog("status", "--data", found.data).stdout.splitlines()
    head = next(place for place, line in enumerate(shown) if line.startswith("table "))
    lines = shown[head + 1 : head + 6]
    assert {line.split()[0] for line in lines} == {"bpm", "every_type", "sr_mag_ps", "sr_rf", "sr_vac"}
    assert all(len(line) <= 80 for line in lines)
    states = [line.split()[1] for line in lines]
    assert states == sorted(states, key=lambda state: state == "current")
    refused = ringlog("status", "--watch", "--json", "--data", found.data)
    assert refused.returncode == 2


def test_states_have_their_names(found: RunningServer) -> None:
    for arcs, shown in ((2, "some (2)"), (1, "1")):
        found.sql("update online.sr_rf set time = now(), arcs = %s where seq_no = 3", [arcs])
        ran = ringlog("latest", "sr_rf/arcs", "--data", found.data)
        assert ran.stdout.split("  ")[1].strip() == shown
    found.sql("update online.sr_rf set time = null where seq_no = 3")
