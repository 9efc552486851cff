"""The progress display of a load test: a bar for each step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

# Takes the seconds done so far, and the text beside the bar.
ShowProgress: TypeAlias = Callable[[float, str], None]


class Steps:
    """The steps of an experiment, shown one below the other."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: str) -> None:
        """A line above the next bar."""
        self._console.print(text, soft_wrap=True, highlight=False)

    @contextmanager
    def step(self, name: str, seconds: float) -> Iterator[ShowProgress]:
        """A bar for a step of so many seconds; without bars a line at its start."""
        if not self._console.is_terminal:
            self.say(f"{name} ...")
        columns = TextColumn(f"{name:30}"), BarColumn(bar_width=20), TextColumn("{task.percentage:3.0f} %")
        with Progress(
            *columns, TextColumn("{task.description}"), console=self._console, auto_refresh=False
        ) as progress:
            task = progress.add_task("", total=seconds)

            def show(done: float, text: str) -> None:
                progress.update(task, completed=min(done, seconds), description=text)
                progress.refresh()

            yield show
