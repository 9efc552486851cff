"""A machine inside this one: its processes see only each other and their own network."""

import configparser
import os
import pwd
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

BRIDGE = "machines"
_PATIENCE = 60.0
# Paths in the files of `ringlog ha init` that each machine has separately.
_ROOTS = r"(?<![\w./-])/(etc|var/lib|run)/ringlog"
# The account for programs that refuse to run as root. It may pass closed folders, such as those of a virtual
# environment below /root.
_UNPRIVILEGED = "nobody"
# The end of a namespace's first process ends all others; a shell also reaps orphans.
_NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def account() -> str:
    """The account of the machines' programs."""
    return _UNPRIVILEGED if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


def enclosed(command: Sequence[str]) -> list[str]:
    """The command, in a separate network in which it may make machines."""
    own = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return [*_NAMESPACES, *own, *command]


def lay_network(address: str) -> None:
    """The network that machines are on, where this process has the address, as 192.0.2.254/24."""
    for arguments in (
        ("link", "set", "lo", "up"),
        ("link", "add", BRIDGE, "type", "bridge"),
        ("address", "add", address, "dev", BRIDGE),
        ("link", "set", BRIDGE, "up"),
    ):
        _ip(*arguments)


class Host:
    """A machine with the files that `ringlog ha init` has written for it, installed below `folder`."""

    def __init__(self, name: str, address: str, folder: Path) -> None:
        self.name = name
        self.address = address
        self.folder = folder
        self._holder: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def _link(self) -> str:
        # a new one at each start, because the kernel removes the last one later
        return f"{self.name}-{self._starts}"

    def install(self, files: Path) -> None:
        """Takes the files over, with their folders laid below this machine's own."""
        for file in files.rglob("*"):
            if file.is_file():
                path = self.folder / file.relative_to(files)
                path.parent.mkdir(parents=True, exist_ok=True)
                # where a path begins: the programs may lie below a folder with such a name
                text = re.sub(_ROOTS, lambda root: f"{self.folder}{root[0]}", file.read_text())
                path.touch(0o600)
                path.write_text(text)
        (self.folder / "var/lib/ringlog").mkdir(parents=True)
        _give_away(self.folder, *self.folder.rglob("*"))

    def boot(self) -> None:
        """Switches it on. Nothing runs yet."""
        assert self._holder is None
        self._starts += 1
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        (run / "ringlog").mkdir(parents=True)
        _give_away(run, run / "ringlog")
        self._holder = subprocess.Popen(
            [*_NAMESPACES, "sh", "-c", "while :; do sleep 3600; done"],
            stdin=subprocess.DEVNULL,
            # it prints an error when its child is killed
            stderr=subprocess.DEVNULL,
        )
        first = self._first_process()
        inside = f"{self._link}i"
        _ip("link", "add", self._link, "type", "veth", "peer", "name", inside)
        _ip("link", "set", self._link, "master", BRIDGE, "up")
        _ip("link", "set", inside, "netns", str(first))
        for arguments in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{self.address}/24", "dev", inside),
            ("link", "set", inside, "up"),
        ):
            subprocess.run([*self._inside(first), "ip", *arguments], check=True)

    def start(self, unit: str) -> None:
        """Starts the command of a systemd unit, and restarts it like systemd."""
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read(self.folder / "etc/systemd/system" / unit)
        service = parser["Service"]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PG", "RINGLOG"))
        } | {"LC_ALL": "C", "HOME": str(self.folder)}
        if file := service.get("EnvironmentFile"):
            environment |= dict(word.partition("=")[::2] for word in shlex.split(Path(file).read_text()))
        become = []
        if os.geteuid() == 0:
            user = pwd.getpwnam(service["User"])
            become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            become += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
        again = ["sh", "-c", 'while :; do "$@"; sleep 1; done', unit]
        with (self.folder / f"{unit}.log").open("ab") as log:
            subprocess.Popen(
                [*self._inside(self._first_process()), *again, *become, *shlex.split(service["ExecStart"])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment,
            )

    def logs(self) -> str:
        return "\n".join(
            f"== {self.name} {log.name}\n{log.read_text(errors='replace')[-3000:]}"
            for log in sorted(self.folder.glob("*.log"))
        )

    def die(self) -> None:
        """Kills all its processes at once: the end of a namespace's first process ends all others."""
        if self._holder is None:
            return
        psutil.Process(self._first_process()).kill()
        self._holder.wait()
        self._holder = None

    def cut(self) -> None:
        """Cuts it off from the network in both directions. Its processes continue."""
        _ip("link", "set", self._link, "down")

    def mend(self) -> None:
        _ip("link", "set", self._link, "up")

    def _first_process(self) -> int:
        assert self._holder is not None
        until = time.monotonic() + _PATIENCE
        while not (children := psutil.Process(self._holder.pid).children()) or children[0].name() != "sh":
            if time.monotonic() > until:
                raise RuntimeError(f"{self.name} does not come up")
            time.sleep(0.01)
        return children[0].pid

    def _inside(self, first: int) -> list[str]:
        return ["nsenter", "--target", str(first), "--net", "--mount", "--pid", "--"]


def _give_away(*paths: Path) -> None:
    """Gives files to the user under which the machines' programs run."""
    if os.geteuid() == 0:
        user = pwd.getpwnam(_UNPRIVILEGED)
        for path in paths:
            os.chown(path, user.pw_uid, user.pw_gid)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
