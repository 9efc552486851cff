"""Writes the site of this version, to be committed with its release (CONTRIBUTING.md)."""

from importlib.metadata import version
from pathlib import Path

from releases.site import save

if __name__ == "__main__":
    file = Path(__file__).with_name(f"{version('ringlog')}.tar.xz")
    save(file)
    print(f"{file}: {file.stat().st_size / 1024:.0f} KB")
