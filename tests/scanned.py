"""Entities and items that tests of scans put, and what is compared of them."""

from __future__ import annotations

import itertools
from typing import Any

from adjoin import AdjacencyList, Graph, MaterializedGraph
from adjoin.layouts.interface import Layout
from adjoin.requests import Put
from adjoin.values import Item, encode
from tests.models import Course, Enrollment, Exam, Friendship, Student

LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "with types": MaterializedGraph(type_attribute="Type"),
}

RECORDS = 1
"""Every table holds a record of what is declared, which a scan reads too."""


def entities(many: int = 12) -> list[Any]:
    ids = [f"s{number}" for number in range(many)]
    return [
        *(Student(id=id, name=f"Name {id}", year_level=number % 3) for number, id in enumerate(ids)),
        *(Course(id=f"c{number}") for number in range(many // 3)),
        *(Enrollment(source=id, target="c1", points=number) for number, id in enumerate(ids)),
        *(Exam(source=id, target="c2", term=term) for id in ids[:3] for term in ("1", "2")),
        *(Friendship(source=one, target=other) for one, other in itertools.pairwise(ids)),
        Friendship(source="s1", target="s1"),
    ]


def shown(some: Any) -> list[str]:
    """What can be compared, whatever its order; a symmetric edge has no direction."""
    return sorted(map(spelled, some))


def spelled(entity: Any) -> str:
    if isinstance(entity, Friendship) and entity.source > entity.target:
        entity = entity.model_copy(update={"source": entity.target, "target": entity.source})
    return f"{type(entity).__name__} {entity!r}"


def of(model: type[Any], some: list[Any]) -> list[str]:
    return shown(each for each in some if type(each) is model)


def bare(g: Any) -> Any:
    """The graph itself, also if it is driven from a loop."""
    return getattr(g, "_inner", g)


def put_plain(g: Any, **values: Any) -> dict[str, Any]:
    """Puts an item of another program."""
    inner = bare(g)
    item = {name: encode(value) for name, value in values.items()}
    stored = inner._store.execute([Put(inner._layout.table, item)])
    if hasattr(stored, "__await__"):
        g._loop.run_until_complete(stored)
    return values


def keyed(names: list[str], key: tuple[str, str]) -> Item:
    return {name: {"S": text} for name, text in zip(names, key, strict=True)}


def explained(g: Graph, names: list[str], key: tuple[str, str]) -> Any:
    """The class that would take such an item for its own; the model knows nothing of those."""
    return g._layout.kind_of(keyed(names, key))
