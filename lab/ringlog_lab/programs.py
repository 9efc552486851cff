"""The C programs of the experiments."""

from pathlib import Path

from ringlog.loadtest.experiment import native

_SOURCES = Path(__file__).parent / "native"


def build(folder: Path) -> Path:
    """Builds pgload, tdsload, tdsread and repeating_proxy into a folder and returns it. Raises
    LoadTestError naming the package that is missing."""
    return native.build(folder, _SOURCES)
