"""The result of each run, a file beside what its experiment wrote, and which results are of one family."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ringlog_lab
from ringlog.loadtest.experiment.errors import LoadTestError, LoadTestUsageError
from ringlog.loadtest.experiment.outcome import read_json, write_json
from ringlog_lab.papers.runs import Run

_SOURCES = Path(ringlog_lab.__file__).parents[2]
MEASURED = ("gateway", "procedures", "schema", "ringlog", "loader", "clients", "history", "retrieval")
"""Folders of the sources whose change makes other figures."""


@dataclass(frozen=True)
class Result:
    """A run that came to its end, every acknowledged row found."""

    run: str
    paper: str
    command: str
    version: str
    commit: str
    began: str
    """UTC"""
    seconds: float
    """of each load"""
    took: float
    """seconds of the whole run"""
    load_before: float
    load_after: float
    others: float
    """cores that processes outside the run took, on average"""
    remark: str = ""
    """why it is no figure: such a result is never joined"""

    def write(self, folder: Path) -> None:
        """Writes it into a folder of runs, all of it or nothing."""
        new = folder / f"{self.run}.new"
        write_json(self, new)
        new.replace(folder / f"{self.run}.json")


@dataclass(frozen=True)
class Family:
    """Results that belong together: of commits between which nothing that is measured changed, or of one
    commit and all after it."""

    since: str | None = None
    sources: Path = _SOURCES

    def commit(self) -> str:
        return self._git("rev-parse", "--short=8", "HEAD")

    def uncommitted(self) -> str:
        """Changed files that no commit has."""
        changed = [line[3:] for line in self._git("status", "--porcelain", "--", *MEASURED).splitlines()]
        return f"files that no commit has are measured: {', '.join(changed[:3])}" if changed else ""

    def has(self, commit: str) -> bool:
        if self.since is not None:
            return self._is("merge-base", "--is-ancestor", self.since, commit)
        return self._is("diff", "--quiet", commit, "--", *MEASURED)

    def result(
        self, folder: Path, run: Run, seconds: float | None = None, busy: bool = False
    ) -> Result | None:
        """The run's result of this family, if there is one. `busy`: one of a busy machine counts, too."""
        file = folder / f"{run.name}.json"
        if not file.exists():
            return None
        found = read_json(file, Result)
        wanted = found.command == run.command(seconds) and (busy or not found.remark)
        return found if wanted and self.has(found.commit) else None

    def results(self, folder: Path, runs: Sequence[Run]) -> dict[str, Result]:
        return {run.name: found for run in runs if (found := self.result(folder, run))}

    def _is(self, *words: str) -> bool:
        done = self._run(*words)
        if done.returncode > 1:
            raise LoadTestUsageError(f"git {' '.join(words[:3])}: {done.stderr.strip()}")
        return not done.returncode

    def _git(self, *words: str) -> str:
        done = self._run(*words)
        if done.returncode:
            raise LoadTestError(f"papers are measured from ringlog's repository: {done.stderr.strip()}")
        return done.stdout.rstrip("\n")

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["git", "-C", self.sources, *words], capture_output=True, text=True)
