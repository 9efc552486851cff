create or replace function ringlog.waveform_scalars(
  points double precision[], out min double precision, out max double precision, out mean double precision,
  out rms double precision, out length double precision
)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  n bigint;
  top double precision;
begin
  length := cardinality(points);
  select
    count(*), pg_catalog.min(point), pg_catalog.max(point), sum(point) / nullif(count(*), 0),
    sqrt(sum(case when abs(point) between 1e-140 and 1e150 then point * point else 0 end) / nullif(count(*), 0))
  into n, min, max, mean, rms
  from unnest(points) as point
  where point <> 'NaN';
  if n = 0 then
    if length > 0 then
      min := 'NaN'; max := 'NaN'; mean := 'NaN'; rms := 'NaN';
    end if;
    return;
  end if;
  top := greatest(abs(min), abs(max));
  if top = 0 or top = 'infinity' then
    rms := top;
  elsif top not between 1e-120 and 1e150 then
    -- their squares overflow double precision; points below 1e-20 of the greatest have no effect
    select top * sqrt(sum((point / top) * (point / top)) / n) into rms
    from unnest(points) as point
    where point <> 'NaN' and abs(point) > case when top > 1e-300 then top * 1e-20 else 0 end;
  end if;
end
$$;
comment on function ringlog.waveform_scalars is
$$The scalars of a waveform: minimum and maximum of its points, their mean, root mean square, and number. Points that
are NaN count for the number only; if all are NaN, so are the other scalars. Null for null; for a waveform without
points all are null but the number.$$;
grant execute on function ringlog.waveform_scalars to daq_reader, daq_table_reader;
