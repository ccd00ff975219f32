"""Checks what a program says about a traversal, before anything is read: where it begins, which edges, which fields.

In: nodes, refs, ids, classes, names of fields. Out: the values of `frontier`, or an error that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from adjoin.entity_types import EntityType, NodeType
from adjoin.errors import InvalidKey, InvalidValue, UnknownField, shown
from adjoin.field_types import unknown_field
from adjoin.fields import AllOf, AnyOf, Comparison, Negation, Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Child, Edge, Node, Ref, node_id
from adjoin.plans.frontier import About, Lane, NodeKey, Stride
from adjoin.plans.steps.conditions import condition
from adjoin.plans.steps.predicates import compared_fields, operand
from adjoin.plans.steps.samples import sample_id

DIRECTIONS = ("out", "into", "both")


def check_direction(direction: str) -> None:
    if direction not in DIRECTIONS:
        raise InvalidValue(f'direction must be "out", "into" or "both", got {shown(direction)}')


# --- nodes -------------------------------------------------------------------------------------


def node_key(layout: BoundLayout, x: Any, lanes: Sequence[Lane] = ()) -> NodeKey:
    """The node that a program names by itself, its ref or its id. For an id, the edges must tell its class."""
    match x:
        case Ref(model=model):
            kind = layout.schema.node(model).whole
        case Node():
            kind = layout.schema.node(type(x)).whole
        case Edge():
            raise InvalidKey("a node is needed, got an edge; pass the node, its ref or its id")
        case _:
            kind = _only_class(layout, x, lanes)
    if isinstance(x, Node):
        return kind.model, node_id(x)
    return kind.model, kind.id(x)


def _only_class(layout: BoundLayout, id: Any, lanes: Sequence[Lane]) -> NodeType:
    models = {model for lane in lanes for model in lane.near}
    if len(models) != 1:
        raise InvalidKey(
            f"{shown(id)} does not say of which class the node is; pass the node, or its ref, such as Model.ref(id)"
        )
    return layout.schema.node(models.pop())


# --- edges -------------------------------------------------------------------------------------


def lanes_of(layout: BoundLayout, verb: str, models: Iterable[Any], direction: str) -> tuple[Lane, ...]:
    """The classes of edges or children that are followed, each in the direction or in both."""
    found: list[Lane] = []
    for model in dict.fromkeys(_listed(verb, models)):
        kind = layout.schema.edge(model) if issubclass(model, Edge) else layout.schema.node(model)
        is_twofold = direction == "both" and not kind.symmetric
        if direction != "into":
            found.append(Lane(kind, "out"))
        if direction == "into" or is_twofold:
            found.append(Lane(kind, "into", skips_loops=is_twofold))
    return tuple(found)


def _listed(verb: str, models: Iterable[Any]) -> list[type[Any]]:
    listed = [models] if isinstance(models, type) else list(models) if isinstance(models, Iterable) else [models]
    for model in listed:
        if not isinstance(model, type) or not issubclass(model, Edge | Child):
            name = model.__name__ if isinstance(model, type) else shown(model)
            raise InvalidValue(f"{verb} takes classes of edges or of children, got {name}; pass the class")
    if not listed:
        raise InvalidValue(f"{verb} needs at least one class of edges or of children; pass it")
    return listed


def stride_from(layout: BoundLayout, lanes: Sequence[Lane], near: Collection[type[Any]]) -> Stride:
    """The stride along these edges from nodes of some classes; refuses a class of edges that none of them has."""
    fitting = tuple(lane for lane in lanes if not lane.near.isdisjoint(near))
    for lane in lanes:
        if not any(lane.kind is each.kind for each in fitting):
            names = " or ".join(sorted(model.__name__ for model in near))
            verb = {"out": "leaves", "into": "arrives at"}[lane.direction]
            raise InvalidValue(f"no {lane.kind.name} {verb} a {names}; follow it the other way, or follow others")
    for lane in fitting:
        check_access(layout, lane)
    return Stride(fitting)


def reached_by(lanes: Sequence[Lane], near: Collection[type[Any]]) -> frozenset[type[Any]]:
    """The classes of nodes that can be reached along edges in any number of steps, and those where they begin."""
    found = set(near)
    while True:
        more = {kind.model for lane in lanes if not lane.near.isdisjoint(found) for kind in lane.far} - found
        if not more:
            return frozenset(found)
        found |= more


def stride_along(layout: BoundLayout, models: Any, direction: str, x: Any) -> tuple[Stride, NodeKey]:
    """The stride along edges of any number of steps, and the node where it begins."""
    check_direction(direction)
    lanes = lanes_of(layout, "via", models, direction)
    near = node_key(layout, x, lanes)
    stride = stride_from(layout, lanes, reached_by(lanes, [near[0]]))
    if all(near[0] not in lane.near for lane in lanes):
        names = ", ".join(dict.fromkeys(lane.kind.name for lane in lanes))
        raise InvalidValue(f"no {names} begins at a {near[0].__name__}; follow it the other way, or follow others")
    return stride, near


def check_access(layout: BoundLayout, lane: Lane) -> None:
    """Raises if the layout cannot find edges in this direction."""
    kind = layout.schema.node(next(iter(lane.near)))
    id = None if lane.is_up else sample_id(kind)
    if id is None:
        return
    # The sample may not fit, for example because the class has a pattern for its ids.
    with suppress(InvalidKey, InvalidValue):
        lane.range(layout, (kind.model, id))


def queries_of(layout: BoundLayout, stride: Stride) -> int:
    """How many queries a stride takes at a node, at most."""
    most = 0
    for model in {model for lane in stride.lanes for model in lane.near}:
        id = sample_id(layout.schema.node(model))
        lanes = [lane for lane in stride.lanes if model in lane.near and not lane.is_up]
        parts = [1 if id is None else len(lane.range(layout, (model, id)).parts) for lane in lanes]
        most = max(most, sum(parts))
    return most


def lanes_from(layout: BoundLayout, verb: str, model: type[Any], direction: str, node: NodeKey) -> tuple[Lane, ...]:
    """A class of edges in the direction in which it leads away from a node, if its class tells that; else as asked."""
    check_direction(direction)
    lanes = lanes_of(layout, verb, [model], direction)
    if not any(node[0] in lane.near for lane in lanes):
        lanes = lanes_of(layout, verb, [model], "into" if direction == "out" else "out")
    return stride_from(layout, lanes, [node[0]]).lanes


# --- fields ------------------------------------------------------------------------------------


def about(stride: Stride, names: Iterable[str], on: str | None) -> About:
    """Whether fields are those of the edges of a stride, or of the nodes to which it leads."""
    if on not in (None, "edges", "nodes"):
        raise InvalidValue(f'on must be "edges" or "nodes", got {shown(on)}')
    wanted = list(names)
    kinds: dict[About, list[EntityType]] = {"edges": _edge_kinds(stride), "nodes": _node_kinds(stride)}
    parts = [part for part in kinds if on in (None, part)]
    for name in wanted:
        if not isinstance(name, str):
            raise InvalidValue(f"a field is given by its name, got {shown(name)}")
        if not any(_has(kind, name) for part in parts for kind in kinds[part]):
            owners = [kind for part in parts for kind in kinds[part]]
            known = dict.fromkeys(field for kind in owners for field in kind.fields)
            raise UnknownField(unknown_field(_named(owners), name, known))
    fitting = [part for part in parts if all(any(_has(kind, name) for kind in kinds[part]) for name in wanted)]
    if not fitting:
        raise InvalidValue(
            f"{' and '.join(wanted)} are fields of edges and of nodes, which are compared one after the other; "
            f"use where once for each"
        )
    is_same = all(isinstance(lane.kind, NodeType) and lane.direction == "out" for lane in stride.lanes)
    if len(fitting) > 1 and not is_same:
        raise InvalidValue(
            f"{' and '.join(wanted)} may be of {_named(kinds['edges'])} or of {_named(kinds['nodes'])}; say which with "
            f'on="edges" or on="nodes"'
        )
    return fitting[0]


def _edge_kinds(stride: Stride) -> list[EntityType]:
    """The classes of the edges of a stride. Children count as edges, but none leads from a child to its parent."""
    return [lane.kind for lane in stride.lanes if not lane.is_up]


def _node_kinds(stride: Stride) -> list[EntityType]:
    return [each for kind in stride.far.values() for each in (kind, *kind.family)]


def _has(kind: EntityType, name: str) -> bool:
    return name.partition(".")[0] in kind.fields or kind.part(name) is not None


def _named(kinds: Iterable[EntityType]) -> str:
    return " or ".join(dict.fromkeys(kind.name for kind in kinds))


def predicate_part(layout: BoundLayout, stride: Stride, predicate: Any, on: str | None) -> About:
    """What a predicate is about; raises if it compares unknown fields, or a field with a value that it cannot have."""
    if not isinstance(predicate, Predicate):
        raise InvalidValue(f'{shown(predicate)} is not a comparison; build one with field("name") == value')
    part = about(stride, compared_fields(predicate), on)
    kinds = _edge_kinds(stride) if part == "edges" else _node_kinds(stride)
    for kind in kinds:
        _check_operands(kind, predicate)
        if part == "edges" and all(name in kind.attributes for name in compared_fields(predicate)):
            # A field that is stored in the key only is compared after the edge was read.
            with suppress(InvalidKey):
                condition(layout, kind, predicate)
    return part


def _check_operands(kind: EntityType, predicate: Predicate) -> None:
    match predicate:
        case AllOf(predicates) | AnyOf(predicates):
            for each in predicates:
                _check_operands(kind, each)
        case Negation(inner):
            _check_operands(kind, inner)
        case Comparison(name, compared, operands) if compared != "contains" and _has(kind, name):
            for value in operands:
                operand(kind, name, value)
