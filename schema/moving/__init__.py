"""Tables on other servers, and their moves."""
