-- Everyone may look: what there is to see goes by each caller's own rights.
grant select on all tables in schema sys, tsql_information_schema to public;
