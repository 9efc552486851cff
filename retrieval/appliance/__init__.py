"""The HTTP interface of the EPICS Archiver Appliance, for its viewers and client programs.

Written from the appliance's documentation (Retrieval API; the .pb file format and the PB/HTTP protocol) and
its clients.
"""
