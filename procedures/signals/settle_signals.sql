create or replace function ringlog.settle_signals(numbers integer[], begins timestamptz[]) returns integer[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  nothing constant jsonb := '{"unit": "", "description": "", "limit_low": null, "limit_high": null, "alarm_low": null,
    "alarm_high": null, "states": null, "held": false, "decimals": null}';
  changed integer[];
  rows ringlog.signal[];
begin
  select array_agg(known.number), array_agg(jsonb_populate_record(wanted, jsonb_build_object(
    'valid_from', greatest(given.begins, before.valid_from + interval '1 microsecond' * (given.begins is not null)::integer)
  )))
  into changed, rows
  from unnest(settle_signals.numbers, settle_signals.begins) as given (number, begins)
  join ringlog.sample_signal as known on known.number = given.number
  join ringlog.signal as before
    on before.table_name = known.table_name and before.column_name = known.number::text and before.valid_to is null
  cross join lateral jsonb_populate_record(before, nothing || known.reported::jsonb || known.own::jsonb) as wanted
  where wanted is distinct from before;
  delete from ringlog.signal as before
  using unnest(rows) as wanted
  where before.signal = wanted.signal and before.valid_from = wanted.valid_from;
  update ringlog.signal as before
  set valid_to = wanted.valid_from
  from unnest(rows) as wanted
  where before.signal = wanted.signal and before.valid_to is null;
  insert into ringlog.signal select wanted.* from unnest(rows) as wanted;
  return coalesce(changed, '{}');
end
$$;
comment on function ringlog.settle_signals is
$$Updates the properties of signals of tables of samples in ringlog.signal: those from sources, replaced by those that the
facility file or an archivist has set. Changes are valid from `begins` on, or, where that is null, for the whole time of
the signal's entry. Returns the numbers of the changed signals.$$;
