"""The measurements of papers/000 and 001 with CSS's archiver in PostgreSQL 9.1."""

SOURCE = (
    "M. Konrad, C. Burandt, J. Enders and N. Pietralla (TU Darmstadt): Control System Studio archiver with "
    "PostgreSQL back-end: optimizing performance and reliability for a production environment"
)
# Table 3: foreign keys, partitions (by inheritance and a trigger); rows/s
WRITE_RATES = {"plain": 18_289.0, "keys": 6_075.0, "keys_inherited": 3_865.0}
# The poster (001): 90 % of all query times below 250 ms.
WITHIN, SHARE = 0.25, 0.90
MACHINE = "2 x Xeon E5-2643, 128 GB, 30 disks in RAID 10 and two for the write-ahead log"
