create or replace function ringlog.differences(there jsonb, here jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  -- not the values: a writer need not have the right to read them
  select 'its values of ' || string_agg(key, ', ' order by key) filter (where number <= 3)
    || case when count(*) > 3 then format(' and of %s columns more', count(*) - 3) else '' end || ' differ'
  from (
    select key, row_number() over (order by key)
    from jsonb_each_text(there) as o
    join jsonb_each_text(here) as n using (key)
    where o.value is distinct from n.value
  ) as different (key, number)
$$;
comment on function ringlog.differences is
$$The columns in which two rows differ, as text: three columns, and the number of the others. NULL if their values have
the same text. put_<table> adds it to the error for a refused row.$$;
