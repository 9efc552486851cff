  if (r.seq_no - 1) % {nth} <> 0 then
    return 0;
  end if;
  if {period}::interval is not null then
    -- only the first of two callers in one period is logged
    lock table only {log} in share update exclusive mode;
    period := date_bin({period}::interval, r."time", timestamptz '2000-01-01 00:00+00');
    -- if the ring has a row of this period, it is already logged; faster than looking into many weeks
    if exists (
      select from {ring} as ring
      where ring."time" >= period and ring."time" < period + {period}::interval
        and ring.seq_no <> r.seq_no
    ) then
      return 0;
    end if;
    if exists (
      select from {log} as logged
      where logged."time" >= period and logged."time" < period + {period}::interval
    ) then
      return 0;
    end if;
  end if;
