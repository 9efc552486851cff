"""SQLite's test suite sqllogictest, run over TDS: `python -m ringlog_lab.sqllogictest FOLDER`.

The suite is public (sqlite.org/sqllogictest) and not part of these sources: FOLDER is a copy of its tests.
"""
