"""What becomes of old rows: summaries, Parquet weeks, recall, verification; and reading across all of it."""
