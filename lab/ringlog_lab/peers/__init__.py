"""Other database servers for comparison: found where they are installed, started on data of their own."""
