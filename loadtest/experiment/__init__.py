"""The common parts of all experiments of papers: outcome, server, report, comparison."""
