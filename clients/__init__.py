"""The client library: connections, calls of procedures, writers, tables for reading."""

from ringlog.clients.address import Address, AddressError
from ringlog.clients.calling import call
from ringlog.clients.connection import connect
from ringlog.clients.password import PasswordError, find_password
from ringlog.clients.procedure import Answer, Connection, LoginRefused, Refused, Unanswered, output
from ringlog.clients.reading import ReadRefused, read

__all__ = [
    "Address",
    "AddressError",
    "Answer",
    "Connection",
    "LoginRefused",
    "PasswordError",
    "ReadRefused",
    "Refused",
    "Unanswered",
    "call",
    "connect",
    "find_password",
    "output",
    "read",
]
