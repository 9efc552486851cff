"""The experiments, and their results in a folder."""

from pathlib import Path

from ringlog.loadtest import lab
from ringlog.loadtest.experiment.comparison import compare
from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.experiment.outcome import Outcome, read_outcome
from ringlog.loadtest.experiment.report import write_report
from ringlog.loadtest.spring8.outcome import outcome_of
from ringlog.loadtest.spring8.results import EXPERIMENTS, read_results


def outcomes(folder: Path) -> list[Outcome]:
    """All results in a folder. Raises LoadTestError; LoadTestUsageError if there is none."""
    files = [file for name in lab.EXPERIMENTS if (file := folder / f"{name}.json").exists()]
    found = [*map(outcome_of, read_results(folder, EXPERIMENTS)), *map(read_outcome, files)]
    if not found:
        raise LoadTestUsageError(f"{folder} has no results of ringlog loadtest")
    return found


def write_report_of(folder: Path, earlier: Path | None = None) -> Path:
    """Writes the report of a folder's results, compared with those of an earlier run; returns its path.
    Raises LoadTestError, LoadTestUsageError."""
    found = outcomes(folder)
    return write_report(found, folder, None if earlier is None else compare(outcomes(earlier), found))
