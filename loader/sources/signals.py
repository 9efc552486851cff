"""The signals of a simulated storage ring: the value of a column at a time, by its type, unit and limits.

Times are seconds since 1970. All constants of a signal are derived from the seed and its name; the noise
comes from the random numbers of each row.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import TypeAlias, TypeVar

from ringlog.clients.readings import packed, waveform
from ringlog.loader.sources import Reading
from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Column

State = TypeVar("State", int, str)

Signal: TypeAlias = Callable[[float, Random], Reading]

# The beam: 100 mA at most, a lifetime of 10 h, topped up every 20 s.
_FULL_BEAM = 100.0
_LIFETIME = 36_000.0
_TOP_UP = 20.0

_DAY = 86_400.0
_STATES = ("OPERATION", "STANDBY", "LOCAL", "READY", "FAULT", "RUN", "ON", "OK", "Y")


def beam_current(seconds: float) -> float:
    """The stored beam in mA: it decays, and every 20 s the injector refills it to nearly the same value."""
    fill = _FULL_BEAM - 0.05 * _chance("fill", math.floor(seconds / _TOP_UP))
    return fill * math.exp(-(seconds % _TOP_UP) / _LIFETIME)


def signal(seed: int, column: Column) -> Signal:
    """The value of `column`, as a function of time and the row's random numbers."""
    own = Random(f"{seed} {column.signal}")
    if column.is_packed:
        return _trace(own, column)
    if column.is_waveform:
        return _states(seed, column)
    if column.type.kind is Kind.BIT:
        return _bit(seed, column.signal)
    if column.states:
        return _one_of(seed, column.signal, [number for number, _ in column.states])
    if column.is_text:
        return _state(seed, column)
    if column.type.kind is Kind.DATETIME:
        return _last_change
    if column.type.kind is Kind.NUMERIC:
        return _decimal(own, column)
    if column.type.is_integer:
        return _count(own, column)
    unit = column.unit
    if unit == "mA":
        return _within(column, _beam(own))
    if unit in ("Pa", "Torr", "mbar"):
        return _within(column, _pressure(own, column))
    if unit in ("degC", "°C", "C", "K"):
        return _within(column, _temperature(own, column))
    return _within(column, _supply(own, column))


def _beam(own: Random) -> Signal:
    gain = own.gauss(1.0, 1e-4)
    return lambda seconds, noise: gain * beam_current(seconds) + noise.gauss(0.0, 0.002)


def _pressure(own: Random, column: Column) -> Signal:
    """Gas that the beam frees from the walls, on a logarithmic scale, with a burst at each injection."""
    low, high = column.limits or (1e-9, 1e-6)
    logarithms = math.log10(max(low, high * 1e-6)), math.log10(high)
    base = 10 ** (sum(logarithms) / 2 + own.uniform(-0.2, 0.2) * (logarithms[1] - logarithms[0]))
    burst, decay = own.uniform(0.1, 0.6), own.uniform(1.0, 4.0)
    slow = _wave(own, 600.0, 7200.0)

    def pressure(seconds: float, noise: Random) -> float:
        beam = 0.3 + 0.7 * beam_current(seconds) / _FULL_BEAM
        injection = 1.0 + burst * math.exp(-(seconds % _TOP_UP) / decay)
        return base * beam * injection * 10 ** (0.05 * slow(seconds) + noise.gauss(0.0, 0.008))

    return pressure


def _temperature(own: Random, column: Column) -> Signal:
    """A tunnel temperature that follows the day, and cooling water that oscillates a little."""
    low, high = column.limits or ((293.15, 303.15) if column.unit == "K" else (20.0, 30.0))
    middle = (low + high) / 2 + own.uniform(-0.1, 0.1) * (high - low)
    daily, water = own.uniform(0.3, 1.0), own.uniform(0.02, 0.1)
    swing = _wave(own, 180.0, 900.0)
    return lambda seconds, noise: (
        middle
        + daily * math.sin(2 * math.pi * seconds / _DAY)
        + water * swing(seconds)
        + noise.gauss(0.0, 0.005)
    )


def _supply(own: Random, column: Column) -> Signal:
    """A magnet's or any other current, voltage, position or flow: close to its set point, drifting slowly."""
    low, high = column.limits or (0.0, 100.0)
    setpoint = low + own.uniform(0.2, 0.8) * (high - low)
    scale = high - low
    slow, ripple = _wave(own, 3600.0, 14_400.0), _wave(own, 20.0, 120.0)
    return lambda seconds, noise: (
        setpoint + scale * (3e-4 * slow(seconds) + 2e-5 * ripple(seconds) + noise.gauss(0.0, 5e-6))
    )


def _count(own: Random, column: Column) -> Signal:
    """A converter's counts around a middle value, always inside limits and type."""
    top = (1 << (column.type.bits or 64) - 1) - 1
    low, high = column.limits or (0, min(top, 4095))
    low, high = math.ceil(max(low, -top)), math.floor(min(high, top))
    middle = low + own.uniform(0.3, 0.7) * (high - low)
    slow = _wave(own, 600.0, 7200.0)

    def count(seconds: float, noise: Random) -> int:
        value: float = middle + (high - low) * (0.05 * slow(seconds) + noise.gauss(0.0, 0.002))
        return min(max(round(value), low), high)

    return count


def _decimal(own: Random, column: Column) -> Signal:
    """A signal with as many digits as the column has."""
    precision, scale = column.type.digits or 0, column.type.scale or 0
    top = 10.0 ** (precision - scale)
    low, high = column.limits or (0.0, min(100.0, top / 2))
    supply = _supply(own, replace(column, limits=(low, high)))

    def digits(seconds: float, noise: Random) -> str:
        value = supply(seconds, noise)
        assert isinstance(value, float)
        return f"{min(max(value, low), high):.{scale}f}"

    return digits


def _last_change(seconds: float, noise: Random) -> str:
    """The begin of the interval of five minutes in which states do not change."""
    return datetime.fromtimestamp(seconds // 300 * 300, UTC).isoformat()


def _bit(seed: int, name: str) -> Signal:
    """A status that is good, except in one of fifty intervals of five minutes; a fault has the opposite
    value."""
    good = not any(word in name.lower() for word in ("fault", "alarm", "trip"))
    return lambda seconds, noise: (_chance(seed, name, seconds // 300) >= 0.02) is good


def _state(seed: int, column: Column) -> Signal:
    length = column.type.length or 80
    return _one_of(seed, column.signal, [state for state in _STATES if len(state) <= length])


def _one_of(seed: int, name: str, states: Sequence[State]) -> Callable[[float, Random], State]:
    """The first of these states, except in one of ten intervals of five minutes."""

    def state(seconds: float, noise: Random) -> State:
        unusual = _chance(seed, name, seconds // 300)
        return states[0] if unusual >= 0.1 else states[int(unusual * 10 * len(states))]

    return state


def _states(seed: int, column: Column) -> Signal:
    """A signal of as many texts as the column has points, each with a state of its own."""
    single = replace(column, type=column.type.element, points=None)
    states = [
        _state(seed, replace(single, signal=f"{column.signal} {index}"))
        for index in range(column.points or 1)
    ]
    return lambda seconds, noise: waveform([state(seconds, noise) for state in states], column)


def _trace(own: Random, column: Column) -> Signal:
    """A pulse on an oscilloscope of as many points as the column has, a little further on in every row."""
    points = column.points or 1
    low, high = column.limits or (0.0, 1.0 if column.type.kind is Kind.BIT else 100.0)
    width = own.uniform(0.02, 0.1)
    whole = not column.type.is_float
    # the pulse at the middle of twice as many points: a row shows a part of it
    shape = [math.exp(-(((point / points - 1.0) / width) ** 2)) for point in range(2 * points)]
    levels = [low + (high - low) * level for level in shape]
    pulse = [round(level) for level in levels] if whole else levels

    def trace(seconds: float, noise: Random) -> bytes:
        first = int(points * (0.2 + 0.6 * (seconds / 60.0 % 1.0)))
        return packed(pulse[first : first + points], column)

    return trace


def _within(column: Column, inner: Signal) -> Signal:
    if column.limits is None:
        return inner
    low, high = column.limits
    return lambda seconds, noise: min(max(float(inner(seconds, noise) or 0.0), low), high)


def _wave(own: Random, shortest: float, longest: float) -> Callable[[float], float]:
    """A slow oscillation between -1 and 1 with a period (in seconds) of its own."""
    period, phase = own.uniform(shortest, longest), own.uniform(0.0, 2 * math.pi)
    return lambda seconds: math.sin(2 * math.pi * seconds / period + phase)


def _chance(*what: object) -> float:
    """A number in [0, 1) that depends only on the arguments."""
    return zlib.crc32(repr(what).encode()) / 2**32
