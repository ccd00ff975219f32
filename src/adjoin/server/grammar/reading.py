"""Expression text to trees: the one place where parsing, rules and placeholders come together.

A text is parsed and checked once; the last thousand are kept, since programs send the same few again and
again with other values. Of long ones few are kept: a tree takes fifty times as much room as its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.expressions import Action, Condition, Path
from adjoin.server.grammar.bindings import Bindings
from adjoin.server.grammar.conditions import Conditions
from adjoin.server.grammar.keys import KeyConditions, KeyExpression
from adjoin.server.grammar.parser import parse_condition, parse_projection, parse_update
from adjoin.server.grammar.paths import projection_of
from adjoin.server.grammar.rules import check_condition, check_projection, check_update
from adjoin.server.grammar.tokens import Fault
from adjoin.server.grammar.updates import update_of
from adjoin.units import MAX_EXPRESSION_SIZE
from adjoin.values import text_size

_KEPT, _KEPT_LONG = 1024, 32
_LONG = 512
"""Characters from which a text is long."""


def read_condition(text: str, bindings: Bindings, purpose: str = "ConditionExpression") -> Condition:
    """A condition or a filter; `purpose` is the parameter it came in."""
    return Conditions(bindings, purpose).of(_parsed(_condition, text, purpose))


def read_projection(text: str, bindings: Bindings, purpose: str = "ProjectionExpression") -> tuple[Path, ...]:
    return projection_of(_parsed(_projection, text, purpose), bindings, purpose)


def read_update(text: str, bindings: Bindings, purpose: str = "UpdateExpression") -> tuple[Action, ...]:
    return update_of(_parsed(_update, text, purpose), bindings)


def read_key_condition(text: str, bindings: Bindings, purpose: str = "KeyConditionExpression") -> KeyExpression:
    root = _parsed(_condition, text, purpose)
    Conditions(bindings, purpose).of(root)
    return KeyExpression(root, bindings)


@dataclass(frozen=True, slots=True)
class Expressions:
    """All expressions of one request; None where the request has none."""

    update: tuple[Action, ...] | None = None
    condition: Condition | None = None
    keys: KeyConditions | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] | None = None

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Expressions:
        """The expressions of a request, or of one part of a batch or transaction, checked in the service's order."""
        if _PARAMETERS.isdisjoint(request):
            return _NONE
        bindings = Bindings(request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues"))
        found = {
            field: read(request[parameter], bindings, parameter)
            for parameter, field, read in _READERS
            if request.get(parameter) is not None
        }
        bindings.check_unused()
        if "keys" in found:
            found["keys"] = found["keys"].conditions()
        return cls(**found)


_READERS: tuple[tuple[str, str, Callable[[str, Bindings, str], Any]], ...] = (
    ("UpdateExpression", "update", read_update),
    ("ConditionExpression", "condition", read_condition),
    ("KeyConditionExpression", "keys", read_key_condition),
    ("FilterExpression", "filter", read_condition),
    ("ProjectionExpression", "projection", read_projection),
)
_PARAMETERS = frozenset(
    ("ExpressionAttributeNames", "ExpressionAttributeValues", *(parameter for parameter, _, _ in _READERS))
)
_NONE = Expressions()


# --- parsing -----------------------------------------------------------------------------------


def _condition(text: str) -> Any:
    return check_condition(parse_condition(text))


def _projection(text: str) -> Any:
    return check_projection(parse_projection(text))


def _update(text: str) -> Any:
    return check_update(parse_update(text))


def _parsed(parse: Callable[[str], Any], text: str, purpose: str) -> Any:
    if not text:
        raise InvalidRequest(f"Invalid {purpose}: The expression can not be empty;")
    size = text_size(text)
    if size > MAX_EXPRESSION_SIZE:
        raise InvalidRequest(
            f"Invalid {purpose}: Expression size has exceeded the maximum allowed size; expression size: {size}"
        )
    try:
        return _kept(parse, text) if len(text) < _LONG else _kept_long(parse, text)
    except Fault as fault:
        raise InvalidRequest(f"Invalid {purpose}: {fault}") from None


@lru_cache(maxsize=_KEPT)
def _kept(parse: Callable[[str], Any], text: str) -> Any:
    return parse(text)


@lru_cache(maxsize=_KEPT_LONG)
def _kept_long(parse: Callable[[str], Any], text: str) -> Any:
    return parse(text)
