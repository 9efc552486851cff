-- points of a trend within spans from the summaries, the oldest first, in columns, and the microseconds of each
select array_send(array_agg(trend."time")), array_send(array_agg(trend.n)), array_send(array_agg(trend.min)),
  array_send(array_agg(trend.max)), array_send(array_agg(trend.mean)), array_send(array_agg(trend.first)),
  array_send(array_agg(trend.last)), (extract(epoch from max(bins.width)) * 1000000)::bigint
from ringlog.bins_of_trends(array[$1], $2::timestamptz, $3::timestamptz, $4::integer) as bins
cross join lateral ringlog.bins_within(
  bins.signals, bins.begins, bins.ends, bins.width, bins.origin, false, $5::tstzmultirange
) as trend
