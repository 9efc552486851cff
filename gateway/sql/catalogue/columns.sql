-- The declarations of columns of tables, as the catalogue shows them (ddl/declarations.sql).

