"""Severities and statuses of alarms, by the numbers that EPICS gives them (EPICS Base, alarm.h)."""

from collections.abc import Sequence

SEVERITIES = ("NO_ALARM", "MINOR", "MAJOR", "INVALID")

# menuAlarmStat of EPICS base, in the order of its numbers. QSRV sends the same names as PVA's alarm message.
STATUSES = (
    *(
        "NO_ALARM",
        "READ",
        "WRITE",
        "HIHI",
        "HIGH",
        "LOLO",
        "LOW",
        "STATE",
        "COS",
        "COMM",
        "TIMEOUT",
        "HWLIMIT",
    ),
    *("CALC", "SCAN", "LINK", "SOFT", "BAD_SUB", "UDF", "DISABLE", "SIMM", "READ_ACCESS", "WRITE_ACCESS"),
)

# alarm_t.status of PVA's normative types. From a server that names no status of EPICS base they become
# these names, and 100 and more as numbers: they share none with Channel Access.
PVA_STATUSES = ("NO_ALARM", "DEVICE", "DRIVER", "RECORD", "DB", "CONF", "UNDEFINED", "CLIENT")
PVA_NUMBERS = 100


def status_name(number: int) -> str:
    """The name of a status: one of EPICS base, or with PVA_NUMBERS added one of PVA."""
    if number < PVA_NUMBERS:
        return STATUSES[number] if number < len(STATUSES) else f"STATUS_{number}"
    of_pva = number - PVA_NUMBERS
    return PVA_STATUSES[of_pva] if of_pva < len(PVA_STATUSES) else f"STATUS_{of_pva}"


def severity_name(severity: int) -> str:
    return SEVERITIES[severity] if severity < len(SEVERITIES) else f"SEVERITY_{severity}"


def number_of(name: str | None, names: Sequence[str]) -> int:
    """The number of a severity or status that is stored by its name; 0 for none.

    A name that is not among `names` may be one of PVA, or STATUS_7, SEVERITY_4 as the loader writes numbers
    without a name; any other is the last of `names`, so that no alarm looks like none.
    """
    if name is None:
        return 0
    if name in names:
        return names.index(name)
    if name in PVA_STATUSES:
        return PVA_NUMBERS + PVA_STATUSES.index(name)
    number = name.rpartition("_")[2]
    return int(number) if number.isdecimal() and len(number) < 10 else len(names) - 1
