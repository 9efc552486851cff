"""Files of one form, by a file, a folder or a pattern."""

from pathlib import Path

from ringlog.history.incoming import IncomingError


def files_in(path: Path, *suffixes: str) -> list[Path]:
    """The file, or the folder's files with one of these suffixes, in the order of their names. Raises
    IncomingError for none."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix.lstrip(".") in suffixes and file.is_file())
    if not files:
        what = f"has no *.{' or *.'.join(suffixes)}" if path.is_dir() else "is no file or folder"
        raise IncomingError(f"{path} {what}")
    return files
