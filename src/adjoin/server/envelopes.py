"""How the service tells what is wrong with a request to write one item: counted, as it tells broken limits.

PutItem, UpdateItem and DeleteItem say `1 validation error detected: ` before whatever they find without a table, and
do not tell an expression's values apart from others; other operations say the same without that. What is said of a
value that has no type or several, of an item that is too large, and of everything that takes a table, is not counted.
"""

from __future__ import annotations

import re

_COUNTED = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
_COUNT = "1 validation error detected: "
_HAS_COUNT = re.compile(r"\d+ validation errors? detected: ")
_BARE = re.compile(r"(ExpressionAttributeValues contains invalid value: )?Supplied AttributeValue |Item size ")
_OF_A_VALUE = re.compile(
    r"ExpressionAttribute(?:Values|Names(?=.*too large)) contains invalid value: (.*) for key [:#]\w+", re.DOTALL
)
_NO_NUMBER = "The parameter cannot be converted to a numeric value"


def told(operation: str, words: str) -> str:
    """What an operation says of a request that it refuses before it looks for a table."""
    if operation not in _COUNTED or _BARE.match(words) or _HAS_COUNT.match(words):
        return words
    if of_a_value := _OF_A_VALUE.fullmatch(words):
        words = of_a_value[1]
    return f"{_COUNT}{words}: " if words == _NO_NUMBER else _COUNT + words
