"""Update actions, applied to an item exactly as DynamoDB applies them.

All right sides see the item before the update, and all list positions are positions in that item. The given item is
never changed. Errors are `InvalidRequest` with the service's own messages.

Pure: no table, no I/O. The caller checks the resulting item.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from decimal import Decimal
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest, InvalidValue
from adjoin.evaluate import path_reader, path_tree, require_type
from adjoin.expressions import (
    Action,
    Add,
    Arithmetic,
    Discard,
    IfNotExists,
    ListAppend,
    Path,
    Remove,
    Set,
    Size,
    Value,
)
from adjoin.items import normal_attribute
from adjoin.values import AttributeValue, Item, canonical_number, exact_sum

Old: TypeAlias = Mapping[str, AttributeValue]
UpdateFunction: TypeAlias = Callable[[Item | None], Item | None]

# Wide enough that no sum of two stored numbers is rounded before its digits are counted.
# Sums of whole numbers with fewer characters always fit DynamoDB's 38 digits.
_SHORT = 37
_GONE: AttributeValue = {}


def update_of(actions: Sequence[Action], key: Item) -> UpdateFunction:
    """The function from the item before to the item after; either may be None.

    An item that does not exist is created from its key, unless all actions only remove.
    """
    _require_apart([action.path for action in actions], key)
    changes = [_CHANGES[type(action)](action) for action in actions]
    creates = not actions or any(isinstance(action, Set | Add) for action in actions)
    nested = {str(action.path.steps[0]) for action in actions if len(action.path.steps) > 1}

    def update(old: Item | None) -> Item | None:
        if old is None and not creates and not nested:
            return None
        before = key if old is None else old
        after = dict(before)
        if nested:
            # The service refuses an invalid path also if there is no item.
            _apply_nested(after, nested, [change(before) for change in changes])
            return None if old is None and not creates else after
        for change in changes:
            path, value = change(before)
            if value is None:
                after.pop(str(path.steps[0]), None)
            else:
                after[str(path.steps[0])] = value
        return after

    return update


def _apply_nested(item: Item, names: Collection[str], changes: Sequence[tuple[Path, AttributeValue | None]]) -> None:
    for name in names:
        if name in item:
            item[name] = deepcopy(item[name])
    target = _Target(item)
    for path, value in changes:
        target.put(path, value)
    target.settle()


def _require_apart(paths: Sequence[Path], key: Collection[str]) -> None:
    for path in paths:
        if path.steps[0] in key:
            raise InvalidRequest(
                "One or more parameter values were invalid:"
                f" Cannot update attribute {path.steps[0]}. This attribute is part of the key"
            )
    places = {path.steps for path in paths}
    if len(places) < len(paths) or any(len(steps) > 1 for steps in places):
        path_tree(paths, "UpdateExpression")


class _Target:
    """An item that is being changed. Lists keep their positions until `settle`."""

    def __init__(self, item: Item) -> None:
        self._item = item
        self._lists: dict[int, list[AttributeValue]] = {}
        self._beyond: list[tuple[int, list[AttributeValue], AttributeValue]] = []

    def put(self, path: Path, value: AttributeValue | None) -> None:
        """Stores a value at a path, or removes what is there."""
        step = path.steps[-1]
        holder = self._holder(path)
        if isinstance(step, str):
            if value is None:
                holder.pop(step, None)
            else:
                holder[step] = value
        elif step < len(holder):
            holder[step] = _GONE if value is None else value
            self._lists[id(holder)] = holder
        elif value is not None:
            self._beyond.append((step, holder, value))

    def _holder(self, path: Path) -> Any:
        holder: Any = self._item
        for step, following in zip(path.steps, path.steps[1:], strict=False):
            try:
                holder = holder[step]["L" if isinstance(following, int) else "M"]
            except (KeyError, IndexError):
                raise InvalidRequest(
                    "The document path provided in the update expression is invalid for update"
                ) from None
        return holder

    def settle(self) -> None:
        # Elements set beyond the end of a list are appended in the order of their positions.
        for _, holder, value in sorted(self._beyond, key=lambda entry: entry[0]):
            holder.append(value)
        for holder in self._lists.values():
            holder[:] = [element for element in holder if element is not _GONE]


# --- actions -----------------------------------------------------------------------------------

PathChange: TypeAlias = Callable[[Old], tuple[Path, AttributeValue | None]]


def _set(action: Set) -> PathChange:
    value = _right_side(action.value)
    return lambda old: (action.path, value(old))


def _remove(action: Remove) -> PathChange:
    return lambda _: (action.path, None)


def _add(action: Add) -> PathChange:
    tag, operand = _literal(action.value, "ADD")
    read, combine = path_reader(action.path), _SUMS[tag]

    def change(old: Old) -> tuple[Path, AttributeValue | None]:
        present = read(old)
        if present is None:
            return action.path, {tag: operand}
        return action.path, {tag: combine(_typed(present, tag), operand)}

    return change


def _discard(action: Discard) -> PathChange:
    tag, operand = _literal(action.value, "DELETE")
    read = path_reader(action.path)

    def change(old: Old) -> tuple[Path, AttributeValue | None]:
        present = read(old)
        if present is None:
            return action.path, None
        left = [element for element in _typed(present, tag) if element not in operand]
        return action.path, {tag: left} if left else None

    return change


_CHANGES: dict[type, Callable[[Any], PathChange]] = {Set: _set, Remove: _remove, Add: _add, Discard: _discard}

_TYPE_NAMES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "L": "LIST",
    "M": "MAP",
    "SS": "STRING_SET",
    "NS": "NUMBER_SET",
    "BS": "BINARY_SET",
}


def _literal(value: AttributeValue, clause: str) -> tuple[str, Any]:
    ((tag, operand),) = normal_attribute(value).items()
    require_clause_type(tag, clause)
    return tag, operand


def require_clause_type(tag: str, clause: str) -> None:
    """Refuses a type that the ADD or the DELETE clause does not take."""
    if tag not in (_SUMS if clause == "ADD" else _SETS):
        raise InvalidRequest(
            f"Invalid UpdateExpression: Incorrect operand type for operator or function; operator: {clause},"
            f" operand type: {_TYPE_NAMES[tag]}, typeSet: ALLOWED_FOR_{clause}_OPERAND"
        )


def _typed(attribute: AttributeValue, tag: str) -> Any:
    if tag not in attribute:
        raise InvalidRequest("An operand in the update expression has an incorrect data type")
    return attribute[tag]


# --- right sides -------------------------------------------------------------------------------


def _right_side(value: object) -> Callable[[Old], AttributeValue]:
    return _RIGHT_SIDES[type(value)](value)


def _value(operand: Value) -> Callable[[Old], AttributeValue]:
    literal = normal_attribute(operand.attribute)
    return lambda _: literal


def _path(path: Path) -> Callable[[Old], AttributeValue]:
    read = path_reader(path)

    def copy(old: Old) -> AttributeValue:
        found = read(old)
        if found is None:
            raise InvalidRequest("The provided expression refers to an attribute that does not exist in the item")
        return found

    return copy


def _size(_: Size) -> Callable[[Old], AttributeValue]:
    raise InvalidRequest(
        "Invalid UpdateExpression: The function is not allowed in an update expression; function: size"
    )


def _if_not_exists(value: IfNotExists) -> Callable[[Old], AttributeValue]:
    read, default = path_reader(value.path), _right_side(value.default)

    def choose(old: Old) -> AttributeValue:
        found = read(old)
        return default(old) if found is None else found

    return choose


def _list_append(value: ListAppend) -> Callable[[Old], AttributeValue]:
    first, second = _operand(value.first, "L", "list_append"), _operand(value.second, "L", "list_append")
    return lambda old: {"L": [*first(old), *second(old)]}


def _arithmetic(value: Arithmetic) -> Callable[[Old], AttributeValue]:
    left, right = _operand(value.left, "N", value.operator), _operand(value.right, "N", value.operator)
    combine = _number_sum if value.operator == "+" else _number_difference
    return lambda old: {"N": combine(left(old), right(old))}


def _operand(value: object, tag: str, name: str) -> Callable[[Old], Any]:
    require_type(value, (tag,), name, "UpdateExpression")
    read = _right_side(value)
    return lambda old: _typed(read(old), tag)


_RIGHT_SIDES: dict[type, Callable[[Any], Callable[[Old], AttributeValue]]] = {
    Value: _value,
    Path: _path,
    Size: _size,
    IfNotExists: _if_not_exists,
    ListAppend: _list_append,
    Arithmetic: _arithmetic,
}


# --- sums --------------------------------------------------------------------------------------


def _number_sum(left: str, right: str) -> str:
    if len(left) < _SHORT and len(right) < _SHORT and "." not in left and "." not in right:
        return str(int(left) + int(right))
    return _storable(exact_sum((Decimal(left), Decimal(right))))


def _number_difference(left: str, right: str) -> str:
    return _storable(exact_sum((Decimal(left), Decimal(right).copy_negate())))


def _storable(number: Decimal) -> str:
    try:
        return canonical_number(number)
    except InvalidValue:
        # The service reports overflow also for a sum with too many digits.
        raise InvalidRequest(
            "Number overflow. Attempting to store a number with magnitude larger than supported range"
        ) from None


def _set_sum(present: list[str], added: list[str]) -> list[str]:
    return sorted({*present, *added})


_SETS = ("SS", "NS", "BS")
_SUMS: dict[str, Callable[[Any, Any], Any]] = {"N": _number_sum, **dict.fromkeys(_SETS, _set_sum)}
