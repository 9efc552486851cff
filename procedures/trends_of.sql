-- as it was called before
drop function if exists ringlog.trends_of(text[], timestamptz, timestamptz, integer);

create or replace function ringlog.trends_of(
  names text[],
  from_time timestamptz,
  to_time timestamptz,
  points integer,
  with_squares boolean default false
)
returns table (
  signal text,
  "time" timestamptz,
  n bigint,
  min double precision,
  max double precision,
  mean double precision,
  first double precision,
  last double precision,
  nans bigint,
  nulls bigint,
  squares double precision
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
-- PostgreSQL would plan each of its queries anew for each call, which takes longer than to run them
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  same record;
  part record;
begin
  for same in select * from ringlog.bins_of_trends(names, from_time, to_time, points) loop
    if same.have_moved then
      return query select * from ringlog.signal_bins(
        same.signals, same.begins, same.ends, same.width, same.origin, with_squares
      );
      continue;
    end if;
    -- without gathering the rows once more
    for part in
      select * from ringlog.queries_of_bins(
        same.signals, same.begins, same.ends, same.width, same.origin, with_squares
      )
    loop
      return query execute part.query using part.signals, part.columns;
    end loop;
  end loop;
end
$$;

comment on function ringlog.trends_of(text[], timestamptz, timestamptz, integer, boolean) is
$$The common part of get_trend, get_trends and get_waveform_trend; `squares` as in signal_bins.$$;

revoke all on function ringlog.trends_of(text[], timestamptz, timestamptz, integer, boolean) from public;
grant execute on function ringlog.trends_of(text[], timestamptz, timestamptz, integer, boolean) to daq_reader;
