"""Options of commands."""

from typing import Any

import typer


def option(*names: str, metavar: str, help: str, **more: Any) -> Any:
    """An option whose help says what its absence means, so that its default is not shown."""
    return typer.Option(*names, metavar=metavar, show_default=False, help=help, **more)
