"""Commands of the distribution ringlog-lab, which is installed from ringlog's sources by `make lab`."""

from importlib import import_module

import typer

PACKAGE = "ringlog_lab"
EXPERIMENTS = {
    "ess": "ringlog_lab.ess.command:ess",
    "saturation": "ringlog_lab.ess.command:exhausted",
    "sdalinac": "ringlog_lab.sdalinac.command:sdalinac",
    "half": "ringlog_lab.half.command:half",
    "soak": "ringlog_lab.soak.command:soak",
    "turns": "ringlog_lab.soak.turns:turns",
}
"""The experiments of the other papers, in the order of a report."""
_ANY = {"ignore_unknown_options": True, "allow_extra_args": True}


def installed() -> bool:
    try:
        import_module(PACKAGE)
    except ModuleNotFoundError:
        return False
    return True


def add(app: typer.Typer, name: str, where: str) -> None:
    """Adds a command of the lab: `ringlog_lab.bench.command:bench` is a function of a module. If the lab is
    not installed, the command prints how to install it."""
    if installed():
        module, _, function = where.partition(":")
        app.command(name)(getattr(import_module(module), function))
    else:
        app.command(name, context_settings=_ANY)(_missing)


def _missing(_context: typer.Context) -> None:
    """Part of ringlog-lab, which is not installed."""
    raise ModuleNotFoundError(name=PACKAGE)
