"""The experiments of papers/004, repeated: what was measured there, and the same here."""
