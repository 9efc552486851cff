"""Parquet weeks: a round of archiving, their files and manifest, late rows, recall and restoring."""
