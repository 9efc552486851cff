create function sys.sp_helpindex(objname text)
returns table (index_name sys.sysname, index_description sys.line, index_keys sys.list)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  id constant integer := sys.demand_object(objname);
begin
  return query
  select
    indexes.name::sys.sysname,
    (case indexes.number when 1 then 'clustered' else 'nonclustered' end
      || case when indexes.is_unique then ', unique' else '' end
      || case when indexes.is_primary_key then ', primary key' else '' end
      || ' located on PRIMARY')::sys.line,
    (
      select string_agg(columns.name || case when columns.is_descending then '(-)' else '' end, ', '
        order by columns.position)
      from sys.every_index_column as columns
      where columns.oid = indexes.oid and columns.is_key
    )::sys.list
  from sys.every_index as indexes
  where indexes.relation = id::oid
  order by 1;
  if not found then
    raise notice 'The object ''%'' does not have any indexes, or you do not have permissions.', objname;
  end if;
end
$$;
comment on function sys.sp_helpindex(text) is 'SQL Server and ASE: sp_helpindex, the indexes of a table.';
