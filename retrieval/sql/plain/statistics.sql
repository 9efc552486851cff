-- the figures of a signal within spans
select n, min, max, mean, std, rms, first, last, nans, nulls, seconds, time_mean
from ringlog.statistics_within({signal}, {start}, {end}, {spans}, nullif({gap}::double precision, 'infinity'), {weighted})
