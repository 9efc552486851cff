"""Figures shared by processes, and latencies taken from them."""

import math
import os
import random

import pytest

from ringlog.loader.statistics import Latencies, Statistics, shared


def test_a_forked_process_counts_for_its_parent() -> None:
    statistics = shared(3)
    child = os.fork()
    if child == 0:
        statistics[1].sent = 5
        statistics[1].message = "no route to Ω" + "x" * 1000
        statistics[1].answered(0.25)
        os._exit(0)
    os.waitpid(child, 0)
    assert [one.sent for one in statistics] == [0, 5, 0]
    assert statistics[1].message.startswith("no route to Ω")
    assert statistics[1].acknowledged == 1
    assert statistics[1].last_latency == statistics[1].longest_latency == 0.25


def test_a_message_is_cut_between_characters() -> None:
    statistics = Statistics()
    statistics.message = "Ω" * 1000
    assert set(statistics.message) == {"Ω"}


@pytest.mark.parametrize("part", [0.01, 0.5, 0.9, 0.99, 0.999, 1.0])
def test_quantiles_of_several_processes_are_within_five_percent(part: float) -> None:
    dice = random.Random(7)
    statistics = [Statistics() for _ in range(4)]
    latencies = [dice.lognormvariate(math.log(0.002), 1.5) for _ in range(4000)]
    for number, latency in enumerate(latencies):
        statistics[number % 4].answered(latency)
    exact = sorted(latencies)[max(0, math.ceil(part * len(latencies)) - 1)]
    found = Latencies(statistics)
    assert exact <= found.quantile(part) <= exact * 1.05
    assert found.longest == max(latencies)


def test_latencies_outside_the_classes_are_counted() -> None:
    statistics = Statistics()
    statistics.answered(1e-7)
    statistics.answered(10_000.0)
    found = Latencies([statistics])
    assert found.quantile(0.5) < 1.1e-5
    assert found.longest == 10_000.0


def test_no_calls_have_no_latency() -> None:
    assert math.isnan(Latencies([Statistics()]).quantile(0.5))
