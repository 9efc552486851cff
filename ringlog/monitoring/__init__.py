"""The state of the server and of its tables: metrics, health checks, `ringlog status`."""
