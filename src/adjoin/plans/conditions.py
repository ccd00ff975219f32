"""Comparisons and changes of fields, translated into conditions and updates of stored attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Context, Decimal
from typing import Any, TypeAlias

from pydantic import BaseModel

from adjoin.errors import InvalidValue, UnknownField, shown
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
    IfNotExists,
    In,
    ListAppend,
    Not,
    Or,
    Path,
    Remove,
    Set,
    Value,
    all_of,
    attribute,
)
from adjoin.fields import AllOf, AnyOf, Change, Comparison, Negation, Predicate
from adjoin.layouts.interface import BoundLayout
from adjoin.plans.versions import initial
from adjoin.schema import EntityType, plain_type, unknown_field
from adjoin.values import AttributeValue, encode, nested_name

NULL: AttributeValue = {"NULL": True}
_EXACT = Context(prec=300)
Naming: TypeAlias = Callable[[EntityType, str], str]
_RANGES = ("<", "<=", ">", ">=", "between")


def condition(layout: BoundLayout, kind: EntityType, predicate: Predicate, named: Naming | None = None) -> Condition:
    """The condition over stored attributes that a predicate over fields means for this class.

    `named` tells what a field's attribute is called, if that is not where the layout lets it be filtered by.
    """
    named = named or layout.filterable
    match predicate:
        case AllOf(predicates):
            return And(tuple(condition(layout, kind, each, named) for each in predicates))
        case AnyOf(predicates):
            return Or(tuple(condition(layout, kind, each, named) for each in predicates))
        case Negation(inner):
            return Not(condition(layout, kind, inner, named))
        case Comparison(name):
            path = Path((named(kind, name.partition(".")[0]), *_nested_steps(kind, name)))
            return _comparison(layout, kind, path, predicate)
    raise InvalidValue(f'{shown(predicate)} is not a comparison; build one with field("name") == value')


def _comparison(layout: BoundLayout, kind: EntityType, path: Path, comparison: Comparison) -> Condition:
    operator, operands = comparison.operator, comparison.operands
    if operator == "exists":
        return Exists(path)
    if operands == (None,) and operator in ("=", "<>"):
        absent = Or((Not(Exists(path)), Compare("=", path, Value(NULL))))
        return absent if operator == "=" else Not(absent)
    if operator == "in" and None in operands:
        rest = tuple(each for each in operands if each is not None)
        missing = _comparison(layout, kind, path, Comparison(comparison.field, "=", (None,)))
        if not rest:
            return missing
        return Or((missing, _comparison(layout, kind, path, Comparison(comparison.field, "in", rest))))
    if operator in _RANGES and "." not in comparison.field and plain_type(kind.fields[comparison.field]) is timedelta:
        raise InvalidValue(
            f"{kind.name}.{comparison.field} is a duration, which is stored as text that does not sort by length; "
            f"compare with == and != only, or store a number"
        )
    if operator == "contains":
        return Contains(path, Value(encode(operands[0])))
    if operator == "begins_with" and isinstance(operands[0], list | tuple):
        steps = [Compare("=", Path((*path.steps, at)), Value(encode(each))) for at, each in enumerate(operands[0])]
        return all_of(*steps) or Exists(path)
    if operator == "begins_with":
        return BeginsWith(path, Value(encode(operands[0])))
    values = tuple(Value(_operand(layout, kind, comparison.field, each)) for each in operands)
    match operator:
        case "between":
            return Between(path, values[0], values[1])
        case "in":
            return In(path, values)
    return Compare(operator, path, values[0])


def _operand(layout: BoundLayout, kind: EntityType, name: str, value: Any) -> AttributeValue:
    if name not in kind.attributes:
        return encode(value)
    encoded = layout.encode_field(kind, name, kind.coerced(name, value))
    return NULL if encoded is None else encoded


def _nested_steps(kind: EntityType, name: str) -> list[str | int]:
    """Where a nested field is stored inside the attribute of the outer one."""
    first, *rest = name.split(".")
    steps: list[str | int] = []
    model = plain_type(kind.fields[first])
    for step in rest:
        if isinstance(model, type) and issubclass(model, BaseModel):
            info = model.model_fields.get(step)
            if info is None:
                raise UnknownField(unknown_field(model.__name__, step, model.model_fields))
            steps.append(nested_name(step, info))
            model = plain_type(info)
        else:
            steps.append(int(step) if step.isdecimal() else step)
            model = None
    return steps


def update_actions(
    layout: BoundLayout, kind: EntityType, identity: Mapping[str, Any], changes: Mapping[str, Any]
) -> tuple[Action, ...]:
    """What an update of these fields does to the stored attributes, index keys included."""
    actions: list[Action] = []
    plain: dict[str, Any] = {}
    for name, value in changes.items():
        stored = kind.attribute(name)
        if isinstance(value, Change):
            actions.append(_change(kind, name, stored, value))
            continue
        plain[name] = value = kind.validated(name, value)
        encoded = layout.encode_field(kind, name, value)
        actions.append(Remove(attribute(stored)) if encoded is None else Set(attribute(stored), Value(encoded)))
    actions += layout.index_actions(kind, identity, plain)
    if kind.version and kind.version not in changes:
        actions.append(_counted_up(kind, attribute(kind.attribute(kind.version))))
    return tuple(actions)


def _counted_up(kind: EntityType, version: Path) -> Action:
    if initial(kind) == 0:
        return Add(version, {"N": "1"})
    return Set(version, Arithmetic("+", IfNotExists(version, Value(encode(initial(kind)))), Value({"N": "1"})))


def _change(kind: EntityType, name: str, stored: str, change: Change) -> Action:
    path, origin = attribute(stored), attribute(kind.attribute(change.field))
    if change.operator in ("+", "-"):
        return _sum(kind, name, path, origin, change)
    operand = encode(kind.coerced(name, change.operand))
    if change.operator == "append":
        return Set(path, ListAppend(IfNotExists(origin, Value({"L": []})), Value(operand)))
    if origin != path or "L" in operand:
        raise InvalidValue(
            f"{kind.name}.{name}: elements can be put into or taken out of a set of text, numbers or bytes, "
            f"one that the same field holds"
        )
    return Add(path, operand) if change.operator == "add" else Discard(path, operand)


def _sum(kind: EntityType, name: str, path: Path, origin: Path, change: Change) -> Action:
    amount = change.operand
    check_amount(kind, name, amount)
    if origin != path:
        operands = IfNotExists(origin, Value({"N": "0"})), Value(encode(amount))
        return Set(path, Arithmetic("+" if change.operator == "+" else "-", *operands))
    if change.operator == "-":
        # Negating with `-` would round a Decimal to the context's precision.
        amount = amount.copy_negate() if isinstance(amount, Decimal) else -amount
    return Add(path, encode(amount))


def check_amount(kind: EntityType, name: str, amount: Any) -> None:
    allowed = (int,) if plain_type(kind.fields[name]) is int else (int, Decimal, float)
    if not isinstance(amount, allowed) or isinstance(amount, bool):
        raise InvalidValue(f"{kind.name}.{name}: {amount!r} is not a number that can be added to it or taken from it")


def bounds(kind: EntityType, changes: Mapping[str, Any]) -> Condition | None:
    """What must hold before a relative change for the field's limits to hold after it."""
    conditions = []
    for name, change in changes.items():
        if not isinstance(change, Change) or change.operator not in ("+", "-") or change.field != name:
            continue
        path = attribute(kind.attribute(name))
        amount = Decimal(encode(change.operand).get("N", "0"))
        amount = amount if change.operator == "+" else amount.copy_negate()
        for operator, limit in kind.limits(name):
            before = _EXACT.subtract(Decimal(encode(limit)["N"]), amount)
            conditions.append(Compare(operator, path, Value(encode(before))))
    return all_of(*conditions)
