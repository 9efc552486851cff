"""ESS's study of the Archiver Appliance (papers/003): 48 scenarios of waveforms, and their retrieval."""
