"""The experiments, and their results in a folder."""

from pathlib import Path

from ringlog.loadtest import lab
from ringlog.loadtest.experiment import report
from ringlog.loadtest.experiment.chapter import Chapter, chapter
from ringlog.loadtest.experiment.comparison import compare
from ringlog.loadtest.experiment.errors import LoadTestUsageError
from ringlog.loadtest.experiment.outcome import read_outcome
from ringlog.loadtest.spring8 import chapter as spring8
from ringlog.loadtest.spring8.results import EXPERIMENTS as SPRING8
from ringlog.loadtest.spring8.results import read_results


def chapters(folder: Path, pictures: Path) -> list[Chapter]:
    """The chapters of all results in a folder; pictures are drawn into another. Raises LoadTestError."""
    found = [spring8.chapter(result, pictures) for result in read_results(folder, SPRING8)]
    for experiment in lab.EXPERIMENTS:
        file = folder / f"{experiment}.json"
        if file.exists():
            found.append(chapter(read_outcome(file), pictures))
    return found


def write_report_of(folder: Path, earlier: Path | None = None) -> Path:
    """Writes the report of a folder's results, with those of an earlier run; returns its path. Raises
    LoadTestUsageError if one of the folders has none.
    """
    found = demanded(folder, folder)
    beside = None if earlier is None else compare(demanded(earlier, folder), found)
    if earlier is not None:
        # its pictures have the same names
        found = chapters(folder, folder)
    return report.write_report(found, folder, beside)


def demanded(folder: Path, pictures: Path) -> list[Chapter]:
    """The chapters of a folder, at least one."""
    found = chapters(folder, pictures)
    if not found:
        raise LoadTestUsageError(f"{folder} has no results of ringlog loadtest")
    return found
