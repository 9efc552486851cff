create or replace function ringlog.list_signals(pattern text default '%', of_table text default null) returns table (
  signal text, table_name text, number integer, state text, type text, unit text, description text,
  changed timestamptz, changed_by text, change text, policy text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select ringlog.demand_table_here(list_signals.of_table);
  select
    known.signal, known.table_name, known.number, known.state, described.type, described.unit, described.description,
    latest."time", latest.login, latest.change, state.policy
  from ringlog.sample_signal as known
  left join ringlog.signal_state as state on state.number = known.number
  left join lateral (
    select each.type, each.unit, each.description from ringlog.signal as each
    where each.table_name = known.table_name and each.column_name = known.number::text and each.signal = known.signal
    order by each.valid_from desc
    limit 1
  ) as described on true
  left join lateral (
    select change."time", change.login, change.change from ringlog.signal_change as change
    where change.table_name = known.table_name
      and known.signal in (change.signal, case change.change when 'rename' then change.detail end)
    order by change."time" desc
    limit 1
  ) as latest on true
  where known.signal like list_signals.pattern
    and (list_signals.of_table is null or known.table_name = list_signals.of_table)
  order by known.signal
$$;
comment on function ringlog.list_signals is
$$The signals of tables of samples, or of one, whose name is like the pattern (% is any text, _ any character): number,
state (active, paused or retired), type, unit and description, the latest change: when, by which login, and what; and
the policy by which its writer takes it (null: none, or its writer has not reported it).$$;
grant execute on function ringlog.list_signals to signal_archivist, daq_writer, daq_table_writer;
