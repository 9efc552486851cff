"""The server: the embedded PostgreSQL, the gateway and the process of HTTP, started and stopped as one."""
