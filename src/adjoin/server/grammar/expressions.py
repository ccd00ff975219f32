"""Turns the text of expressions into trees: the one place where parsing, rules and placeholders come together.

A text is parsed and checked once. The last thousand results are cached, because programs send the same few texts again
and again with other values. Only few long ones are cached: a tree takes fifty times the memory of its text.

With the names and values of a request, a parsed text becomes the tree that stores evaluate and apply. Faults are
searched in DynamoDB's order:

- in a condition, each part as soon as its operands are known, from left to right: undefined placeholders first, then
  the number of operands, then whether they are distinct, then their types;
- in an update, first the paths that are written, then the actions from the last to the first: all names, then values,
  operands and their types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidRequest
from adjoin.evaluate import (
    MEASURED,
    ORDERED,
    PREFIXED,
    path_text,
    require_bounds,
    require_distinct,
    require_few,
    require_type,
    require_type_name,
    size_of,
    wrong_type,
)
from adjoin.expressions import (
    Action,
    Add,
    And,
    Arithmetic,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Discard,
    Exists,
    HasType,
    IfNotExists,
    In,
    ListAppend,
    Not,
    Operand,
    Or,
    Path,
    Remove,
    Set,
    Size,
    Value,
)
from adjoin.server.grammar.attributes import Bindings, normal_value
from adjoin.server.grammar.keys import KeyConditions, KeyExpression
from adjoin.server.grammar.parser import (
    DocumentPath,
    ExpressionFault,
    Literal,
    ParsedCall,
    ParsedClause,
    ParsedComparison,
    ParsedConjunction,
    ParsedDisjunction,
    ParsedLogic,
    ParsedMembership,
    ParsedNegation,
    ParsedRange,
    ParsedStep,
    ParsedSum,
    ParsedTerm,
    parse_condition,
    parse_projection,
    parse_update,
)
from adjoin.server.grammar.rules import ARITY, check_condition, check_projection, check_update
from adjoin.stores.updates import require_clause_type
from adjoin.units import MAX_EXPRESSION_SIZE
from adjoin.values import text_size

_KEPT, _KEPT_LONG = 1024, 32
_LONG = 512
"""A text with at least this number of characters is long."""


def read_condition(text: str, bindings: Bindings, purpose: str = "ConditionExpression") -> Condition:
    """Returns the tree of a condition or a filter; `purpose` is the name of its parameter."""
    return _Conditions(bindings, purpose).of(_parsed(_condition, text, purpose))


def read_projection(text: str, bindings: Bindings, purpose: str = "ProjectionExpression") -> tuple[Path, ...]:
    return _projection_of(_parsed(_projection, text, purpose), bindings, purpose)


def read_update(text: str, bindings: Bindings, purpose: str = "UpdateExpression") -> tuple[Action, ...]:
    return _update_of(_parsed(_update, text, purpose), bindings)


def read_key_condition(text: str, bindings: Bindings, purpose: str = "KeyConditionExpression") -> KeyExpression:
    root = _parsed(_condition, text, purpose)
    _Conditions(bindings, purpose).of(root)
    return KeyExpression(root, bindings)


@dataclass(frozen=True, slots=True)
class Expressions:
    """All expressions of one request; None for each that the request does not have."""

    update: tuple[Action, ...] | None = None
    condition: Condition | None = None
    keys: KeyConditions | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] | None = None

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Expressions:
        """Returns the expressions of a request, or of one part of a batch, checked in DynamoDB's order."""
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
    except ExpressionFault as fault:
        raise InvalidRequest(f"Invalid {purpose}: {fault}") from None


@lru_cache(maxsize=_KEPT)
def _kept(parse: Callable[[str], Any], text: str) -> Any:
    return parse(text)


@lru_cache(maxsize=_KEPT_LONG)
def _kept_long(parse: Callable[[str], Any], text: str) -> Any:
    return parse(text)


# --- conditions --------------------------------------------------------------------------------


# DynamoDB's text for an operand whose type it cannot know: all types that it has ever had.
_ANY_TYPE = "{S,SS,N,NS,B,BS,BOOL,NULL,L,M,HD,DOUBLE,FLOAT,HDS,FS,DOUBLESET,DICT,DECIMAL,INT,DECIMALSET,INTSET}"


class _Conditions:
    """Makes the conditions of one expression; `purpose` is the name of its parameter."""

    __slots__ = ("_bindings", "_purpose")

    def __init__(self, bindings: Bindings, purpose: str) -> None:
        self._bindings = bindings
        self._purpose = purpose

    def of(self, node: ParsedLogic) -> Condition:
        return _CONDITIONS[type(node)](self, node)

    # --- operands ---

    def operand(self, term: ParsedTerm) -> Operand:
        if isinstance(term, DocumentPath):
            return self._bindings.path(term, self._purpose)
        if isinstance(term, Literal):
            return self._bindings.value(term, self._purpose)
        return self._size(term)

    def _size(self, call: ParsedCall) -> Operand:
        (operand,) = self._arguments(call)
        require_type(operand, MEASURED, "size", self._purpose)
        if isinstance(operand, Path):
            return Size(operand)
        # The size of a value in the request is known before any item is read, so it becomes a literal.
        assert isinstance(operand, Value)
        return Value(size_of(normal_value(operand.attribute)) or {})

    def _arguments(self, call: ParsedCall) -> list[Operand]:
        operands = [self.operand(term) for term in call.arguments]
        _require_arity(call, self._purpose)
        require_distinct(operands[0], operands[1:], call.function, self._purpose)
        return operands

    # --- comparisons ---

    def comparison(self, node: ParsedComparison) -> Compare:
        name, left, right = node.operator, self.operand(node.left), self.operand(node.right)
        require_distinct(left, (right,), name, self._purpose)
        if name not in ("=", "<>"):
            require_type(left, ORDERED, name, self._purpose)
            require_type(right, ORDERED, name, self._purpose)
        return Compare(name, left, right)

    def range(self, node: ParsedRange) -> Between:
        operand, low, high = self.operand(node.operand), self.operand(node.low), self.operand(node.high)
        require_distinct(operand, (low, high), "BETWEEN", self._purpose)
        for one in (operand, low, high):
            require_type(one, ORDERED, "BETWEEN", self._purpose)
        if isinstance(low, Value) and isinstance(high, Value):
            require_bounds(low.attribute, high.attribute, self._purpose)
        return Between(operand, low, high)

    def membership(self, node: ParsedMembership) -> In:
        operand = self.operand(node.operand)
        options = tuple([self.operand(option) for option in node.options])
        require_few(options, self._purpose)
        require_distinct(operand, options, "IN", self._purpose)
        return In(operand, options)

    # --- functions ---

    def call(self, call: ParsedCall) -> Condition:
        return _FUNCTIONS[call.function](self, call, *self._arguments(call))

    def exists(self, call: ParsedCall, operand: Operand) -> Exists:
        return Exists(_require_path(operand, call.function, self._purpose))

    def has_type(self, call: ParsedCall, operand: Operand, wanted: Operand) -> HasType:
        path = _require_path(operand, call.function, self._purpose)
        if isinstance(wanted, Path):
            raise wrong_type(call.function, _ANY_TYPE, self._purpose)
        require_type(wanted, ("S",), call.function, self._purpose)
        assert isinstance(wanted, Value)
        name = wanted.attribute["S"]
        require_type_name(name, self._purpose)
        return HasType(path, name)

    def begins_with(self, call: ParsedCall, operand: Operand, prefix: Operand) -> BeginsWith:
        require_type(operand, PREFIXED, call.function, self._purpose)
        require_type(prefix, PREFIXED, call.function, self._purpose)
        return BeginsWith(operand, prefix)

    # --- logic: no function of its own for each level, so that 300 operators fit on Python's stack ---

    def conjunction(self, node: ParsedConjunction) -> And:
        parts = []
        for part in node.parts:
            parts.append(_CONDITIONS[type(part)](self, part))  # noqa: PERF401
        return And(tuple(parts))

    def disjunction(self, node: ParsedDisjunction) -> Or:
        parts = []
        for part in node.parts:
            parts.append(_CONDITIONS[type(part)](self, part))  # noqa: PERF401
        return Or(tuple(parts))

    def negation(self, node: ParsedNegation) -> Not:
        return Not(_CONDITIONS[type(node.part)](self, node.part))


_CONDITIONS: dict[type, Callable[[_Conditions, Any], Condition]] = {
    ParsedComparison: _Conditions.comparison,
    ParsedRange: _Conditions.range,
    ParsedMembership: _Conditions.membership,
    ParsedCall: _Conditions.call,
    ParsedConjunction: _Conditions.conjunction,
    ParsedDisjunction: _Conditions.disjunction,
    ParsedNegation: _Conditions.negation,
}

_FUNCTIONS: dict[str, Callable[..., Condition]] = {
    "attribute_exists": _Conditions.exists,
    "attribute_not_exists": lambda at, call, operand: Not(at.exists(call, operand)),
    "attribute_type": _Conditions.has_type,
    "begins_with": _Conditions.begins_with,
    "contains": lambda at, call, operand, element: Contains(operand, element),
}


def _require_arity(call: ParsedCall, purpose: str) -> None:
    if len(call.arguments) != ARITY[call.function]:
        raise InvalidRequest(
            f"Invalid {purpose}: Incorrect number of operands for operator or function;"
            f" operator or function: {call.function}, number of operands: {len(call.arguments)}"
        )


def _require_path(operand: object, function: str, purpose: str) -> Path:
    if not isinstance(operand, Path):
        raise InvalidRequest(
            f"Invalid {purpose}: Operator or function requires a document path; operator or function: {function}"
        )
    return operand


# --- paths -------------------------------------------------------------------------------------


def _projection_of(places: Sequence[DocumentPath], bindings: Bindings, purpose: str) -> tuple[Path, ...]:
    paths = tuple(bindings.path(place, purpose) for place in places)
    _require_apart(paths, purpose)
    return paths


def _require_apart(paths: Sequence[Path], purpose: str) -> None:
    """Raises if two paths overlap or conflict. Of several such pairs, DynamoDB reports the one that comes last."""
    if len({path.steps[0] for path in paths}) == len(paths):
        return
    root = _Node(0, "")
    for index, path in enumerate(paths):
        node = root
        for step in path.steps:
            node = node.inner.setdefault(step, _Node(index, step))
        node.ends.append(_Node(index, None))
    clash = _clash(root)
    if clash is not None:
        how, *pair = clash
        one, two = (path_text(paths[index]) for index in sorted(pair))
        raise InvalidRequest(
            f"Invalid {purpose}: Two document paths {how} with each other; must remove or rewrite one of these"
            f" paths; path one: {one}, path two: {two}"
        )


class _Node:
    """A step that paths share, or the end of a path if it has no step; `first` is the first path through it."""

    __slots__ = ("ends", "first", "inner", "step")

    def __init__(self, first: int, step: str | int | None) -> None:
        self.first = first
        self.step = step
        self.inner: dict[str | int, _Node] = {}
        self.ends: list[_Node] = []

    def entries(self) -> list[_Node]:
        """The nodes that follow, newest first."""
        return sorted([*self.inner.values(), *self.ends], key=lambda node: node.first, reverse=True)

    def last(self) -> int:
        """The path through this node that takes the newest entry at each step."""
        node = self
        while node.step is not None:
            node = node.entries()[0]
        return node.first


def _clash(node: _Node) -> tuple[str, int, int] | None:
    entries = node.entries()
    newest: dict[type, int] = {}
    """The newest end, list position and name. An end clashes with everything, the others with each other."""
    for place, entry in enumerate(entries):
        newest.setdefault(type(entry.step), place)
    for place, one in enumerate(entries):
        found = None if one.step is None else _clash(one)
        if found is not None:
            return found
        if one.step is None:
            rivals = [each for each in range(min(2, len(entries))) if each != place]
        else:
            rivals = [each for kind, each in newest.items() if kind is not type(one.step)]
        if rivals:
            other = entries[min(rivals)]
            how = "overlap" if one.step is None or other.step is None else "conflict"
            return how, one.last(), other.last()
    return None


# --- updates -----------------------------------------------------------------------------------


_PURPOSE = "UpdateExpression"


def _update_of(clauses: Sequence[ParsedClause], bindings: Bindings) -> tuple[Action, ...]:
    steps = [step for clause in clauses for step in clause.steps]
    targets = [bindings.path(step.target, _PURPOSE) for step in steps]
    _require_apart(targets, _PURPOSE)
    for step in reversed(steps):
        for place in _places(step.value):
            bindings.steps(place, _PURPOSE)
    actions = [
        _ACTIONS[step.keyword](step, target, bindings)
        for step, target in zip(reversed(steps), reversed(targets), strict=True)
    ]
    return tuple(reversed(actions))


def _places(value: ParsedTerm | ParsedSum | None) -> Iterator[DocumentPath]:
    """Yields the paths that a value reads, from left to right."""
    pending: list[Any] = [value]
    while pending:
        match pending.pop():
            case DocumentPath() as place:
                yield place
            case ParsedCall() as call:
                pending.extend(reversed(call.arguments))
            case ParsedSum() as total:
                pending += (total.right, total.left)


# --- actions -----------------------------------------------------------------------------------


def _set(step: ParsedStep, target: Path, bindings: Bindings) -> Set:
    value = step.value
    if isinstance(value, ParsedSum):
        left, right = _term(value.left, bindings), _term(value.right, bindings)
        require_type(left, ("N",), value.operator, _PURPOSE)
        require_type(right, ("N",), value.operator, _PURPOSE)
        return Set(target, Arithmetic(value.operator, left, right))
    if isinstance(value, ParsedCall) and value.function == "list_append":
        return Set(target, _list_append(value, bindings))
    return Set(target, _term(value, bindings))


def _add(step: ParsedStep, target: Path, bindings: Bindings) -> Add:
    return Add(target, _literal(step, bindings))


def _delete(step: ParsedStep, target: Path, bindings: Bindings) -> Discard:
    return Discard(target, _literal(step, bindings))


def _literal(step: ParsedStep, bindings: Bindings) -> dict[str, Any]:
    assert isinstance(step.value, Literal)
    attribute = bindings.value(step.value, _PURPOSE).attribute
    for tag in attribute:
        require_clause_type(tag, step.keyword)
    return attribute


_ACTIONS: dict[str, Callable[[ParsedStep, Path, Bindings], Action]] = {
    "SET": _set,
    "REMOVE": lambda step, target, bindings: Remove(target),
    "ADD": _add,
    "DELETE": _delete,
}


# --- what SET gives ----------------------------------------------------------------------------


def _term(term: ParsedTerm | None, bindings: Bindings) -> Operand | IfNotExists:
    match term:
        case DocumentPath():
            return bindings.path(term, _PURPOSE)
        case Literal():
            return bindings.value(term, _PURPOSE)
        case ParsedCall(function="if_not_exists"):
            return _if_not_exists(term, bindings)
    raise InvalidRequest(f"Invalid {_PURPOSE}: {term} cannot stand here; use a path, a value or if_not_exists")


def _if_not_exists(call: ParsedCall, bindings: Bindings) -> IfNotExists:
    arguments = []
    for term in call.arguments:
        # A loop, because a comprehension would add a frame per level: a text can nest some 240 levels, and each may
        # take only two frames of Python's stack.
        arguments.append(_term(term, bindings))  # noqa: PERF401
    _require_arity(call, _PURPOSE)
    path = _require_path(arguments[0], call.function, _PURPOSE)
    require_distinct(path, arguments[1:], call.function, _PURPOSE)
    return IfNotExists(path, arguments[1])


def _list_append(call: ParsedCall, bindings: Bindings) -> ListAppend:
    arguments = [_term(term, bindings) for term in call.arguments]
    _require_arity(call, _PURPOSE)
    for argument in arguments:
        require_type(argument, ("L",), call.function, _PURPOSE)
    return ListAppend(*arguments)
