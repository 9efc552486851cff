"""docs/measured.md says what the kept results say."""

import re
from pathlib import Path

from ringlog.loadtest.experiment.measured import KEPT, text
from servers import ringlog

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "measured.md"
EXPERIMENTS = {"normal", "max", "ess", "saturation", "sdalinac", "half", "soak"}


def test_the_document_is_made_of_the_kept_results() -> None:
    assert {file.stem for file in KEPT.glob("*.json")} >= EXPERIMENTS
    assert DOCUMENT.read_text() == text()


def test_the_kept_results_are_dated_and_whole() -> None:
    document = DOCUMENT.read_text()
    for part in re.split(r"^## ", document, flags=re.MULTILINE)[1:]:
        assert re.search(r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, ", part, re.MULTILINE)
        assert re.search(r"^ringlog loadtest ", part, re.MULTILINE)
    assert document.count("Nothing was lost: ") >= len(EXPERIMENTS) - 1


def test_a_plan_comes_from_the_kept_results() -> None:
    options = ("--waveforms", "1000", "--points", "10000", "--rate", "14", "--readers", "50")
    done = ringlog("plan", *options, "--results", KEPT)
    assert done.returncode == 0, done.stderr
    assert "14,000 frames/s, 1,120.0 MB/s" in done.stdout
