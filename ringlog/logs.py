"""The log of long-running programs: a line on standard error for each event, as text or JSON.

The gateway's lines have the same form (gateway/src/log.rs).
"""

import json
import logging
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum


class Level(StrEnum):
    """The lowest level of events that are logged."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


SHORT = {"warning": "warn", "critical": "error"}
"""the gateway's names of levels, where they differ"""
_running: tuple[Level, Format] = Level.INFO, Format.TEXT


def start(level: Level, form: Format, *, limited: bool = False) -> None:
    """Starts the log of this process on standard error; of libraries only warnings and errors are logged.
    `limited`: as `Limited` says."""
    global _running
    _running = level, form
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form is Format.JSON else _Text())
    if limited:
        handler.addFilter(Limited())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("ringlog").setLevel(level.upper())


MOST = 20
"""lines of one caller in the source within WINDOW"""
WINDOW = 20.0  # seconds


class Limited(logging.Filter):
    """Limits warnings and errors, which readers can cause as often as they send requests. The next line after
    those left out has their number (gateway/src/log.rs)."""

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[tuple[str, int], tuple[float, int]] = {}
        """of each caller: the begin of its window, and the lines since then"""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        caller, now = (record.pathname, record.lineno), time.monotonic()
        begun, lines = self._windows.get(caller, (now, 0))
        if now - begun > WINDOW:
            if lines > MOST:
                record.msg = f"{record.getMessage()} left_out={lines - MOST}"
                record.args = ()
            begun, lines = now, 0
        self._windows[caller] = (begun, lines + 1)
        return lines < MOST


def running() -> tuple[Level, Format]:
    """The options of this process's log, for child processes."""
    return _running


def _time(record: logging.LogRecord) -> str:
    return f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _level(record: logging.LogRecord) -> str:
    return SHORT.get(record.levelname.lower(), record.levelname).upper()


def _target(record: logging.LogRecord) -> str:
    return record.name.replace(".", "::")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.name == "ringlog":
            # the messages of the command itself
            return f"ringlog: {text}"
        return f"{_time(record)} {_level(record):>5} {_target(record)}: {text}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": _time(record),
            "level": _level(record),
            "message": record.getMessage(),
            "target": _target(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))
