"""The parameter `pv`: a signal, and the operator on its samples."""

import re
from dataclasses import dataclass

from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.signals import LONGEST

OF_BINS = (
    "firstSample",
    "firstFill",
    "lastSample",
    "lastFill",
    "mean",
    "min",
    "max",
    "count",
    "std",
    "variance",
    "popvariance",
    "rms",
    "jitter",
    "median",
    "skewness",
    "kurtosis",
    "stats",
    "errorbar",
    "caplotbinning",
    "linear",
    "loess",
    "flyers",
    "ignoreflyers",
)
"""Operators whose number is the width of a bin in seconds, by default 900."""

OF_SAMPLES = ("nth", "ncount", "optimized", "optimLastSample", "deadBand", "twoweek", "pb")
"""Operators of another kind."""

WITHOUT_FILL = {
    f"{name}Sample": name
    for name in OF_BINS
    if name
    not in ("firstSample", "firstFill", "lastSample", "lastFill", "caplotbinning", "flyers", "ignoreflyers")
} | {"optimizedSample": "optimized", "optimLastSampleSample": "optimLastSample"}
"""Names of operators that omit bins without samples."""

_FAR = ("flyers", "ignoreflyers")

_DEFAULT = {"nth": 900.0, "optimized": 1000.0, "optimLastSample": 1000.0, "deadBand": 1.0}
# numbers may also follow the signal, as in mean(x,60): the appliance's DataRetrievalServlet
_CALL = re.compile(r"\s*([A-Za-z]+)((?:_[0-9.]+)*)\((.*?)((?:,\s*[0-9.]+)*)\s*\)\s*", re.DOTALL | re.ASCII)
_WIDEST = 100 * 366 * 86_400


@dataclass(frozen=True)
class SignalRequest:
    """A signal, and an operator with its number; operator "" gives the samples as they are."""

    signal: str
    operator: str = ""
    number: float = 0.0
    fill: bool = True
    """whether bins without samples are included, with the value before them"""
    deviations: float = 3.0
    """deviations from the mean beyond which a sample is a flyer"""


def parse_pv(pv: str, operator: str | None = None) -> SignalRequest:
    """Reads `pv`, as `sr_rf/power` or `mean_60(sr_rf/power)`, and the parameter `pp`, if it was given.

    A text before a bracket that is not the name of an operator is part of the signal's name. Raises Refused
    (400).
    """
    if not pv.strip() or "\0" in pv or len(pv) > LONGEST:
        raise Refused(400, f"pv must name a signal, in at most {LONGEST} characters")
    call = _CALL.fullmatch(pv)
    if call is not None and _is_operator(call[1]):
        return _operator(call[1], call[2] + re.sub(r",\s*", "_", call[4]), call[3].strip())
    if operator:
        named = re.fullmatch(r"([A-Za-z]+)((?:_[0-9.]+)*)", operator.strip(), re.ASCII)
        if named is None or not _is_operator(named[1]):
            raise Refused(400, f"there is no operator {operator[:60]!r}: {', '.join(OF_BINS + OF_SAMPLES)}")
        return _operator(named[1], named[2], pv.strip())
    return SignalRequest(pv.strip())


def _is_operator(name: str) -> bool:
    return name in OF_BINS or name in OF_SAMPLES or name in WITHOUT_FILL


def _operator(name: str, numbers: str, signal: str) -> SignalRequest:
    if not signal:
        raise Refused(400, f"{name}() names no signal")
    fill = name not in WITHOUT_FILL
    name = WITHOUT_FILL.get(name, name)
    given = [text for text in numbers.split("_") if text]
    try:
        number = float(given[0]) if given else _DEFAULT.get(name, 900.0)
        deviations = float(given[1]) if name in _FAR and len(given) > 1 else 3.0
    except ValueError:
        raise Refused(400, f"{name}{numbers}: these are not numbers") from None
    if name != "deadBand" and number != int(number):
        raise Refused(400, f"{name}_{given[0]}: the number must be whole")
    if not (0 < number <= _WIDEST) and not (name == "deadBand" and number == 0):
        raise Refused(
            400, f"{name}_{given[0]}: the number must be above 0 and not beyond a hundred years of seconds"
        )
    if name in ("optimized", "optimLastSample") and number > 1_000_000:
        raise Refused(400, f"{name}_{given[0]}: at most 1000000 points")
    return SignalRequest(signal, "" if name == "pb" else name, number, fill, deviations)
