"""Random sets of templates over random classes: a layout is refused, or every key is of one entity and of its node."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pydantic import Field
from pydantic.fields import FieldInfo

from adjoin import AdjacencyList, Child, Edge, Index, InvalidKey, InvalidModel, Keys, Node
from adjoin.entity_types import AnyEdge
from adjoin.evaluate import condition_test
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.ranges import Range
from adjoin.model import ends_of, parent_of
from adjoin.values import Item

# --- classes -----------------------------------------------------------------------------------

Counted: Any = Annotated[int, Field(ge=1)]

TYPES: dict[Any, st.SearchStrategy[Any]] = {
    # A literal template refuses ids with its own separators; the escaped ones take them.
    str: st.text(st.sampled_from("ab#|%=é"), min_size=1, max_size=3) | st.sampled_from(["A", "A#1", "META", "#META"]),
    int: st.integers(-12, 120),
    Counted: st.integers(1, 120),
    dt.date: st.dates(dt.date(2023, 12, 30), dt.date(2024, 1, 3)),
}
NAMES = ["id", "owner", "name"]


def values_of(field: FieldInfo) -> st.SearchStrategy[Any]:
    return TYPES[Counted if field.metadata else field.annotation]


def made(name: str, base: Any, fields: dict[str, type[Any]], **keywords: Any) -> Any:
    namespace = {"__annotations__": fields, "__module__": __name__, "__qualname__": name}
    return type(base)(name, (base,), namespace, **keywords)


@st.composite
def classes(draw: st.DrawFn) -> list[Any]:
    """Two classes of nodes, perhaps a class of children, and one or two classes of edges."""
    nodes = []
    for name in ("User", "Team"):
        parts = NAMES[: draw(st.integers(1, 2))]
        fields = {each: draw(st.sampled_from(list(TYPES))) for each in parts}
        nodes.append(made(name, Node, fields, key=tuple(parts)))
    found = list(nodes)
    if draw(st.booleans()):
        parent = draw(st.sampled_from(nodes))
        fields = {"at": draw(st.sampled_from(list(TYPES)))}
        found.append(made("Note", Child[parent], fields, key=("at",)))  # type: ignore[valid-type]
    for name in ("Joined", "Left")[: draw(st.integers(1, 2))]:
        source, target = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        fields = {"day": draw(st.sampled_from(list(TYPES)))} if draw(st.booleans()) else {}
        found.append(made(name, Edge[source, target], fields, key=tuple(fields)))  # type: ignore[valid-type]
    return found


# --- templates ---------------------------------------------------------------------------------

LITERALS = st.sampled_from(["", "A", "A#", "U#", "T#", "#", "|", "-", "META", "#META", "=", "J#"])


def parts_of(model: Any) -> list[str]:
    own = [name for name in model.model_fields if name not in ("parent", "source", "target")]
    if issubclass(model, Edge):
        return [*own, "source", "target"]
    return [*own, *(["parent"] if issubclass(model, Child) else [])]


@st.composite
def templates(draw: st.DrawFn, model: Any) -> str:
    """Some placeholders of a class, in any order, with any text between them."""
    parts = draw(st.lists(st.sampled_from([*parts_of(model), "label"]), max_size=4, unique=True))
    return draw(LITERALS) + "".join(f"{{{part}}}{draw(LITERALS)}" for part in parts)


def likely(model: Any) -> list[st.SearchStrategy[str]]:
    """Templates of both keys that people write, so that not almost every layout is refused."""
    lead, separator = st.sampled_from(["A", "U", "T", "{label}", ""]), st.sampled_from("#|-")
    parts = [part for part in parts_of(model) if part != "parent"]

    def joined(before: str, between: str, names: list[str]) -> str:
        return between.join([each for each in (before, *(f"{{{name}}}" for name in names)) if each])

    if issubclass(model, Edge):
        fields = [part for part in parts if part not in ("source", "target")]
        rest = ["target", *fields]

        def some(names: st.SearchStrategy[list[str]]) -> st.SearchStrategy[str]:
            return st.builds(lambda *given: joined(*given) or "E", lead, separator, names)

        own = some(st.lists(st.sampled_from(["source", *rest]), max_size=2, unique=True))
        orders = st.permutations(rest) | st.permutations(fields) | st.permutations(["source", *rest])
        return [st.sampled_from(["{source}", "{source}#list"]) | own, some(orders)]
    if issubclass(model, Child):
        return [st.just("{parent}"), st.builds(joined, lead, separator, st.just(parts))]
    sorts = st.sampled_from(["META", "#META", "A", "{node}"])
    return [st.builds(joined, lead, separator, st.permutations(parts)), sorts]


@st.composite
def layouts(draw: st.DrawFn, models: list[Any]) -> AdjacencyList:
    keys: dict[type[Any], Keys] = {}
    for model in models:
        if draw(st.booleans()):
            continue
        partition, sort = likely(model)
        own = partition | templates(model) if draw(st.booleans()) else partition
        rest = sort | templates(model) if draw(st.booleans()) else sort
        indexes = (
            {"Further": (draw(templates(model)) or "x", draw(templates(model)) or "x")} if draw(st.booleans()) else {}
        )
        ends = {"from": "{source}", "to": "{target}"} if issubclass(model, Edge) and draw(st.booleans()) else {}
        keys[model] = Keys(draw(st.none() | own), draw(st.none() | rest), indexes=indexes, attributes=ends)
    more: dict[str, Any] = {"reverse": None} if draw(st.booleans()) else {}
    return AdjacencyList(
        **more,
        keys=keys,
        indexes=[Index("Further", "FPK", "FSK")] if any(each.indexes for each in keys.values()) else [],
        type_attribute=draw(st.sampled_from([None, None, "Type"])),
        escape=draw(st.sampled_from([None, True, False])),
    )


@st.composite
def bound(draw: st.DrawFn) -> tuple[list[Any], BoundLayout]:
    models = draw(classes())
    layout = draw(layouts(models))
    try:
        return models, bound_layout(models, layout)
    except InvalidModel as problem:
        refused = str(problem)
    # What is refused says for which class, or for which index.
    assert any(name in refused for name in ("Further", *(model.__name__ for model in models))), refused
    return models, bound_layout(models, None)


# --- entities ----------------------------------------------------------------------------------


@st.composite
def entities(draw: st.DrawFn, models: list[Any]) -> Any:
    model = draw(st.sampled_from(models))

    def id_of(node: Any) -> Any:
        values = tuple(draw(values_of(node.model_fields[name])) for name in node.__declaration__.key)
        return values[0] if len(values) == 1 else values

    values = {name: draw(values_of(info)) for name, info in model.model_fields.items() if info.annotation in TYPES}
    if issubclass(model, Edge):
        source, target = ends_of(model)
        return model(source=id_of(source), target=id_of(target), **values)
    if issubclass(model, Child):
        values["parent"] = id_of(parent_of(model))
    return model(**values)


def is_in(found: Range, item: Item) -> bool:
    """Whether a query of this range would read the item."""
    name, partition = found.key
    if item.get(name) != partition:
        return False
    wanted = found.condition()
    if wanted is None:
        return True
    text, first = str(item[wanted.attribute]["S"]), str(wanted.operands[0]["S"])
    assert wanted.operator in ("begins_with", "=")
    return text == first if wanted.operator == "=" else text.startswith(first)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)
@given(st.data())
def test_keys_are_of_one_entity_and_read_back(data: st.DataObject) -> None:
    models, layout = data.draw(bound())
    stored: dict[tuple[str, str], Any] = {}
    for entity in data.draw(st.lists(entities(models), min_size=1, max_size=6)):
        try:
            (item,) = layout.items(entity)
            check_nodes(layout, entity)
        except InvalidKey:
            # A literal template has no spelling for this value, or for the node at an end.
            continue
        key = item["PK"]["S"], item["SK"]["S"]
        note(f"{entity!r} {item}")
        # Distinct things have distinct keys, and a key reads back as what was stored.
        other = stored.setdefault(key, entity)
        assert other == entity or are_one(layout, other, entity)
        assert layout.read(item) == entity
        assert not layout.is_bookkeeping(item)
        if isinstance(entity, Edge):
            check_ends(layout, entity, item)


def check_nodes(layout: BoundLayout, entity: Any) -> None:
    """Raises if no node can be at an end of an edge, because a literal template has no spelling for its id.

    Such an edge can be written, as others may have done. Calls that begin at that end raise the same error.
    """
    if isinstance(entity, Edge):
        kind = layout.schema.edge(type(entity))
        layout.node_text(kind.source, entity.source)
        layout.node_text(kind.target, entity.target)


def are_one(layout: BoundLayout, one: Any, other: Any) -> bool:
    """Whether two edges differ only in ends that are no part of their keys."""
    if type(one) is not type(other) or not isinstance(one, Edge):
        return False
    loose = layout._keys.edges[type(one)].loose
    return bool(one.model_copy(update={end: getattr(other, end) for end in loose}) == other)


def ranges(layout: BoundLayout, edge: AnyEdge) -> dict[str, list[Range]]:
    """Where edges are found from the ends of an edge; an edge outside its source's partition may be found nowhere."""
    kind = layout.schema.edge(type(edge))
    found: dict[str, list[Range]] = {}
    try:
        found["source"] = layout.out(kind, edge.source).parts
    except InvalidModel:
        assert layout.is_apart(kind)
    try:
        found["target"] = layout.into(kind, edge.target).parts
    except InvalidModel:
        assert layout._keys.reverse is None
    return found


def check_ends(layout: BoundLayout, edge: AnyEdge, item: Item) -> None:
    """An edge is found from its own ends, and from no other node."""
    kind = layout.schema.edge(type(edge))
    for parts in ranges(layout, edge).values():
        assert any(is_in(each, item) for each in parts)
    if layout.is_apart(kind) and "source" in ranges(layout, edge):
        assert any(is_in(each, item) for each in layout.ranges_beside(kind.source, edge.source, must_find=False))
    assert layout.ends(kind, item) == (
        layout.node_text(kind.source, edge.source),
        layout.node_text(kind.target, edge.target),
    )
    ends = layout.has_ends(kind, edge.source, edge.target)
    assert ends is None or condition_test(ends)(item)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)
@given(st.data())
def test_no_id_reaches_the_edges_of_another_node(data: st.DataObject) -> None:
    models, layout = data.draw(bound())
    kinds = [model for model in models if issubclass(model, Edge)]
    edge, other = data.draw(entities(kinds)), data.draw(entities(kinds))
    try:
        (item,), (_,) = layout.items(edge), layout.items(other)
        check_nodes(layout, edge)
        check_nodes(layout, other)
    except InvalidKey:
        return
    # Another class may be read by the same query; the reader leaves it out.
    for end, parts in ranges(layout, other).items():
        read = next((each.access.decode(item) for each in parts if is_in(each, item)), None)
        assert (read is not None) == (type(edge) is type(other) and getattr(edge, end) == getattr(other, end))


def test_templates_that_people_write_are_taken() -> None:
    """The strategies above do not end in one refusal after another."""
    taken = 0

    @settings(max_examples=60, database=None, derandomize=True, deadline=None)
    @given(st.data())
    def some(data: st.DataObject) -> None:
        nonlocal taken
        models = data.draw(classes())
        layout = data.draw(layouts(models))
        try:
            bound_layout(models, layout)
        except InvalidModel:
            return
        taken += bool(layout.keys)

    some()
    assert taken >= 10
    with pytest.raises(InvalidModel):
        bound_layout([made("User", Node, {"id": str})], AdjacencyList(node="{nothing}"))
