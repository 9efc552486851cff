"""The processes and threads of the server, and how they end."""
