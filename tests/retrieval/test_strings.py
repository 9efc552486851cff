"""Whole numbers as text, however they are spread: one by one, looked up, as milliseconds."""

from decimal import Decimal

import numpy as np
import pytest

from ringlog.retrieval.strings import joined, milliseconds, nanoseconds, whole

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0],
        [7, 7, 7, 7],
        [-1, 0, 1, 2] * 9,
        [9, 10] * 20,
        [*range(997, 1003)] * 20,
        [1_794_823_200 + number // 10 for number in range(5000)],
        [1_794_823_200 + number * 7919 % 50 for number in range(5000)],
        [2**62, 0, -(2**63)],
    ],
)
def test_whole_numbers(numbers: list[int]) -> None:
    texts = whole(np.array(numbers, np.int64), ",").to_pylist()
    assert texts == [f"{number}," for number in numbers]


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0, 0, 0],
        [0, 1_000_000, 999_000_000] * 3,
        [0, 1_000_000, 999_999_999],
        [*range(0, SECOND, 1_234_567)],
    ],
)
def test_nanoseconds(numbers: list[int]) -> None:
    texts = nanoseconds(np.array(numbers, np.int64), "\n").to_pylist()
    assert texts == [f"{number}\n" for number in numbers]


@pytest.mark.parametrize(
    "micros",
    [
        [0, 1, 999, 1000, 1001],
        [-1, -999, -1000, -1001, -86_400_000_000 + 1],
        [-5_000, 0, 7_000],
        [-1, 0, 1] * 50,
        [1_794_823_200_000_000 + number * 7 for number in range(50)],
    ],
)
def test_microseconds_as_milliseconds(micros: list[int]) -> None:
    """Before 1970 too, as clocks that were never set say."""
    texts = joined(*milliseconds(np.array(micros, np.int64), "\n")).decode().splitlines()
    assert [Decimal(text) * 1000 for text in texts] == micros
