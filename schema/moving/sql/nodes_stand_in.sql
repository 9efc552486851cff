create or replace function {name}({arguments})
returns {result}
language plpgsql
{volatility}
{security}
set search_path = pg_catalog, pg_temp
as $stands_in$
begin
  raise exception '%: table % is on node %, where the gateway calls it', {title}, {table}, {node}
    using errcode = 'object_not_in_prerequisite_state';
end
$stands_in$;

comment on function {name} is {comment};
