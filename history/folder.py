"""The archive's folder, on this machine or in an object store, by pyarrow's file systems."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from ringlog.history.file_owner import give

_CHUNK = 1 << 20  # bytes read at once for a digest

_ASIDE = "_replaced"  # what begins with _ is no data to Spark, and `*.parquet` does not look into it


def aside(name: str) -> str:
    """The name of a file that has left the manifest and is kept."""
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}{_ASIDE}/{file}"


class Damaged(Exception):
    """A file of the archive is missing or not what was written."""


class Folder:
    """Files by their names below a folder: `/data/archive`, or `s3://bucket/folder` with pyarrow's options.

    https://arrow.apache.org/docs/python/filesystems.html says what S3 takes: `endpoint_override` and others
    behind a question mark, the keys in the environment.
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
        """A new file to write, seen under its name only when all of it is on the disk."""
        path = self._path(name)
        # in an object store nothing is seen before it is whole
        written = f"{path}.new" if self._is_local else path
        self._make(os.path.dirname(path))
        with self._files.open_output_stream(written) as stream:
            yield stream
        if self._is_local:
            give(written)
            _sync(written)
            os.replace(written, path)
            for folder in (os.path.dirname(path), self._root):
                _sync(folder)  # the name must outlive a power failure as the content does

    @contextmanager
    def opened(self, name: str) -> Iterator[pa.NativeFile]:
        """A file to read, at any place; one that was set aside too. Raises Damaged when there is none."""
        try:
            file = self._files.open_input_file(self._path(name))
        except OSError as error:
            try:
                file = self._files.open_input_file(self._path(aside(name)))
            except OSError:
                raise Damaged(f"{self.where}/{name}: {error}") from error
        with file:
            yield file

    def copy(self, other: "Folder", name: str) -> None:
        """Copies a file of another folder in the place of what is here by its name. Raises Damaged."""
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

    def set_aside(self, name: str) -> None:
        """Takes a file out of sight; it can still be opened by its name."""
        self._move(name, aside(name))

    def put_back(self, name: str) -> None:
        self._move(aside(name), name)

    def _move(self, name: str, other: str) -> None:
        if not self.exists(name):
            return  # it was moved before a crash
        folders = [os.path.dirname(self._path(each)) for each in (other, name)]
        self._make(folders[0])
        self._files.move(self._path(name), self._path(other))
        if self._is_local:
            for folder in (*folders, os.path.dirname(folders[0])):
                _sync(folder)

    def _make(self, folder: str) -> None:
        """Makes a folder with those above it."""
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
    def _is_local(self) -> bool:
        return isinstance(self._files, fs.LocalFileSystem)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _sync(path: str | Path) -> None:
    """Has the disk store a file, or the names in a folder."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
