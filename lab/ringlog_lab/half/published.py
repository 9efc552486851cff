"""The measurements of papers/002 for HALF's archive: items of data inserted and queried in a second."""

SOURCE = (
    "Hefei Advanced Light Facility: performance of databases for its Historical Data Archiving System (the "
    "poster papers/002)"
)
QDPS = 1.4e6
"""Items/s of TimescaleDB, the fastest reader in the paper."""
IDPS_INFLUX, IDPS_TIMESCALE = 1.5e5, 1.2e5
PVS, HERTZ = 2000, 10
MACHINE = "eight virtual machines in a local network"
