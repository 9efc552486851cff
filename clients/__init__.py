"""For programs that talk to ringlog: connections and calls of procedures."""

from ringlog.clients.address import Address, AddressError
from ringlog.clients.connection import connect
from ringlog.clients.password import PasswordError, find_password
from ringlog.clients.procedure import Answer, LoginRefused, Refused, Unanswered, call, output

__all__ = [
    "Address",
    "AddressError",
    "Answer",
    "LoginRefused",
    "PasswordError",
    "Refused",
    "Unanswered",
    "call",
    "connect",
    "find_password",
    "output",
]
