"""Attributes that no field explains: a put of something that was read keeps them."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from adjoin import (
    AdjacencyList,
    Child,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    Keys,
    Node,
    Projection,
    Unique,
    Version,
    field,
)
from adjoin.expressions import Set, Value, attribute
from adjoin.layouts.interface import DELETING
from adjoin.requests import Get, Put, Update
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.servers.open import Stores


class Person(Node):
    id: str
    name: str
    age: int | None = None


class Club(Node):
    id: str
    since: dt.date | None = None


class Member(Edge[Person, Club]):
    rank: int


class Knows(Edge[Person, Person], symmetric=True):
    how: str = ""


class Note(Child[Person]):
    id: str
    text: str


class Guarded(Node):
    id: str
    name: str
    version: Annotated[int, Version()] = 0


class Counted(Node):
    id: str
    name: str
    fans: Annotated[int, Count("Likes")] = 0


class Likes(Edge[Person, Counted]):
    pass


class Mailed(Node):
    id: str
    email: Annotated[str, Unique()]
    city: Annotated[str, Indexed()] = ""
    name: Annotated[str, Indexed()] = ""


class Open(Node, extra="allow"):
    id: str


MODELS: list[Any] = [Person, Club, Member, Knows, Note, Guarded, Counted, Likes, Mailed, Open]
OTHERS: Item = {"Legacy": {"L": [{"N": "1"}, {"NULL": True}]}, "id": {"S": "p"}, "Zeit": {"B": "AAE="}}
LAYOUTS = {"keys tell": AdjacencyList(), "an attribute tells": AdjacencyList(type_attribute="Type")}


@pytest.fixture(params=["embedded", "ministack"])
def store(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Store]:
    store: Store = SQLiteStore(":memory:") if request.param == "embedded" else servers.open(request.param)
    yield store
    store.close()


@pytest.fixture(params=LAYOUTS)
def g(request: pytest.FixtureRequest, store: Store) -> Iterator[Graph]:
    with Graph(store, MODELS, LAYOUTS[request.param]) as graph:
        graph.create_table()
        yield graph
        graph.drop_table()


def write_others(g: Graph, *entities: Any, others: Item = OTHERS) -> None:
    """Adds attributes to the items of these, as another program does."""
    for entity in entities:
        for item in g._layout.items(entity):
            actions = tuple(Set(attribute(name), Value(value)) for name, value in others.items())
            g._store.execute([Update(g._layout.table, g._layout.key_of(item), actions)])


def others_of(g: Graph, entity: Any) -> list[Item]:
    """What the items of an entity have of those."""
    keys = [g._layout.key_of(item) for item in g._layout.items(entity)]
    found: Any = g._store.execute([Get(g._layout.table, key, consistent=True) for key in keys])
    return [{name: each.item[name] for name in OTHERS.keys() & each.item.keys()} for each in found]


@pytest.mark.parametrize("way", ["put", "put_many", "transaction", "only_if"])
def test_a_put_of_what_was_read_keeps_them(g: Graph, way: str) -> None:
    person = Person(id="p", name="Ann")
    entities: list[Any] = [
        *(person, Person(id="q", name="Bo", age=3), Club(id="c"), Member(source="p", target="c", rank=1)),
        *(Knows(source="q", target="p"), Note(parent="p", id="n", text="a"), Guarded(id="g", name="x")),
        *(Counted(id="x", name="x"), Mailed(id="m", email="m@x", city="Rome", name="M")),
    ]
    g.put_many(entities)
    write_others(g, *entities)
    read: list[Any] = [
        *(g.get(Person, "p"), g.get(Person, "q"), g.get(Club, "c"), next(iter(g.out(person, Member)))),
        *(next(iter(g.into(person, Knows))), g.get(Note, ("p", "n")), g.get(Guarded, "g")),
        *(g.get(Counted, "x"), g.get(Mailed, "m")),
    ]
    for entity in read:
        for name in ("name", "rank", "how", "text"):
            if name in type(entity).model_fields:
                setattr(entity, name, 7 if name == "rank" else "changed")
    with g.meter() as meter:
        if way == "put":
            for entity in read:
                g.put(entity)
        elif way == "put_many":
            g.put_many(read)
        elif way == "only_if":
            for entity in read:
                own = set(type(entity).model_fields) - {"id", "age", "since", "fans", "source", "target", "parent"}
                g.put(entity, only_if=field(min(own)).exists() if own else None)
        else:
            with g.transaction() as t:
                for entity in read:
                    t.put(entity)
    assert way != "put" or meter.requests <= len(read) + 1, "only the unique value needs a read"
    assert [others_of(g, entity) for entity in read] == [[OTHERS] * (1 + isinstance(each, Knows)) for each in read]
    assert g.get(Person, "p") == Person(id="p", name="changed")


def test_a_put_of_a_new_instance_replaces(g: Graph) -> None:
    person = Person(id="p", name="Ann")
    g.put(person)
    write_others(g, person)
    g.put(person)
    assert others_of(g, person) == [{}]


def test_they_do_not_show(g: Graph) -> None:
    person = Person(id="p", name="Ann")
    g.put(person)
    write_others(g, person)
    found = g.get(Person, "p")
    assert found is not None
    assert found == person
    assert repr(found) == repr(person)
    assert found.model_dump() == person.model_dump()
    assert found.model_dump_json() == person.model_dump_json()
    assert dict(found) == dict(person)
    assert found.model_fields_set == {"id", "name"}
    copies: list[Person] = [found.model_copy(), copy.deepcopy(found), pickle.loads(pickle.dumps(found))]
    for each in copies:
        assert each == person
        g.put(Person(id="p", name="emptied"))
        g.put(each)
        assert others_of(g, person) == [OTHERS]


def test_a_copy_with_another_id_is_another_node(g: Graph) -> None:
    person = Person(id="p", name="Ann")
    g.put(person)
    write_others(g, person)
    found = g.get(Person, "p")
    assert found is not None
    g.put(found.model_copy(update={"id": "q"}))
    assert others_of(g, Person(id="q", name="")) == [{}]


def test_what_is_newer_than_the_read_stays_where_managed_fields_do(g: Graph) -> None:
    node = Counted(id="x", name="x")
    g.put(node)
    write_others(g, node)
    found = g.get(Counted, "x")
    assert found is not None
    write_others(g, node, others={"Legacy": {"S": "newer"}})
    g.put(found)
    assert others_of(g, node) == [OTHERS | {"Legacy": {"S": "newer"}}]


def test_extra_values_of_a_class_that_takes_any(g: Graph) -> None:
    node = Open(id="o")
    g.put(node)
    write_others(g, node, others={"Legacy": {"S": "x"}})
    found = g.get(Open, "o")
    assert found is not None
    assert found.model_extra == {"Legacy": "x"}
    del found.Legacy  # type: ignore[attr-defined]
    g.put(found)
    assert others_of(g, node) == [{}]


class Task(Node):
    id: str
    state: str | None = None


class Rival(Node):
    id: str


def test_index_keys_of_the_class_follow_its_fields_and_others_stay() -> None:
    indexes = [Index("Open", "open"), Index("Rivals", "rival")]
    keys: dict[type[BaseModel], Keys] = {
        Task: Keys("t#{id}", indexes={"Open": "{state}"}),
        Rival: Keys("r#{id}", indexes={"Rivals": "{id}"}),
    }
    layout = AdjacencyList(reverse=None, indexes=indexes, keys=keys)
    with Graph(":memory:", [Task, Rival], layout) as g:
        g.create_table()
        item = {"PK": {"S": "t#1"}, "SK": {"S": "#META"}, "open": {"S": "o"}, "state": {"S": "o"}, "rival": {"S": "r"}}
        g._store.execute([Put("adjoin", item)])
        task = g.get(Task, "1")
        assert task is not None
        task.state = None
        g.put(task)
        (change, *_) = reversed(list(g.changes()))
        assert change.new_item == {"PK": {"S": "t#1"}, "SK": {"S": "#META"}, "rival": {"S": "r"}}


def test_a_delete_and_an_update_are_as_before(g: Graph) -> None:
    person = Person(id="p", name="Ann")
    g.put(person)
    write_others(g, person)
    changed = g.update(Person, "p", name="Bo")
    assert others_of(g, person) == [OTHERS]
    g.delete(Person, "p")
    g.add(changed)
    assert others_of(g, person) == [OTHERS], "it is put as it was read"


# --- found in an index that does not hold them -------------------------------------------------


class Parcel(Node):
    id: str
    town: str
    weight: int = 0


class Sealed(Node):
    id: str
    town: str
    weight: int = 0
    version: Annotated[int, Version()] = 0


class Tracked(Node):
    id: str
    town: str
    weight: int = 0
    stops: Annotated[int, Count("Stop")] = 0


class Stop(Edge[Tracked, Parcel]):
    pass


class Sent(Edge[Parcel, Parcel]):
    town: str
    weight: int = 0


def in_towns(*models: type[Any]) -> Graph:
    """The index holds all fields of the classes, and no other attribute."""
    projection = Projection("INCLUDE", ("weight", "version", "stops", DELETING))
    layout = AdjacencyList(indexes=[Index("ByTown", "town", projection=projection)])
    return Graph(SQLiteStore(":memory:"), models, layout)


def marked_by_others(g: Graph, *keys: Item) -> None:
    for key in keys:
        g._store.execute((Update(g._layout.table, key, (Set(attribute("fragile"), Value({"BOOL": True})),)),))


def is_fragile(g: Graph, key: Item) -> bool:
    (response,) = g._store.execute((Get(g._layout.table, key),))
    item: Item = response.item  # type: ignore[union-attr, assignment]
    assert item["weight"] == {"N": "7"}
    return "fragile" in item


def put_one(g: Graph, entity: Any) -> None:
    g.put(entity)


def put_all(g: Graph, entity: Any) -> None:
    g.put_many([entity])


def put_together(g: Graph, entity: Any) -> None:
    with g.transaction() as t:
        t.put(entity)


@pytest.mark.parametrize("write", [put_one, put_all, put_together])
@pytest.mark.parametrize("model", [Parcel, Sealed, Tracked, Sent])
def test_what_was_found_in_an_index_keeps_them_too(model: type[Any], write: Any) -> None:
    g = in_towns(Parcel, Sealed, Tracked, Stop, Sent)
    made: Any = Sent(source="1", target="2", town="Oslo") if model is Sent else model(id="1", town="Oslo")
    g.put(made)
    key = g._layout.key_of(g._layout.items(made)[0])
    marked_by_others(g, key)
    with g.meter() as meter:
        found: Any = g.find(model, field("town") == "Oslo", index="ByTown").first()
    assert (meter.requests, found) == (1, made), "the index alone answers it"
    found.weight = 7
    write(g, found)
    assert is_fragile(g, key)
    # It is known from now on, and not read again.
    with g.meter() as meter:
        g.put(found)
    assert meter.rcu == 0 or model is Sealed


def test_explain_does_not_take_them_for_read() -> None:
    g = in_towns(Parcel)
    g.put(Parcel(id="1", town="Oslo"))
    key = g._layout.node_key(g._schema.node(Parcel), "1")
    marked_by_others(g, key)
    found: Any = g.find(Parcel, field("town") == "Oslo", index="ByTown").first()
    found.weight = 7
    assert len(g.explain(g.put, found).requests) == 2
    g.put(found)
    assert is_fragile(g, key)


def test_another_entity_does_not_get_them() -> None:
    g = in_towns(Parcel)
    g.put(Parcel(id="1", town="Oslo"))
    marked_by_others(g, g._layout.node_key(g._schema.node(Parcel), "1"))
    found = g.find(Parcel, field("town") == "Oslo", index="ByTown").first()
    assert found is not None
    with g.meter() as meter:
        g.put(found.model_copy(update={"id": "2", "weight": 7}))
    assert meter.requests == 1
    assert not is_fragile(g, g._layout.node_key(g._schema.node(Parcel), "2"))


class Job(Node):
    id: str
    state: str
    who: str | None = None


SPARSE = AdjacencyList(
    reverse=None,
    indexes=[Index("ByWho", "GSI1PK", "GSI1SK")],
    keys={Job: Keys("j#{id}", "job", indexes={"ByWho": ("who#{who}", "s#{state}")})},
)


def test_a_put_keeps_a_key_of_a_sparse_index_that_another_program_wrote() -> None:
    with Graph(":memory:", [Job], layout=SPARSE) as g:
        key = {"PK": {"S": "j#1"}, "SK": {"S": "job"}}
        lone = {**key, "state": {"S": "open"}, "GSI1SK": {"S": "s#open"}}

        def stored() -> Item:
            response: Any
            (response,) = g._store.execute([Get("adjoin", key)])
            return dict(response.item or {})

        def put(**changes: Any) -> Item:
            g._store.execute([Put("adjoin", lone)])
            job = g.get(Job, "1")
            assert job is not None
            g.put(job.model_copy(update=changes))
            return stored()

        assert put() == lone
        # It follows its fields, and the item enters the index with both keys.
        assert put(state="done") == lone | {"state": {"S": "done"}, "GSI1SK": {"S": "s#done"}}
        entered = put(who="Ann")
        assert (entered["GSI1PK"], entered["GSI1SK"]) == ({"S": "who#Ann"}, {"S": "s#open"})
        # An instance that was not read has none, and neither has another one.
        g.put(Job(id="1", state="open"))
        assert "GSI1SK" not in stored()
        g._store.execute([Put("adjoin", lone)])
        job = g.get(Job, "1")
        assert job is not None
        g.put(job.model_copy(update={"id": "2"}))
        key = {"PK": {"S": "j#2"}, "SK": {"S": "job"}}
        assert "GSI1SK" not in stored()
