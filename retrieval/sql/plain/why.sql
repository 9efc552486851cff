select cause, since, until, rows, evidence
from ringlog.why_missing({signal}, {start}, {end})
