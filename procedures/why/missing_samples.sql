create or replace function ringlog.missing_samples(
  table_name text, number integer, from_time timestamptz, to_time timestamptz
) returns table (kind text, at tstzrange, detail text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  is_waveform constant boolean := (
    select known.type like '%[]' from ringlog.sample_table as known where known.table_name = table_name
  );
begin
  return query execute format(
    $query$
      with before as (
        select each.*
        from (
          (
            select ringlog.moment(stored."time") as "time", stored.is_null, stored.severity, stored.status
            from (
              select block.* from weeks.%1$I as block
              -- no block is of two hours
              where block.signal = $1 and block.begins < $2 and block."time" < $2 + interval '1 hour'
              order by block."time" desc
              limit 1
            ) as block
            cross join lateral (
              select each."time", %2$s as is_null, block.severities[each.position] as severity,
                block.statuses[each.position] as status
              from unnest(block.times) with ordinality as each ("time", position)
            ) as stored
            where ringlog.moment(stored."time") < $2
            order by stored."time" desc
            limit 1
          )
          union all
          select ringlog.moment(archived."time"), archived.value is null, archived.severity, archived.status
          from ringlog.last_archived as archived
          where archived.number = $1 and ringlog.moment(archived."time") < $2
        ) as each
        order by each."time" desc
        limit 1
      ), sample as (
        select each.*, lead(each."time", 1, $3) over (order by each."time") as next
        from (
          select stored."time", stored.value is null as is_null, stored.severity, stored.status
          from ringlog.%3$I(null, $2, $3, null, $1) as stored
          union all
          select before."time", before.is_null, before.severity, before.status from before
          union all
          select timestamptz '-infinity', false, null, null where not exists (select from before)
        ) as each
      )
      select
        case when sample.is_null then 'null' else 'gap' end, tstzrange(sample."time", sample.next),
        case when sample.is_null then format(
          'NULL was sent with severity %%s (%%s) and status %%s (%%s)',
          coalesce(sample.severity, 0), coalesce(({severities}::text[])[coalesce(sample.severity, 0) + 1], '-'),
          coalesce(sample.status, 0), coalesce(({statuses}::text[])[coalesce(sample.status, 0) + 1], '-')
        ) end
      from sample
      where sample.next > $2 and (sample.is_null and sample.next > sample."time" or sample.next > sample."time" + interval '1 second')
    $query$,
    table_name,
    case when is_waveform then 'block.points is null' else 'block.samples[each.position] is null' end,
    'get_' || table_name
  ) using number, from_time, to_time;
end
$$;
comment on function ringlog.missing_samples is
$$The times from from_time (inclusive) to to_time (exclusive) without a sample of a signal of a table of samples, of more than a
second (gap), and those after samples of NULL until the next one (null, with severity and status in detail). The first
may begin earlier, at the sample before.$$;
grant execute on function ringlog.missing_samples to daq_reader, daq_table_reader;
