"""S-DALINAC's archiver in PostgreSQL (papers/000, 001): write rates, write schemes, reading."""
