"""ringlog: a data logger for accelerators and plants, written through stored procedures over TDS."""
