"""What all experiments of papers have in common: outcome, server, report, comparison."""
