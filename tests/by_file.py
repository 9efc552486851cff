"""How several workers share the tests (`pytest -n 2`)."""

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

# Folders whose files are one conversation, or share servers that take long to make.
WHOLE = ("compat", "machines")


class ByFile(LoadScopeScheduling):
    """A file, or a whole folder, goes to one worker: it has the fixtures of the others by itself."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.split("::")[0])
        return str(path.parent if path.parent.name in WHOLE else path)
