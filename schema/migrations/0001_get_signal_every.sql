-- get_signal has a fifth parameter, every: as it was called before
drop function if exists ringlog.get_signal(text, timestamptz, timestamptz, integer);
