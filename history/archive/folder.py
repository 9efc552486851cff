"""The archive's folder, on this machine or in an object store, by pyarrow's file systems."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from ringlog.history.archive.file_owner import give

_CHUNK = 1 << 20  # bytes read at once for a digest

_KEYS = "the keys of S3 are in the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"

_ASIDE = "_replaced"  # Spark ignores names with a leading _, and `*.parquet` does not match in subfolders


def aside(name: str) -> str:
    """The name of a file that is set aside."""
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}{_ASIDE}/{file}"


class Damaged(Exception):
    """A file of the archive is missing or differs from the one written."""


class Unreadable(Damaged):
    """The operating system or the object store refuses to read a file, which may be intact."""


class Folder:
    """Files by their names below a folder: `/data/archive`, or `s3://bucket/folder` with pyarrow's options.

    Options of S3, as `endpoint_override`, follow a question mark, its keys are in the environment:
    https://arrow.apache.org/docs/python/filesystems.html
    """

    def __init__(self, where: str) -> None:
        self.where = where
        if where.startswith("/"):
            self._files: fs.FileSystem = fs.LocalFileSystem()
            self._root = where.rstrip("/")
        else:
            self._files, self._root = fs.FileSystem.from_uri(where)

    def __str__(self) -> str:
        return self.where

    @contextmanager
    def created(self, name: str) -> Iterator[pa.NativeFile]:
        """A new file to write, visible under its name when all of it is on the disk."""
        path = self._path(name)
        # an object store shows an object only when it is complete
        written = f"{path}.new" if self._is_local else path
        self._make(os.path.dirname(path))
        with self._files.open_output_stream(written) as stream:
            yield stream
        if self._is_local:
            give(written)
            _sync(written)
            os.replace(written, path)
            for folder in (os.path.dirname(path), self._root):
                _sync(folder)  # the name must survive a power failure, as the content does

    @contextmanager
    def opened(self, name: str) -> Iterator[pa.NativeFile]:
        """A file for random reads, also one that is set aside. Raises Damaged when there is none."""
        try:
            file = self._files.open_input_file(self._path(name))
        except OSError as error:
            try:
                file = self._files.open_input_file(self._path(aside(name)))
            except OSError:
                if isinstance(error, FileNotFoundError):
                    raise Damaged(f"{self.where}/{name}: {error}") from error
                keys = "" if self._is_local else f" ({_KEYS})"
                raise Unreadable(f"{self.where}/{name} cannot be read: {error}{keys}") from error
        with file:
            yield file

    def copy(self, other: "Folder", name: str) -> None:
        """Copies a file of another folder, in place of one with its name. Raises Damaged."""
        with other.opened(name) as file, self.created(name) as stream:
            while chunk := file.read(_CHUNK):
                stream.write(chunk)

    def exists(self, name: str) -> bool:
        return bool(self._files.get_file_info(self._path(name)).type == fs.FileType.File)

    def size(self, name: str) -> int:
        return int(self._files.get_file_info(self._path(name)).size)

    def delete(self, name: str) -> None:
        if self.exists(name):
            self._files.delete_file(self._path(name))

    def rename(self, name: str, other: str) -> None:
        self._move(name, other)

    def set_aside(self, name: str) -> None:
        """Moves a file out of the archive's pattern; `opened` still finds it by its name."""
        self._move(name, aside(name))

    def put_back(self, name: str) -> None:
        self._move(aside(name), name)

    def _move(self, name: str, other: str) -> None:
        if not self.exists(name):
            return  # moved already, before a crash
        folders = [os.path.dirname(self._path(each)) for each in (other, name)]
        self._make(folders[0])
        self._files.move(self._path(name), self._path(other))
        if self._is_local:
            for folder in (*folders, os.path.dirname(folders[0])):
                _sync(folder)

    def _make(self, folder: str) -> None:
        missing = []
        if self._is_local:
            missing = [each for each in (Path(folder), *Path(folder).parents) if not each.exists()]
        self._files.create_dir(folder, recursive=True)
        for made in missing:
            give(made)

    def give(self, name: str) -> None:
        """Gives a folder and all in it to the account to which new files of this process belong."""
        if self._is_local:
            for path in (Path(self._path(name)), *Path(self._path(name)).rglob("*")):
                give(path)

    def names(self) -> Iterator[tuple[str, float]]:
        """Each file, and when it was written (seconds since 1970)."""
        everything = fs.FileSelector(self._root, allow_not_found=True, recursive=True)
        for info in self._files.get_file_info(everything):
            if info.type == fs.FileType.File:
                yield info.path.removeprefix(f"{self._root}/"), info.mtime_ns / 1e9

    def digest(self, name: str) -> str:
        """The file's SHA-256. Raises Damaged when it cannot be read."""
        sha = hashlib.sha256()
        with self.opened(name) as file:
            while chunk := file.read(_CHUNK):
                sha.update(chunk)
        return sha.hexdigest()

    @property
    def region(self) -> str:
        """Of an object store: where its bucket is."""
        assert isinstance(self._files, fs.S3FileSystem)
        return str(self._files.region)

    @property
    def _is_local(self) -> bool:
        return isinstance(self._files, fs.LocalFileSystem)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _sync(path: str | Path) -> None:
    """Flushes a file, or the names in a folder, to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
