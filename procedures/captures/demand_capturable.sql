create or replace function ringlog.demand_capturable(tables text, begins timestamptz, ends timestamptz) returns text[]
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  -- between two looks of housekeeping, also when it is late
  pause constant interval := interval '10 seconds';
  wanted text[];
  refused text := (select reason from ringlog.capture_refused);
  known record;
  oldest timestamptz;
begin
  if refused is not null then
    raise exception 'capture_event: %', refused using errcode = 'disk_full';
  end if;
  select array_agg(distinct coalesce(grouped.table_name, ringlog.table_now(btrim(word))))
  into wanted
  from string_to_table(tables, ',') as word
  left join ringlog.table_group as grouped on grouped.group_name = btrim(word)
  where btrim(word) <> '';
  if wanted is null then
    raise exception 'capture_event: name the tables to keep' using errcode = 'invalid_parameter_value';
  end if;
  for known in
    select name, each.is_of_samples, rows.rows, rows.cycle, rows.log_nth = 1 and rows.log_period is null as logs_every
    from unnest(wanted) as name
    left join ringlog.every_table as each on each.table_name = name
    left join ringlog.logged_table as rows on rows.table_name = name
  loop
    perform ringlog.demand_table_here(known.name);
    if known.is_of_samples is null then
      raise exception 'capture_event: there is no table %', known.name using errcode = 'undefined_table';
    end if;
    if exists (
      select from ringlog.cold_week as week
      where week.table_name = known.name and week.recalled_until is null and week.begins < ends and week.ends > begins
    ) then
      raise exception 'capture_event: rows of table % of this time are in the archive', known.name
        using errcode = 'RL003', hint = 'The archive keeps them; ringlog recall brings the week back.';
    end if;
    if known.is_of_samples or known.logs_every then
      continue;
    end if;
    if known.rows * known.cycle * interval '1 second' < least(ends, clock_timestamp()) - begins + pause then
      raise exception 'capture_event: the ring of table % has % s, % rows; the log takes only some of them. The % s since % and % s for the copy are more',
        known.name, known.rows * known.cycle, known.rows,
        extract(epoch from least(ends, clock_timestamp()) - begins)::numeric(12, 1), begins, extract(epoch from pause)::integer
        using errcode = 'object_not_in_prerequisite_state', hint = 'Ask for less, or make the ring larger.';
    end if;
    execute format(
      'select case when count(*) = count("time") then min("time") end from online.%I', known.name
    ) into oldest;
    if oldest > begins then
      raise exception 'capture_event: the ring of table % has rows from % on; those since % are lost', known.name, oldest, begins
        using errcode = 'object_not_in_prerequisite_state', hint = 'Ask for less, or make the ring larger.';
    end if;
  end loop;
  return wanted;
end
$$;
comment on function ringlog.demand_capturable is
$$The tables that these names and groups mean. Errors: see capture_event.$$;
