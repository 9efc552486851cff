create function sys.sp_helptext(objname text)
returns table ("Text" sys.line)
language plpgsql
stable
as $$
declare
  definition constant text := sys.object_definition(sys.demand_object(objname));
begin
  if definition is null then
    raise exception 'There is no text for object ''%''.', objname using errcode = 'wrong_object_type';
  end if;
  return query
  select pg_catalog.substr(lines.line, 1 + 255 * (pieces.number - 1), 255)::sys.line
  from unnest(string_to_array(replace(definition, E'\r\n', E'\n'), E'\n')) with ordinality as lines (line, number)
  cross join lateral generate_series(1, greatest(1, (length(lines.line) + 254) / 255)) as pieces (number)
  order by lines.number, pieces.number;
end
$$;

comment on function sys.sp_helptext(text) is
$$SQL Server and ASE: sp_helptext. The text of a procedure, view or trigger, by lines, those longer than 255 characters in pieces:
in T-SQL what was created in T-SQL, in PostgreSQL's words what was not.$$;
