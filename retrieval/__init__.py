"""Reading over HTTP: the Archiver Appliance's API, a plain API, the page."""
