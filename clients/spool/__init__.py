"""The queue on disk between a source and the server, and how it is sent."""
