-- the signals of today, of all servers, that the login may read and that hold all these words in what is known of them, those that begin so first
select
  found.signal,
  found.table_name,
  found.column_name,
  found.type,
  found.unit,
  found.description,
  found.limit_low,
  found.limit_high
from (
  select signal, table_name, column_name, type, unit, description, limit_low, limit_high, valid_to
  from ringlog.signal
  union all
  select signal, table_name, column_name, type, unit, description, limit_low, limit_high, valid_to
  from ringlog.signal_elsewhere
) as found
where found.valid_to is null
  and (pg_has_role('daq_reader', 'usage') or found.table_name in (select ringlog.readable_tables()))
  and (found.type like '%[]' and found.type not like 'varchar%' or not {waveforms})
  and not exists (
    select from unnest({words}::text[]) as word
    where strpos(lower(concat_ws(' ', found.signal, found.table_name, found.description, found.unit)), word) = 0
  )
order by
  strpos(lower(found.signal), coalesce(({words}::text[])[1], '')) <> 1,
  strpos(lower(found.signal), coalesce(({words}::text[])[1], '')) = 0,
  regexp_replace(found.signal, '\d+', '', 'g'),
  length(found.signal),
  found.signal
limit {limit} offset {offset}
