-- points of a trend from the summaries, the oldest first, and the microseconds of each
select trend."time", trend.n, trend.min, trend.max, trend.mean, trend.first, trend.last,
  (extract(epoch from bins.width) * 1000000)::bigint as width
from ringlog.bins_of_trends(array[{signal}], {start}, {end}, {points}) as bins
cross join lateral ringlog.get_trend({signal}, {start}, {end}, {points}) as trend
