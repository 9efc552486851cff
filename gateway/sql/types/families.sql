-- Families of functions that differ by a type or a name: their definition stands once, with a row for each member.

create or replace procedure tsql.make_each(members text[], definitions text)
language plpgsql
as $$
declare
  member text[];
begin
  if array_ndims(members) = 1 then
    members := (select array_agg(array[one]) from unnest(members) as one);
  end if;
  foreach member slice 1 in array members loop
    execute format(definitions, variadic member);
  end loop;
end
$$;
comment on procedure tsql.make_each(text[], text) is
'Runs definitions for each member of a family: %1$s is the member, or the first word of its row, %2$s the second.';

create or replace procedure tsql.make_functions(attributes text, functions text[])
language sql
as $$
  call tsql.make_each(functions, 'create or replace function tsql.%s returns %s language sql ' || attributes || ' return %s');
$$;
comment on procedure tsql.make_functions(text, text[]) is
'Makes functions of one expression from rows of three texts: the name with its parameters, the result''s type, the expression.';
