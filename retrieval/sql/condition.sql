select distinct signal from ringlog.condition_steps({condition}) where step = 'compare'
