select min("time") as first_time from {log}
