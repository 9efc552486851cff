"""The files of weeks that have left PostgreSQL, copied with a table that moves to another server."""

from collections.abc import Iterator

import sqlalchemy as sa

from ringlog.errors import ServerError
from ringlog.schema.access.roles import become_owner
from ringlog.schema.relations.tiers import cold_week, history, leave_manifest


def copied_files(source: sa.Engine, target: sa.Engine, table: str) -> Iterator[tuple[str, int]]:
    """Copies the files of a table to the target's archive. Yields each with its number of rows.

    The old ones stay for readers; the source sets them aside when it has forgotten the table, and the target
    what it does not name in the end. Raises ServerError.
    """
    # it takes the extra `history`, as archiving does
    with source.begin() as connection:
        weeks = connection.execute(
            sa.select(cold_week.c.file, cold_week.c.rows, cold_week.c.sha256).where(
                cold_week.c.table_name == table
            )
        ).all()
        here = connection.scalar(sa.select(history.c.archive))
    if not weeks:
        return
    from ringlog.history.archive.folder import Damaged, Folder

    with target.begin() as connection:
        there = connection.scalar(sa.select(history.c.archive))
    if here is None or there is None:
        raise ServerError(
            f"table {table} has weeks in the archive: moving it needs [history] in the facility file"
        )
    old, new = Folder(here), Folder(there)
    for file, rows, sha256 in weeks:
        with target.begin() as connection:
            become_owner(connection)
            leave_manifest(connection, [file])
        new.put_back(file)
        try:
            if not (new.exists(file) and new.digest(file) == sha256):
                new.copy(old, file)
                if new.digest(file) != sha256:
                    raise ServerError(f"{new}/{file} is not the file that the manifest names: try again")
                yield f"archive {file}", rows
        except Damaged as error:
            raise ServerError(f"table {table} stays where it is: {error}") from None
