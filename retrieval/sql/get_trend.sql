-- points of a trend from the summaries, the oldest first, and the microseconds of each
select trend."time", trend.n, trend.min, trend.max, trend.mean, trend.first, trend.last,
  (extract(epoch from trend.width) * 1000000)::bigint as width
from ringlog.trends_of(array[{signal}], {start}, {end}, {points}) as trend
