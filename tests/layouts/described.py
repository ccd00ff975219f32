"""What a bound layout makes of a design, as lines of text: the items of entities, and where each class is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from adjoin import Edge, InvalidKey, InvalidModel
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.expressions import And, BeginsWith, Compare, Contains, Exists, Not, Or, Value
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Shape
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
        filled = layout.with_managed_keys(kind, item)
        if more := {name: value for name, value in filled.items() if item.get(name) != value}:
            yield f"  filled in later: {line(more)}"
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
        text = layout.text_of(kind, item)
        assert layout.id_in(kind, text) == node_id(entity)
        assert layout.belongs_to(kind, text, item, kind)
        assert not layout.belongs_to(kind, text + "x", item, kind)
        if kind.parent is not None:
            parent, own = layout.ends(kind, item)
            assert (layout.id_in(kind.parent, parent), own) == (entity.parent, text)
            assert layout.belongs_to(kind.parent, parent, item, kind)
            assert not layout.belongs_to(kind.parent, parent + "x", item, kind)
        return
    assert isinstance(kind, EdgeType)
    assert isinstance(found, Edge)
    if found != entity:
        assert (kind.symmetric, found.source, found.target) == (True, entity.target, entity.source)
    assert layout.edge_key(kind, found.source, found.target, found.__dict__) == key
    source, target = layout.ends(kind, item)
    assert (layout.id_in(kind.source, source), layout.id_in(kind.target, target)) == (found.source, found.target)
    for node in layout.schema.nodes.values():
        assert layout.belongs_to(node, source, item, kind) is kind.source.covers(node)
        assert not layout.belongs_to(node, source + "x", item, kind)


def places(layout: BoundLayout, entity: Any) -> Iterator[str]:
    """Where an edge is looked for from its ends, or what is around a node."""
    if isinstance(entity, Edge):
        kind = layout.schema.edge(type(entity))
        for verb, find, end in (("out", layout.out, entity.source), ("in", layout.into, entity.target)):
            try:
                yield f"  {verb} {where(find(kind, end))}"
            except InvalidModel as error:
                yield f"  {verb} refused: {error}"
        with suppress(InvalidModel):
            yield f"  from {all_of(layout.ranges_from(kind, entity.source))}"
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


def shaped(shape: Shape) -> Iterator[str]:
    """The templates of all that is stored for a class."""
    yield "shape " + " ".join(f"{name}={template}" for name, template in shape.written.items())
    if shape.fields:
        yield "fields " + " ".join(n if n == stored else f"{n}→{stored}" for n, stored in shape.fields.items())
    for what, others in (("copy", shape.copies), ("claim", shape.claims)):
        for name, each in others.items():
            yield f"{what} of {name}: " + " ".join(f"{key}={template}" for key, template in each.written.items())


def tells_target(layout: BoundLayout, kind: EntityType) -> bool:
    if isinstance(kind, NodeType):
        return kind.parent is not None and layout.tells_target(kind)
    return isinstance(kind, EdgeType) and layout.tells_target(kind)


def facts(layout: BoundLayout, kind: EntityType) -> Iterator[str]:
    """What plans, migrations and audits ask about a class."""
    keys = layout.key_templates(kind)
    holds = {
        "one item": kind.model in layout.plain,
        "satellites": layout.has_satellites(kind),
        "satellites that change": layout.has_changing_satellites(kind),
        "copies": layout.has_copies(kind),
        "told by indexes": layout.is_told_by_indexes(kind),
        "has edges": isinstance(kind, NodeType) and layout.has_edges(kind),
        "apart": isinstance(kind, EdgeType) and layout.is_apart(kind),
        "tells its target": tells_target(layout, kind),
        "shared partition": keys.is_shared,
        "own partition": keys.has_own_partition,
        "guarded": keys.is_guarded,
        "ranked": layout.is_ranked(kind),
    }
    yield "is " + ", ".join(name for name, each in holds.items() if each)
    if isinstance(kind, EdgeType):
        names = {
            "identity": layout.key_fields(kind),
            "ends in": layout.loose(kind),
            "order in": layout.order_indexes(kind),
            "target in": [keys.target_field] if keys.target_field else [],
            "key of": [each.name for each in keys.meets],
        }
        if any(names.values()):
            yield "; ".join(f"{what} {', '.join(each)}" for what, each in names.items() if each)
        differing = [name for name in kind.fields if layout.differs_at_ends(kind, [name])]
        if kind.symmetric:
            yield f"differs at its ends in {', '.join(differing)}"
    entries = sorted(layout.entry_attributes(kind))
    if entries:
        parts = {name: ", ".join(sorted(layout.entry_parts(kind, [name]))) for name in entries}
        yield "entries " + "; ".join(f"{name} of {made}" if made else name for name, made in parts.items())
    if keys.others:
        yield f"keys that are read {' '.join(keys.others)}"
    if plain := sorted(layout.plain_index_keys(kind)):
        yield f"fields that are keys {', '.join(plain)}"
    always = layout.some_attributes(kind, [])
    reads = {
        name: [each for each in layout.some_attributes(kind, [name]) if each not in always] for name in kind.attributes
    }
    yield "; ".join(
        [f"reads {' '.join(always)}", *(f"{name}: {' '.join(each)}" for name, each in reads.items() if each)]
    )
    fit = layout.fit(kind)
    asked = f", only where {said(fit.labelled)}" if fit.labelled else ""
    if fit.untold or fit.labelled:
        yield f"updates read {', '.join(fit.untold) or 'nothing'}{asked}"
    if keys.type_words:
        yield f"words {', '.join(keys.type_words)}"


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


def table(layout: BoundLayout) -> Iterator[str]:
    """The keys of the table and of its indexes, with their types."""
    for index in (None, *(each.name for each in layout.definition.indexes)):
        keys = (layout.partition_attributes(index), layout.sort_attributes(index))
        yield " | ".join(
            [index or "table", *(" ".join(f"{key.name}:{key.type}" for key in each) for each in keys if each)]
        )


def described(layout: BoundLayout, entities: Iterable[Any]) -> list[str]:
    """Everything about these entities, and once about the table and each of their classes."""
    lines = [*table(layout)]
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
            lines += [f"  {each}" for each in (*shaped(layout.shape(kind)), *facts(layout, kind))]
    return lines
