"""Random graphs of which snapshots are taken, random changes of them, and walks to compare with the live graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from adjoin import Child, Edge, Graph, Node, field
from tests.walks.graphs import LAYOUTS

IDS = ["a", "b", "b#", "B", "ä", "a b", "%", "zz"]
"""Ids that sort otherwise than as they are written, or need an escape in keys."""


class Person(Node):
    id: str
    age: int | None = None
    name: str = ""


class Thing(Node):
    id: int
    price: Decimal = Decimal(0)


class Note(Child[Person], key=("at",)):
    at: int
    stars: int = 1


class Knows(Edge[Person, Person]):
    weight: int = 1


class Met(Edge[Person, Person], key=("year",)):
    year: int
    weight: int = 1


class Friend(Edge[Person, Person], symmetric=True):
    weight: int | None = None


class Bought(Edge[Person, Thing], order="day"):
    day: int
    cost: Decimal = Decimal(1)
    rate: float = 0.5


class Likes(Edge[Person, Person | Thing]):
    weight: int = 1


MODELS: list[Any] = [Person, Thing, Note, Knows, Met, Friend, Bought, Likes]
EDGES: list[Any] = [Knows, Met, Friend, Bought, Likes, Note]
FIELDS = ["weight", "Person.age", "Thing.price", "Note.stars", "Note.at", "Bought.day", "cost", "rate", "year"]

people, things = st.sampled_from(IDS), st.integers(8, 11)
_small = st.integers(0, 3)
_costs = st.sampled_from([Decimal(1), Decimal("2.5"), Decimal("0.125"), Decimal(-3)])

entities = st.one_of(
    st.builds(Person, id=people, age=st.none() | _small, name=st.just("n")),
    st.builds(Thing, id=things, price=_costs),
    st.builds(Note, parent=people, at=_small, stars=_small),
    st.builds(Knows, source=people, target=people, weight=_small),
    st.builds(Met, source=people, target=people, year=_small, weight=_small),
    st.builds(Friend, source=people, target=people, weight=st.none() | _small),
    st.builds(Bought, source=people, target=things, day=_small, cost=_costs),
    st.builds(Likes, source=people, target=people.map(Person.ref) | things.map(Thing.ref), weight=_small),
)
contents = st.lists(entities, min_size=4, max_size=40)
layouts = st.sampled_from(sorted(LAYOUTS))


def opened(layout: str, items: Sequence[Any], location: str = ":memory:") -> Graph:
    graph = Graph(location, MODELS, LAYOUTS[layout])
    graph.put_many(items)
    return graph


# --- changes -----------------------------------------------------------------------------------


def _delete(graph: Graph, entity: Any) -> None:
    graph.delete(entity)


def _update(graph: Graph, entity: Any) -> None:
    """Changes a field that is held and, of Bought, one that its order has."""
    if isinstance(entity, Bought) and graph.edge(Bought, entity.source, entity.target) is not None:
        graph.update(Bought, entity.source, entity.target, day=entity.day + 1, cost=Decimal("7.75"))
    elif isinstance(entity, Person) and graph.get(Person, entity.id) is not None:
        graph.update(Person, entity.id, age=9)


Change = tuple[Callable[[Graph, Any], None], Any]
changes: st.SearchStrategy[list[Change]] = st.lists(
    st.tuples(st.sampled_from([Graph.put, Graph.put, _delete, _update]), entities), max_size=25
)


def applied(graph: Graph, history: Sequence[Change]) -> None:
    for change, entity in history:
        change(graph, entity)


# --- walks -------------------------------------------------------------------------------------

Steps = Callable[[Any], Any]

WALKS: dict[str, Steps] = {
    "one step": lambda walk: walk.out(Knows),
    "two steps": lambda walk: walk.out(Knows).out(Knows),
    "back": lambda walk: walk.into(Met).into(Friend),
    "both ways": lambda walk: walk.both(Knows, Met).both(Friend),
    "to things and back": lambda walk: walk.out(Bought).into(Bought),
    "in the order of an index": lambda walk: walk.out(Bought),
    "the other end of an order": lambda walk: walk.out(Bought).into(Bought).out(Bought),
    "ends of several classes": lambda walk: walk.out(Likes, Knows),
    "back from ends of several classes": lambda walk: walk.out(Bought).into(Likes),
    "children": lambda walk: walk.out(Knows).children(Note),
    "from children to their parents": lambda walk: walk.out(Note).into(Note).out(Knows),
    "different nodes": lambda walk: walk.out(Knows).distinct().both(Knows).distinct(),
    "many steps": lambda walk: walk.repeat(Knows, Friend, max=3),
    "many steps, and none": lambda walk: walk.repeat(Knows, min=0, max=2).out(Friend),
    "until a node": lambda walk: walk.repeat(Knows, Friend, max=3, until=Person.ref("b#")),
    "until a predicate": lambda walk: walk.repeat(Knows, max=3, until=field("age") > 1),
    "some edges": lambda walk: walk.out(Knows).where(field("weight") > 1, on="edges").out(Friend),
    "some nodes": lambda walk: walk.out(Knows).where(field("age") >= 1).out(Met),
    "some of many": lambda walk: walk.repeat(Knows, max=2, where=field("weight") < 3, on="edges"),
    "sorted edges": lambda walk: walk.out(Met).order_by("weight", reverse=True).limit_per_node(2).out(Knows),
    "sorted nodes": lambda walk: walk.out(Friend).order_by("age").limit_per_node(1),
    "the last of an order": lambda walk: walk.out(Bought).order_by("day", reverse=True).limit_per_node(2),
    "the first": lambda walk: walk.both(Knows, Friend).limit_per_node(2).out(Friend),
    "a filter afterwards": lambda walk: walk.out(Knows).distinct().where(field("age") == None),  # noqa: E711
    "a limit": lambda walk: walk.out(Knows).out(Knows, Friend).limit(3),
}


def told(thing: Any) -> Any:
    """A node, an edge or a path, as something that is the same for the live graph and a snapshot."""
    if thing is None:
        return None
    if hasattr(thing, "refs"):
        return thing.refs, [told(edge) for edge in thing.edges], thing.weight
    if hasattr(thing, "source"):
        names = [name for name in ("weight", "year", "day", "cost", "rate") if name in _fields(thing)]
        return _name(thing), thing.source, thing.target, [getattr(thing, name) for name in names]
    if _name(thing) == "Note":
        return "Note", thing.parent, thing.at, thing.stars
    return _name(thing), thing.id, thing.age if _name(thing) == "Person" else thing.price


def _name(thing: Any) -> str:
    return type(thing).__name__


def _fields(thing: Any) -> Any:
    return (
        getattr(type(thing), "kind", type(thing)).fields if hasattr(type(thing), "kind") else type(thing).model_fields
    )


def answers(walk: Any) -> dict[str, Any]:
    """Everything that a walk can be asked, of fields that snapshots hold."""
    found: dict[str, Any] = {
        "refs": list(walk.refs()),
        "nodes": [told(node) for node in walk.nodes()],
        "edges": [told(edge) for edge in walk.edges()],
        "paths": [told(path) for path in walk.paths()],
        "count": walk.count(),
        "page": list(walk.refs().page(limit=2)),
    }
    if walk._most is None:
        found["group_count"] = list(walk.group_count().items())
    return found


def numbers(walk: Any) -> list[Any]:
    """Numbers of fields at the end of a walk, where its last step tells which."""
    found: list[Any] = []
    for name, on in (("weight", "edges"), ("age", "nodes"), ("cost", "edges"), ("rate", "edges"), ("price", "nodes")):
        try:
            part = walk._part("sum", name, on)
        except Exception as error:
            found.append(type(error).__name__)
            continue
        found += [getattr(walk, each)(name, on=part) for each in ("sum", "min", "max", "avg")]
        found.append([told(each) for each in walk.top(name, 3, on=part)])
    return found
