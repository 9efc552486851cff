"""The measurements of papers/004: A. Yamashita et al., RDBMS on Linux for Accelerator Control (SPring-8)."""

from dataclasses import dataclass

SOURCE = (
    "A. Yamashita, T. Fukui, M. Kodera, T. Masuda and R. Tanaka (SPring-8): RDBMS on Linux for Accelerator "
    "Control"
)


@dataclass(frozen=True)
class Published:
    """A column of table 1. Times in seconds."""

    name: str
    machine: str
    mean: float
    """average insertion time into a table of 200 columns"""
    longest: float
    kilobytes: float
    """a second"""


TABLE_1 = (
    Published("Linux", "Sybase ASE 11.03, Pentium II 450 MHz, 1 CPU, 256 MB", 0.2, 5.6, 186.0),
    Published("HP", "Sybase ASE 11.5.1, HP K260, 180 MHz, 3 of 4 CPUs, 2 GB", 0.2, 0.47, 179.0),
    Published("HP (*)", "the same with 1 CPU and 128 MB", 1.21, 101.0, 44.3),
)

# Section 6.1: "The server process consumes less than 30% of CPU power".
CPU_SHARE = 0.30
# Section 6.1, sp_sysmon: "access to database log segment consumed two third of disk I/O and access to table
# segment used one third".
LOG_SHARE = 2 / 3
# Section 5.1: 9,152 columns in 60 tables with seq_no and time, 6.4 KB/s.
TABLES, COLUMNS, NORMAL_KILOBYTES = 60, 9152, 6.4
MEAN_WIDTH = COLUMNS / TABLES - 2


def rows_a_second(one: Published) -> float:
    """Rows a second of all 60 writers, which the paper shows in figure 4 only: from table 1's rate, the mean
    number of columns and 4 bytes a value."""
    return one.kilobytes * 1000 / (MEAN_WIDTH * 4)
