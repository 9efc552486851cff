"""Random queries whose answers are compared with each other: `python -m ringlog_lab.partitioned`.

A predicate p is true, false or unknown for a row, so the rows of `where p`, of `where not (p)` and of `p is
unknown` are together the rows without a condition (ternary logic partitioning, Rigger and Su 2020), and
`count(*) … where p` counts what `sum(case when p …)` adds (non-optimizing reference engine construction).
"""
