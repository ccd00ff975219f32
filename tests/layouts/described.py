"""What a bound layout makes of a design, as lines of text: the items of entities, and where each class is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adjoin import Edge, InvalidKey, InvalidModel
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.expressions import And, BeginsWith, Compare, Contains, Exists, Not, Or, Value
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.ranges import Range
from adjoin.model import node_id
from adjoin.requests import SortCondition
from adjoin.values import Item


def text(value: Any) -> str:
    """A stored value; one that is neither text nor a list with its type."""
    ((tag, stored),) = value.items()
    if tag == "L":
        return f"[{', '.join(map(text, stored))}]"
    return str(stored) if tag == "S" else f"{tag}:{stored}"


def line(item: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={text(value)}" for name, value in item.items())


def asked(condition: SortCondition | None) -> str:
    return "" if condition is None else f" {condition.operator} {'..'.join(map(text, condition.operands))}"


def where(found: Range) -> str:
    """What a range asks, with what is known of the items there."""
    access = found.access
    flags = {
        "exclusive": access.exclusive,
        "told by more than keys": not access.told_by_keys,
        "literal": access.is_literal,
        "partial": access.is_partial,
        "sparse": access.is_sparse,
    }
    parts = " | ".join(f"{each.key[0]}={text(each.key[1])}" for each in found.parts)
    holding = ", ".join(name for name, holds in flags.items() if holds)
    return f"{access.index or 'table'}: {parts}{asked(found.condition())}" + (f" ({holding})" if holding else "")


def all_of(ranges: Iterable[Range]) -> str:
    return "; ".join(map(where, ranges)) or "nowhere"


def items(layout: BoundLayout, entity: Any) -> Iterator[str]:
    """The items of an entity with its satellites. What is stored is read back as it was, whoever reads it."""
    stored = layout.items(entity)
    kind: EntityType
    kind = layout.schema.edge(type(entity)) if isinstance(entity, Edge) else layout.schema.node(type(entity))
    for item in stored:
        yield line(item)
        check_read(layout, kind, entity, item)
    for each in layout.satellites(kind, stored, entity.__dict__):
        yield f"  beside: {line(each.item)}" if each.item is not None else f"  beside, not: {line(each.key)}"


def check_read(layout: BoundLayout, kind: EntityType, entity: Any, item: Item) -> None:
    """Checks that an item is read as the entity, or as the edge from its other end."""
    found = layout.decode(kind, item)
    assert layout.read(item) == found
    assert layout.kind_of(item) is kind.whole
    key = layout.key_of(item)
    if isinstance(kind, NodeType):
        assert found == entity
        assert layout.node_key(kind, node_id(entity)) == key
        assert layout.id_in(kind, layout.text_of(kind, item)) == node_id(entity)
        return
    assert isinstance(kind, EdgeType)
    assert isinstance(found, Edge)
    if found != entity:
        assert (kind.symmetric, found.source, found.target) == (True, entity.target, entity.source)
    assert layout.edge_key(kind, found.source, found.target, found.__dict__) == key
    source, target = layout.ends(kind, item)
    assert (layout.id_in(kind.source, source), layout.id_in(kind.target, target)) == (found.source, found.target)


def places(layout: BoundLayout, entity: Any) -> Iterator[str]:
    """Where an edge is looked for from its ends, or what is around a node."""
    if isinstance(entity, Edge):
        kind = layout.schema.edge(type(entity))
        for verb, find, end in (("out", layout.out, entity.source), ("in", layout.into, entity.target)):
            try:
                yield f"  {verb} {where(find(kind, end))}"
            except InvalidModel as error:
                yield f"  {verb} refused: {error}"
        return
    node = layout.schema.node(type(entity))
    if node.parent is not None:
        yield f"  child {where(layout.children(node, entity.parent))}"
    id = node_id(entity)
    try:
        leaving, arriving = layout.ranges_around(node, id, layout.node_text(node, id))
        yield f"  own {all_of(leaving)}"
        yield f"  arriving {all_of(arriving)}"
    except InvalidModel as error:
        yield f"  around refused: {error}"


def patterns(layout: BoundLayout, kind: EntityType) -> Iterator[str]:
    """The ways to find a class, and what a scan filters by."""
    for each in layout.patterns(kind):
        flags = {"partial": each.is_partial, "completed": each.is_completed}
        holding = ", ".join(name for name, holds in flags.items() if holds)
        yield f"  {each.needs()}" + (f" ({holding})" if holding else "")
    scan = layout.scan(kind)
    exactly = f", exactly {said(scan.exact)}" if scan.exact else ""
    yield f"  scan {said(scan.filter) if scan.filter else 'all'}{exactly}"


def said(condition: Any) -> str:
    """A condition as text."""
    match condition:
        case Compare(operator, left, right):
            return f"{said(left)} {operator} {said(right)}"
        case BeginsWith(operand, prefix):
            return f"{said(operand)} begins_with {said(prefix)}"
        case Contains(operand, element):
            return f"{said(operand)} contains {said(element)}"
        case Exists(path):
            return f"{path} exists"
        case Not(inner):
            return f"not ({said(inner)})"
        case And(conditions):
            return " and ".join(map(said, conditions))
        case Or(conditions):
            return f"({' or '.join(map(said, conditions))})"
        case Value(value):
            return repr(text(value))
    return str(condition)


def described(layout: BoundLayout, entities: Iterable[Any]) -> list[str]:
    """Everything about these entities, and once about each of their classes."""
    lines: list[str] = []
    seen = set()
    for entity in entities:
        name = type(entity).__name__
        try:
            stored = [*items(layout, entity)]
        except InvalidKey as error:
            lines.append(f"{name} refused: {error}")
            continue
        lines.append(f"{name} {stored[0]}")
        lines += [f"  {each}" if not each.startswith(" ") else each for each in stored[1:]]
        lines += places(layout, entity)
        if type(entity) not in seen:
            seen.add(type(entity))
            kind: EntityType
            kind = layout.schema.edge(type(entity)) if isinstance(entity, Edge) else layout.schema.node(type(entity))
            lines += patterns(layout, kind)
    return lines
