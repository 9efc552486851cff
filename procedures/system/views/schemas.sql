-- Schemas. A database of T-SQL is a schema of PostgreSQL; so is a schema in a database, whose comment names the database
-- (tsql.create_schema).
create view sys.every_inner_schema as
select
  schemas.oid,
  schemas.nspname as name,
  databases.nspname as database
from pg_catalog.pg_namespace as schemas
join pg_catalog.pg_description as comments
  on comments.objoid = schemas.oid and comments.classoid = 'pg_catalog.pg_namespace'::regclass
join pg_catalog.pg_namespace as databases
  on databases.nspname = substring(comments.description from '^T-SQL (?:collation \w+ )?schema of ([^\n]+)')
-- an owner without this right could show his tables in a database of others
where pg_catalog.has_schema_privilege(schemas.nspowner, databases.oid, 'create');

create function sys.current_database() returns name
language sql stable
as $$
  -- a procedure in a schema has this schema first in its path
  select coalesce((select schemas.database from sys.every_inner_schema as schemas where schemas.name = current_schema()), current_schema())
$$;
comment on function sys.current_database() is 'The name of the schema of PostgreSQL that is the current database.';

-- A function, which PostgreSQL runs once for a query: a view it may run for each object.
create function sys.schemas_here() returns table (oid oid, name text, number integer)
language plpgsql stable rows 2
as $$
declare
  here constant name := sys.current_database();
begin
  return query
  select namespaces.oid, 'dbo'::text, 1
  from pg_catalog.pg_namespace as namespaces
  where namespaces.nspname = here
  union all
  select schemas.oid, schemas.name::text, 4 + row_number() over (order by schemas.oid)::integer
  from sys.every_inner_schema as schemas
  where schemas.database = here;
end
$$;
comment on function sys.schemas_here() is
$$The schemas of the current database, by the names and numbers of T-SQL: dbo is the database itself; the others are numbered by
age, as databases are.$$;

create view sys.every_schema as
select * from sys.schemas_here();
