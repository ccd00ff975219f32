"""Reads DynamoDB's expression language, as text and as legacy parameters, into trees of `adjoin.expressions`.

So the same store and evaluator serve both plans and requests with text. This package knows no tables and no items,
and does no I/O. Every fault is an `InvalidRequest` with DynamoDB's own message.

A request is read in DynamoDB's order, so that a request with two faults reports the same one:

1. values, keys and legacy parameters, each by the function named for it;
2. `Expressions.of`: placeholders, each expression, unused placeholders, and which conditions keys can have;
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
