"""Summaries of rows and samples: spans, the blocks that store them, and how they are made."""
