"""Old rows of other servers and of files for the archive."""
