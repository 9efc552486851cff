"""The outcome of an experiment, as JSON for reports, comparisons and lab/ringlog_lab/measured/README.md."""

from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.machine import Machine
from ringlog.loadtest.experiment.text_table import TextTable

T = TypeVar("T")

FORMAT = 1
_DIGITS = 6
"""of the points of a plot: a picture of some 700 pixels shows no more"""


@dataclass(frozen=True)
class Figure:
    """A figure that is compared with a paper or another run."""

    key: str
    """the same in every run of the experiment"""
    title: str
    unit: str
    ours: float | None
    """None: not measured in this run; `different` has the reason"""
    paper: float | None = None
    limit: str = ""
    """`<` or `>`: less or more than `paper`, according to the paper"""
    different: str = ""
    """differences from the paper"""

    @property
    def ratio(self) -> float | None:
        """Our figure ÷ the paper's."""
        return None if self.ours is None or not self.paper else self.ours / self.paper


@dataclass(frozen=True)
class Counted:
    """Counts of acknowledged rows, frames or values, and of those that were searched and found."""

    what: str
    acknowledged: int
    found: int
    altered: int = 0
    """stored with other values than were sent"""

    @property
    def lost(self) -> int:
        return max(0, self.acknowledged - self.found)

    @property
    def good(self) -> bool:
        return not self.lost and not self.altered and self.found == self.acknowledged


@dataclass(frozen=True)
class Line:
    """Points of a plot that belong together."""

    label: str
    points: Sequence[tuple[float, float]]
    joined: bool = True
    """False: markers only"""
    band: Sequence[tuple[float, float, float]] = ()
    """x, least, greatest: confidence of the line"""
    paper: bool = False
    """of the paper: drawn in black"""

    def __post_init__(self) -> None:
        for name in ("points", "band"):
            rounded = (tuple(float(f"{one:.{_DIGITS}g}") for one in point) for point in getattr(self, name))
            object.__setattr__(self, name, tuple(rounded))


@dataclass(frozen=True)
class Plot:
    """A picture that is drawn when the report is made."""

    name: str
    caption: str
    across: str
    up: str
    lines: Sequence[Line]
    across_logarithmic: bool = False
    up_logarithmic: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the experiment's report."""

    heading: str
    text: Sequence[str] = ()
    tables: Sequence[TextTable] = ()
    plots: Sequence[Plot] = ()


@dataclass(frozen=True)
class Point:
    """A measured point of a load, for models of resources. Means over the load."""

    name: str
    kind: str
    """`storage` or `retrieval`"""
    rate: float
    """frames written a second, or requests answered a second"""
    megabytes: float
    """of payload a second"""
    readers: int
    cpu: float
    """cores that the server (gateway, PostgreSQL, HTTP) took"""
    memory: float
    """bytes of the server, shared memory counted once"""
    disk: float = 0.0
    """bytes on disk for each byte of payload, without the write-ahead log"""
    wal: float = 0.0
    """bytes of write-ahead log for each byte of payload"""


@dataclass(frozen=True)
class Outcome:
    """One run of an experiment."""

    experiment: str
    title: str
    paper: str
    """where the paper's figures come from"""
    command: str
    began: str
    """UTC"""
    seconds: float
    """of the whole run, or of all its loads"""
    scale: str
    """the scaled quantities, and their factors"""
    machine: Machine
    load_before: float
    load_after: float
    """load average before and after"""
    versions: dict[str, str]
    settings: dict[str, str]
    counted: list[Counted]
    figures: list[Figure]
    sections: list[Section]
    method: list[str]
    points: list[Point] = field(default_factory=list)
    short: list[str] = field(default_factory=list)
    """sentences of the summary"""
    format: int = FORMAT

    @property
    def good(self) -> bool:
        """Whether everything acknowledged is stored exactly once."""
        return all(one.good for one in self.counted)

    def write(self, folder: Path) -> None:
        """Writes it as JSON into a folder, by the experiment's name."""
        write_json(self, folder / f"{self.experiment}.json")


def write_json(result: object, file: Path) -> None:
    """Writes a dataclass as readable JSON, a record a line, without empty fields that may be absent."""
    file.write_text(_laid_out(_parts(result), "") + "\n")


def _parts(value: Any) -> Any:
    if is_dataclass(value):
        return {
            one.name: _parts(part)
            for one in fields(value)
            if (part := getattr(value, one.name)) or part != _default(one)
        }
    if isinstance(value, dict):
        return {name: _parts(part) for name, part in value.items()}
    return [_parts(part) for part in value] if isinstance(value, list | tuple) else value


def _default(part: "Field[Any]") -> Any:
    return part.default if part.default_factory is MISSING else part.default_factory()


def _laid_out(value: Any, indent: str) -> str:
    import msgspec

    if not _has_records(value):
        return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    inner = f"{indent} "
    if isinstance(value, dict):
        items = [f'"{name}": {_laid_out(part, inner)}' for name, part in value.items()]
    else:
        items = [_laid_out(part, inner) for part in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{closing}"


def _has_records(value: Any) -> bool:
    """Whether a value has more parts than a line shows: parts with parts of their own, or texts."""
    if isinstance(value, dict):
        return any(isinstance(part, dict | list) for part in value.values())
    return isinstance(value, list) and any(isinstance(part, dict) or _is_row(part) for part in value)


def _is_row(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(part, str) for part in value)


def read_json(file: Path, kind: type[T]) -> T:
    """Reads what `write_json` wrote. Raises LoadTestError for anything else."""
    import msgspec

    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as error:
        raise LoadTestError(f"{file} cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise LoadTestError(f"{file} is of another version or damaged: {error}") from None


def read_outcome(file: Path) -> Outcome:
    """The outcome in a file. Raises LoadTestError."""
    return read_json(file, Outcome)
