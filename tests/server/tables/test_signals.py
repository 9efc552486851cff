"""The commands that find signals and print their newest values."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from webs import BPM

from ringlog.commands.signals import signals
from ringlog.schema.relations.sample_tables import merge
from servers import FACILITY, RunningServer, ringlog, serving, sqlalchemy_url


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
    head = next(index for index, line in enumerate(shown) if line.startswith("table "))
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


# --- tables of samples by the commands ---

TABLES_OF_SAMPLES = """
[[table]]
name = "vac"
kind = "samples"
type = "double"
[[table.signal]]
name = "gauge:1"
unit = "mbar"

[[table]]
name = "modes"
kind = "samples"
type = "int"
"""


@pytest.fixture(scope="module")
def facility(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("samples") / "plant.toml"
    file.parent.chmod(0o755)
    file.write_text(TABLES_OF_SAMPLES)
    return file


@pytest.fixture(scope="module")
def own(temporary_directory: Path, facility: Path) -> Iterator[RunningServer]:
    with serving(temporary_directory / "commands", facility=facility) as running:
        yield running


def output(own: RunningServer, *words: str, stdin: str = "", code: int = 0) -> str:
    ran = ringlog(*words, "--data", own.data, stdin=stdin)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def listed(own: RunningServer, *words: str) -> list[list[str]]:
    return [line.split()[:3] for line in output(own, "signal", "list", *words).splitlines()[1:]]


def test_signals_are_added_and_retired(own: RunningServer) -> None:
    assert "2 signals added to vac" in output(own, "signal", "add", "vac", "pump:a", "pump:b", "--unit", "A")
    lines = "gauge:1\n# a comment\npump:c, A, the third\npump:d\n"
    assert "2 signals added to vac, 1 were there already" in output(
        own, "signal", "import", "vac", "-", stdin=lines
    )
    options = ("--unit", "mA", "--limits", "0,9.5", "--held", "--deadband", "0.1")
    assert "2 signals changed" in output(own, "signal", "change", "pump:a", "pump:b", *options)
    assert "1 signal changed" in output(own, "signal", "change", "pump:a", "--limits", "", "--not-held")
    assert "give two numbers" in output(own, "signal", "change", "pump:a", "--limits", "5", code=2)
    assert "nothing to change" in output(own, "signal", "change", "pump:a", code=2)
    assert "in the facility file" in output(own, "signal", "change", "*:1", "--unit", "Pa", code=2)
    with psycopg.connect(own.dsn) as connection:
        now = connection.execute(
            "select signal, unit, limit_high, held from ringlog.find_signals('pump:%') where unit = 'mA'"
        )
        assert now.fetchall() == [("pump:a", "mA", None, False), ("pump:b", "mA", 9.5, True)]
    assert "2 signals paused" in output(own, "signal", "pause", "pump:a", "pump:b")
    assert "1 signal written again" in output(own, "signal", "resume", "pump:b")
    output(own, "signal", "rename", "pump:c", "pump:third")
    assert "1 signal retired" in output(own, "signal", "retire", "*:d")
    assert listed(own, "pump:*") == [
        ["pump:a", "paused", "vac"],
        ["pump:b", "active", "vac"],
        ["pump:d", "retired", "vac"],
        ["pump:third", "active", "vac"],
    ]
    assert "the third" in output(own, "signals", "third")
    # all or none
    assert "is there already, in table vac" in output(own, "signal", "add", "vac", "new", "pump:a", code=2)
    assert output(own, "signal", "list", "new", code=1)
    assert "no table of samples has a signal x" in output(own, "signal", "pause", "x", code=2)
    assert "there is no table of samples 'none'" in output(own, "signal", "add", "none", "x", code=2)


def test_status_and_the_newest_value(own: RunningServer, facility: Path) -> None:
    own.sql("select ringlog.put_vac('gauge:1', now(), 0.5)")
    status = json.loads(output(own, "status", "--json"))
    (table,) = [each for each in status["tables"] if each["table_name"] == "vac"]
    assert (table["cycle"], table["silent"], table["unread"]) == (None, None, None)
    assert table["age"] < 600
    assert "vac" in output(own, "status")
    assert output(own, "node", "list").rstrip().endswith("; 2 tables: modes, vac")
    assert output(own, "latest", "gauge:1").split()[:3] == ["gauge:1", "0.5", "mbar"]
    assert "vac: samples of double, 1 signals listed" in ringlog("facility", "check", facility).stdout
    assert "no difference" in output(own, "facility", "diff", str(facility))


def test_an_old_value_has_the_name_of_its_time(own: RunningServer) -> None:
    output(own, "signal", "add", "modes", "valve")
    output(own, "signal", "change", "valve", "--states", "0=off,1=on")
    own.sql("select ringlog.put_modes('valve', now(), 1)")
    output(own, "signal", "change", "valve", "--states", "0=closed,1=open", "--unit", "deg")
    assert output(own, "latest", "valve").split()[:3] == ["valve", "on", "(1)"]
    (shown,) = json.loads(output(own, "latest", "valve", "--json"))
    assert (shown["value"], shown["unit"], shown["states"]) == (1, "", {"0": "off", "1": "on"})


def test_housekeeping_merges_the_blocks_of_hours_that_are_over(own: RunningServer) -> None:
    with psycopg.connect(own.dsn, autocommit=True) as connection:
        for second in range(20):
            time = f"2026-03-02 12:00:{second:02}Z"
            connection.execute("select ringlog.put_vac('gauge:1', %s::timestamptz, %s)", [time, second])
        engine = sa.create_engine(sqlalchemy_url(own.dsn))
        merge(engine)
        engine.dispose()
        march = "time < '2026-04-01'"
        assert connection.execute(f"select n from weeks.vac where {march}").fetchall() == [(20,)]
        assert connection.execute(f"select sum(value) from log.vac where {march}").fetchone() == (190.0,)


def test_an_archivist_changes_signals_and_nothing_else(own: RunningServer) -> None:
    output(own, "user", "add", "keeper", "--archivist", "--password-stdin", stdin="keep-Ω-5")
    dsn = psycopg.conninfo.make_conninfo(own.dsn, user="keeper", password="keep-Ω-5")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select ringlog.add_signal('vac', 'kept')")
        for refused in ("select ringlog.put_vac('kept', now(), 1)", "select * from log.vac"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(refused.encode())
    assert listed(own, "kept") == [["kept", "active", "vac"]]
    assert "keeper" in output(own, "signal", "list", "kept")


def test_verify_names_tables_of_samples(own: RunningServer) -> None:
    assert [line for line in output(own, "verify").splitlines() if line.startswith("table ")] == [
        "table modes",
        "table vac",
    ]
