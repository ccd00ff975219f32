"""Values in an engine: exact numbers, never floats, and values whose type is known only at run time.

DynamoDB's numbers have up to 38 digits between 1E-130 and 1E+125, which no column type of an engine can hold. Nearly
all real numbers fit into `Narrow`, a decimal with 24 digits before and 12 after the point, which engines can add
natively. If a number does not fit, the engine fails rather than rounds, and the job runs again with `Wide`: numbers as
sortable text, added by Python functions.

Text, numbers and booleans are columns of the engine. Other values are the JSON of a stored attribute, and are handled
one by one by the functions that the graph itself uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any, Protocol, cast

import ibis
import ibis.expr.types as ir
from orjson import dumps, loads

from adjoin.errors import InvalidKey, InvalidValue
from adjoin.evaluate import condition_test
from adjoin.expressions import Condition
from adjoin.items import normal_attribute
from adjoin.layouts.key_values import sortable_text, unsorted_text
from adjoin.layouts.own_items import LONGEST_RANK, rank_text
from adjoin.values import canonical_number

_SCALE = 12
_NARROW = f"decimal(36, {_SCALE})"
_SHORT_SCALE = 6
_SHORT = f"decimal(18, {_SHORT_SCALE})"
_SHORT_LENGTH = 12
"""Text of at most this length is parsed as a decimal that fits into a machine word, with twelve digits before the
point. DuckDB before version 2 takes a hundred times as long to parse a longer decimal."""
TOO_LONG = "~"
"""Stands for a sum that DynamoDB cannot store. It sorts after all numbers."""
_EXACT = Context(prec=400, Emin=-(10**6), Emax=10**6)


@ibis.udf.scalar.python(signature=(("string",), "string"))
def adjoin_sortable(text: str) -> str | None:
    """A number as text whose order is the order of the numbers."""
    return None if text is None else sortable_text(Decimal(text))


@ibis.udf.scalar.python(signature=(("string",), "string"))
def adjoin_plain(text: str) -> str | None:
    """The plain text of a sortable number; None for `TOO_LONG`."""
    return None if text is None or text == TOO_LONG else unsorted_text(text)


@ibis.udf.scalar.python
def adjoin_sum(texts: list[str]) -> str:
    """The exact sum of sortable numbers. The sum of none is zero."""
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


@ibis.udf.scalar.python(signature=(("string", "string"), "string"))
def adjoin_product(one: str, other: str) -> str | None:
    """The exact product of two numbers as text; None if one of them is missing."""
    if one is None or other is None:
        return None
    return f"{_EXACT.multiply(Decimal(one), Decimal(other)).normalize(_EXACT):f}"


@ibis.udf.scalar.python(signature=(("string", "string"), "string"))
def adjoin_sortable_product(one: str, other: str) -> str | None:
    """The same for sortable numbers; `TOO_LONG` if a number has too many digits."""
    if one is None or other is None or TOO_LONG in (one, other):
        return None if one is None or other is None else TOO_LONG
    try:
        return sortable_text(_EXACT.multiply(Decimal(unsorted_text(one)), Decimal(unsorted_text(other))))
    except (InvalidValue, InvalidKey):
        return TOO_LONG


class Numbers(Protocol):
    """A form of numbers: how they are parsed from text, added, and written as text."""

    def parse(self, text: ir.StringValue) -> ir.Value: ...

    def literal(self, text: str) -> ir.Value: ...

    def total(self, values: ir.Column) -> ir.Scalar:
        """The sum of a group; zero or null for an empty one."""
        ...

    def added(self, values: Sequence[ir.Value]) -> ir.Value:
        """The sum of columns; null counts as zero."""
        ...

    def product(self, one: ir.Value, other: ir.Value) -> ir.Value:
        """The exact product of two numbers."""
        ...

    def text(self, value: ir.Value) -> ir.StringValue:
        """Text that `parse` can read."""
        ...

    def told(self, value: Any) -> str:
        """The canonical text of a fetched value."""
        ...


class Narrow:
    """Decimals of the engine. A number that does not fit is an error."""

    def parse(self, text: ir.StringValue) -> ir.Value:
        point = text.find(".")
        digits = ibis.ifelse(point < 0, 0, text.length() - point - 1)
        # A cast would silently round a number with more digits. The prefix "wide: " makes it fail instead.
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

    def product(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.parse(adjoin_product(self.text(one), self.text(other)))

    def text(self, value: ir.Value) -> ir.StringValue:
        return value.cast("string")

    def told(self, value: Any) -> str:
        return canonical_number(value)


class Wide:
    """Sortable text. It can hold every number, but costs a Python call per number."""

    def parse(self, text: ir.StringValue) -> ir.Value:
        return adjoin_sortable(text)

    def literal(self, text: str) -> ir.Value:
        return ibis.literal(sortable_text(Decimal(text)))

    def total(self, values: ir.Column) -> ir.Scalar:
        return adjoin_sum(values.collect())

    def added(self, values: Sequence[ir.Value]) -> ir.Value:
        zero = sortable_text(0)
        return adjoin_sum(ibis.array([value.fill_null(zero) for value in values]))

    def product(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return adjoin_sortable_product(one, other)

    def text(self, value: ir.Value) -> ir.StringValue:
        return adjoin_plain(value)

    def told(self, value: Any) -> str:
        if value == TOO_LONG:
            raise InvalidValue(
                "the sum has more digits than a DynamoDB number can have; round the values that are added"
            )
        return canonical_number(unsorted_text(value))


# --- values whose type is not known before -----------------------------------------------------


SUBJECT = "value"
"""The name of the attribute with which a condition is tested."""
_SPELLED = r"[^&-\x{10FFFF}]"
"""Characters that a rank writes as three characters: those up to the escape character."""


@ibis.udf.scalar.builtin(name="bit_length")
def _bits(text: str) -> int:
    """Eight times the number of bytes in UTF-8."""
    raise NotImplementedError  # the engine's own function is called


@ibis.udf.scalar.python(signature=(("string",), "string"))
def adjoin_rank(text: str) -> str | None:
    """The text by which a stored value is ranked; None for a value that has no order."""
    if text is None:
        return None
    try:
        return rank_text(normal_attribute(loads(text)))
    except InvalidKey:
        return None


@ibis.udf.scalar.python(signature=(("string",), "array<string>"))
def adjoin_elements(text: str) -> list[str] | None:
    """The elements of a stored list, or the value itself if it is not a list."""
    if text is None:
        return None
    value = loads(text)
    return [dumps(each).decode() for each in value.get("L", [value])]


def elements(column: Any) -> Any:
    return adjoin_elements(column)


def ranked(column: Any, tag: str | None) -> Any:
    """The expression by which a column of values is ranked."""
    return adjoin_rank(column) if tag is None else column


def can_be_ranked(column: Any, tag: str | None) -> Any:
    """Whether there is a value that can have a rank: its type has an order, and it is not too long."""
    if tag is None:
        return adjoin_rank(column).notnull()
    if tag != "S":
        return column.notnull()
    # A rank writes some characters as three. Replacing them is slow, so it is done only for text that may be too long.
    length = ibis.ifelse(_bits(column) * 3 <= LONGEST_RANK * 8, 0, _bits(column.re_replace(_SPELLED, "xxx")))
    return column.notnull() & (length <= LONGEST_RANK * 8)


def tested(condition: Condition, name: str) -> Callable[[Any], Any]:
    """A condition on the attribute `value` as a function of a column of attributes. Engines need a unique `name`."""
    test = condition_test(condition)

    def holds(text: str) -> bool:
        return test({} if text is None else {SUBJECT: normal_attribute(loads(text))})

    holds.__name__ = name
    return cast(Callable[[Any], Any], ibis.udf.scalar.python(holds, signature=(("string",), "boolean")))
