"""SQL of modules: each text is a file in the folder sql beside its module."""

from functools import cache
from pathlib import Path
from typing import LiteralString


@cache
def sql_file(module: str, name: str) -> LiteralString:
    """The text of sql/<name>.sql beside the file `module`."""
    return Path(module).with_name("sql").joinpath(f"{name}.sql").read_text()
