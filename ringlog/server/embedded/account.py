"""The account PostgreSQL runs under, since it refuses to run as root."""

import fcntl
import logging
import os
import pwd
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ringlog.errors import ServerError
from ringlog.history.archive.file_owner import give_files_to

log = logging.getLogger(__name__)

SYSTEM_ACCOUNT = "ringlog"
_ACCOUNTS = Path("/etc")
"""where the accounts' files are"""


@dataclass(frozen=True)
class Account:
    """A user of this machine that runs programs and owns their files."""

    name: str
    uid: int
    gid: int

    @property
    def is_self(self) -> bool:
        return self.uid == os.geteuid()

    def popen(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        output: IO[bytes] | int,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a program under this account, in a process group of its own, out of reach of Ctrl-C.
        `variables` are further ones of its environment."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=environment | {"LC_ALL": "C", "HOME": str(cwd)} | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            umask=0o077,
            start_new_session=True,
            user=None if self.is_self else self.uid,
            group=None if self.is_self else self.gid,
            extra_groups=None if self.is_self else [],
        )

    def run(
        self, command: Sequence[str], *, cwd: Path = Path("/"), variables: Mapping[str, str] | None = None
    ) -> str:
        """Runs a program to its end and returns what it wrote. Raises ServerError when it fails."""
        with self.popen(command, cwd=cwd, output=subprocess.PIPE, variables=variables) as process:
            output = process.communicate()[0].decode(errors="replace")
        if process.returncode != 0:
            raise ServerError(f"{Path(command[0]).name} failed: {output.strip() or process.returncode}")
        return output

    def can(self, right: str, path: Path) -> bool:
        """Whether the account has the right ("r", "w" or "x") to a path, as the kernel decides."""
        command = ["/usr/bin/test", f"-{right}", str(path)]
        # the failure of a preloaded library would be taken for "no"
        alone = {"LD_PRELOAD": ""}
        with self.popen(command, cwd=Path("/"), output=subprocess.DEVNULL, variables=alone) as process:
            status = process.wait()
        if status not in (0, 1):
            raise ServerError(f"{' '.join(command)} failed: {status}")
        return status == 0

    def barrier(self, path: Path) -> Path | None:
        """The first folder on the way to `path` that the account cannot pass, if there is one."""
        return next((folder for folder in reversed(path.parents) if not self.can("x", folder)), None)

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Accesses files with the account's rights inside the with block.

        Root must not write where an unprivileged account could have laid links to other files.
        """
        if self.is_self:
            yield
            return
        group, mask = os.getegid(), os.umask(0o077)
        os.setegid(self.gid)
        os.seteuid(self.uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(group)
            os.umask(mask)

    def own(self, path: Path) -> None:
        """Gives a file or folder to the account."""
        if not self.is_self:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def make_folder(self, folder: Path) -> None:
        """Makes a folder and its missing parents, which the account can enter."""
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=0o700)
            self.own(each)


def give_archive(data: Path | None) -> None:
    """Makes the account that HTTP runs under the owner of archive files that root writes: the owner of an
    embedded database's data directory, otherwise the system account if it exists."""
    if os.geteuid() != 0:
        return
    with suppress(KeyError):
        account = _account(pwd.getpwnam(SYSTEM_ACCOUNT)) if data is None else account_for(data)
        give_files_to(account.uid, account.gid)


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def account_for(data: Path) -> Account:
    """The account that PostgreSQL runs under on a data directory (which need not exist yet).

    Other users run it under their own account. Root runs it as the directory's owner, and gives a new
    directory to the system account `ringlog`, which is made when it is missing. Raises ServerError for a
    directory of another user.
    """
    try:
        owner = data.stat().st_uid
    except FileNotFoundError:
        owner = os.geteuid()
    except OSError as error:
        raise ServerError(f"{data} cannot be the data directory ({error.strerror}): choose another") from None
    try:
        if os.geteuid() != 0:
            if owner != os.geteuid():
                raise ServerError(
                    f"{data} belongs to {pwd.getpwuid(owner).pw_name}: run this as that user or as root"
                )
            return _account(pwd.getpwuid(owner))
        return _account(pwd.getpwuid(owner)) if owner != 0 else system_account()
    except KeyError:
        raise ServerError(
            f"user number {owner} has no entry in the passwd file; PostgreSQL needs one"
        ) from None


def system_account() -> Account:
    """The account `ringlog`, which root makes when it is missing. Raises ServerError."""
    try:
        return _account(pwd.getpwnam(SYSTEM_ACCOUNT))
    except KeyError:
        pass
    # Of two concurrent useradd the later changes the account's number: files made meanwhile lose their owner.
    with _alone(_ACCOUNTS):
        try:
            return _account(pwd.getpwnam(SYSTEM_ACCOUNT))
        except KeyError:
            return _make_system_account()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the folder against other processes inside the with block."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_system_account() -> Account:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    command += ["--shell", "/usr/sbin/nologin", SYSTEM_ACCOUNT]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        reason = "there is no useradd"
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip()
    else:
        log.info("created the system account %s, because PostgreSQL does not run as root", SYSTEM_ACCOUNT)
        return _account(pwd.getpwnam(SYSTEM_ACCOUNT))
    raise ServerError(
        f"PostgreSQL does not run as root and the account {SYSTEM_ACCOUNT} could not be made ({reason}): "
        "make it, or run ringlog as another user"
    )
