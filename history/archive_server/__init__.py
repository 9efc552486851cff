"""The archive server: SQL over the files of the archive, for PostgreSQL's postgres_fdw.

PostgreSQL sends the part of a query that concerns `archive.<table>`, with the list of the week's files as the
query's snapshot has it. This process reads them by Arrow, has DuckDB filter, sort and aggregate their
rows, and answers in PostgreSQL's wire protocol.
"""
