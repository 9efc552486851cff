"""Other clocks for programs: libfaketime."""

import subprocess


def faketime() -> str:
    """libfaketime, which sets another time for a program."""
    listed = subprocess.run(["dpkg", "-L", "libfaketime"], capture_output=True, text=True, check=True).stdout
    (library,) = (line for line in listed.splitlines() if line.endswith("/libfaketimeMT.so.1"))
    return library
