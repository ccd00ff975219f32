"""An update that was parsed, with the names and values of a request, as the actions that stores apply.

The service looks at the paths that are written first, then goes through the actions from the last to the
first: all names, then values, operands and their types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.evaluate import require_distinct, require_type
from adjoin.expressions import Action, Add, Arithmetic, Discard, IfNotExists, ListAppend, Operand, Path, Remove, Set
from adjoin.server.grammar.bindings import Bindings
from adjoin.server.grammar.conditions import require_arity, require_path
from adjoin.server.grammar.paths import require_apart
from adjoin.server.grammar.syntax import Call, Clause, Literal, Place, Step, Sum, Term
from adjoin.stores.updates import require_clause_type

_PURPOSE = "UpdateExpression"


def update_of(clauses: Sequence[Clause], bindings: Bindings) -> tuple[Action, ...]:
    steps = [step for clause in clauses for step in clause.steps]
    targets = [bindings.path(step.target, _PURPOSE) for step in steps]
    require_apart(targets, _PURPOSE)
    for step in reversed(steps):
        for place in _places(step.value):
            bindings.steps(place, _PURPOSE)
    actions = [
        _ACTIONS[step.keyword](step, target, bindings)
        for step, target in zip(reversed(steps), reversed(targets), strict=True)
    ]
    return tuple(reversed(actions))


def _places(value: Term | Sum | None) -> Iterator[Place]:
    """The paths that a value reads, from left to right."""
    pending: list[Any] = [value]
    while pending:
        match pending.pop():
            case Place() as place:
                yield place
            case Call() as call:
                pending.extend(reversed(call.arguments))
            case Sum() as total:
                pending += (total.right, total.left)


# --- actions -----------------------------------------------------------------------------------


def _set(step: Step, target: Path, bindings: Bindings) -> Set:
    value = step.value
    if isinstance(value, Sum):
        left, right = _term(value.left, bindings), _term(value.right, bindings)
        require_type(left, ("N",), value.operator, _PURPOSE)
        require_type(right, ("N",), value.operator, _PURPOSE)
        return Set(target, Arithmetic(value.operator, left, right))
    if isinstance(value, Call) and value.function == "list_append":
        return Set(target, _list_append(value, bindings))
    return Set(target, _term(value, bindings))


def _add(step: Step, target: Path, bindings: Bindings) -> Add:
    return Add(target, _literal(step, bindings))


def _delete(step: Step, target: Path, bindings: Bindings) -> Discard:
    return Discard(target, _literal(step, bindings))


def _literal(step: Step, bindings: Bindings) -> dict[str, Any]:
    assert isinstance(step.value, Literal)
    attribute = bindings.value(step.value, _PURPOSE).attribute
    for tag in attribute:
        require_clause_type(tag, step.keyword)
    return attribute


_ACTIONS: dict[str, Callable[[Step, Path, Bindings], Action]] = {
    "SET": _set,
    "REMOVE": lambda step, target, bindings: Remove(target),
    "ADD": _add,
    "DELETE": _delete,
}


# --- what SET gives ----------------------------------------------------------------------------


def _term(term: Term | None, bindings: Bindings) -> Operand | IfNotExists:
    match term:
        case Place():
            return bindings.path(term, _PURPOSE)
        case Literal():
            return bindings.value(term, _PURPOSE)
        case Call(function="if_not_exists"):
            return _if_not_exists(term, bindings)
    raise InvalidRequest(f"Invalid {_PURPOSE}: {term} cannot stand here; use a path, a value or if_not_exists")


def _if_not_exists(call: Call, bindings: Bindings) -> IfNotExists:
    arguments = []
    for term in call.arguments:
        # Two frames a level, because a text has room for some 240 of them one within the other.
        arguments.append(_term(term, bindings))  # noqa: PERF401
    require_arity(call, _PURPOSE)
    path = require_path(arguments[0], call.function, _PURPOSE)
    require_distinct(path, arguments[1:], call.function, _PURPOSE)
    return IfNotExists(path, arguments[1])


def _list_append(call: Call, bindings: Bindings) -> ListAppend:
    arguments = [_term(term, bindings) for term in call.arguments]
    require_arity(call, _PURPOSE)
    for argument in arguments:
        require_type(argument, ("L",), call.function, _PURPOSE)
    return ListAppend(*arguments)
