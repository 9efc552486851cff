create or replace function ringlog.signal_states(pattern text default '%', of_table text default null) returns table (
  signal text, table_name text, connected boolean, newest timestamptz, value text, severity smallint,
  rate double precision, dropped bigint, silent text
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  sampled record;
begin
  perform ringlog.demand_table_here(signal_states.of_table);
  for sampled in
    select
      known.table_name,
      known.type like '%[]' as is_waveform,
      case
        when writer.table_name is null then 'no writer of ringlog has claimed the table'
        when writer.released is not null then format('its writer has ended at %s', date_trunc('second', writer.released))
        when writer.reported < now() - interval '2 minutes' then
          format('its writer has not reported since %s', date_trunc('second', writer.reported))
      end as unwritten
    from ringlog.sample_table as known
    left join ringlog.writer on writer.table_name = known.table_name
    where signal_states.of_table is null or known.table_name = signal_states.of_table
  loop
    return query execute format(
      $query$
        select
          known.signal, known.table_name, state.connected, latest."time", latest.value, latest.severity,
          (
            select coalesce(sum(block.n), 0)
            from weeks.%1$I as block
            where block.signal = known.number and block."time" > now() - interval '1 minute' and block."time" <= now()
          ) / 60.0::double precision,
          coalesce(state.dropped, 0),
          case
            when known.state <> 'active' then known.state
            when $1 is not null then $1
            when state.trouble is not null then state.trouble
            when not state.connected then format('not found since %%s', date_trunc('second', state.since))
            when state.connected is null then 'its writer has not reported it yet'
          end
        from ringlog.sample_signal as known
        left join ringlog.signal_state as state on state.number = known.number
        left join lateral (
          select one.*
          from (
            (
              select
                ringlog.moment(block.times[block.n]) as "time", %2$s as value,
                coalesce(block.severities[block.n], 0::smallint) as severity
              from weeks.%1$I as block
              where block.signal = known.number
              order by block."time" desc
              limit 1
            )
            union all
            select ringlog.moment(archived."time"), %3$s, archived.severity
            from ringlog.last_archived as archived
            where archived.number = known.number
          ) as one
          order by one."time" desc
          limit 1
        ) as latest on true
        where known.table_name = %1$L and known.signal like $2
      $query$,
      sampled.table_name,
      case when sampled.is_waveform then 'cardinality(block.points) || '' points''' else 'block.samples[block.n]::text' end,
      case when sampled.is_waveform then 'cardinality(archived.value::text[]) || '' points''' else 'archived.value' end
    ) using sampled.unwritten, signal_states.pattern;
  end loop;
end
$$;
comment on function ringlog.signal_states is
$$The state of each signal of tables of samples, or of one, whose name is like the pattern: whether its writer is
connected to it; time, value as text (of a waveform the number of its points) and severity of its newest sample;
samples a second in the last minute; samples that its writer has dropped; and why it is silent, unless it only does
not change.$$;
grant execute on function ringlog.signal_states to daq_reader, signal_archivist;
