"""The files of weeks: their form, fields and encoding, and rows merged with theirs."""
