"""Translates predicates over fields into conditions, and changes of fields into updates, of stored attributes.

In: what a program writes, such as `field("age") > 18` or `{"age": Change(...)}`, and the class. Out: the trees of
`expressions`, which stores evaluate. The layout says which attribute holds a field and how its value is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Protocol, TypeAlias

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from adjoin.entity_types import AnyEdge, EdgeType, EntityType, NodeType
from adjoin.errors import InvalidKey, InvalidRequest, InvalidValue, UnknownField, shown
from adjoin.evaluate import condition_test
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
    Or,
    Path,
    Remove,
    Set,
    Size,
    Value,
    all_of,
    attribute,
)
from adjoin.field_types import bounds_of, is_set, plain_type, stored_tag, unknown_field
from adjoin.fields import (
    AllOf,
    AnyOf,
    Comparison,
    Negation,
    Predicate,
    RelativeChange,
    SizeComparison,
    TypeTest,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.steps.nested import nested_action
from adjoin.plans.steps.predicates import compared_fields, compared_names
from adjoin.values import AttributeValue, encode, exact_sum, nested_name

NULL: AttributeValue = {"NULL": True}
_EMPTY: AttributeValue = {"L": []}
"""An empty set as nested values have it. A field that is a set has no attribute if it is empty."""
Naming: TypeAlias = Callable[[EntityType, str], str]
_Compared: TypeAlias = Comparison | SizeComparison | TypeTest
_RANGES = ("<", "<=", ">", ">=", "between")
_SIDES = {">=": "low", "<": "low", ">": "high", "<=": "high"}
"""Whether the next value above or below stands for one that a format does not hold: x >= 1.5 is x >= 2."""


def condition(
    layout: BoundLayout, kind: EntityType, predicate: Predicate, named: Naming | None = None, *, of_write: bool = False
) -> Condition:
    """The condition over stored attributes for a predicate over fields of this class.

    An item without a field has the default of the field, as when it is read: the field may be younger than the item.
    `named` gives the attribute of a field. Without it, the layout decides, and refuses fields that cannot be filtered.
    In a write, where there may be no item at all, only an item that is stored has defaults.
    """

    def tested(path: Path, compared: _Compared, *, is_last: bool) -> Condition:
        found = _tested(layout, kind, path, compared)
        return _with_default(layout, kind, path, compared, found, of_write=of_write) if is_last else found

    return _condition(kind, predicate, named or layout.filterable, layout.present, tested)


def plain_condition(layout: BoundLayout, kind: EntityType, predicate: Predicate, named: Naming) -> Condition:
    """The same for attributes that `named` gives, where what is absent has no value, or is an empty set."""

    def tested(path: Path, compared: _Compared, *, is_last: bool) -> Condition:
        found = _tested(layout, kind, path, compared)
        return _with_value(layout, path, found, _EMPTY, of_write=False) if _may_be_empty(kind, compared) else found

    return _condition(kind, predicate, named, layout.present, tested)


class _Test(Protocol):
    """Makes the condition for one comparison of the attribute at a path; the last of several names has the default."""

    def __call__(self, path: Path, compared: _Compared, *, is_last: bool) -> Condition: ...


def _condition(kind: EntityType, predicate: Predicate, named: Naming, present: Condition, tested: _Test) -> Condition:
    match predicate:
        case AllOf(predicates):
            return And(tuple(_condition(kind, each, named, present, tested) for each in predicates))
        case AnyOf(predicates):
            return Or(tuple(_condition(kind, each, named, present, tested) for each in predicates))
        case Negation(inner):
            return Not(_condition(kind, inner, named, present, tested))
        case Comparison(name, "exists") if is_of_id(kind, name):
            return present
        case Comparison(name) | SizeComparison(name) | TypeTest(name):
            first = name.partition(".")[0]
            names, rest = [named(kind, first), *kind.former.get(first, ())], _nested_steps(kind, name)
            paths = [Path((each, *rest)) for each in names]
            found = tested(paths[-1], predicate, is_last=True)
            for stored, path in reversed([*zip(names[:-1], paths[:-1], strict=True)]):
                # A former name counts only on an item that does not have the present one.
                is_there = Exists(attribute(stored))
                found = Or((And((is_there, tested(path, predicate, is_last=False))), And((Not(is_there), found))))
            return found
    raise InvalidValue(f'{shown(predicate)} is not a comparison; build one with field("name") == value')


def _with_default(
    layout: BoundLayout, kind: EntityType, path: Path, compared: _Compared, found: Condition, *, of_write: bool
) -> Condition:
    """The condition, which holds for an item without the attribute if it holds for the default of the field."""
    if _may_be_empty(kind, compared):
        return _with_value(layout, path, found, _EMPTY, of_write=of_write)
    name = compared.field.partition(".")[0]
    default = None if isinstance(compared, Comparison) and compared.operator == "exists" else _default(kind, name)
    value = None if default is None else layout.encode_field(kind, name, default)
    return found if value is None else _with_value(layout, path, found, value, of_write=of_write)


def _may_be_empty(kind: EntityType, compared: _Compared) -> bool:
    """Whether a comparison is of a set as a whole, whose attribute an item lacks if it is empty."""
    is_of_value = isinstance(compared, SizeComparison) or (
        isinstance(compared, Comparison) and compared.operator != "exists"
    )
    return is_of_value and compared.field in kind.fields and is_set(kind.fields[compared.field])


def _with_value(
    layout: BoundLayout, path: Path, found: Condition, value: AttributeValue, *, of_write: bool
) -> Condition:
    """The condition, which holds for an item without the attribute if it holds for this value."""
    stored = str(path.steps[0])
    try:
        test = condition_test(found)
    except InvalidRequest:
        # It compares values that no store compares. The store says so.
        return found
    is_there = Exists(attribute(stored))
    is_default, is_absent = test({stored: value}), test({})
    if is_default == is_absent:
        return found
    if not is_default:
        return And((is_there, found))
    lacks = Not(is_there)
    return Or((And((layout.present, lacks)) if of_write else lacks, found))


def _default(kind: EntityType, name: str) -> Any:
    """The default of a field; None if it has none, or if a function of the program makes it."""
    info = kind.fields.get(name)
    is_plain = info is not None and not info.is_required() and info.default_factory in (None, list, dict, set, tuple)
    default = info.get_default(call_default_factory=True) if info is not None and is_plain else None
    return None if default is PydanticUndefined else default


def is_filterable(layout: BoundLayout, kind: EntityType, predicate: Predicate) -> bool:
    """Whether DynamoDB can filter by a predicate: every field in it is an attribute, and sorts where it has to."""
    if compares_ids(kind, predicate):
        return False
    try:
        condition(layout, kind, predicate)
    except (InvalidKey, InvalidValue):
        return False
    return _is_sorted(kind, predicate)


def _is_sorted(kind: EntityType, predicate: Predicate) -> bool:
    """Whether each range in a predicate is of text or of numbers, which DynamoDB puts in order."""
    match predicate:
        case AllOf(predicates) | AnyOf(predicates):
            return all(_is_sorted(kind, each) for each in predicates)
        case Negation(inner):
            return _is_sorted(kind, inner)
        case Comparison(name, operator) if operator in _RANGES:
            return name in kind.fields and stored_tag(kind.fields[name]) in ("S", "N")
    return True


def is_of_id(kind: EntityType, name: str) -> bool:
    """Whether a field is part of the id of a node, or an end of an edge; every stored one has it."""
    names = kind.id_names if isinstance(kind, NodeType) else ("source", "target")
    return name in names and name not in kind.attributes


def compares_ids(kind: EntityType, predicate: Predicate) -> bool:
    """Whether a predicate compares ids, which are in keys: the entities have to be looked at, after they were read.

    Raises `UnknownField` for other names in it that the class does not have.
    """
    names = compared_names(predicate)
    if not any(is_of_id(kind, name.partition(".")[0]) for name in names):
        return False
    for name in names:
        first = name.partition(".")[0]
        if not is_of_id(kind, first):
            kind.attribute(first)
        elif first != name and kind.part(name) is None:
            raise UnknownField(f"{kind.name}.{name} is not part of an id, so it is not on the {kind.name} itself")
    return True


def _tested(layout: BoundLayout, kind: EntityType, path: Path, predicate: _Compared) -> Condition:
    """The condition for one comparison of the attribute at this path."""
    match predicate:
        case TypeTest(type=type):
            return HasType(path, type)
        case SizeComparison(operator="between", operands=(low, high)):
            return Between(Size(path), Value(encode(low)), Value(encode(high)))
        case SizeComparison(operator=operator, operands=(number,)) if operator != "between":
            return Compare(operator, Size(path), Value(encode(number)))
        case Comparison():
            return _comparison(layout, kind, path, predicate)
    raise AssertionError(f"unknown predicate {predicate!r}")


def write_condition(layout: BoundLayout, kind: EntityType, only_if: Predicate | None) -> Condition | None:
    """The condition of a write for its `only_if`."""
    if only_if is None:
        return None
    return condition(layout, kind, only_if, partial(_written_name, layout), of_write=True)


def _written_name(layout: BoundLayout, kind: EntityType, name: str) -> str:
    """The attribute of a field in a condition of a write; raises if the call itself says the field's value."""
    if is_of_id(kind, name):
        raise UnknownField(
            f"{kind.name}.{name} is part of the id, which is in the key only and which the call says; leave it out of "
            f"only_if, or use field({name!r}).exists()"
        )
    return layout.filterable(kind, name, remedy="leave it out of only_if, because the key says its value")


def delete_condition(layout: BoundLayout, kind: EntityType, only_if: Predicate | None) -> Condition | None:
    """The condition of a delete for its `only_if`: it holds as well if there is nothing to delete."""
    wanted = write_condition(layout, kind, only_if)
    return None if wanted is None else Or((Not(layout.present), wanted))


def end_conditions(
    layout: BoundLayout, kind: EdgeType, edge: AnyEdge, only_if: Predicate | None
) -> dict[str, list[Condition]]:
    """The conditions on the source and on the target of a new edge, for an `only_if` about their fields."""
    found: dict[str, list[Condition]] = {"source": [], "target": []}
    for part in () if only_if is None else only_if.predicates if isinstance(only_if, AllOf) else (only_if,):
        sides = compared_fields(part)
        if not sides <= found.keys() or not sides:
            raise InvalidValue(
                f"only_if of a new {kind.name} is about the fields of its two nodes; write them as "
                f'field("source.name") or field("target.name")'
            )
        if len(sides) > 1:
            raise InvalidValue(
                f"only_if of a new {kind.name} compares both nodes in one part, but DynamoDB checks each by itself; "
                f"join parts about one node each with &"
            )
        (side,) = sides
        node, _ = (kind.source if side == "source" else kind.target).of(getattr(edge, side))
        wanted = write_condition(layout, node, _of_node(part, side))
        assert wanted is not None
        found[side].append(wanted)
    return found


def _of_node(predicate: Predicate, side: str) -> Predicate:
    """The same predicate about the fields of a node, without the name of the end before them."""
    match predicate:
        case AllOf(predicates):
            return AllOf(tuple(_of_node(each, side) for each in predicates))
        case AnyOf(predicates):
            return AnyOf(tuple(_of_node(each, side) for each in predicates))
        case Negation(inner):
            return Negation(_of_node(inner, side))
        case Comparison(name) | SizeComparison(name) | TypeTest(name):
            return replace(predicate, field=name.removeprefix(side).removeprefix("."))
    raise AssertionError(f"unknown predicate {predicate!r}")


def _comparison(layout: BoundLayout, kind: EntityType, path: Path, comparison: Comparison) -> Condition:
    """The condition for one comparison of the attribute at this path."""
    operator, operands = comparison.operator, comparison.operands
    if operator == "exists":
        return Exists(path)
    # A field that is None is stored as an absent attribute. Other programs may store it as NULL.
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
    format = kind.formats.get(comparison.field)
    if operator in _RANGES and format is not None and not format.sorts:
        raise InvalidValue(
            f"{kind.name}.{comparison.field} is stored as {format.name!r}, which does not sort by value; compare with "
            f"== and != only, or in the program"
        )
    if operator == "contains" and comparison.field in kind.elements and operands[0] is not None:
        return Contains(path, Value(encode(kind.coerced_element(comparison.field, operands[0]))))
    if operator == "contains":
        return Contains(path, Value(encode(operands[0])))
    # DynamoDB's begins_with takes text and bytes only. For a list, the first elements are compared one by one.
    if operator == "begins_with" and isinstance(operands[0], list | tuple):
        steps = [Compare("=", Path((*path.steps, at)), Value(encode(each))) for at, each in enumerate(operands[0])]
        return all_of(*steps) or Exists(path)
    if operator == "begins_with":
        return BeginsWith(path, Value(encode(operands[0])))
    sides = ("low", "high") if operator == "between" else (_SIDES.get(operator, ""),) * len(operands)
    values = tuple(
        Value(_operand(layout, kind, comparison.field, each, side)) for each, side in zip(operands, sides, strict=True)
    )
    match operator:
        case "between":
            return Between(path, values[0], values[1])
        case "in":
            return In(path, values)
    return Compare(operator, path, values[0])


def _operand(layout: BoundLayout, kind: EntityType, name: str, value: Any, side: str) -> AttributeValue:
    """A value to compare with, encoded as the field is. Nested fields have no layout, and use the plain encoding.

    `side` says in a range whether it is a low or a high end, for formats that do not hold every value.
    """
    if name not in kind.fields:
        return encode(value)
    value = kind.coerced(name, value)
    if name in kind.formats and side and value is not None:
        value = kind.formats[name].ceil(value) if side == "low" else kind.formats[name].floor(value)
    encoded = layout.encode_field(kind, name, value)
    if encoded is not None:
        return encoded
    return _EMPTY if is_set(kind.fields[name]) and value is not None else NULL


def _nested_steps(kind: EntityType, name: str) -> list[str | int]:
    """The path of a nested field inside the attribute of the outer field."""
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
    """The actions on stored attributes for an update of these fields, including index keys and the version."""
    actions: list[Action] = []
    plain: dict[str, Any] = {}
    for name, value in changes.items():
        stored = kind.attribute(name)
        if isinstance(value, RelativeChange) and value.operator == "within":
            # An element is changed by itself only where a condition can check that it is one of a list or a map.
            is_list = layout.fit(kind).told[name].inside == HasType(attribute(stored), "L")
            actions += [nested_action(kind, name, each, is_list=is_list) for each in value.operand]
            continue
        if isinstance(value, RelativeChange):
            actions.append(_change(kind, name, stored, value))
            continue
        plain[name] = value = kind.validated(name, value)
        encoded = layout.encode_stored(kind, name, value)
        actions.append(Remove(attribute(stored)) if encoded is None else Set(attribute(stored), Value(encoded)))
    actions += layout.index_actions(kind, identity, plain)
    if kind.version and kind.version not in changes:
        actions.append(_counted_up(kind, attribute(kind.attribute(kind.version))))
    return tuple(actions)


def _counted_up(kind: EntityType, version: Path) -> Action:
    """Adds 1 to the version. An item without a version counts as one with the initial version."""
    if initial(kind) == 0:
        return Add(version, {"N": "1"})
    return Set(version, Arithmetic("+", IfNotExists(version, Value(encode(initial(kind)))), Value({"N": "1"})))


def _change(kind: EntityType, name: str, stored: str, change: RelativeChange) -> Action:
    """The action for a relative change, which DynamoDB applies to the stored value without a read."""
    path, origin = attribute(stored), attribute(kind.attribute(change.field))
    if change.operator in ("+", "-"):
        return _sum(kind, name, path, origin, change)
    operand = encode(kind.coerced(name, change.operand))
    if change.operator == "append":
        start = encode(list(start_of(kind, change.field) or ()))
        return Set(path, ListAppend(IfNotExists(origin, Value(start)), Value(operand)))
    if origin != path or "L" in operand:
        raise InvalidValue(
            f"{kind.name}.{name}: elements can be put into or taken out of a set of text, numbers or bytes only, "
            f"and the set must be in the same field"
        )
    return Add(path, operand) if change.operator == "add" else Discard(path, operand)


def _sum(kind: EntityType, name: str, path: Path, origin: Path, change: RelativeChange) -> Action:
    """The action for `field(...) + amount` or `- amount`. `origin` is the field that the amount is added to."""
    amount = change.operand
    check_amount(kind, name, amount)
    # ADD can only change an attribute in place, and begins with 0. For the sum of another field, or for a field with
    # another default, arithmetic in SET is needed.
    start = encode(start_of(kind, change.field) or 0)
    if origin != path or start != {"N": "0"}:
        operands = IfNotExists(origin, Value(start if "N" in start else {"N": "0"})), Value(encode(amount))
        return Set(path, Arithmetic("+" if change.operator == "+" else "-", *operands))
    if change.operator == "-":
        # The operator `-` would round a Decimal to the precision of the context.
        amount = amount.copy_negate() if isinstance(amount, Decimal) else -amount
    return Add(path, encode(amount))


def check_amount(kind: EntityType, name: str, amount: Any) -> None:
    """Refuses an amount that is not a number, or not a whole one for a field of whole numbers."""
    allowed = (int,) if plain_type(kind.fields[name]) is int else (int, Decimal, float)
    if not isinstance(amount, allowed) or isinstance(amount, bool):
        raise InvalidValue(
            f"{kind.name}.{name}: {shown(amount)} is not a number that can be added to or subtracted from it"
        )


def bounds(kind: EntityType, changes: Mapping[str, Any]) -> Condition | None:
    """The condition before a relative change under which the limits of the fields (such as `ge=0`) hold after it."""
    return all_of(*(compare for compare, _ in _bounds(kind, changes)))


def _bounds(kind: EntityType, changes: Mapping[str, Any]) -> Iterator[tuple[Compare, str]]:
    """For each limit of a field that changes relatively: the condition before the change, and the limit in words."""
    for name, change in changes.items():
        if not isinstance(change, RelativeChange) or change.operator not in ("+", "-") or change.field != name:
            continue
        path = attribute(kind.attribute(name))
        amount = Decimal(encode(change.operand).get("N", "0"))
        amount = amount if change.operator == "+" else amount.copy_negate()
        for operator, limit in bounds_of(kind.fields[name]):
            before = exact_sum((Decimal(encode(limit)["N"]), amount.copy_negate()))
            words = f"{name} {change.operator} {change.operand} must be {operator} {limit}"
            yield Compare(operator, path, Value(encode(before))), words


def broken_bound(kind: EntityType, changes: Mapping[str, Any], item: Mapping[str, AttributeValue]) -> str:
    """Says which limit a relative change of a stored item would break; "" if it would break none."""
    for compare, words in _bounds(kind, changes):
        stored = item.get(str(compare.left))
        if stored is not None and not condition_test(compare)(item):
            return f"{words}, and {words.partition(' ')[0]} is {stored.get('N')}"
    return ""


def start_of(kind: EntityType, name: str) -> Any:
    """The value that a field has where none is stored: its default; None if it has none."""
    info = kind.fields[name]
    return None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})


def initial(kind: EntityType) -> int:
    """The version of a new instance. An item without a version counts as having this one."""
    assert kind.version is not None
    default = start_of(kind, kind.version)
    return default if isinstance(default, int) else 0
