"""The relations of each table: rings, logs and their partitions, samples, closed rows, summaries, views."""
