"""`ringlog bench`: the gateway beside PostgreSQL called directly, on one server, alternating.

The parts, each of which runs alone with --only:

write    calls of put_<table> at full rate: straight to PostgreSQL, in pipelined groups, through the gateway
lone     the same by a single caller, for the time that one call takes
memory   the gateway's memory, idle and with twice as many busy connections
columns  values/s against the number of columns (papers/004, figure 4)
read     get_<table>_range of 100,000 rows through TDS, and COPY
mixed    writers while others read
text     usual texts and psycopg's, and a writer during texts that all differ
retrieval  a signal and whole rows over HTTP, in each form, by 1, 10 and 100 clients (papers/003, table 3)
stall    the longest wait of any call in a long run (--stall SECONDS)
"""
