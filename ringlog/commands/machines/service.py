"""The commands `ringlog service`: ringlog as a service of systemd."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from ringlog.errors import ServerError, UsageError
from ringlog.loader.cli import option
from ringlog.server.embedded.account import SYSTEM_ACCOUNT, Account, system_account
from ringlog.server.processes import systemd

service_app = typer.Typer(help="Run ringlog as a service of systemd.", no_args_is_help=True)

_FOLDERS = {
    "serve": ("--data", "data", "/var/lib/ringlog"),
    "load": ("--spool", "spool", "/var/lib/ringlog-spool"),
}
"""The folder of each command's files: option, parameter, and default."""
_PATHS = ("path", "file", "directory")
"""names of the types of parameters that are paths"""
_NAMES = {"serve": "ringlog", "load": "ringlog-load"}

_Name = Annotated[
    str | None, option("--name", metavar="NAME", help="The service. Default: ringlog, or ringlog-load.")
]


@service_app.command("install")
def service_install(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="-- serve|load OPTIONS", help="The command that the service runs, after two hyphens."
        ),
    ],
    name: _Name = None,
    shows: Annotated[
        bool, typer.Option("--print", help="Print the unit, and change nothing on this machine.")
    ] = False,
) -> None:
    """Run `ringlog serve` or `ringlog load` as a service, from now on and at every boot.

    Makes the account ringlog and the folder of the data, writes the unit, enables and starts it. Repeat it
    with other options to change the service.
    """
    if arguments[0] not in systemd.COMMANDS:
        raise UsageError(f"a service runs ringlog {' or '.join(systemd.COMMANDS)}, not {arguments[0]!r}")
    command = arguments[0]
    option, parameter, folder = _FOLDERS[command]
    chosen = _parsed(command, arguments[1:])
    given = chosen.get(parameter)
    # with --dsn the data are elsewhere
    if given is None and not chosen.get("dsn"):
        arguments = [*arguments, option, folder]
        given = Path(folder)
    paths = [value for value in chosen.values() if isinstance(value, Path)]
    for path in (*paths, *([given] if given else [])):
        if not path.is_absolute():
            raise UsageError(f"{path}: a service needs an absolute path")
    program = Path(sys.argv[0]).resolve()
    name = _checked(name or _NAMES[command])
    if shows:
        print(systemd.unit(program, arguments, SYSTEM_ACCOUNT, given), end="")
        return
    if os.geteuid() != 0:
        raise UsageError("only root can install a service: use sudo, or --print to see the unit")
    account = system_account()
    _demand(account, "x", program)
    for path in paths:
        if path != given:
            _demand(account, "r", path)
    if given:
        _give(account, given)
    if systemd.install(name, systemd.unit(program, arguments, account.name, given)):
        print(f"{name} runs: systemctl status {name}, journalctl -u {name}")
        return
    print(f"{systemd.UNITS}/{name}.service is written, but systemd does not run here. When it runs:")
    print(f"  systemctl daemon-reload\n  systemctl enable --now {name}")


@service_app.command("remove")
def service_remove(name: _Name = None) -> None:
    """Stop the service and remove its unit. The data remain."""
    name = _checked(name or _NAMES["serve"])
    if os.geteuid() != 0:
        raise UsageError("only root can remove a service: use sudo")
    systemd.remove(name)
    print(f"{name} is removed; its data remain")


def _parsed(command: str, arguments: list[str]) -> dict[str, Any]:
    """The parameters of a command. Raises what the command raises for wrong ones."""
    from ringlog.cli import app

    group: Any = get_command(app)
    found = group.get_command(None, command)
    parameters: dict[str, Any] = found.make_context(command, [*arguments], parent=None).params
    # typer converts texts to paths only when it calls the command
    for parameter in found.params:
        if parameter.type.name in _PATHS and parameters.get(parameter.name):
            parameters[parameter.name] = Path(parameters[parameter.name])
    return parameters


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.@-]{1,200}", name):
        raise UsageError(f"{name!r} cannot be the name of a service: use letters, digits and . _ @ -")
    return name


def _demand(account: Account, right: str, path: Path) -> None:
    if not path.exists():
        raise UsageError(f"{path} does not exist")
    barrier = account.barrier(path)
    if barrier or not account.can(right, path):
        verb = "run" if right == "x" else "read"
        where = f": it may not enter {barrier}" if barrier else ""
        raise ServerError(
            f"the account {account.name} may not {verb} {path}{where}. "
            + ("Install ringlog where it may, as in /opt/ringlog" if right == "x" else "Give it the right to")
        )


def _give(account: Account, folder: Path) -> None:
    """Make a folder that the account owns."""
    if not folder.exists():
        account.make_folder(folder)
    elif folder.stat().st_uid != account.uid:
        raise ServerError(
            f"{folder} does not belong to the account {account.name}: chown -R {account.name} {folder}"
        )
