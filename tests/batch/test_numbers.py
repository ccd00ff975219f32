"""Numbers in an engine are exact, whichever way they are read."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random

import ibis
import pytest

from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.numbers import Narrow, Numbers, Wide
from adjoin.values import canonical_number

EDGES = [
    "0", "-0.5", "12", "-123456789012", "1234567890123", "-1234567890123", "123456.123456", "12345.1234567",
    "-12345.123456", "0.00000000001", "0.000000000001", "999999999999", "9999999999999", "1234567890.12",
    "123456789012345678901234", "-123456789012345678901234", "123456789012345678901234.123456789012",
]  # fmt: skip
"""Where short numbers end and long ones begin, and where those end."""


def some(random: Random) -> str:
    digits = "".join(random.choices("0123456789", k=random.randint(1, 24)))
    behind = "".join(random.choices("0123456789", k=random.randint(0, 12)))
    return canonical_number(Decimal(f"{random.choice(['', '-'])}{digits}.{behind or 0}"))


def read(numbers: Numbers, texts: list[str]) -> Iterator[str]:
    table = ibis.memtable({"place": range(len(texts)), "text": texts})
    with DuckDBEngine(threads=1) as engine:
        staged = engine.stage(table.select("place", value=numbers.parse(table.text)))
        for row in engine.fetch(staged, ["place"]):
            yield numbers.told(row["value"])


@pytest.mark.parametrize("numbers", [Narrow(), Wide()], ids=["narrow", "wide"])
def test_numbers_are_read_exactly(numbers: Numbers) -> None:
    random = Random(1)
    texts = [*EDGES, *(some(random) for _ in range(2_000))]
    assert list(read(numbers, texts)) == [canonical_number(Decimal(text)) for text in texts]


@pytest.mark.parametrize(
    "text", ["1E+3", "0.0000000000001", "1234567890123456789012345", "heavy", "1234567.1234567890123"]
)
def test_what_does_not_fit_is_not_rounded(text: str) -> None:
    with pytest.raises(DuckDBEngine.malformed):
        list(read(Narrow(), ["1", text]))
