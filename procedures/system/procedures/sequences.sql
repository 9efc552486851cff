create function sys.sp_sequence_get_range(
  sequence_name text, range_size bigint, inout range_first_value bigint default null,
  inout range_last_value bigint default null, inout range_cycle_count integer default null,
  inout sequence_increment bigint default null, inout sequence_min_value bigint default null,
  inout sequence_max_value bigint default null
)
language plpgsql
as $$
declare
  -- each number is taken by itself
  longest constant bigint := 1000000;
  found record;
  numbers record;
begin
  select * into found from sys.every_sequence as sequences where sys.is_same_name(sequences.name, sys.parsename(sequence_name, 1));
  if found is null then
    perform tsql.raise(208, 16, 1, format('Invalid object name ''%s''.', sequence_name));
  elsif coalesce(range_size, 0) < 1 then
    perform tsql.raise(11731, 16, 1, 'Cannot retrieve a range: the range size must be a positive number.');
  elsif range_size > longest then
    perform tsql.raise(102, 15, 1, format('sp_sequence_get_range of more than %s numbers is not supported.', longest));
  elsif range_size * abs(found.increment::numeric) > found.most::numeric - found.least + 1 then
    perform tsql.raise(11732, 16, 1, format('The requested range for sequence object ''%s'' exceeds the maximum or minimum limit. '
      'Retry with a smaller range.', sequence_name));
  end if;
  loop
    select min(number) as least, max(number) as most into numbers
    from (select nextval(found.oid::regclass) as number from generate_series(1, range_size)) as taken;
    -- others may have taken numbers in between, or the sequence has restarted: these are left out
    exit when numbers.most::numeric - numbers.least = (range_size - 1) * abs(found.increment::numeric);
  end loop;
  range_first_value := case when found.increment > 0 then numbers.least else numbers.most end;
  range_last_value := case when found.increment > 0 then numbers.most else numbers.least end;
  range_cycle_count := 0;
  sequence_increment := found.increment;
  sequence_min_value := found.least;
  sequence_max_value := found.most;
end
$$;
comment on function sys.sp_sequence_get_range(text, bigint, bigint, bigint, integer, bigint, bigint, bigint) is
$$SQL Server: sp_sequence_get_range. Numbers of a sequence without a gap, at most a million. Errors: no such sequence (208), more
numbers than it has (11732).$$;
