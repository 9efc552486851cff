"""Commands that find, change and export signals."""
