"""DynamoDB's expression language, as text and as the older parameters, read into trees of `adjoin.expressions`.

One evaluator, two front ends: what a program asks in text is answered by the store that answers plans. Pure:
no table, no item, no I/O. Whatever is wrong is `InvalidRequest` with the service's own words.

A request is read in the service's order, so that one with two faults reports the same one:

1. values, keys and older parameters, each by the function named for it;
2. `Expressions.of`: placeholders, each expression, placeholders that nothing used, and what keys can be asked;
3. with the table at hand, `KeyConditions.on`.
"""

from __future__ import annotations

from adjoin.server.grammar.attributes import Bindings
from adjoin.server.grammar.expressions import (
    Expressions,
    read_condition,
    read_key_condition,
    read_projection,
    read_update,
)
from adjoin.server.grammar.keys import KeyConditions, KeyExpression, KeyTest
from adjoin.server.grammar.legacy import (
    LEGACY_WORDS,
    attribute_updates,
    attributes_to_get,
    expected_condition,
    filter_of,
    key_conditions,
)

__all__ = [
    "Bindings", "Expressions", "read_condition", "read_key_condition", "read_projection", "read_update",
    "KeyConditions", "KeyExpression", "KeyTest",
    "LEGACY_WORDS", "attribute_updates", "attributes_to_get", "expected_condition", "filter_of", "key_conditions",
]  # fmt: skip
