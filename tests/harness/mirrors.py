"""A `ringlog mirror` between two servers, for tests."""

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prepared_python import RINGLOG, Command

from servers import free_port
from waiting import PATIENCE, wait_until


@dataclass(frozen=True)
class RunningMirror:
    """A `ringlog mirror` process."""

    host: str
    port: int
    report: Path
    control: Path
    metrics: int

    def lines(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.report.read_text().splitlines()]

    def count(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=PATIENCE) as answer:
            text = str(answer.read(), "utf-8")
        found = [line for line in text.splitlines() if line.startswith(f"ringlog_mirror_{name} ")]
        return float(found[0].rsplit(" ", 1)[1]) if found else 0.0

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Waits until the condition holds: the shadow is later than the clients."""
        wait_until(is_so)


@contextmanager
def mirroring(folder: Path, old: str, new: str) -> Iterator[RunningMirror]:
    report, metrics = folder / "report.jsonl", free_port()
    command = [RINGLOG, "mirror", "--listen", "127.0.0.1:0", "--old", f"tds://{old}", "--new", f"tds://{new}"]
    command += ["--report", str(report), "--metrics", f"127.0.0.1:{metrics}"]
    with Command([str(word) for word in command], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            host, port = process.stdout.readline().removeprefix("mirror on ").split(": ")[0].rsplit(":", 1)
            yield RunningMirror(host, int(port), report, folder / "report.jsonl.socket", metrics)
        finally:
            process.terminate()
            process.wait()
