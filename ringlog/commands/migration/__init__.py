"""Commands that move a site in from an old server."""
