-- the nodes with rows of a signal, or with those of the waveform whose scalar it is; null is this server
select distinct node
from ringlog.signal_elsewhere
where signal in ({signal}, regexp_replace({signal}, '\.(min|max|mean|rms|length)$', ''))
union
select null
where not exists (select from ringlog.signal_elsewhere where signal in (
    {signal}, regexp_replace({signal}, '\.(min|max|mean|rms|length)$', '')
  ))
  or exists (select from ringlog.signal where signal.signal = {signal})
