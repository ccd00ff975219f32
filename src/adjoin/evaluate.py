"""Evaluates conditions and projections on items, exactly as DynamoDB does.

A condition is compiled to a function once, and the function is called for each item. What DynamoDB
rejects without looking at an item is rejected when the condition is compiled, as `InvalidRequest` with
DynamoDB's own message. Items must be in the normal form of `adjoin.items`; the values in expressions are
brought to it here.

This module knows no tables and no keys, and does no I/O. Updates are in `adjoin.stores.updates`.
"""

from __future__ import annotations

import operator
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest
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
    check_depth,
)
from adjoin.items import normal_attribute
from adjoin.units import MAX_IN_OPERANDS
from adjoin.values import AttributeValue, Item

Test: TypeAlias = Callable[[Mapping[str, AttributeValue]], bool]
PathReader: TypeAlias = Callable[[Mapping[str, AttributeValue]], AttributeValue | None]

TYPES = ("S", "SS", "N", "NS", "B", "BS", "BOOL", "NULL", "L", "M")
# In the order in which DynamoDB lists them in its message.
_TYPE_NAMES = "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}"

ORDERED: dict[str, Callable[[str], Any]] = {"S": str, "N": Decimal, "B": b64decode}
"""The types that have an order, and the sort key of their values. Text sorts by code points, which is the same as
DynamoDB's order by UTF-8 bytes."""


def condition_test(condition: Condition, purpose: str = "ConditionExpression") -> Test:
    """Returns a function that tests whether an item satisfies the condition; a missing item is `{}`."""
    return _TESTS[type(condition)](condition, purpose)


# --- operands ----------------------------------------------------------------------------------


def path_reader(path: Path) -> PathReader:
    """Returns a function that finds the value at a path, or None."""
    steps = path.steps
    if len(steps) == 1:
        name = str(steps[0])
        return lambda item: item.get(name)
    check_depth(path)
    return lambda item: _walk(item, steps)


def _walk(item: Mapping[str, AttributeValue], steps: Sequence[str | int]) -> AttributeValue | None:
    found: AttributeValue | None = {"M": item}
    for step in steps:
        if found is None:
            return None
        if isinstance(step, int):
            elements = found.get("L", ())
            found = elements[step] if step < len(elements) else None
        else:
            found = found.get("M", {}).get(step)
    return found


def _text_length(text: str) -> int:
    # DynamoDB counts UTF-16 code units, as Java does: a character outside the basic plane counts as two.
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


MEASURED: dict[str, Callable[[Any], int]] = {
    "S": _text_length,
    "B": lambda value: len(b64decode(value)),
    "SS": len,
    "NS": len,
    "BS": len,
    "L": len,
    "M": len,
}


def _size_reader(path: Path) -> PathReader:
    read = path_reader(path)

    return lambda item: size_of(read(item) or {})


def size_of(attribute: AttributeValue) -> AttributeValue | None:
    """Returns the result of the `size` function for a value; None for a type that has no size."""
    for tag, value in attribute.items():
        if tag in MEASURED:
            return {"N": str(MEASURED[tag](value))}
    return None


def _reader(operand: Operand) -> PathReader:
    if isinstance(operand, Path):
        return path_reader(operand)
    if isinstance(operand, Size):
        return _size_reader(operand.path)
    literal = normal_attribute(operand.attribute)
    return lambda _: literal


def require_type(operand: object, allowed: Collection[str], name: str, purpose: str) -> None:
    """Raises if the type of an operand is known from the expression alone, and is not allowed."""
    found: Collection[str] = ()
    if isinstance(operand, Value):
        found = operand.attribute
    elif isinstance(operand, Size):
        found = "N"
    for tag in found:
        if tag not in allowed:
            raise wrong_type(name, tag, purpose)


def wrong_type(name: str, found: str, purpose: str) -> InvalidRequest:
    """Returns DynamoDB's error for an operand of the wrong type."""
    return InvalidRequest(
        f"Invalid {purpose}: Incorrect operand type for operator or function;"
        f" operator or function: {name}, operand type: {found}"
    )


def require_distinct(first: object, others: Sequence[object], name: str, purpose: str) -> None:
    """Raises if a path is compared with itself."""
    if isinstance(first, Path) and first in [other for other in others if isinstance(other, Path)]:
        raise InvalidRequest(
            f"Invalid {purpose}: The first operand must be distinct from the remaining operands for this"
            f" operator or function; operator: {name}, first operand: {path_text(first)}"
        )


def path_text(path: Path) -> str:
    """Returns a path as DynamoDB writes it in its messages."""
    steps = (f"[{step}]" if isinstance(step, int) else step for step in path.steps)
    return f"[{', '.join(steps)}]"


# --- comparisons -------------------------------------------------------------------------------


def _equal(left: AttributeValue | None, right: AttributeValue | None) -> bool:
    return left is not None and left == right


def _unequal(left: AttributeValue | None, right: AttributeValue | None) -> bool:
    return left is None or left != right


CompareValues: TypeAlias = Callable[[AttributeValue | None, AttributeValue | None], bool]


def _ordered(compare: Callable[[Any, Any], bool]) -> CompareValues:
    def test(left: AttributeValue | None, right: AttributeValue | None) -> bool:
        if left is None or right is None:
            return False
        for tag, value in left.items():
            if tag in right and tag in ORDERED:
                key = ORDERED[tag]
                return compare(key(value), key(right[tag]))
        return False

    return test


in_order = _ordered(operator.le)

_COMPARISONS: dict[str, CompareValues] = {
    "=": _equal,
    "<>": _unequal,
    "<": _ordered(operator.lt),
    "<=": in_order,
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def _compare(condition: Compare, purpose: str) -> Test:
    name = condition.operator
    if name == "=" and isinstance(condition.left, Path) and isinstance(condition.right, Value):
        # Nothing is asked more often than whether an item is what was read.
        read, wanted = path_reader(condition.left), normal_attribute(condition.right.attribute)
        return lambda item: read(item) == wanted
    require_distinct(condition.left, (condition.right,), name, purpose)
    if name not in ("=", "<>"):
        require_type(condition.left, ORDERED, name, purpose)
        require_type(condition.right, ORDERED, name, purpose)
    holds, left, right = _COMPARISONS[name], _reader(condition.left), _reader(condition.right)
    return lambda item: holds(left(item), right(item))


def require_bounds(low: AttributeValue, high: AttributeValue, purpose: str) -> None:
    """Raises if no value can lie between the literal bounds of a BETWEEN."""
    if low.keys() != high.keys():
        fault = "same data type for lower and upper bounds"
    elif not in_order(low, high):
        fault = "upper bound to be greater than or equal to lower bound"
    else:
        return
    raise InvalidRequest(
        f"Invalid {purpose}: The BETWEEN operator requires {fault};"
        f" lower bound operand: {_literal_text(low)}, upper bound operand: {_literal_text(high)}"
    )


def _literal_text(attribute: AttributeValue) -> str:
    ((tag, value),) = attribute.items()
    return f"AttributeValue: {{{tag}:{value}}}"


def _between(condition: Between, purpose: str) -> Test:
    operands = (condition.operand, condition.low, condition.high)
    require_distinct(operands[0], operands[1:], "BETWEEN", purpose)
    for operand in operands:
        require_type(operand, ORDERED, "BETWEEN", purpose)
    value, low, high = map(_reader, operands)
    if isinstance(condition.low, Value) and isinstance(condition.high, Value):
        require_bounds(condition.low.attribute, condition.high.attribute, purpose)
    return lambda item: in_order(low(item), value(item)) and in_order(value(item), high(item))


def require_few(options: Sequence[object], purpose: str) -> None:
    """Raises if an IN has more operands than DynamoDB takes."""
    if len(options) > MAX_IN_OPERANDS:
        raise InvalidRequest(
            f"Invalid {purpose}: The IN operator is provided with too many operands; number of operands: {len(options)}"
        )


def _in(condition: In, purpose: str) -> Test:
    if not condition.options:
        raise InvalidRequest(f"Invalid {purpose}: IN takes 1 to {MAX_IN_OPERANDS} operands, not none")
    require_few(condition.options, purpose)
    require_distinct(condition.operand, condition.options, "IN", purpose)
    value, options = _reader(condition.operand), [_reader(option) for option in condition.options]

    def test(item: Mapping[str, AttributeValue]) -> bool:
        wanted = value(item)
        return any(_equal(wanted, option(item)) for option in options)

    return test


# --- functions ---------------------------------------------------------------------------------


def _exists(condition: Exists, purpose: str) -> Test:
    read = path_reader(condition.path)
    return lambda item: read(item) is not None


def require_type_name(name: str, purpose: str) -> None:
    """Raises if `attribute_type` does not know the name of the type."""
    if name not in TYPES:
        raise InvalidRequest(
            f"Invalid {purpose}: Invalid attribute type name found; type: {name}, valid types: {_TYPE_NAMES}"
        )


def _has_type(condition: HasType, purpose: str) -> Test:
    wanted = condition.type
    require_type_name(wanted, purpose)
    read = path_reader(condition.path)
    return lambda item: wanted in (read(item) or ())


PREFIXED: dict[str, Callable[[str, str], bool]] = {
    "S": str.startswith,
    "B": lambda value, prefix: b64decode(value).startswith(b64decode(prefix)),
}


def _begins_with(condition: BeginsWith, purpose: str) -> Test:
    operands = (condition.operand, condition.prefix)
    require_distinct(operands[0], operands[1:], "begins_with", purpose)
    for operand in operands:
        require_type(operand, PREFIXED, "begins_with", purpose)
    value, prefix = map(_reader, operands)

    def test(item: Mapping[str, AttributeValue]) -> bool:
        whole, start = value(item), prefix(item)
        if whole is None or start is None:
            return False
        return any(tag in whole and tag in start and begins(whole[tag], start[tag]) for tag, begins in PREFIXED.items())

    return test


_HOLDERS: dict[str, Callable[[Any, AttributeValue], bool]] = {
    "S": lambda value, element: "S" in element and element["S"] in value,
    "B": lambda value, element: "B" in element and b64decode(element["B"]) in b64decode(value),
    "SS": lambda value, element: element.get("S") in value,
    "NS": lambda value, element: element.get("N") in value,
    "BS": lambda value, element: element.get("B") in value,
    "L": lambda value, element: element in value,
}


def _contains(condition: Contains, purpose: str) -> Test:
    require_distinct(condition.operand, (condition.element,), "contains", purpose)
    value, element = _reader(condition.operand), _reader(condition.element)

    def test(item: Mapping[str, AttributeValue]) -> bool:
        wanted = element(item)
        if wanted is None:
            return False
        return any(tag in _HOLDERS and _HOLDERS[tag](held, wanted) for tag, held in (value(item) or {}).items())

    return test


# --- logic -------------------------------------------------------------------------------------


def _and(condition: And, purpose: str) -> Test:
    tests = [condition_test(part, purpose) for part in condition.conditions]
    return lambda item: all(test(item) for test in tests)


def _or(condition: Or, purpose: str) -> Test:
    tests = [condition_test(part, purpose) for part in condition.conditions]
    return lambda item: any(test(item) for test in tests)


def _not(condition: Not, purpose: str) -> Test:
    test = condition_test(condition.condition, purpose)
    return lambda item: not test(item)


_TESTS: dict[type, Callable[[Any, str], Test]] = {
    Compare: _compare,
    Between: _between,
    In: _in,
    Exists: _exists,
    HasType: _has_type,
    BeginsWith: _begins_with,
    Contains: _contains,
    And: _and,
    Or: _or,
    Not: _not,
}


# --- projections -------------------------------------------------------------------------------

Tree: TypeAlias = dict[str | int, Any]
"""Paths as a tree of their steps. A leaf, where a path ends, is an empty tree."""


def path_tree(paths: Sequence[Path], purpose: str) -> Tree:
    """Returns the paths as one tree; raises if one path lies within another, or if two contradict each other."""
    tree: Tree = {}
    chosen: dict[tuple[str | int, ...], Path] = {}
    for path in paths:
        check_depth(path)
        node = tree
        for depth, step in enumerate(path.steps):
            other = next(iter(node), step)
            if isinstance(other, int) != isinstance(step, int):
                raise _two_paths("conflict", chosen[path.steps[:depth]], path, purpose)
            inside = step in node
            node = node.setdefault(step, {})
            last = depth == len(path.steps) - 1
            if inside and (last or not node):
                raise _two_paths("overlap", chosen[path.steps[: depth + 1]], path, purpose)
            chosen.setdefault(path.steps[:depth], path)
        chosen.setdefault(path.steps, path)
    return tree


def _two_paths(how: str, one: Path, two: Path, purpose: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid {purpose}: Two document paths {how} with each other; must remove or rewrite one of these"
        f" paths; path one: {path_text(one)}, path two: {path_text(two)}"
    )


def projector(paths: Sequence[Path]) -> Callable[[Item], Item]:
    """Returns a function that reduces an item to the values at the paths."""
    if all(len(path.steps) == 1 for path in paths):
        names = [str(path.steps[0]) for path in paths]
        if len(set(names)) == len(names):
            return lambda item: {name: item[name] for name in names if name in item}
    tree = path_tree(paths, "ProjectionExpression")
    return lambda item: _cut({"M": item}, tree).get("M", {})


def _cut(value: AttributeValue, tree: Tree) -> AttributeValue:
    """Returns the parts of a value that the tree names; empty if there are none."""
    if not tree:
        return value
    positions = sorted(step for step in tree if isinstance(step, int))
    if positions:
        elements = value.get("L", ())
        found = [part for at in positions if at < len(elements) and (part := _cut(elements[at], tree[at]))]
        return {"L": found} if found else {}
    entries = value.get("M", {})
    parts = {name: part for name in tree if name in entries and (part := _cut(entries[name], tree[name]))}
    return {"M": parts} if parts else {}
