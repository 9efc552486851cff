"""The common parts of an experiment's command: options, a folder, Ctrl-C."""

import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from ringlog.loader.cli import option
from ringlog.loadtest.experiment.errors import LoadTestUsageError

Time = Annotated[str, typer.Option("--time", metavar="T", help="How long each load lasts: 90s, 120min, 14d.")]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default="temporary",
        help="Folder for the temporary server's data, removed at the end; a long load needs much space.",
    ),
]
Output = Annotated[
    Path, typer.Option(metavar="DIR", help="Folder of the report, which covers all experiments found there.")
]
Compare = Annotated[
    Path | None, option(metavar="DIR", help="The output folder of an earlier run to compare with.")
]
OUTPUT = Path(".loadtest")


def command_line() -> str:
    """The command in a form that can be typed again."""
    return shlex.join(["ringlog", *sys.argv[1:]])


@contextmanager
def temporary_folder(prefix: str = "ringlog-loadtest-") -> Iterator[Path]:
    """A temporary folder that PostgreSQL's account can reach. It is removed also after Ctrl-C."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        shutil.rmtree(folder)
        signal.signal(signal.SIGINT, before)


def interrupt_once() -> None:
    """From now on Ctrl-C interrupts once: the cleanup after it cannot be interrupted."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    # a shell that runs a command in the background ignores it
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)


def start_load(module: str, options: str, password: str) -> "subprocess.Popen[str]":
    """Starts a module as a process of a load: the options are its argument, the password its first input."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdin is not None
    process.stdin.write(f"{password}\n")
    process.stdin.flush()
    return process


@contextmanager
def interruptible() -> Iterator[None]:
    """After Ctrl-C a command ends with one line and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        print("ringlog: interrupted", file=sys.stderr, flush=True)
        raise typer.Exit(130) from None


def numbers(option: str, text: str) -> list[int]:
    """Integers above 0, in order. Raises LoadTestUsageError."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and int(word) > 0 for word in words):
        raise LoadTestUsageError(f"{option} '{text}' is not a list of whole numbers such as 10,100")
    return sorted({int(word) for word in words})


def names(option: str, text: str | None, known: tuple[str, ...]) -> list[str]:
    """The known names in a list, in the order of the known names; without a list all. Raises
    LoadTestUsageError."""
    if text is None:
        return [*known]
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in known:
            raise LoadTestUsageError(f"{option} '{word}' is not one of {', '.join(known)}")
    return [name for name in known if name in words]
