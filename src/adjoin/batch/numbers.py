"""Exact numbers in an engine, never through float.

DynamoDB's numbers have 38 digits anywhere between 1E-130 and 1E+125, which no column type of an engine
holds. Nearly all real ones fit into `Narrow`, a decimal of 24 digits before and 12 behind the point, which
engines add up by themselves. A number that does not fit makes the engine fail rather than round, and the
job is done again with `Wide`: numbers as text that sorts, added up by functions in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Protocol

import ibis
import ibis.expr.types as ir

from adjoin.errors import InvalidKey, InvalidValue
from adjoin.layouts.keys import sortable_text, unsorted_text
from adjoin.values import canonical_number

_SCALE = 12
_NARROW = f"decimal(36, {_SCALE})"
_SHORT_SCALE = 6
_SHORT = f"decimal(18, {_SHORT_SCALE})"
_SHORT_LENGTH = 12
"""Text of so many characters is read through a decimal that fits a machine word, with room for twelve digits before
the point: DuckDB before version 2 takes a hundred times as long to read a longer one."""
TOO_LONG = "~"
"""What stands for a sum that DynamoDB cannot hold; it sorts behind all numbers."""
_EXACT = Context(prec=400, Emin=-(10**6), Emax=10**6)


@ibis.udf.scalar.python(signature=(("string",), "string"))
def adjoin_sortable(text: str) -> str | None:
    """The spelling of a number whose text order is the order of numbers."""
    return None if text is None else sortable_text(Decimal(text))


@ibis.udf.scalar.python(signature=(("string",), "string"))
def adjoin_plain(text: str) -> str | None:
    """The plain spelling behind a sortable one; of a sum that is none, none."""
    return None if text is None or text == TOO_LONG else unsorted_text(text)


@ibis.udf.scalar.python
def adjoin_sum(texts: list[str]) -> str:
    """The exact sum of numbers in their sortable spelling; nothing adds up to zero."""
    total = Decimal(0)
    for text in texts or ():
        if text == TOO_LONG:
            return TOO_LONG
        if text is not None:
            total = _EXACT.add(total, Decimal(unsorted_text(text)))
    try:
        return sortable_text(total)
    except (InvalidValue, InvalidKey):
        return TOO_LONG


class Numbers(Protocol):
    """A form of numbers: how they are read from text, added up, and told."""

    def parse(self, text: ir.StringValue) -> ir.Value: ...

    def literal(self, text: str) -> ir.Value: ...

    def total(self, values: ir.Column) -> ir.Scalar:
        """The sum of a group; of nothing, zero or null."""
        ...

    def added(self, values: Sequence[ir.Value]) -> ir.Value:
        """The sum of columns, in which null counts as zero."""
        ...

    def text(self, value: ir.Value) -> ir.StringValue:
        """Text that `parse` reads again."""
        ...

    def told(self, value: Any) -> str:
        """The canonical text of a value as it was fetched."""
        ...


class Narrow:
    """Decimals of the engine; fails on what does not fit."""

    def parse(self, text: ir.StringValue) -> ir.Value:
        point = text.find(".")
        digits = ibis.ifelse(point < 0, 0, text.length() - point - 1)
        # A cast would round what has more digits, and must fail instead.
        is_wide = (digits > _SCALE) | text.contains("E") | text.contains("e")
        is_short = ~is_wide & (digits <= _SHORT_SCALE) & (text.length() <= _SHORT_LENGTH)
        short = ibis.ifelse(is_short, text, None).cast(_SHORT).cast(_NARROW)
        long = ibis.ifelse(is_wide, ibis.literal("wide: ") + text, text).cast(_NARROW)
        return ibis.ifelse(is_short, short, long)

    def literal(self, text: str) -> ir.Value:
        value = Decimal(text)
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        if -exponent > _SCALE or value.adjusted() >= 36 - _SCALE:
            raise OverflowError(text)
        return ibis.literal(text).cast(_NARROW)

    def total(self, values: ir.Column) -> ir.Scalar:
        return values.sum().cast(_NARROW)

    def added(self, values: Sequence[ir.Value]) -> ir.Value:
        total = values[0].fill_null(0).cast(_NARROW)
        for value in values[1:]:
            total = (total + value.fill_null(0).cast(_NARROW)).cast(_NARROW)
        return total

    def text(self, value: ir.Value) -> ir.StringValue:
        return value.cast("string")

    def told(self, value: Any) -> str:
        return canonical_number(value)


class Wide:
    """Text that sorts; fits everything, and takes a call of Python for each number."""

    def parse(self, text: ir.StringValue) -> ir.Value:
        return adjoin_sortable(text)

    def literal(self, text: str) -> ir.Value:
        return ibis.literal(sortable_text(Decimal(text)))

    def total(self, values: ir.Column) -> ir.Scalar:
        return adjoin_sum(values.collect())

    def added(self, values: Sequence[ir.Value]) -> ir.Value:
        zero = sortable_text(0)
        return adjoin_sum(ibis.array([value.fill_null(zero) for value in values]))

    def text(self, value: ir.Value) -> ir.StringValue:
        return adjoin_plain(value)

    def told(self, value: Any) -> str:
        if value == TOO_LONG:
            raise InvalidValue("it has more digits than a number of DynamoDB; round what is added up")
        return canonical_number(unsorted_text(value))
