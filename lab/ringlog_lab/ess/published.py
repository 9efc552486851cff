"""The measurements of papers/003 with the Archiver Appliance: tables 2 and 3, and its regression lines."""

from dataclasses import dataclass

SOURCE = (
    "R. Fernandes, H. Kocevar, S. Armanet and S. Regnell (ESS): An Archiver Appliance Performance and "
    "Resources Consumption Study, ICALEPCS 2021, WEPV048"
)


@dataclass(frozen=True)
class Stored:
    """A row of table 2. A figure given as "less than" is its bound."""

    cpu: float
    """% of the consumer's 24 cores"""
    memory: float
    """GB of the consumer"""
    disk: float
    """GB of an hour"""
    network: float
    """Mb/s"""
    dropped: float
    """% of the frames"""


# CPU, RAM and disk of the consumer, network traffic, dropped frames
_TABLE_2 = """
0010 1 13.8 0.1 1 0       0020 1 13.8 0.2 1 0       0030 1 13.8 0.1 1 0       0040 1 14.9 0.4 1 0
0050 1 14.1 0.1 1 0       0060 1 15.5 1.9 5 0       0070 1 14.4 0.3 1 0       0080 1 22.3 3.8 9 0
0090 1 24.9 1.3 3 0       0100 1 56.1 18.7 47 0     0110 1 26.2 2.7 7 0       0120 3 72.1 37.8 94 0
0210 1 60.4 1.3 3 0       0220 1 72.6 18.9 46 0     0230 1 61.1 2.7 7 0       0240 2 74.5 37.8 91 0
0250 1 72.4 13.4 34 0     0260 5 72.1 188 448 0     0270 1 71.1 27 67 0       0280 7 86.9 350 873 1
0290 1 84.3 138 330 0     0300 6 87.5 403 983 69    0310 12 87.4 242 660 1    0320 19 87.6 418 983 90
0410 1 87.7 13 33 0       0420 1 92.5 185 270 0     0430 1 90 26 67 0         0440 6 86.7 370 520 0
0450 1 90.3 131 320 0     0460 9 88.2 263 640 67    0470 9 88.2 263 640 0     0480 11 90.4 517 983 80
0490 7 89.8 382 983 68    0500 11 90.7 722 983 98   0510 9 88.8 134 983 97    0520 6 90.9 142 983 100
0610 4 79.6 140 315 0     0620 9 85.3 682 983 66    0630 9 91 250 634 5       0640 4 84 60 983 98
0650 9 85.1 340 976 72    0660 12 86 530 930 95     0670 11 91.2 260 873 91   0680 10 86.8 460 899 99
0690 16 92.1 210 983 99   0700 11 86.1 360 983 99
"""
"""AAPS-0710 and 0720 did not run."""


def _rows(text: str, width: int) -> dict[str, tuple[float, ...]]:
    words = text.split()
    rows = (words[first : first + width] for first in range(0, len(words), width))
    return {f"AAPS-{name}": tuple(map(float, figures)) for name, *figures in rows}


TABLE_2 = {name: Stored(*figures) for name, figures in _rows(_TABLE_2, 6).items()}

# GB and seconds of an hour of CSV by 1, 10 and 100 threads. Less than 0.1 GB or 1 s is 0.1 or 1.
_TABLE_3 = """
0010 0.1 1      0.1 1      0.7 5           0020 0.1 6      0.1 8       9.5 84
0030 0.1 1      0.1 1      1.4 10          0040 0.2 10     1.9 16      18.9 164
0050 0.1 5      0.7 5      6.7 57          0060 1.0 59     9.4 84      94.0 826
0070 0.1 7      1.3 11     13.4 117        0080 1.9 107    18.8 169    187.9 1646
0090 0.7 41     6.7 60     67.1 577        0100 9.4 595    93.9 840    938.9 8283
0110 1.3 79     13.4 118   134.1 1153      0120 18.8 1122  187.8 1698  1877.7 16304
"""
TABLE_3 = {
    name: dict(zip((1, 10, 100), zip(figures[::2], figures[1::2], strict=True), strict=True))
    for name, figures in _rows(_TABLE_3, 7).items()
}
"""Scenario, threads: GB retrieved and seconds."""

# "Resources saturation study"
MEAN_WAVEFORM = 37_000 * 6 * 7.5 / 1e6
"""MB/s of one waveform, the unit of the regression lines."""
WAVEFORMS = {"cpu": 100_000.0, "memory": 33_333.0}
"""Waveforms stored at which a resource is exhausted: 1 ÷ the slope of its regression line."""
THREADS = {"cpu": 847.0, "memory": 9_999.0}
"""Threads of retrieval at which it is."""
MACHINE = "2 x Intel 6126 (24 cores), 128 GB, 12 disks and 2 NVMe under ZFS, 1 Gb/s"
