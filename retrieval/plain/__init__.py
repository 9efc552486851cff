"""The plain API: signals, data and trends of many at once, the latest values, what writers tell; described in
OpenAPI."""
