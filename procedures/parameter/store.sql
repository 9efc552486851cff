create or replace function {procedure}(
  before {stored},
  wanted {stored},
  expected integer,
  words text,
  out version integer,
  out change bigint,
  out changed timestamptz
)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  row_shown text := format('%s (%s)', {table}, {shown_wanted});
begin
  perform ringlog.demand_version(row_shown, before.version, before.change, expected);
{checks}
  if before.version is not null and row ({before_data}) is not distinct from row ({wanted_data}) then
    version := before.version;
    change := before.change;
    changed := lower(before.valid);
    return;
  end if;
  select begun.change, begun.changed into change, changed
  from ringlog.begin_parameter_change(words) as begun;
  if before.change = change then
    -- set twice in one change: the last values count
    update {stored} as stored
    set {assignments}
    where {key_matches_wanted} and upper_inf(stored.valid);
    version := before.version;
    return;
  end if;
  update {stored} as stored
  set valid = tstzrange(lower(stored.valid), changed), ended = change
  where {key_matches_wanted} and upper_inf(stored.valid);
  select coalesce(max(stored.version), 0) + 1 into version
  from {stored} as stored
  where {key_matches_wanted};
  insert into {stored} ({key_columns}, version, change, valid, {data_columns})
  values ({wanted_key}, version, change, tstzrange(changed, null), {wanted_data});
end
$$;
comment on function {procedure} is
$$Replaces the current row `before` by `wanted`. The caller holds the lock of parameters. Only the procedures that
change this table call it.$$;
