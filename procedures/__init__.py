"""How it is written and read: the SQL of every stored procedure, one concern a file."""
