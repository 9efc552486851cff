"""Commands on machines and their settings."""
