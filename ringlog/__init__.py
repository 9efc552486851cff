"""ringlog: a data logger for accelerators and plants, written through stored procedures over TDS."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringlog.clients import Refused as Refused
    from ringlog.clients import Unanswered as Unanswered
    from ringlog.clients import call as call
    from ringlog.clients import connect as connect
    from ringlog.clients import output as output

__all__ = ["Refused", "Unanswered", "call", "connect", "output"]


def __getattr__(name: str) -> Any:
    # at their first use: parts that need no client do not load one
    if name in __all__:
        from ringlog import clients

        return getattr(clients, name)
    raise AttributeError(f"module 'ringlog' has no attribute {name!r}")
