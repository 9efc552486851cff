create or replace function ringlog.causes_of_registry(of_table text, of_column text, names text[], is_of_samples boolean)
returns table (cause text, since timestamptz, until timestamptz, at tstzrange, rows bigint, evidence text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  with entry as materialized (
    select
      known.signal, known.valid_from,
      case when known.valid_to < 'infinity' then known.valid_to end as valid_to,
      min(known.valid_from) over () as first,
      lead(known.valid_from, 1, 'infinity') over (order by known.valid_from, known.valid_to nulls last) as next
    from ringlog.signal as known
    where known.signal = any(names) and known.table_name = of_table and known.column_name = of_column
  ), change as materialized (
    select each."time", each.change, each.login, each.program,
      lead(each."time", 1, 'infinity') over (order by each."time", each.number) as next
    from ringlog.signal_change as each
    where is_of_samples and each.table_name = of_table and each.signal = any(names)
      and each.change in ('add', 'pause', 'resume', 'retire')
  ), other as materialized (
    select known.signal, known.valid_from, known.valid_to from ringlog.signal as known
    where not is_of_samples and known.table_name = of_table and known.column_name = of_column and known.signal <> all(names)
  ), spans as (
    select
      case
        when exists (select from other where other.valid_from < entry.first) then 'renamed'
        when not is_of_samples and exists (
          select from ringlog.signal as known where known.table_name = of_table and known.valid_from < entry.first
        ) then 'column added later'
        else 'not yet added'
      end as cause,
      timestamptz '-infinity' as since, entry.first as until, null::bigint as rows,
      coalesce(
        (
          select format('column %s was signal %s before', of_column, other.signal) from other
          where other.valid_from < entry.first order by other.valid_from desc limit 1
        ),
        format('registry: %s of table %s is there since then', entry.signal, of_table)
      ) as evidence
    from entry
    where entry.valid_from = entry.first
    union all
    select
      case when exists (select from other where other.valid_from >= entry.valid_to) then 'renamed' else 'retired' end,
      entry.valid_to, entry.next, null,
      coalesce(
        (
          select format('column %s is signal %s since %s', of_column, other.signal, other.valid_from) from other
          where other.valid_from >= entry.valid_to order by other.valid_from limit 1
        ),
        (
          select format('retired by %s (%s)', change.login, change.program) from change
          where change.change = 'retire' and change."time" between entry.valid_to - interval '1 s' and entry.valid_to + interval '1 s'
          limit 1
        ),
        format('registry: %s of table %s ends then', entry.signal, of_table)
      )
    from entry
    where entry.valid_to < entry.next
    union all
    select 'paused', change."time", change.next, (
        select sum(dropped.rows)::bigint from ringlog.dropped_sample as dropped
        where dropped.kind = 'paused' and dropped.number::text = of_column and dropped.since >= change."time"
          and dropped.until <= change.next
      ),
      format('paused by %s (%s)', change.login, change.program)
    from change
    where change.change = 'pause'
  )
  select distinct on (spans.cause, spans.since) spans.cause, spans.since, spans.until, tstzrange(spans.since, spans.until),
    spans.rows, spans.evidence
  from spans
$$;
comment on function ringlog.causes_of_registry is
$$Times in which a signal was not yet added, paused, retired or another one's column, as causes of missing readings; see
causes_of_events.$$;
grant execute on function ringlog.causes_of_registry to daq_reader, daq_table_reader;
