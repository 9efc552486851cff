-- functions that were named tell_…; triggers are renamed too, since a copy that uses them may be under way
do $$
declare
  renamed record;
begin
  for renamed in
    select function.oid, proname as before, replace(proname, 'tell_', 'record_') as now
    from pg_proc as function
    where pronamespace = 'ringlog'::regnamespace and proname in ('tell_late_row', 'tell_moved_row')
  loop
    execute format('alter function ringlog.%I() rename to %I', renamed.before, renamed.now);
    update ringlog.procedure
    set name = renamed.now,
      definition = encode(sha256(convert_to(pg_get_functiondef(renamed.oid), 'utf8')), 'hex')
    where name = renamed.before;
  end loop;
  for renamed in
    select tgname as before, tgrelid::regclass as relation, replace(tgname, 'tell_', 'record_') as now
    from pg_trigger
    where tgrelid in (select oid from pg_class where relnamespace = 'log'::regnamespace)
      and tgparentid = 0 and tgname in ('tell_late_row', 'ringlog_tell_moved_row')
  loop
    execute format('alter trigger %I on %s rename to %I', renamed.before, renamed.relation, renamed.now);
  end loop;
end
$$;
-- writers that miss it report events one by one
drop function if exists ringlog.tell_events(text, text, text);
delete from ringlog.procedure where name = 'tell_events';
comment on table ringlog.late_row is
'rows that came into partitions while these were copied; see record_late_row';
