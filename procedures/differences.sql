create or replace function ringlog.differences(there jsonb, here jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select string_agg(format('%s is %s there and %s here', key, old, new), ', ' order by key) filter (where place <= 3)
    || case when count(*) > 3 then format(' (and %s columns more)', count(*) - 3) else '' end
  from (
    select key, left(coalesce(o.value, 'NULL'), 40), left(coalesce(n.value, 'NULL'), 40), row_number() over (order by key)
    from jsonb_each_text(there) as o
    join jsonb_each_text(here) as n using (key)
    where o.value is distinct from n.value
  ) as different (key, old, new, place)
$$;

comment on function ringlog.differences(jsonb, jsonb) is
$$In words, in which columns two rows differ, with both values: three columns, and the number of the others. NULL if their
values are written alike. put_<table> says so when it refuses a row.$$;

revoke all on function ringlog.differences(jsonb, jsonb) from public;
