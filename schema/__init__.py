"""The stored data: facility files, their validation, SQLAlchemy tables, DDL, roles, partitions."""
