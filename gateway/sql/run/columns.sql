-- Checks of the columns that a caller expects.

create or replace function tsql.demand_columns(relation oid, names text[]) returns boolean
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  name text;
  found text[] := '{}';
begin
  -- not from pg_attribute: the snapshot may be older than the change that caused this replanning
  for place in 1..1600 loop
    name := (pg_identify_object_as_address('pg_class'::regclass, relation, place)).object_names[3];
    exit when name is null;
    if name not like '........pg.dropped.%' then
      found := found || name;
    end if;
  end loop;
  if found is distinct from names then
    raise exception 'the columns of % are others now', relation::regclass using errcode = 'RL007';
  end if;
  return true;
end
$$;

comment on function tsql.demand_columns(oid, text[]) is
$$True; an error (RL007) when a table or composite type has other columns than these, or in another order. It is
immutable for PostgreSQL to evaluate it when a statement is planned; since the statement has the relation's oid, it is
planned again when that has changed.$$;
