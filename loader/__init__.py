"""The writers: sources, the writer process and its supervisor."""
