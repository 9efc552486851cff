create or replace function ringlog.damaged_place(message text) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(heap.oid, indrelid, found.relation)::regclass::text
  from pg_filenode_relation(0, substring(damaged_place.message from 'base/\d+/(\d+)')::oid) as found (relation)
  left join pg_index on indexrelid = found.relation
  left join pg_class as heap on heap.reltoastrelid = coalesce(indrelid, found.relation)
$$;
comment on function ringlog.damaged_place is
$$The table, or the week of a log, whose file PostgreSQL's message about a damaged page names; null: it names none.$$;
