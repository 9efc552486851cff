"""The writer process of a table of samples: signals come and go, each event of a signal becomes a sample."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringlog.clients import Address
from ringlog.clients.reconnecting import Failed
from ringlog.clients.sample_writer import SampleWriter
from ringlog.clients.samples import Samples
from ringlog.clients.spool.stored import GiB
from ringlog.gateway import _core
from ringlog.loader.control.policy_channel import PolicyChannel
from ringlog.loader.control.stop_signal import StopSignal
from ringlog.loader.sample_registry import Registry
from ringlog.loader.schedule import SECOND
from ringlog.loader.sources import Event, Note, SampleSource, SourceError, Subscriptions, Wanted
from ringlog.loader.sources.values import fit
from ringlog.loader.statistics import Statistics
from ringlog.schema.alarms import SEVERITIES
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import Column, Deadband, SamplePolicy, SampleTable
from ringlog.schema.moments import moment_of

# Seconds between two rows of the spool.
_KEEP = 1.0
# Seconds of one wait for events, and for the registry at the start.
_WAIT = 0.25
_PATIENCE = 5.0
# Seconds without an answer after which a signal counts as not found.
_SEARCH = 10.0
# Seconds after a connection until the rate of its events counts.
_MEASURED = 60.0
# Seconds between two events about the same signal's clock.
_AGAIN = 3600.0
# EPICS sends 1990-01-01 with a record that was never processed.
_FIRST = _core.FIRST_TIME * 10**9
# The severity of a lost signal.
_INVALID = SEVERITIES.index("INVALID")


class _Signal:
    def __init__(self, wanted: Wanted, deadband: str, latest: int) -> None:
        self.wanted = wanted
        self.deadband = Deadband.of(wanted.deadband or deadband)
        self.latest = latest
        """time of the latest sample"""
        self.is_new = True
        """no event has arrived since it was added"""
        self.event: Event | None = None
        """the latest event"""
        self.taken: Event | None = None
        """the latest event that was not within the deadband"""
        self.connected: bool | None = None
        self.since = time.time_ns() // 1000
        self.trouble: str | None = None
        """why its samples are not stored"""
        self.noted_kind = ""
        self.dropped = 0
        self.noted = 0.0
        self.policy: SamplePolicy | None = None
        self.record_type: str | None = None
        self.received = 0
        """events since it was connected"""
        self.rate: float | None = None
        """events a second"""
        self.measured = False
        """whether the rate is that of this connection"""
        self.waiting: tuple[Event, int, Any] | None = None
        """the latest event of a period of a scan, its time and value"""
        self.waits_since = 0.0
        self.lost = latest
        """time of the latest sample before this connection"""
        self.properties: dict[str, Any] = {}
        """properties that its source has sent, as columns of ringlog.signal"""
        self.properties_at = 0
        """when it sent them, in microseconds since 1970"""
        self.reported: dict[str, Any] = {}
        """properties that were reported to the server"""

    @property
    def period(self) -> float | None:
        """Seconds, of each of which the latest event is taken; None: every event is taken."""
        return None if self.policy is None else self.policy.period


class Sampler:
    """Makes samples of the events of a table's signals."""

    def __init__(
        self, table: SampleTable, statistics: Statistics, note: Note, policies: Sequence[SamplePolicy] = ()
    ) -> None:
        self._table = table
        self._policies = policies
        self._column = Column(table.name, table.name, table.type, points=table.points)
        # values that are stored as they are
        self._plain = float if table.type == ColumnType(Kind.DOUBLE) else None
        self._drift = round(table.clock_drift.total_seconds() * 10**9)
        self._statistics = statistics
        self._note = note
        self._events: deque[Event] = deque()
        self.receive = self._events.append
        self._properties: deque[tuple[int, dict[str, Any]]] = deque()
        self._signals: dict[int, _Signal] = {}
        self.latest: dict[int, int] = {}
        """time of the latest sample of signals, by their numbers"""
        self._reported: dict[int, tuple[object, ...]] = {}
        self._waiting: set[int] = set()

    def describe(self, number: int, properties: dict[str, Any]) -> None:
        """Takes properties of a signal from its source, in any thread."""
        self._properties.append((number, properties))

    def change(self, wanted: Sequence[Wanted]) -> tuple[list[Wanted], list[int]]:
        """Takes these signals from now on. Returns those to be added at the source, and the numbers of those
        to be removed there; a signal with another address or deadband is both."""
        left = {each.number: each for each in wanted}
        gone = [number for number, one in self._signals.items() if left.get(number) != one.wanted]
        for number in gone:
            self.latest[number] = self._signals.pop(number).latest
            self._reported.pop(number, None)
        new = [each for each in wanted if each.number not in self._signals]
        for each in new:
            latest = self.latest.get(each.number, 0)
            self._signals[each.number] = signal = _Signal(each, self._table.deadband, latest)
            self._begin(signal)
        return new, gone

    def adopt(self, policies: Sequence[SamplePolicy]) -> None:
        """Takes signals by these policies from now on."""
        self._policies = policies
        for signal in self._signals.values():
            self._begin(signal)

    def samples(self, *, ends: bool = False) -> Samples:
        """The samples of events since the last call; at the end also of events that wait for the end of a
        period."""
        found = Samples()
        while self._properties:
            number, properties = self._properties.popleft()
            if (signal := self._signals.get(number)) is not None:
                self._learn(signal, dict(properties))
        latest = time.time_ns() + self._drift
        for _ in range(len(self._events)):
            event = self._events.popleft()
            signal = self._signals.get(event.number)
            if signal is None:
                continue
            if event.time is None:
                self._disconnect(signal, found)
                continue
            signal.received += 1
            if _FIRST <= event.time <= latest:
                self._take(signal, event, event.time, found)
            else:
                self._drop(signal, event.time)
        self._scan(found, ends)
        return found

    def measure(self, seconds: float = _MEASURED) -> None:
        """Gives signals that have been connected for so long a rate, on which policies may depend."""
        if all(policy.rate is None for policy in self._policies):
            return
        now = time.time_ns() // 1000
        for signal in self._signals.values():
            lasted = (now - signal.since) / SECOND
            if signal.connected and not signal.measured and lasted >= seconds:
                signal.rate, signal.measured = signal.received / lasted, True
                self._decide(signal)

    def miss(self, seconds: float = _SEARCH) -> None:
        """Marks signals that were not found for so long as lost."""
        before = time.time_ns() // 1000 - round(seconds * SECOND)
        for signal in self._signals.values():
            if signal.connected is None and signal.since < before:
                self._connect(signal, False)

    def states(self) -> list[dict[str, Any]]:
        """The states of signals that have changed since the last call."""
        found = []
        for number, signal in self._signals.items():
            policy = signal.policy and signal.policy.name
            state = (signal.connected, signal.trouble, policy)
            if self._reported.get(number) != state or signal.dropped or signal.properties != signal.reported:
                self._reported[number] = state
                report: dict[str, Any] = {
                    "number": number,
                    "connected": signal.connected,
                    "since": moment_of(signal.since).isoformat(),
                    "trouble": signal.trouble,
                    "dropped": signal.dropped,
                    "policy": policy,
                }
                if signal.properties != signal.reported:
                    report |= {
                        "reported": signal.properties,
                        "reported_at": moment_of(signal.properties_at).isoformat(),
                    }
                    signal.reported = signal.properties
                found.append(report)
                signal.dropped = 0
        return found

    def report_again(self) -> None:
        """Reports the states of all signals again, after the last report was lost."""
        self._reported.clear()
        for signal in self._signals.values():
            signal.reported = {}

    def _learn(self, signal: _Signal, properties: dict[str, Any]) -> None:
        """Keeps those properties of a signal that samples of the table's type can have."""
        signal.record_type = properties.pop("record_type", signal.record_type)
        self._decide(signal)
        kind = self._table.type
        if kind.is_text:
            properties = {key: value for key, value in properties.items() if key == "description"}
        elif kind.is_float:
            properties.pop("states", None)
        if properties:
            signal.properties = {**signal.properties, **properties}
            now = time.time_ns() // 1000
            is_new = not signal.connected or now - signal.since < _SEARCH * SECOND
            # it has changed while there was no connection: the first value may be older than this message
            signal.properties_at = signal.lost // 1000 + 1 if is_new else now

    def _decide(self, signal: _Signal) -> None:
        """Finds the policy of a signal: its own, or the first that applies."""
        own, address = signal.wanted.policy, signal.wanted.address
        signal.policy = next(
            (
                each
                for each in self._policies
                if (each.name == own if own else each.applies(address, signal.record_type, signal.rate))
            ),
            None,
        )

    def _begin(self, signal: _Signal) -> None:
        """Finds the policy of a new signal, or of a signal after a change of policies."""
        self._decide(signal)
        if (own := signal.wanted.policy) and signal.policy is None:
            message = f"{signal.wanted.address}: there is no policy '{own}': every event is taken"
            self._note("policy", time.time_ns() // 1000, message, None, None)

    def _take(self, signal: _Signal, event: Event, moment: int, found: Samples) -> None:
        before, signal.event = signal.event, event
        is_back = signal.is_new or signal.connected is False
        if signal.connected is not True:
            self._connect(signal, True)
        # a source sends the latest value again at each subscription
        is_repeated = signal.is_new and moment // 1000 == signal.latest // 1000
        signal.is_new = False
        holds_again = is_back and moment < signal.latest and not is_repeated
        if holds_again:
            # older than the loss, which is stored as a sample: the value is valid again from now on
            moment = time.time_ns()
        elif _same(event, before):
            return
        try:
            value = event.value
            if type(value) is not self._plain:
                value = fit(value, self._column)
        except (TypeError, ValueError, OverflowError) as error:
            self._complain(signal, "unfit", moment, str(error))
            signal.dropped += 1
            self._statistics.dropped += 1
            return
        signal.trouble = None
        if is_repeated:
            signal.taken = Event(event.number, event.time, value, *event[3:])
            return
        if is_back or signal.period is None:
            self._end_wait(signal, found)
            self._store(signal, event, moment, value, found)
        else:
            self._wait(signal, round(signal.period * 10**9), event, moment, value, found)
        if holds_again and event.time is not None and before is not None and not _same(event, before):
            # the event arrived before the loss was noticed
            found.add(event.number, event.time, value, event.severity, event.status)

    def _wait(
        self, signal: _Signal, period: int, event: Event, moment: int, value: Any, found: Samples
    ) -> None:
        """Keeps the latest event of a period of a scan; one of another period ends the one before."""
        if signal.waiting is not None and signal.waiting[1] // period != moment // period:
            self._end_wait(signal, found)
        if signal.waiting is None:
            signal.waits_since = time.monotonic()
        signal.waiting = event, moment, value
        self._waiting.add(event.number)

    def _scan(self, found: Samples, ends: bool) -> None:
        """Takes events that have waited for their period, of signals that have sent no other since."""
        now = time.monotonic()
        for number in [*self._waiting]:
            signal = self._signals.get(number)
            if signal is None or signal.waiting is None:
                self._waiting.remove(number)
                continue
            period = signal.period
            if ends or period is None or now - signal.waits_since >= period + _KEEP:
                self._end_wait(signal, found)

    def _end_wait(self, signal: _Signal, found: Samples) -> None:
        if signal.waiting is not None:
            self._store(signal, *signal.waiting, found)
            signal.waiting = None

    def _store(self, signal: _Signal, event: Event, moment: int, value: Any, found: Samples) -> None:
        """Adds a sample, if it is not within the deadband."""
        taken = signal.taken
        if signal.deadband is not None and taken is not None:
            is_alarm = (taken.severity, taken.status) != event[3:]
            if not is_alarm and not _core.moved([signal.deadband], [taken.value], [value]):
                return
        signal.taken = Event(event.number, event.time, value, *event[3:])
        if taken is not None and taken.time == moment and signal.latest >= moment:
            # two values of one time
            moment = signal.latest + 1
        signal.latest = moment
        found.add(event.number, moment, value, event.severity, event.status)

    def _disconnect(self, signal: _Signal, found: Samples) -> None:
        signal.trouble = None
        self._end_wait(signal, found)
        if signal.connected:
            self._connect(signal, False)
            signal.latest = signal.lost = time.time_ns()
            signal.taken = None
            found.add(signal.wanted.number, signal.latest, None, _INVALID, 0)

    def _drop(self, signal: _Signal, moment: int) -> None:
        if signal.connected is not True:
            self._connect(signal, True)
        signal.dropped += 1
        self._statistics.dropped += 1
        if moment < _FIRST:
            message = "it has no time: it was never processed"
        else:
            message = f"its time stamp is {(moment - time.time_ns()) // 10**9} s ahead"
        self._complain(signal, "clock", time.time_ns(), f"{message}: its samples are not stored")

    def _complain(self, signal: _Signal, kind: str, moment: int, message: str) -> None:
        """Stores why samples are not stored; an event reports each kind at once, and again every hour."""
        is_new = signal.trouble is None or signal.noted_kind != kind
        if is_new or time.monotonic() >= signal.noted + _AGAIN:
            signal.noted, signal.noted_kind = time.monotonic(), kind
            signal.trouble = message
            self._note(kind, moment // 1000, f"{signal.wanted.address}: {message}", None, None)

    def _connect(self, signal: _Signal, is_there: bool) -> None:
        """Records whether a signal is connected; an event reports changes, as for rows."""
        before, signal.connected = signal.connected, is_there
        signal.since = time.time_ns() // 1000
        signal.received, signal.measured = 0, False
        if not is_there or before is False:
            kind = "connected" if is_there else "disconnected"
            self._note(kind, signal.since, signal.wanted.address, None, None)


def _same(one: Event, other: Event | None) -> bool:
    """Whether two events are the same; waveforms are compared as bytes, and NaN is the same as NaN."""
    if other is None or (one[:2], one[3:]) != (other[:2], other[3:]):
        return False
    first, second = (
        each.value.tobytes() if hasattr(each.value, "tobytes") else each.value for each in (one, other)
    )
    return bool(first == second or (first != first and second != second))


@dataclass(frozen=True)
class SampleProcess:
    """The parameters of the writer process of a table of samples, like WriterProcess."""

    table: SampleTable
    address: Address
    password: str
    source: SampleSource
    spool: Path
    budget: int = GiB
    byte_order: str = "little"
    take_over: bool = False
    policies: tuple[SamplePolicy, ...] = ()
    channel: PolicyChannel[tuple[SamplePolicy, ...]] = field(default_factory=PolicyChannel)

    def run(self, statistics: Statistics, stop: StopSignal) -> None:
        """Writes until the stop is released."""
        writer = SampleWriter(
            self.table,
            self.address,
            self.password,
            self.spool,
            byte_order=self.byte_order,
            budget=self.budget,
            take_over=self.take_over and not statistics.restarts,
            figures=statistics,
            ended=stop.set_here,
        )
        registry = Registry(self.table.name, self.address, self.password, self.spool)
        sampler = Sampler(self.table, statistics, writer.note, self.policies)
        try:
            source = self.source.subscriptions(self.table, sampler.receive, sampler.describe)
            try:
                registry.answered.wait(_PATIENCE)
                sampler.latest = registry.latest
                for number, moment in writer.waiting_times().items():
                    sampler.latest[number] = max(moment, sampler.latest.get(number, 0))
                self._change(sampler, source, registry.changed() or registry.known())
                self._take(writer, registry, sampler, source, statistics, stop)
            finally:
                # the end of a subscription is not a loss: events of closing are not samples
                self._keep(writer, sampler, statistics, ends=True)
                source.close()
        except SourceError as error:
            raise Failed(str(error)) from error
        finally:
            registry.close()
            writer.close()
            if writer.error:
                raise writer.error

    def _take(
        self,
        writer: SampleWriter,
        registry: Registry,
        sampler: Sampler,
        source: Subscriptions,
        statistics: Statistics,
        stop: StopSignal,
    ) -> None:
        while True:
            due = time.monotonic() + _KEEP
            while (left := due - time.monotonic()) > 0:
                stop.sleep(0.0)
                source.wait(min(left, _WAIT))
            self._keep(writer, sampler, statistics)
            sampler.miss()
            sampler.measure()
            if (policies := self.channel.take()) is not None:
                sampler.adopt(policies)
            if registry.failed:
                registry.failed = False
                sampler.report_again()
            registry.report(sampler.states())
            if (wanted := registry.changed()) is not None:
                self._change(sampler, source, wanted)

    def _keep(
        self, writer: SampleWriter, sampler: Sampler, statistics: Statistics, *, ends: bool = False
    ) -> None:
        taken = sampler.samples(ends=ends)
        writer.take_samples(taken)
        statistics.sent += len(taken)
        statistics.count_cpu()

    def _change(self, sampler: Sampler, source: Subscriptions, wanted: Sequence[Wanted]) -> None:
        new, gone = sampler.change(wanted)
        for number in gone:
            source.remove(number)
        source.add(new)
