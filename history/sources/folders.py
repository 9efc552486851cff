"""Files of one form, by a file, a folder or a pattern."""

from pathlib import Path

from ringlog.history.incoming import IncomingError


def files_in(place: Path, *suffixes: str) -> list[Path]:
    """The file, or the folder's files with one of these suffixes, in the order of their names. Raises
    IncomingError for none."""
    if place.is_file():
        return [place]
    found = sorted(
        file for file in place.rglob("*") if file.suffix.lstrip(".") in suffixes and file.is_file()
    )
    if not found:
        what = f"has no *.{' or *.'.join(suffixes)}" if place.is_dir() else "is no file or folder"
        raise IncomingError(f"{place} {what}")
    return found
