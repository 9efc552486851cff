create or replace function ringlog.likely_reading(
  earlier timestamptz, later timestamptz, newest timestamptz, cycle double precision
) returns timestamptz
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select case
    when goes_on then nearest_newest
    when newest is null
      or now() between earlier - interval '1 hour' and later + interval '1 hour' then nearest_now
    else nearest_newest
  end
  from (
    select
      case
        when abs(extract(epoch from earlier - newest)) <= abs(extract(epoch from later - newest)) then earlier
        else later
      end as nearest_newest,
      case
        when abs(extract(epoch from earlier - now())) < abs(extract(epoch from later - now())) then earlier
        else later
      end as nearest_now,
      least(abs(extract(epoch from earlier - newest)), abs(extract(epoch from later - newest)))
        <= greatest(3 * cycle, 60) as goes_on
  ) as distances
$$;
comment on function ringlog.likely_reading is
$$The instant of a local time that occurred twice because clocks were set back: the one within three cycles (or a
minute) of the table's newest row, otherwise, during that night, the one nearest to the server's clock, otherwise the
one nearest to the newest row. put_<table> calls it for clients that send times without a zone.$$;
