-- Weeks are not merged into months and years any more: what was being made is dropped.
do $$
declare
  part record;
begin
  if to_regclass('ringlog.copied_part') is null then
    return;
  end if;
  for part in select distinct copied.part as name from ringlog.copied_part as copied loop
    if to_regclass(format('log.%I', part.name)) is not null then
      execute format('drop trigger if exists record_late_row on log.%I', part.name);
    end if;
    delete from ringlog.late_row as late where late.partition = part.name;
  end loop;
  for part in
    select distinct copied.partition as name
    from ringlog.copied_part as copied
    join pg_class as unfinished on unfinished.relname = copied.partition
      and unfinished.relnamespace = 'log'::regnamespace and not unfinished.relispartition
  loop
    execute format('drop table log.%I', part.name);
  end loop;
  drop table ringlog.copied_part;
end
$$;

comment on table ringlog.late_row is
'rows that came into partitions while these were archived; see record_late_row';
