"""Which conditions a query may have on keys, as far as it is new with multi-attribute keys, in the service's words.

DynamoDB's rule for a global index whose partition key or sort key has several attributes: a query gives all attributes
of the partition key with "=". Of the sort key, it names the first attributes, without a gap, all but the last with "=".
The order in which a request writes its conditions does not matter.

The server and the embedded store both ask here. Keys of one attribute have older messages, which they keep themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from adjoin.errors import InvalidRequest
from adjoin.tables import IndexDefinition, KeyAttribute

ONE_PER_KEY = "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key"
"""The message for two conditions on one attribute; measured by dynamodb-conformance, as the next one."""


def check_condition_count(conditions: int, keys: int) -> None:
    """Refuses more conditions than there are key attributes."""
    if conditions > keys:
        raise InvalidRequest(
            f"The number of query conditions ({conditions}) exceeds the number of key attributes defined in the"
            f" schema ({keys})"
        )


def check_key_conditions(index: IndexDefinition, operators: Mapping[str, str]) -> None:
    """Refuses conditions that a query of the index cannot have; `operators` has that of each attribute.

    The message for sort keys is measured at the service, by dynamodb-conformance. Alternator's tests measured that the
    one for partition keys has the same form; they do not tell whether it ends here. Nobody has published the message
    for an attribute that is not a key, so it is the one for keys of one attribute.
    """
    check_condition_count(len(operators), len(index.keys))
    if unequal := _unequal(index.partitions, operators):
        raise InvalidRequest(
            f"HASH key attributes {', '.join(unequal)} must have equality conditions specified in the query"
        )
    if operators.keys() - {key.name for key in index.keys}:
        missed = next(key.name for key in index.sorts if key.name not in operators)
        raise InvalidRequest(f"Query condition missed key schema element: {missed}")
    for at, key in enumerate(index.sorts):
        if key.name in operators and (unequal := _unequal(index.sorts[:at], operators)):
            raise InvalidRequest(
                f"RANGE key attributes {', '.join(unequal)} must have equality conditions specified in the query"
                f" because a condition is present on key attribute {key.name}"
            )


def _unequal(keys: Iterable[KeyAttribute], operators: Mapping[str, str]) -> Sequence[str]:
    return [key.name for key in keys if operators.get(key.name) != "="]
