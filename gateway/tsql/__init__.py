"""The T-SQL front end: batches that are more than a procedure call, compiled to programs."""

from ringlog.gateway.tsql.program import compile_batch

__all__ = ["compile_batch"]
