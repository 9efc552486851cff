"""How several workers share the tests (`pytest -n 2`)."""

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

# Folders whose files belong together, or share servers that take long to start.
WHOLE = ("compat", "machines")


class ByFile(LoadScopeScheduling):
    """A file, or a whole folder, is run by one worker, which makes its own fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.split("::")[0])
        return str(path.parent if path.parent.name in WHOLE else path)
