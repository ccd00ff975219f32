"""Each design in a graph: whole edges, edges with named fields, and their number agree, however they are found."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import Edge, Graph, InvalidKey
from tests.layouts.designs import DESIGNS


def values(edge: Any) -> str:
    """All fields of an edge, also if they were named to be read."""
    return ", ".join(f"{name}={getattr(edge, name)!r}" for name in type(edge).model_fields)


def found(query: Any, names: list[str]) -> tuple[list[str], list[str], int]:
    """What a query finds: whole, with all fields named, and how many it counts."""
    return sorted(map(values, query)), sorted(map(values, query.only(*names))), query.count()


def expected(edges: list[Any]) -> tuple[list[str], list[str], int]:
    wanted = sorted(map(values, edges))
    return wanted, wanted, len(wanted)


def turned(edge: Any) -> Any:
    return edge.model_copy(update={"source": edge.target, "target": edge.source})


@pytest.mark.parametrize("name", [name for name in DESIGNS if name != "fields that adjoin itself changes"])
def test_edges_are_the_same_in_every_way(name: str) -> None:
    design = DESIGNS[name]
    with Graph(":memory:", design.models, design.layout, tenant=design.tenant) as g:
        stored: dict[str, Any] = {}
        for entity in design.entities:
            try:
                items = g._layout.items(entity)
            except InvalidKey:
                continue
            g.put(entity)
            # Another one with the same key replaces it.
            stored[repr([g._layout.key_of(item) for item in items])] = entity
        for model in design.models:
            if issubclass(model, Edge):
                check(g, model, [edge for edge in stored.values() if type(edge) is model])


def check(g: Graph, model: Any, edges: list[Any]) -> None:
    kind = g._layout.schema.edge(model)
    names = [*kind.attributes]
    scanned, some, number = found(g.scan(model), names)
    assert (scanned, number) == (some, len(edges))
    everything = [*edges, *(turned(edge) for edge in edges if kind.symmetric and edge.source != edge.target)]
    assert {*scanned} <= {*map(values, everything)}
    for verb, side, end in (("out", "source", kind.source), ("into", "target", kind.target)):
        if g._layout.edge_access(kind, verb) is None:
            continue
        for edge in everything:
            id = getattr(edge, side)
            at_end = [each for each in everything if getattr(each, side) == id]
            node = id if len(end.classes) > 1 else end.model.ref(id)
            assert found(getattr(g, verb)(node, model), names) == expected(at_end), (verb, id)
