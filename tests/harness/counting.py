"""A source of numbered rows. Each is recorded in the current folder before a writer gets it."""

import os

from ringlog.schema.facility import Table


def read(table: Table) -> dict[str, int]:
    file = os.open(f"given.{table.name}", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    number = os.read(file, 1_000_000).count(b"\n") + 1
    os.write(file, f"{number}\n".encode())
    os.close(file)
    return {"count": number}
