create or replace function ringlog.view_samples(table_name text, archived text default null) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  kind text;
  samples_of_block text;
begin
  select
    format_type(case attname when 'points' then atttypid else typelem end, null),
    case attname when 'points' then {samples_of_waveforms} else {samples_of_values} end
  into kind, samples_of_block
  from pg_attribute join pg_type on pg_type.oid = atttypid
  where attrelid = format('weeks.%I', table_name)::regclass and attname in ('samples', 'points');
  execute format(
    'create or replace view log.%I as '
    'select known.signal, ringlog.moment(each."time") as "time", each.value, '
    '  coalesce(each.severity, 0::smallint) as severity, coalesce(each.status, 0::smallint) as status, '
    '  (each."time" %% 1000)::smallint as nanoseconds, block.signal as number, block.begins as block_begins, '
    '  block."time" as block_ends '
    'from weeks.%1$I as block '
    'join ringlog.sample_signal as known on known.number = block.signal '
    'cross join lateral %s as each ("time", value, severity, status)',
    table_name, samples_of_block
  ) || case when archived is null then '' else format(
    ' union all '
    'select known.signal, each."time", each.value::%s, each.severity::smallint, each.status::smallint, '
    '  each.nanoseconds::smallint, each.number, each."time", each."time" '
    'from archive_files.%I as each '
    'join ringlog.sample_signal as known on known.number = each.number',
    kind, archived
  ) end;
end
$$;
comment on function ringlog.view_samples is
$$Makes log.<table> of a table of samples: the samples of its blocks, and with `archived` those of this table of archived
weeks, in schema archive_files, too.$$;
