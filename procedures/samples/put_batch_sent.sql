(
    -- of a stored tuple only the needed part of the array is copied
    with given as materialized (select samples as points)
    select
      one.signal, one."time", case when one.n is not null then given.points[one.ends - one.n + 1:one.ends] end,
      one.severity, one.status
    from (
      select each.*, (sum(coalesce(each.n, 0)) over (order by each.position))::integer as ends
      from unnest(signals, times, lengths, severities, statuses)
        with ordinality as each (signal, "time", n, severity, status, position)
    ) as one
    cross join given
  )