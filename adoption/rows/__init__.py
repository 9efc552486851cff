"""An old server's rows on their way here."""
