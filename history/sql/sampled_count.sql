select coalesce(sum(
  case
    when block.begins >= {start} and block."time" < {end} then block.n
    else (
      select count(*) from unnest(block.times) as each
      where ringlog.moment(each) >= {start} and ringlog.moment(each) < {end}
    )
  end
), 0)::bigint as n
from {log} as block
where block.signal = {number} and block."time" >= {start} and block."time" < {end} + interval '1 hour'
  and block.begins < {end}
