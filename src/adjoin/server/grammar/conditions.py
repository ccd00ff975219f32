"""A condition that was parsed, with the names and values of a request, as the tree that stores evaluate.

Each part is checked as soon as its operands are known, from left to right: placeholders that stand for
nothing first, then the number of operands, then whether they differ, then their types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.evaluate import (
    MEASURED,
    ORDERED,
    PREFIXED,
    require_bounds,
    require_distinct,
    require_few,
    require_type,
    require_type_name,
    size_of,
    wrong_type,
)
from adjoin.expressions import (
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Exists,
    HasType,
    In,
    Not,
    Operand,
    Or,
    Path,
    Size,
    Value,
)
from adjoin.server.attributes import normal_value
from adjoin.server.grammar.bindings import Bindings
from adjoin.server.grammar.rules import ARITY
from adjoin.server.grammar.syntax import (
    Call,
    Comparison,
    Conjunction,
    Disjunction,
    Literal,
    Logic,
    Membership,
    Negation,
    Place,
    Range,
    Term,
)

# What the service calls a type that it cannot know: all that it has ever had.
_ANY_TYPE = "{S,SS,N,NS,B,BS,BOOL,NULL,L,M,HD,DOUBLE,FLOAT,HDS,FS,DOUBLESET,DICT,DECIMAL,INT,DECIMALSET,INTSET}"


class Conditions:
    """Makes the conditions of one expression; `purpose` is what the request calls that expression."""

    __slots__ = ("_bindings", "_purpose")

    def __init__(self, bindings: Bindings, purpose: str) -> None:
        self._bindings = bindings
        self._purpose = purpose

    def of(self, node: Logic) -> Condition:
        return _CONDITIONS[type(node)](self, node)

    # --- operands ---

    def operand(self, term: Term) -> Operand:
        if isinstance(term, Place):
            return self._bindings.path(term, self._purpose)
        if isinstance(term, Literal):
            return self._bindings.value(term, self._purpose)
        return self._size(term)

    def _size(self, call: Call) -> Operand:
        (operand,) = self._arguments(call)
        require_type(operand, MEASURED, "size", self._purpose)
        if isinstance(operand, Path):
            return Size(operand)
        # Whoever asks for the size of a value of his own gets it before any item is read.
        assert isinstance(operand, Value)
        return Value(size_of(normal_value(operand.attribute)) or {})

    def _arguments(self, call: Call) -> list[Operand]:
        operands = [self.operand(term) for term in call.arguments]
        require_arity(call, self._purpose)
        require_distinct(operands[0], operands[1:], call.function, self._purpose)
        return operands

    # --- comparisons ---

    def comparison(self, node: Comparison) -> Compare:
        name, left, right = node.operator, self.operand(node.left), self.operand(node.right)
        require_distinct(left, (right,), name, self._purpose)
        if name not in ("=", "<>"):
            require_type(left, ORDERED, name, self._purpose)
            require_type(right, ORDERED, name, self._purpose)
        return Compare(name, left, right)

    def range(self, node: Range) -> Between:
        operand, low, high = self.operand(node.operand), self.operand(node.low), self.operand(node.high)
        require_distinct(operand, (low, high), "BETWEEN", self._purpose)
        for one in (operand, low, high):
            require_type(one, ORDERED, "BETWEEN", self._purpose)
        if isinstance(low, Value) and isinstance(high, Value):
            require_bounds(low.attribute, high.attribute, self._purpose)
        return Between(operand, low, high)

    def membership(self, node: Membership) -> In:
        operand = self.operand(node.operand)
        options = tuple([self.operand(option) for option in node.options])
        require_few(options, self._purpose)
        require_distinct(operand, options, "IN", self._purpose)
        return In(operand, options)

    # --- functions ---

    def call(self, call: Call) -> Condition:
        return _FUNCTIONS[call.function](self, call, *self._arguments(call))

    def exists(self, call: Call, operand: Operand) -> Exists:
        return Exists(require_path(operand, call.function, self._purpose))

    def has_type(self, call: Call, operand: Operand, wanted: Operand) -> HasType:
        path = require_path(operand, call.function, self._purpose)
        if isinstance(wanted, Path):
            raise wrong_type(call.function, _ANY_TYPE, self._purpose)
        require_type(wanted, ("S",), call.function, self._purpose)
        assert isinstance(wanted, Value)
        name = wanted.attribute["S"]
        require_type_name(name, self._purpose)
        return HasType(path, name)

    def begins_with(self, call: Call, operand: Operand, prefix: Operand) -> BeginsWith:
        require_type(operand, PREFIXED, call.function, self._purpose)
        require_type(prefix, PREFIXED, call.function, self._purpose)
        return BeginsWith(operand, prefix)

    # --- logic: no function of its own for each level, so that 300 operators fit on Python's stack ---

    def conjunction(self, node: Conjunction) -> And:
        parts = []
        for part in node.parts:
            parts.append(_CONDITIONS[type(part)](self, part))  # noqa: PERF401
        return And(tuple(parts))

    def disjunction(self, node: Disjunction) -> Or:
        parts = []
        for part in node.parts:
            parts.append(_CONDITIONS[type(part)](self, part))  # noqa: PERF401
        return Or(tuple(parts))

    def negation(self, node: Negation) -> Not:
        return Not(_CONDITIONS[type(node.part)](self, node.part))


_CONDITIONS: dict[type, Callable[[Conditions, Any], Condition]] = {
    Comparison: Conditions.comparison,
    Range: Conditions.range,
    Membership: Conditions.membership,
    Call: Conditions.call,
    Conjunction: Conditions.conjunction,
    Disjunction: Conditions.disjunction,
    Negation: Conditions.negation,
}

_FUNCTIONS: dict[str, Callable[..., Condition]] = {
    "attribute_exists": Conditions.exists,
    "attribute_not_exists": lambda at, call, operand: Not(at.exists(call, operand)),
    "attribute_type": Conditions.has_type,
    "begins_with": Conditions.begins_with,
    "contains": lambda at, call, operand, element: Contains(operand, element),
}


def require_arity(call: Call, purpose: str) -> None:
    if len(call.arguments) != ARITY[call.function]:
        raise InvalidRequest(
            f"Invalid {purpose}: Incorrect number of operands for operator or function;"
            f" operator or function: {call.function}, number of operands: {len(call.arguments)}"
        )


def require_path(operand: object, function: str, purpose: str) -> Path:
    if not isinstance(operand, Path):
        raise InvalidRequest(
            f"Invalid {purpose}: Operator or function requires a document path; operator or function: {function}"
        )
    return operand
