"""Answers of closed time, kept in memory or in a folder. The server confirms each by its ETag."""

from collections import OrderedDict
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 256 << 20
"""The most bytes of tables in memory; the oldest go first."""
_TAG = b"ringlog.etag"


class Answers:
    """Tables with the tags of their answers, by request. Those in memory belong to the process, those in a
    folder stay until they are deleted."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()
        self._lock = Lock()

    def find(self, request: str) -> "tuple[str, pa.Table] | None":
        """The tag and the table of a request; None if there is no complete one."""
        import pyarrow as pa

        if self._folder is None:
            found = self._tables.get(request)
        else:
            found = None
            with suppress(OSError, pa.ArrowInvalid):
                found = pa.ipc.open_stream(pa.memory_map(str(self._file(request)))).read_all()
        if found is None:
            return None
        metadata = {**found.schema.metadata}
        return metadata.pop(_TAG).decode(), found.replace_schema_metadata(metadata)

    def keep(self, request: str, tag: str, table: "pa.Table") -> None:
        """Keeps a table; other processes may use the same folder. Raises OSError."""
        import pyarrow as pa

        tagged = table.replace_schema_metadata({**(table.schema.metadata or {}), _TAG: tag.encode()})
        if self._folder is None:
            with self._lock:
                self._tables.pop(request, None)
                self._tables[request] = tagged
                while sum(each.nbytes for each in self._tables.values()) > MOST_BYTES:
                    self._tables.popitem(last=False)
            return
        import tempfile

        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".unfinished", delete=False) as file:
            made = Path(file.name)
            try:
                with pa.ipc.new_stream(file, tagged.schema) as stream:
                    stream.write_table(tagged)
                file.flush()
                made.replace(self._file(request))
            finally:
                made.unlink(missing_ok=True)

    def _file(self, request: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{sha256(request.encode()).hexdigest()[:40]}.arrows"
