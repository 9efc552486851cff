"""For programs that talk to ringlog: connections and tables."""
