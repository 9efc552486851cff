-- points of a trend from the summaries, the oldest first
select trend."time", trend.n, trend.min, trend.max, trend.mean, trend.first, trend.last
from ringlog.get_trend({signal}, {start}, {end}, {points}) as trend
