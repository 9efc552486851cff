-- the current signals of all servers that the login may read and whose description contains all these words, those that begin with them first; scalars of waveforms if requested
with known as (
  select
    signal, table_name, column_name, type, unit, description, limit_low, limit_high, alarm_low, alarm_high,
    states, held, decimals, valid_to, null::text as node
  from ringlog.signal
  union all
  select
    signal, table_name, column_name, type, unit, description, limit_low, limit_high, alarm_low, alarm_high,
    states, held, decimals, valid_to, node
  from ringlog.signal_elsewhere
),
named as (
  select known.*, null as scalar, signal as name from known
  union all
  select known.*, scalar, concat(signal, '.', scalar)
  from known
  cross join unnest({scalars}) as scalar
  where type like '%[]' and type not like 'varchar%'
)
select
  signal, table_name, column_name, type, unit, description, limit_low, limit_high, alarm_low, alarm_high, states,
  held, decimals, scalar, node
from named
where valid_to is null
  and (pg_has_role('daq_reader', 'usage') or table_name in (select ringlog.readable_tables()))
  and not exists (
    select
    from unnest({words}, {fields}, {patterns}) as asked (word, field, pattern)
    cross join lateral concat(
      case field
        when 'signal' then name
        when 'table' then table_name
        when 'column' then column_name
        when 'device' then regexp_replace(name, '/[^/]*$', '')
        when 'unit' then unit
        when 'description' then description
        else concat_ws(E'\n', name, table_name, column_name, description, unit)
      end
    ) as described
    where case when pattern is null then strpos(lower(described), word) = 0 else described !~* pattern end
  )
order by
  strpos(lower(name), {first}) <> 1,
  strpos(lower(name), {first}) = 0,
  regexp_replace(name, '\d+', '', 'g'),
  length(name),
  name
limit {limit} offset {offset}
