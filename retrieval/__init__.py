"""How people and tools read it over HTTP: the Archiver Appliance's API, a plain API, the page."""
