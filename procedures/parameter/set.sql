create or replace function {procedure}(
  r {row_type},
  comment text default null,
  inout version integer default null,
  clear text default null,
  out change bigint,
  out changed timestamptz
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
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

comment on function {procedure}({row_type}, text, integer, text) is
$$Changes a row, or makes it. A column left out or null stays as it is; `clear` names those, with commas between,
that are to be null. version is what the row had when it was read, 0 for a row that must not be there yet, null for
whatever it is; given back is the one it has now, with the number and time of the change. A row that is so already
is no change. All calls of one transaction are one change.
Errors, which change nothing: somebody else was faster (40001, T-SQL's 1205), a value outside its limits or no
number (23514), a key left out (23502), others are changing parameters for more than 10 s (55P03).$$;

revoke all on function {procedure}({row_type}, text, integer, text) from public;
grant execute on function {procedure}({row_type}, text, integer, text) to parameter_writer;
