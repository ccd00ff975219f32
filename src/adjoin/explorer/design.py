"""The Design view: which class lies in which keys, which access pattern uses which index, and what each call costs.

Calls are rehearsed, as `explain` does, with a node or an edge of each class from the sample. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from adjoin.cost import PRICES, Explanation
from adjoin.entity_types import AnyEdge, EdgeType, Entity, EntityType, NodeType
from adjoin.errors import AdjoinError
from adjoin.explorer.opening import Explored
from adjoin.explorer.requested import described
from adjoin.explorer.sample import Samples
from adjoin.fields import field
from adjoin.inferring.program import quoted
from adjoin.layouts.interface import Shape
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.values import item_size


class Design:
    """What the Design view asks."""

    def __init__(self, explored: Explored, samples: Samples) -> None:
        self._graph = explored.graph
        self._layout = explored.layout
        self._samples = samples

    def design(self) -> dict[str, Any]:
        """The keys of all classes, and the access patterns with their costs."""
        sizes: dict[type[Any], list[int]] = {}
        examples: dict[type[Any], Entity] = {}
        for item, entity in self._samples.entities():
            examples.setdefault(type(entity), entity)
            sizes.setdefault(type(entity), []).append(item_size(item))
        sample = self._samples.read()
        kinds = self._layout.schema.types
        return {
            "prices": asdict(PRICES),
            "items": sample.table.item_count,
            "bytes": sample.table.size,
            "classes": [
                {
                    "name": kind.name,
                    "size": sum(sizes.get(kind.model, [0])) // max(1, len(sizes.get(kind.model, []))),
                    **self._stored(kind),
                }
                for kind in kinds
            ],
            "patterns": [
                pattern
                for kind in kinds
                if (example := examples.get(kind.model)) is not None
                for pattern in self._patterns(kind, example)
            ],
            "without": [kind.name for kind in kinds if kind.model not in examples],
        }

    def _stored(self, kind: EntityType) -> dict[str, Any]:
        shape = self._layout.shape(kind)
        return {
            "written": dict(shape.written),
            "fields": dict(shape.fields),
            "places": self._places(shape),
            "copies": [{"field": name, "places": self._places(copy)} for name, copy in shape.copies.items()],
            "claims": [{"field": name, "places": self._places(claim)} for name, claim in shape.claims.items()],
        }

    def _places(self, shape: Shape) -> list[dict[str, Any]]:
        """The keys of the items in the table and in each index that holds them."""
        definition = self._layout.definition
        stored = {attribute: f"{{{name}}}" for name, attribute in shape.fields.items()}
        # A field that is a key attribute is stored there as it is; everything else is written from templates.
        known = {**stored, **shape.written}
        places: list[tuple[str | None, tuple[Any, ...]]] = [(None, definition.keys)]
        places += [(index.name, index.keys) for index in definition.indexes]
        return [
            {"index": index, "keys": {key.name: known[key.name] for key in keys}}
            for index, keys in places
            if all(key.name in known for key in keys)
        ]

    def _patterns(self, kind: EntityType, example: Entity) -> Iterator[dict[str, Any]]:
        calls = self._edge_calls(kind, example) if isinstance(example, Edge) else self._node_calls(kind, example)
        for verb, code, call in calls:
            try:
                explanation = self._graph.explain(call)
            except AdjoinError as error:
                yield {"class": kind.name, "verb": verb, "code": code, "problem": str(error)}
                continue
            yield {"class": kind.name, "verb": verb, "code": code, **_told(explanation)}

    def _node_calls(self, kind: EntityType, node: Any) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        assert isinstance(kind, NodeType)
        assert isinstance(node, Node)
        graph, name, model = self._graph, kind.name, kind.model
        id = node_id(node)
        ref: Ref[Any] = Ref(kind.whole.model, id)
        yield "get", f"g.get({name}, id)", lambda: graph.get(model, id)
        for unique in kind.unique:
            given: dict[str, Any] = {unique: getattr(node, unique)}
            yield "get", f"g.get({name}, {unique}=…)", partial(graph.get, model, **given)
        # Edges belong to the head of a family, whose pattern has them.
        if kind.head is None:
            yield "collection", f"g.collection({name}.ref(id))", lambda: graph.collection(ref)
            if any(edge.target.covers(kind) for edge in self._layout.schema.edges.values()):
                code = f'g.collection({name}.ref(id), direction="into")'
                yield "collection", code, lambda: graph.collection(ref, direction="into")
        if kind.parent is not None:
            parent = Ref(kind.parent.model, kind.whole.parent_id(id))
            yield "children", f"g.children({kind.parent.name.lower()}, {name})", lambda: graph.children(parent, model)
        yield from self._finds(kind, node)
        yield "put", f"g.put({name}(…))", lambda: graph.put(node)

    def _edge_calls(self, kind: EntityType, edge: AnyEdge) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        assert isinstance(kind, EdgeType)
        graph, name, model = self._graph, kind.name, kind.model
        source, target = (Ref(*_of(end, id)) for end, id in ((kind.source, edge.source), (kind.target, edge.target)))
        key = {each: getattr(edge, each) for each in self._layout.key_fields(kind)}
        yield "out", f"g.out({_variable(kind.source)}, {name})", lambda: graph.out(source, model)
        if not kind.symmetric:
            yield "into", f"g.into({_variable(kind.target)}, {name})", lambda: graph.into(target, model)
        yield "edge", f"g.edge({name}, source, target)", lambda: graph.edge(model, source, target, **key)
        yield from self._finds(kind, edge)
        yield "put", f"g.put({name}(…))", lambda: graph.put(edge)

    def _finds(self, kind: EntityType, entity: Any) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        for name in kind.indexed:
            value = getattr(entity, name)
            if value is not None:
                code = f"g.find({kind.name}, field({quoted(name)}) == …)"
                asked = field(name) == value
                yield "find", code, partial(self._graph.find, kind.model, asked)


def _of(end: NodeType, id: Any) -> tuple[type[Any], Any]:
    kind, id = end.of(id)
    return kind.model, id


def _variable(end: NodeType) -> str:
    return end.classes[0].name.lower()


def _told(explanation: Explanation) -> dict[str, Any]:
    first = explanation.requests[0] if explanation.requests else None
    return {
        "requests": len(explanation.requests),
        "rounds": len(explanation.rounds),
        "rcu": explanation.rcu,
        "wcu": explanation.wcu,
        "kept": sum(each.wcu() for each in explanation.countings),
        "index": explanation.index,
        "operation": "" if first is None else type(first).__name__,
        "key": "" if first is None else described(first),
        "notes": [str(each) for each in (*explanation.fan_outs, *explanation.countings)],
    }
