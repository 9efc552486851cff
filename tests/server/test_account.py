"""The account that PostgreSQL runs under when root starts the server."""

import os
import subprocess
import sys
from pathlib import Path

STARTS = 8
_ETC_WITHOUT_THE_ACCOUNT = """
cp -a /etc "$1" 2>/dev/null || [ -e "$1/passwd" ]  # not every file of it may be read
mount --bind "$1" /etc
for file in passwd group shadow gshadow; do
  [ ! -e /etc/$file ] || sed -i '/^ringlog:/d' /etc/$file
done
shift
exec "$@"
"""
_FIRST_STARTS = f"""
import pwd, subprocess, sys
start = '''
from pathlib import Path
from ringlog.server.embedded.account import account_for
print(account_for(Path("/nonexistent/data")).uid)
'''
command = [sys.executable, "-c", start]
starts = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range({STARTS})]
print(*(each.communicate()[0].strip() for each in starts))
print(pwd.getpwnam("ringlog").pw_uid)
"""


def test_first_starts_at_one_moment_share_an_account(tmp_path: Path) -> None:
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", "--mount", *as_root, "sh", "-eu", "-c", _ETC_WITHOUT_THE_ACCOUNT]
    command += ["sh", str(tmp_path / "etc")]
    command += [sys.executable, "-c", _FIRST_STARTS]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    uids, known = answer.splitlines()
    assert uids.split() == [known] * STARTS
