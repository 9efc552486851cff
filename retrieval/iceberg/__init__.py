"""The archive's Iceberg tables as a REST catalogue, read-only."""
