"""The plain API: signals, data and trends of many at once, the latest values, the state of writers; described
in OpenAPI."""
