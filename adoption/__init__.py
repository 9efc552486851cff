"""Migration from an old server: its catalogue, the equivalent objects in ringlog, and its rows."""
