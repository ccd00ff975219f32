"""A request as it came, to one that may be performed as far as it can be known without the table.

In the service's order, so that a request with two faults reports the same one:

1. types, the first wrong one of the request (`deserialisation`);
2. which table it is about, where that decides who may ask (`rules.PRECONDITIONS`);
3. limits, all that are broken together (`constraints`);
4. rules, the first that is broken (`rules.RULES`).

What is left is what the request's expressions say (`grammar.Expressions`, and `grammar.key_conditions` for the
older KeyConditions), and then what needs the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from adjoin.errors import InvalidRequest
from adjoin.server.constraints import Limits
from adjoin.server.deserialisation import Reader, reader_of
from adjoin.server.faults import Refused
from adjoin.server.grammar.attributes import TOO_DEEP
from adjoin.server.inputs import INPUTS
from adjoin.server.rules import PRECONDITIONS, RULES, Rule
from adjoin.server.shapes import Structure


@dataclass(frozen=True, slots=True)
class _Checks:
    """Everything that is asked of the input of one operation."""

    read: Reader
    precondition: Rule | None
    limits: Limits
    rule: Rule | None

    @classmethod
    def of(cls, operation: str, shape: Structure) -> _Checks:
        return cls(reader_of(shape), PRECONDITIONS.get(operation), Limits.of(shape), RULES.get(operation))


_CHECKS = {operation: _Checks.of(operation, shape) for operation, shape in INPUTS.items()}

OPERATIONS = frozenset(_CHECKS)
"""The names of the operations whose requests can be validated."""


def validated(operation: str, body: bytes | dict[str, Any]) -> dict[str, Any]:
    """The parameters of a request that is right so far, without nulls and members that nobody knows.

    Items and keys are in normal form. A table stands as the request names it, by its name or its ARN.
    """
    checks = _CHECKS[operation]
    try:
        request: dict[str, Any] = body if isinstance(body, dict) else orjson.loads(body)
        request = checks.read(request)
        if checks.precondition is not None:
            checks.precondition(request)
        if not checks.limits.hold(request):
            checks.limits.check(request)
        if checks.rule is not None:
            checks.rule(request)
    except InvalidRequest as fault:
        raise Refused("ValidationException", str(fault)) from None
    except orjson.JSONDecodeError:
        raise Refused("SerializationException") from None
    except RecursionError:
        # Readers follow values as deep as these go, which is much deeper than anything can be stored.
        raise Refused("ValidationException", TOO_DEEP) from None
    return request


def is_json(body: bytes) -> bool:
    """Whether a body could be a request at all; nothing is, if there is no operation that wants more."""
    try:
        orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return False
    return True
