"""Whether a request has expressions, or what is older than they are, before anything is asked of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjoin.server.grammar import check_parameters
from adjoin.server.grammar.parameters import OPERATIONS

_TAKEN = {
    operation: frozenset((*takes.expressions, *takes.legacy, "ExpressionAttributeNames", "ExpressionAttributeValues"))
    for operation, takes in OPERATIONS.items()
}


def has_parameters(operation: str, request: Mapping[str, Any]) -> bool:
    """Whether a request has any; refuses those that do not go together."""
    if _TAKEN[operation].isdisjoint(request):
        return False
    check_parameters(operation, request)
    return True
