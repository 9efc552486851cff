"""The archive server: SQL over the files of the archive, for PostgreSQL's postgres_fdw.

PostgreSQL sends the part of a query that concerns `archive.<table>`, with the digest of the list of files in
the query's snapshot. This process reads the files by Arrow, lets DuckDB filter, sort and aggregate their
rows, and answers in PostgreSQL's wire protocol.
"""
