"""Errors in a migration's options."""


class AdoptionError(Exception):
    """The rules or the character set are wrong; the text names the error. Nothing was done."""
