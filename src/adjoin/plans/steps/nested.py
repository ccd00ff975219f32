"""Changes inside of a value: a field of a nested model, a key of a map, an element of a list.

`collected` puts the changes that a call names by themselves together with those that it names by keyword. `applied`
makes them on a value that was read. `nested_action` is one of them as an action of DynamoDB, which needs no read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ValidationError

from adjoin.entity_types import EntityType
from adjoin.errors import InvalidValue, UnknownField, shown
from adjoin.expressions import Action, Arithmetic, IfNotExists, ListAppend, Path, Remove, Set, Value
from adjoin.field_types import problems_in, unknown_field
from adjoin.fields import FieldReference, RelativeChange
from adjoin.units import KB
from adjoin.values import encode, exact_sum

_GONE = object()
"""Stands for a value that is removed."""
_MOST_ELEMENTS = 400 * KB
"""More elements than an item of 400 KB can hold. DynamoDB refuses positions far beyond that."""
_IN_PLACE = ("set", "remove", "+", "-", "append")
"""What DynamoDB can do with one element, without knowing it."""
_CHANGES = {"append": "lists", "add": "sets", "discard": "lists and sets"}
"""What can be given or lose elements."""


def collected(call: str, named: Mapping[str, Any], given: Sequence[RelativeChange]) -> dict[str, Any]:
    """The changes of a call by field: those by keyword, and those that name their field themselves."""
    for name, value in named.items():
        if isinstance(value, FieldReference):
            raise InvalidValue(
                f"{name}=field({value.name!r}) is a field and not a value; make a value of it, as in "
                f"field({value.name!r}) + 1, or read it and pass what it is"
            )
        if isinstance(value, RelativeChange) and (value.operator in ("set", "remove") or "." in value.field):
            raise InvalidValue(
                f"{name}= takes a value, and the change of field({value.field!r}) says by itself what changes; pass it "
                f"to {call} without {name}="
            )
    changes = dict(named)
    within: dict[str, list[RelativeChange]] = {}
    for change in given:
        first, _, rest = change.field.partition(".")
        if first in changes or (first in within and not rest):
            raise InvalidValue(f"{first!r} is changed twice in one {call}; pass one change of it")
        if rest:
            _refuse_overlap(call, within.setdefault(first, []), change)
            within[first].append(change)
        else:
            changes[first] = change.operand if change.operator == "set" else change
    return changes | {name: RelativeChange(name, "within", tuple(each)) for name, each in within.items()}


def _refuse_overlap(call: str, before: Sequence[RelativeChange], change: RelativeChange) -> None:
    for other in before:
        shorter, longer = sorted((other.field, change.field), key=len)
        if f"{longer}.".startswith(f"{shorter}."):
            raise InvalidValue(f"{longer!r} is changed twice in one {call}; pass one change of it")


# --- without reading ---------------------------------------------------------------------------


def is_shallow(change: RelativeChange) -> bool:
    """Whether a change is of one element of a list or map, and DynamoDB can make it without knowing the others."""
    return change.field.count(".") == 1 and change.operator in _IN_PLACE


def nested_action(kind: EntityType, name: str, change: RelativeChange, *, is_list: bool) -> Action:
    """The action for a shallow change of an element of a field, whose class takes any value of the element's type."""
    step = change.field.partition(".")[2]
    if is_list and not step.isdecimal():
        raise InvalidValue(f"{kind.name}.{name} is a list, and {step!r} is not a position in it; pass a number")
    if is_list and int(step) > _MOST_ELEMENTS:
        raise InvalidValue(f"{kind.name}.{name} has no position {step}: an item holds fewer elements; pass a lower one")
    path = Path((kind.attributes[name], int(step) if is_list else step))

    def element(value: Any) -> Any:
        """The value as the field takes it for an element."""
        whole = kind.validated(name, [value] if is_list else {step: value})
        return whole[0] if is_list else next(iter(whole.values()))

    match change.operator:
        case "remove":
            return Remove(path)
        case "set":
            return Set(path, Value(encode(element(change.operand))))
        case "append":
            more = encode(element(change.operand))
            if "L" not in more:
                raise InvalidValue(f"{kind.name}.{change.field}: nothing can be appended, because it is not a list")
            return Set(path, ListAppend(IfNotExists(path, Value({"L": []})), Value(more)))
        case "+" | "-":
            amount = encode(element(change.operand))
            if "N" not in amount:
                raise InvalidValue(f"{kind.name}.{change.field}: nothing can be added, because it is not a number")
            return Set(path, Arithmetic(change.operator, IfNotExists(path, Value({"N": "0"})), Value(amount)))
    raise AssertionError(f"{change.operator} needs a read")


# --- on a value that was read ------------------------------------------------------------------


def applied(kind: EntityType, name: str, value: Any, changes: Sequence[RelativeChange]) -> Any:
    """A value with these changes inside of it. Positions in lists are those before the changes."""
    # What is removed from a list moves what comes after it, so removals come last, from the end.
    removals = [change for change in changes if change.operator == "remove"]
    others = [change for change in changes if change.operator != "remove"]
    for change in (*others, *sorted(removals, key=lambda each: _steps(each.field), reverse=True)):
        steps = change.field.split(".")[1:]
        value = _changed(f"{kind.name}.{name}", value, steps, change)
    return value


def _steps(field: str) -> list[tuple[int, str]]:
    return [(int(step) if step.isdecimal() else -1, step) for step in field.split(".")]


def _changed(place: str, value: Any, steps: Sequence[str], change: RelativeChange) -> Any:
    if not steps:
        return _leaf(place, value, change)
    step, *rest = steps
    inner = f"{place}.{step}"
    match value:
        case BaseModel():
            return _in_model(inner, value, step, rest, change)
        case Mapping():
            new = _changed(inner, value.get(step), rest, change)
            others = {key: each for key, each in value.items() if key != step}
            return others if new is _GONE else {**value, step: new}
        case list() | tuple():
            if not step.isdecimal():
                raise InvalidValue(f"{place} is a list, and {step!r} is not a position in it; pass a number")
            at = int(step)
            new = _changed(inner, value[at] if at < len(value) else None, rest, change)
            # DynamoDB puts a value at the end if its position is beyond that.
            return [*value[:at], *([] if new is _GONE else [new]), *value[at + 1 :]]
    raise InvalidValue(f"{place} is {shown(value)}, so there is no {step!r} in it to change; set {place} as a whole")


def _in_model(inner: str, value: BaseModel, step: str, rest: Sequence[str], change: RelativeChange) -> Any:
    model = type(value)
    if step not in model.model_fields and model.model_config.get("extra") != "allow":
        raise UnknownField(unknown_field(model.__name__, step, model.model_fields))
    own = {**value.__dict__, **(value.__pydantic_extra__ or {})}
    new = _changed(inner, own.get(step), rest, change)
    try:
        # Pydantic takes an instance as it is, so the nested model is made anew to validate what has changed.
        return model.model_validate(
            {**{key: each for key, each in own.items() if key != step}, **({} if new is _GONE else {step: new})},
            by_alias=False,
            by_name=True,
        )
    except ValidationError as error:
        raise InvalidValue(f"this change would make {inner} invalid: {problems_in(error)}") from None


def _leaf(place: str, value: Any, change: RelativeChange) -> Any:
    operand = change.operand
    match change.operator:
        case "set":
            return operand
        case "remove":
            return _GONE
        case "append" | "add" | "discard":
            return with_elements(place, value, change)
        case "+" | "-":
            return _sum(place, value, operand if change.operator == "+" else _negative(place, operand))
    raise AssertionError(f"{change.operator} is not a change of one value")


def with_elements(place: str, value: Any, change: RelativeChange) -> Any:
    """A list or a set with more elements or with fewer; None counts as an empty one."""
    elements: Any = change.operand
    match change.operator, value:
        case _, None:
            return type(elements)() if change.operator == "discard" else elements
        case "append", list() | tuple():
            return [*value, *elements]
        case "add", set() | frozenset():
            return {*value, *elements}
        case "discard", set() | frozenset():
            return {*value} - elements
        case "discard", list() | tuple():
            return [each for each in value if not any(each == other for other in elements)]
    raise InvalidValue(
        f"{place} is {shown(value)}, and {change.operator} changes {_CHANGES[change.operator]} only; use another "
        f"change, or set {place} as a whole"
    )


def _negative(place: str, amount: Any) -> Any:
    _sum(place, 0, amount)
    return amount.copy_negate() if isinstance(amount, Decimal) else -amount


def _sum(place: str, value: Any, amount: Any) -> Any:
    value = 0 if value is None else value
    if "N" not in encode(value) or "N" not in encode(amount):
        raise InvalidValue(f"{place}: {shown(amount)} cannot be added to {shown(value)}; both must be numbers")
    if isinstance(value, int) and isinstance(amount, int):
        return value + amount
    return exact_sum((Decimal(encode(value)["N"]), Decimal(encode(amount)["N"])))
