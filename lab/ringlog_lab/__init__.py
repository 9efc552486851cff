"""Measurements of ringlog: benchmarks, experiments of other papers, other servers, kept results."""
