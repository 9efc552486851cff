"""Pictures of the page, by a Chromium that the machine may have."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def screenshot(url: str, file: Path, *, width: int = 1400, height: int = 1000, seconds: float = 60.0) -> bool:
    """Writes a picture (PNG) of a page of this machine. False if no working Chromium is installed."""
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        return False
    with tempfile.TemporaryDirectory(prefix="ringlog-chromium-", ignore_cleanup_errors=True) as profile:
        command = [program, *_QUIET, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # its sandbox refuses root; it sees this machine's page only
        # the page's clock advances by this many milliseconds while its requests are answered
        command += ["--virtual-time-budget=8000", f"--screenshot={file.resolve()}", url]
        try:
            subprocess.run(command, capture_output=True, timeout=seconds, check=True)
        except (OSError, subprocess.SubprocessError):
            return False
    return file.exists()
