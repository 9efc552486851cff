"""Commands on stored rows: the archive, checks, copies."""
