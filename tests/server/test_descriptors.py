"""The server raises its limit of open files: each client needs one."""

import subprocess
import sys

import pytest

from waiting import PATIENCE

SHOWN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
from ringlog.server.processes.descriptors import raise_file_limit
raise_file_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard"), [(100, 512), (512, 512)])
def test_the_soft_limit_becomes_the_hard_one(soft: int, hard: int) -> None:
    command = [sys.executable, "-c", SHOWN, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split() == [str(hard), str(hard)], done.stderr
