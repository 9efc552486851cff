create or replace function ringlog.summary_parts(
  table_name text, from_time timestamptz, to_time timestamptz, width integer, number text default null
) returns table (level integer, begins timestamptz, ends timestamptz)
language plpgsql stable set search_path = pg_catalog, pg_temp
-- PostgreSQL would plan its queries at each call, which takes longer than running them
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  levels integer[];
  chain integer[] := '{}';
  until timestamptz;
  at timestamptz := from_time;
  edge timestamptz;
  shorter integer;
  length interval;
  -- the parts without late rows: level and end of each
  part_levels integer[] := '{}';
  part_ends timestamptz[] := '{}';
  late timestamptz[] := '{}';
  span timestamptz;
  -- of ringlog.schema.relations.partitions: rows of clocks that were never set are not summarised
  earliest constant timestamptz := '1970-01-05 00:00+00';
begin
  if from_time < least(earliest, to_time) then
    level := 0; begins := from_time; ends := least(earliest, to_time);
    return next;
    if to_time > earliest then
      return query select * from ringlog.summary_parts(table_name, earliest, to_time, width, number);
    end if;
    return;
  end if;
  select found.levels, least(found.until, to_time) into levels, until
  from ringlog.summarised as found
  where found.table_name = table_name and found.until > from_time;

  -- spans that divide a bin, and shorter ones for both ends; not all of them, because each part costs
  select max(each) into shorter from unnest(levels) as each where width % each = 0;
  while shorter is not null loop
    chain := shorter || chain;
    select max(each) into shorter
    from unnest(levels) as each
    where each < chain[1] and chain[1] % each = 0 and (each * 5 <= chain[1] or each = levels[1]);
  end loop;

  -- ever longer spans, and shorter ones again towards the end
  shorter := 0;
  for step in 1 .. cardinality(chain) loop
    length := chain[step] * interval '1 second';
    edge := date_bin(length, at - interval '1 microsecond', 'epoch') + length;
    exit when edge + length > until;
    if edge > at then
      part_levels := part_levels || shorter;
      part_ends := part_ends || edge;
    end if;
    at := edge;
    shorter := chain[step];
  end loop;
  for step in reverse coalesce(array_position(chain, shorter), 0) .. 1 loop
    edge := date_bin(chain[step] * interval '1 second', until, 'epoch');
    if edge > at then
      part_levels := part_levels || chain[step];
      part_ends := part_ends || edge;
      at := edge;
    end if;
  end loop;
  if to_time > at then
    part_levels := part_levels || 0;
    part_ends := part_ends || to_time;
  end if;

  if chain <> '{}' then
    -- rows not yet in their spans
    select array_agg(distinct mark."time") into late
    from ringlog.summary_mark as mark
    where mark.table_name = table_name and mark."time" >= from_time and mark."time" < until
      and (mark.column_name is null or mark.column_name = number)
      -- except those of archived weeks
      and not exists (
        select from ringlog.cold_week as week
        where week.table_name = table_name and week.recalled_until is null
          and week.begins <= mark."time" and mark."time" < week.ends
      );
  end if;
  begins := from_time;
  for part in 1 .. cardinality(part_levels) loop
    level := part_levels[part];
    ends := part_ends[part];
    if level > 0 and late is not null then
      length := level * interval '1 second';
      shorter := coalesce(chain[array_position(chain, level) - 1], 0);
      for span in
        select distinct date_bin(length, mark, 'epoch') from unnest(late) as mark
        where mark >= begins and mark < part_ends[part] order by 1
      loop
        if span > begins then
          ends := span;
          return next;
        end if;
        ends := span + length;
        if shorter = 0 then
          level := 0; begins := span;
          return next;
        else
          return query select * from ringlog.summary_parts(table_name, span, ends, shorter, number);
        end if;
        level := part_levels[part]; begins := span + length; ends := part_ends[part];
      end loop;
    end if;
    if ends > begins then
      return next;
    end if;
    begins := part_ends[part];
  end loop;
end
$$;
comment on function ringlog.summary_parts is
$$The parts in which a table's readings from from_time (inclusive) to to_time (exclusive) are read, in order of time:
from summaries of spans of `level` seconds, of which `width` is a multiple, or, where level is 0, from the rows. The
bounds must be finite. `number` is the signal of a table of samples.$$;
grant execute on function ringlog.summary_parts to daq_reader, daq_table_reader;
