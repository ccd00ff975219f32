"""What the service refuses by looking at an expression alone: reserved words, functions out of place, too much of it.

Checked in the order the text is written, before any placeholder is looked up; so a request with two
faults reports the one that the service reports. Pure, and the same for every request with that text.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from adjoin.server.grammar.syntax import (
    Call,
    Clause,
    Comparison,
    Conjunction,
    Disjunction,
    Literal,
    Logic,
    Membership,
    Negation,
    Place,
    Range,
    Sum,
)
from adjoin.server.grammar.tokens import Fault
from adjoin.server.grammar.words import is_reserved
from adjoin.units import MAX_LIST_INDEX, MAX_NESTING, MAX_OPERATORS


class Context(Enum):
    """Where something stands: what functions are allowed there."""

    CONDITION = "a condition"
    OPERAND = "an operand of a condition"
    AMOUNT = "all that SET gives an attribute"
    TERM = "a part of what SET gives an attribute"


_UPDATES = (Context.AMOUNT, Context.TERM)

ARITY = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
    "if_not_exists": 2,
    "list_append": 2,
}

_ALLOWED: dict[str, tuple[Context, ...]] = {
    **dict.fromkeys(ARITY, (Context.CONDITION,)),
    "size": (Context.OPERAND,),
    "if_not_exists": _UPDATES,
    "list_append": (Context.AMOUNT,),
}


def check_condition(root: Logic) -> Logic:
    _check_count(_walk(root, Context.CONDITION))
    return root


def check_projection(places: tuple[Place, ...]) -> tuple[Place, ...]:
    for place in places:
        _check_place(place)
    return places


def check_update(clauses: tuple[Clause, ...]) -> tuple[Clause, ...]:
    """Clauses are checked by keyword, in the order in which the keywords first appear."""
    operators = 0
    for keyword in dict.fromkeys(clause.keyword for clause in clauses):
        same = [clause for clause in clauses if clause.keyword == keyword]
        for step in (step for clause in same for step in clause.steps):
            _check_place(step.target)
            operators += _walk(step.value, Context.AMOUNT)
        if len(same) > 1:
            raise Fault(f'The "{keyword}" section can only be used once in an update expression;')
    _check_count(operators)
    return clauses


def _check_count(operators: int) -> None:
    # The service stops counting at the first one too many.
    if operators > MAX_OPERATORS:
        raise Fault(f"The expression contains too many operators; operator count: {MAX_OPERATORS + 1}")


def _walk(root: Any, context: Context) -> int:
    """Check everything in a part, from left to right; answer how many operators and functions it has."""
    operators = 0
    pending = [(root, context, 0)]
    while pending:
        node, where, depth = pending.pop()
        parts: Sequence[Any]
        match node:
            case Place():
                _check_place(node)
                continue
            case Literal() | None:
                continue
            case Conjunction(parts) | Disjunction(parts):
                operators += len(parts) - 1
            case Negation(part):
                operators += 1
                parts = (part,)
            case _:
                operators += 1
                parts = _operands(node)
                if isinstance(node, Call):
                    depth += 1
                    _check_call(node, where, depth)
                where = Context.TERM if where in _UPDATES else Context.OPERAND
        pending.extend((part, where, depth) for part in reversed(parts))
    return operators


def _operands(node: Call | Comparison | Range | Membership | Sum) -> Sequence[Any]:
    match node:
        case Call():
            return node.arguments
        case Range():
            return node.operand, node.low, node.high
        case Membership():
            return node.operand, *node.options
        case Comparison() | Sum():
            return node.left, node.right


def _check_place(place: Place) -> None:
    for step in place.steps:
        if isinstance(step, int):
            if step > MAX_LIST_INDEX:
                raise Fault(f"List index is not within the allowable range; index: [{step}]")
        elif is_reserved(step):
            raise Fault(f"Attribute name is a reserved keyword; reserved keyword: {step}")


def _check_call(call: Call, where: Context, depth: int) -> None:
    name = call.function
    if name not in _ALLOWED:
        raise Fault(f"Invalid function name; function: {name}")
    allowed = _ALLOWED[name]
    if where in allowed:
        # The size of a size is wrong at any depth. Found here, no depth of it can exhaust who resolves it.
        if name == "size" and depth > MAX_NESTING:
            raise Fault("Incorrect operand type for operator or function; operator or function: size, operand type: N")
        return
    updates = where in _UPDATES
    if updates is (allowed[0] in _UPDATES):
        raise Fault(f"The function is not allowed to be used this way in an expression; function: {name}")
    kind = "an update" if updates else "a condition"
    raise Fault(f"The function is not allowed in {kind} expression; function: {name}")
