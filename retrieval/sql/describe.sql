-- the newest location of each of these signals, on each server that has it; the previous one comes first
select *
from (
  select distinct on (location.signal, location.node)
    location.signal,
    location.table_name,
    location.column_name,
    location.type,
    location.unit,
    location.description,
    location.limit_low,
    location.limit_high,
    location.alarm_low,
    location.alarm_high,
    location.states,
    location.held,
    location.decimals,
    location.valid_from,
    -- infinity: a name before the signal, or its column, was renamed
    coalesce(location.valid_to, 'infinity') = 'infinity' as now,
    (
      jsonb_agg(jsonb_build_object(
        'until', extract(epoch from location.valid_to) * 1000,
        'unit', location.unit,
        'description', location.description,
        'limits', case when num_nonnulls(location.limit_low, location.limit_high) > 0 then jsonb_build_array(location.limit_low, location.limit_high) end,
        'alarm_limits', case when num_nonnulls(location.alarm_low, location.alarm_high) > 0 then jsonb_build_array(location.alarm_low, location.alarm_high) end,
        'states', location.states::jsonb,
        'held', location.held
      )) over (partition by location.signal order by location.valid_from rows between unbounded preceding and 1 preceding)
    )::text as was,
    location.node,
    logged_table.cycle,
    logged_table.log_nth,
    logged_table.log_period,
    sample_table.table_name is not null as is_of_samples
  from (
    select
      signal, table_name, column_name, type, unit, description, limit_low, limit_high, alarm_low, alarm_high,
      states, held, decimals, valid_from, valid_to,
      null::text as node
    from ringlog.signal
    where signal.signal = any({names}::text[])
    union all
    select
      signal, table_name, column_name, type, unit, description, limit_low, limit_high, alarm_low, alarm_high,
      states, held, decimals, valid_from, valid_to,
      known.node
    from ringlog.signal_elsewhere as known
    where known.signal = any({names}::text[])
  ) as location
  left join ringlog.sample_table on sample_table.table_name = location.table_name and location.node is null
  left join ringlog.logged_table on logged_table.table_name = location.table_name and location.node is null
  order by location.signal, location.node, location.valid_from desc
) as newest
order by signal, valid_from
