"""A channel by which a supervisor sends new policies to a running writer."""

import pickle
import socket
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from ringlog.schema.facility import Deadband, Sampling, Table


@dataclass(frozen=True)
class Policy:
    """The part of a table's settings that only the writer uses, and that may change while it runs."""

    cycle: float
    sample: Sampling
    deadbands: tuple[Deadband | None, ...]

    @classmethod
    def of(cls, table: Table) -> Self:
        return cls(table.cycle, table.sample, tuple(column.deadband for column in table.columns))

    def applied(self, table: Table) -> Table:
        """The same table with this policy."""
        columns = (
            replace(column, deadband=deadband)
            for column, deadband in zip(table.columns, self.deadbands, strict=True)
        )
        return replace(table, cycle=self.cycle, sample=self.sample, columns=tuple(columns))


_Sent = TypeVar("_Sent")


class PolicyChannel(Generic[_Sent]):
    """Policies sent from the supervisor to one of its processes."""

    def __init__(self) -> None:
        self._giving, self._taking = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._giving.setblocking(False)
        self._taking.setblocking(False)

    def fileno(self) -> int:
        """For the process: readable when a policy has arrived."""
        return self._taking.fileno()

    def give(self, policy: _Sent) -> bool:
        """For the supervisor. False if the process has not taken the earlier ones."""
        try:
            self._giving.send(pickle.dumps(policy))
        except BlockingIOError:
            return False
        return True

    def take(self) -> _Sent | None:
        """For the process: the latest policy, or None."""
        latest: _Sent | None = None
        while True:
            try:
                message = self._taking.recv(2**20)
            except BlockingIOError:
                return latest
            latest = pickle.loads(message)
