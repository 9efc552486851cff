create or replace function {procedure}(
  "time" timestamptz,
  {optional_key},
  comment text default null,
  out changed_rows integer,
  out change bigint,
  out changed timestamptz
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_column
declare
  words text := coalesce({this_comment}, format('as at %s', {this_time}));
  reverted record;
  earlier {stored};
  later {stored};
  done record;
begin
  if {this_time} is null then
    raise exception '%: time must be given', {name} using errcode = 'null_value_not_allowed';
  end if;
  changed_rows := 0;
  perform ringlog.lock_parameters();
  for reverted in
    select distinct {stored_key}
    from {stored} as stored
    where (stored.valid @> {this_time} or upper_inf(stored.valid)) and {key_given}
    order by {stored_key}
  loop
    select stored.* into earlier from {stored} as stored where {key_matches_reverted} and stored.valid @> {this_time};
    select stored.* into later from {stored} as stored where {key_matches_reverted} and upper_inf(stored.valid);
    if earlier.version is null then
      select ended.change, ended.changed into done from {remove}({reverted_key}, words) as ended;
    else
      select stored_now.change, stored_now.changed into done
      from {store}(later, earlier, null, words) as stored_now;
    end if;
    if done.change is distinct from later.change then
      changed_rows := changed_rows + 1;
      change := done.change;
      changed := done.changed;
    end if;
  end loop;
end
$$;
comment on function {procedure} is
$$Sets the rows with this key to their state at a time, as one change: rows added since are removed, rows removed since
are added again. Returns the number of changed rows, and number and time of the change; null when nothing has changed.
Errors: an earlier value is outside its current limits (23514).$$;
grant execute on function {procedure} to parameter_writer;
