-- Sequences, which are PostgreSQL's own.

create or replace procedure tsql.drop_sequence(schema text, name text, if_exists boolean)
language plpgsql
as $$
declare
  schema_name constant text := coalesce(nullif(schema, ''), current_schema());
  found constant oid := (
    select oid from pg_catalog.pg_class
    where relnamespace = pg_catalog.to_regnamespace(quote_ident(schema_name)) and relname = lower(name) and relkind = 'S'
  );
  because text;
begin
  if found is null then
    if if_exists then
      return;
    end if;
    perform tsql.raise(3701, 11, 5, format(
      'Cannot drop the sequence object ''%s'', because it does not exist or you do not have permission.', name));
  end if;
  execute format('drop sequence %s', found::regclass);
exception when dependent_objects_still_exist then
  get stacked diagnostics because = pg_exception_detail;
  perform tsql.raise(3729, 16, 1, format('Cannot DROP SEQUENCE ''%s'' because it is being referenced by object ''%s''.', name,
    substring(because from ' of table (\S+)')));
end
$$;
comment on procedure tsql.drop_sequence(text, text, boolean) is
'Drops a sequence. Errors: there is none of the name (3701), a default uses it (3729).';
