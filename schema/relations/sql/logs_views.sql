select distinct view.oid::regclass::text,
  coalesce('with (' || array_to_string(view.reloptions, ', ') || ')', ''), pg_get_viewdef(view.oid)
from pg_depend
join pg_rewrite on pg_rewrite.oid = objid and classid = 'pg_rewrite'::regclass
join pg_class as view on view.oid = ev_class and view.relkind = 'v'
-- those of rings take waveforms of rows that are in PostgreSQL
where refobjid = cast(:log as regclass) and view.relnamespace <> to_regnamespace('online')
