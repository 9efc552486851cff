create or replace function {procedure}(
  r {row_type},
  comment text default null,
  inout version integer default null,
  clear text default null,
  out change bigint,
  out changed timestamptz
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_variable
declare
  cleared text[] := coalesce(string_to_array(replace(clear, ' ', ''), ','), array[]::text[]);
  before {stored};
  wanted {stored};
begin
  {demanded_of_r}
  if not cleared <@ array[{data_names}]::text[] then
    raise exception '%: clear names % and may name only columns of the table that are not of its key', {name}, clear
      using errcode = 'undefined_column';
  end if;
  perform ringlog.lock_parameters();
  select stored.* into before from {stored} as stored where {key_matches_r} and upper_inf(stored.valid);
  wanted := before;
  {key_of_r}
  {given_of_r}
  select done.version, done.change, done.changed into version, change, changed
  from {store}(before, wanted, version, comment) as done;
end
$$;
comment on function {procedure} is
$$Changes a row, or adds it. A column that is omitted or null is not changed; `clear` is a list, with commas, of columns
that become null. version is the one that was read with the row, 0 for a row that must not exist yet, null for any; the
new one is returned, with number and time of the change. A row that has these values already is not a change. All calls
of one transaction are one change. Errors, which change nothing: another session has changed it first (40001, T-SQL's
1205), a value outside its limits or no number (23514), an incomplete key (23502), another transaction has been changing
parameters for more than 10 s (55P03).$$;
grant execute on function {procedure} to parameter_writer;
