-- the newest place of each of these signals, on each server that has it; the place before comes first
select *
from (
  select distinct on (place.signal, place.node)
    place.signal,
    place.table_name,
    place.column_name,
    place.type,
    place.unit,
    place.description,
    place.limit_low,
    place.limit_high,
    place.alarm_low,
    place.alarm_high,
    place.states,
    place.held,
    place.decimals,
    place.valid_from,
    -- infinity: a name before the signal, or its column, was renamed
    coalesce(place.valid_to, 'infinity') = 'infinity' as now,
    (
      jsonb_agg(jsonb_build_object(
        'until', extract(epoch from place.valid_to) * 1000,
        'unit', place.unit,
        'description', place.description,
        'limits', case when num_nonnulls(place.limit_low, place.limit_high) > 0 then jsonb_build_array(place.limit_low, place.limit_high) end,
        'alarm_limits', case when num_nonnulls(place.alarm_low, place.alarm_high) > 0 then jsonb_build_array(place.alarm_low, place.alarm_high) end,
        'states', place.states::jsonb,
        'held', place.held
      )) over (partition by place.signal order by place.valid_from rows between unbounded preceding and 1 preceding)
    )::text as was,
    place.node,
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
  ) as place
  left join ringlog.sample_table on sample_table.table_name = place.table_name and place.node is null
  left join ringlog.logged_table on logged_table.table_name = place.table_name and place.node is null
  order by place.signal, place.node, place.valid_from desc
) as newest
order by signal, valid_from
