"""Commands on what is stored: archive, checks, copies."""
