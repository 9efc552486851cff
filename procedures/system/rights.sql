-- Everyone may read the catalogue, which shows the objects that each caller has rights on.
grant select on all tables in schema sys, tsql_information_schema to public;
