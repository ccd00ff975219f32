"""Values whose type is known only when they are seen, in an engine: the JSON of a stored attribute.

Values of fields that are text, numbers or truth values are columns of the engine, and nothing here is called for
them but the limit of what has a rank. The others are looked at one by one, by the functions that the graph
itself uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import ibis
from orjson import dumps, loads

from adjoin.errors import InvalidKey
from adjoin.evaluate import condition_test
from adjoin.expressions import Condition
from adjoin.items import normal_attribute
from adjoin.layouts.ledgers import LONGEST_RANK, rank_text

SUBJECT = "value"
"""What the attribute is called that a condition is tested with."""
_SPELLED = r"[^&-\x{10FFFF}]"
"""Characters that a rank spells as three: those up to the escape itself."""


@ibis.udf.scalar.builtin(name="bit_length")
def _bits(text: str) -> int:
    """Eight times as many as UTF-8 has bytes."""
    raise NotImplementedError  # the engine's own function is called


@ibis.udf.scalar.python(signature=(("string",), "string"))
def adjoin_rank(text: str) -> str | None:
    """The text that a stored value is put in order by; None for one that has no order."""
    if text is None:
        return None
    try:
        return rank_text(normal_attribute(loads(text)))
    except InvalidKey:
        return None


@ibis.udf.scalar.python(signature=(("string",), "array<string>"))
def adjoin_elements(text: str) -> list[str] | None:
    """The elements of a stored list, or the one value that it is."""
    if text is None:
        return None
    value = loads(text)
    return [dumps(each).decode() for each in value.get("L", [value])]


def elements(column: Any) -> Any:
    return adjoin_elements(column)


def ranked(column: Any, tag: str | None) -> Any:
    """What a column of values is put in order by."""
    return adjoin_rank(column) if tag is None else column


def can_be_ranked(column: Any, tag: str | None) -> Any:
    """Whether there is a value, and one that has a rank: not too long, and of a type with an order."""
    if tag is None:
        return adjoin_rank(column).notnull()
    if tag != "S":
        return column.notnull()
    # A rank spells some characters with three.
    length = ibis.ifelse(_bits(column) * 3 <= LONGEST_RANK * 8, 0, _bits(column.re_replace(_SPELLED, "xxx")))
    return column.notnull() & (length <= LONGEST_RANK * 8)


def tested(condition: Condition, name: str) -> Callable[[Any], Any]:
    """A condition about the attribute `value` as a function of a column of attributes, under a name of its own."""
    test = condition_test(condition)

    def holds(text: str) -> bool:
        return test({} if text is None else {SUBJECT: normal_attribute(loads(text))})

    holds.__name__ = name
    return cast(Callable[[Any], Any], ibis.udf.scalar.python(holds, signature=(("string",), "boolean")))
