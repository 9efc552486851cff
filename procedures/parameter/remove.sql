create or replace function {procedure}(
  {key_arguments},
  comment text default null,
  version integer default null,
  out change bigint,
  out changed timestamptz
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_column
declare
  before {stored};
begin
  perform ringlog.lock_parameters();
  select stored.* into before from {stored} as stored where {key_matches_argument} and upper_inf(stored.valid);
  if not found then
    raise exception '%: there is no row (%)', {name}, {shown_argument} using errcode = 'no_data_found';
  end if;
  perform ringlog.demand_version(
    format('%s (%s)', {table}, {shown_argument}), before.version, before.change, {this_version}
  );
  select begun.change, begun.changed into change, changed
  from ringlog.begin_parameter_change({this_comment}) as begun;
  if before.change = {this_change} then
    -- added by this change itself: it leaves no history
    delete from {stored} as stored where {key_matches_argument} and upper_inf(stored.valid);
  else
    update {stored} as stored
    set valid = tstzrange(lower(stored.valid), {this_changed}), ended = {this_change}
    where {key_matches_argument} and upper_inf(stored.valid);
  end if;
end
$$;
comment on function {procedure} is
$$Removes a row from the current rows; its history remains. version as for changing it. Errors: no such row (P0002),
another session has changed it first (40001).$$;
grant execute on function {procedure} to parameter_writer;
