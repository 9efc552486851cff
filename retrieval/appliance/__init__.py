"""The HTTP interface of the EPICS Archiver Appliance, for the viewers and programs that speak it.

What it says is read from the appliance's documentation (Retrieval API; the .pb file format and the PB/HTTP
protocol) and from its clients.
"""
