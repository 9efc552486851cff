create function sys.sp_helptext(objname text) returns table ("Text" sys.line)
language plpgsql stable
as $$
declare
  id constant integer := sys.demand_object(objname);
  definition constant text := sys.object_definition(id);
begin
  if definition is null and exists (
    select from sys.every_relation as relations where relations.oid = id::oid and relations.type = 'V'
  ) then
    perform tsql.raise(15197, 16, 1, format(
      'There is no text for object ''%s'': it was made, or changed, in PostgreSQL and not in T-SQL.', objname));
  end if;
  if definition is null then
    perform tsql.raise(15197, 16, 1, format('There is no text for object ''%s''.', objname));
  end if;
  return query
  select pg_catalog.substr(lines.line, 1 + 255 * (pieces.number - 1), 255)::sys.line
  from (
    select 1 as procedure_number, definition as text
    union all
    select numbered.procedure_number, numbered.definition from sys.numbered_procedures as numbered where object_id = id
  ) as modules
  cross join lateral unnest(string_to_array(replace(modules.text, E'\r\n', E'\n'), E'\n'))
    with ordinality as lines (line, number)
  cross join lateral generate_series(1, greatest(1, (length(lines.line) + 254) / 255)) as pieces (number)
  order by modules.procedure_number, lines.number, pieces.number;
end
$$;
comment on function sys.sp_helptext(text) is
$$SQL Server and ASE: sp_helptext. The text of a procedure (of a group: of all), view or trigger, by lines, those longer than 255 characters in pieces:
the T-SQL of objects that T-SQL created; otherwise PostgreSQL's text of a procedure, and none of a view.$$;
