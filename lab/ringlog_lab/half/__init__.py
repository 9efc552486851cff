"""HALF's test of databases for archiving (papers/002): QDPS and IDPS."""
