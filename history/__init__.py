"""Old rows: summaries, Parquet weeks, recall, verification; and reading across all of them."""
