"""A client of the benchmark as a process that answers each line of input by a line."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ringlog.loadtest.experiment.errors import LoadTestError


@contextmanager
def asking(command: Sequence[str], password: str, name: str) -> Iterator[Callable[[str], str]]:
    """Starts the process, whose first line of input is the password, and yields a function that sends a line
    and returns the answer.

    At the end it may end by itself; after an error it is killed. Raises LoadTestError with its stderr when it
    does not answer.
    """
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None

        def answer(line: str) -> str:
            try:
                stdin.write(line + "\n")
            except BrokenPipeError:
                pass
            else:
                if reply := stdout.readline():
                    return reply
            raise LoadTestError(f"{name}: {stderr.read().strip() or 'it ended'}")

        try:
            answer(password)
            yield answer
            stdin.close()
        except BaseException:
            process.kill()
            raise


def answer_lines(ready: threading.Barrier, failures: Sequence[str], figures: Callable[[], str]) -> None:
    """The loop of the started process: it prints `ready` once all its threads have reached the barrier, then
    its figures for each line of input. If threads have failed, it ends with their errors.
    """
    try:
        ready.wait(120)
    except threading.BrokenBarrierError:
        sys.exit("; ".join(failures) or "no answer within 120 s")
    print("ready", flush=True)
    for _ in sys.stdin:
        if failures:
            sys.exit("; ".join(failures))
        print(figures(), flush=True)
