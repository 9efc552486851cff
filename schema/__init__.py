"""What is stored: facility files, their validation, SQLAlchemy tables, DDL, roles, partitions."""
