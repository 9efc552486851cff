"""The experiments of papers/004, repeated: the published figures, and those measured here."""
