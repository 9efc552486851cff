"""Errors in a migration's options."""


class AdoptionError(Exception):
    """The rules or the character set are wrong; the text says what. Nothing was done."""
