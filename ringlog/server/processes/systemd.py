"""Commands of ringlog as services of systemd.

Quoting in units: systemd.service(5), "Command lines"; `%` is systemd.unit(5)'s for specifiers.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ringlog.errors import ServerError
from ringlog.machines.units import unit_text

UNITS = Path("/etc/systemd/system")
_RUNNING = Path("/run/systemd/system")
"""exists where systemd is the first process: sd_booted(3)"""
_MARK = "# Written by `ringlog service install`, which replaces this file."

_ABOUT = {
    "serve": ("ringlog data logger", ("Type=exec", "Restart=on-failure")),
    "load": ("ringlog writers", ("Type=notify", "WatchdogSec=60", "Restart=always")),
}
COMMANDS = tuple(_ABOUT)
"""The commands that can be services."""


def unit(program: Path, arguments: Sequence[str], account: str, folder: Path | None) -> str:
    """The text of the unit that runs `ringlog` with these arguments, of which the first is one of COMMANDS.
    `folder`: where it has its files."""
    about, lines = _ABOUT[arguments[0]]
    if arguments[0] == "load":
        reload = " ".join(map(_quoted, (str(program), "reload", "--spool", str(folder))))
    else:
        # reads certificates again
        reload = "/bin/kill -HUP $MAINPID"
    text = unit_text(
        about,
        "network-online.target",
        account,
        f"ExecStart={' '.join(map(_quoted, (str(program), *arguments)))}",
        f"ExecReload={reload}",
        *lines,
        "RestartSec=2",
        # recovery after a crash and the last checkpoint can take long
        "TimeoutStartSec=infinity",
        "TimeoutStopSec=infinity",
        # the first process stops the others itself
        "KillMode=mixed",
        # writers' calls have precedence
        "LimitNICE=-10",
        "UMask=0077",
        "NoNewPrivileges=yes",
    )
    return f"{_MARK}\n{text}"


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if word and not set(word) & set(" \t'\"\\;") else f'"{escaped}"'


def install(name: str, text: str) -> bool:
    """Writes a unit, and starts its service, now and with the machine. Whether systemd runs here: otherwise
    the unit is only written. Raises ServerError for a unit that somebody else has written."""
    path = _path(name)
    if path.exists() and not path.read_text().startswith(_MARK):
        raise ServerError(f"{path} was not written by ringlog: remove it, or choose another --name")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)
    return _systemctl(("daemon-reload",), ("enable", path.name), ("restart", path.name))


def remove(name: str) -> None:
    """Stops a service and removes its unit. Raises ServerError."""
    path = _path(name)
    if not path.exists():
        raise ServerError(f"there is no {path}")
    if not path.read_text().startswith(_MARK):
        raise ServerError(f"{path} was not written by ringlog: it stays")
    _systemctl(("disable", "--now", path.name))
    path.unlink()
    _systemctl(("daemon-reload",))


def _path(name: str) -> Path:
    return UNITS / f"{name}.service"


def _systemctl(*commands: Sequence[str]) -> bool:
    if not _RUNNING.exists():
        return False
    for command in commands:
        done = subprocess.run(["systemctl", *command], capture_output=True, text=True)
        if done.returncode != 0:
            raise ServerError(f"systemctl {' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return True
