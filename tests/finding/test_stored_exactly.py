"""Whatever is called, the table holds each node and edge with its copies and claims, and nothing else.

After every step all stored items are compared with what a layout makes of the entities that should be there, and
every way to find them with a plain filter and sort.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    Edge,
    Graph,
    Index,
    Indexed,
    MaterializedGraph,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    field,
)
from adjoin.layouts.interface import REVISION, Layout
from adjoin.layouts.shard_numbers import SHARDS
from adjoin.plans import deletion
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.growing import scanned
from tests.servers.open import Stores
from tests.shares import examples


class Person(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    age: Annotated[int | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None
    badge: Annotated[int | None, Unique()] = None
    tags: Annotated[list[str] | None, Indexed(elements=True)] = None


class Likes(Edge[Person, Person], order="rank"):
    rank: Annotated[int, Indexed()] = 0
    why: Annotated[str | None, Indexed()] = None


class Close(Edge[Person, Person], symmetric=True):
    how: Annotated[str | None, Indexed()] = None
    why: Annotated[str | None, Indexed()] = None


MODELS: list[Any] = [Person, Likes, Close]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "3 shards": MaterializedGraph(shards=3, type_attribute="Type"),
    "own names": AdjacencyList(reverse=Index("Reverse", "RP", "RS"), node="{node}", escape=True),
}
IDS = ["a", "b#", "="]
ids = st.sampled_from(IDS)
words = st.sampled_from(["", "x", "y#"])
maybe = st.none() | words
people = st.builds(
    Person,
    id=ids,
    name=words,
    age=st.none() | st.integers(-1, 1),
    email=maybe,
    badge=st.none() | st.integers(0, 1),
    tags=st.none() | st.lists(words, max_size=4),
)
likes = st.builds(Likes, source=ids, target=ids, rank=st.integers(-1, 1), why=maybe)
close = st.builds(Close, source=ids, target=ids, how=maybe, why=maybe)
everything: st.SearchStrategy[Any] = people | likes | close


def key_of(entity: Any) -> tuple[Any, ...]:
    if isinstance(entity, Person):
        return Person, entity.id
    ends = (entity.source, entity.target)
    return type(entity), *(sorted(ends) if isinstance(entity, Close) else ends)


class Machine(RuleBasedStateMachine):
    def make_store(self) -> Store:
        return SQLiteStore(":memory:")

    @initialize(
        layout=st.sampled_from(list(LAYOUTS)), most=st.sampled_from([100, 5]), tenant=st.none() | st.just("acme")
    )
    def open(self, layout: str, most: int, tenant: str | None) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(deletion, "MAX_TRANSACTION", most)
        self.store = FaultyStore(self.make_store())
        self.graph = Graph(self.store, MODELS, LAYOUTS[layout], tenant=tenant)
        self.graph.create_table()
        self.there: dict[tuple[Any, ...], Any] = {}

    def teardown(self) -> None:
        if hasattr(self, "graph"):
            self.graph.close()
            self.patch.undo()

    def is_taken(self, person: Any, but: tuple[str, ...] = ()) -> bool:
        return any(
            isinstance(other, Person)
            and other.id not in (person.id, *but)
            and any(
                getattr(person, name) is not None and getattr(other, name) == getattr(person, name)
                for name in ("email", "badge")
            )
            for other in self.there.values()
        )

    def write(self, entity: Any, call: Any, *, is_refused: bool = False) -> None:
        if is_refused or (isinstance(entity, Person) and self.is_taken(entity)):
            with pytest.raises((AlreadyExists, TransactionCanceled)):
                call()
        else:
            call()
            self.there[key_of(entity)] = entity

    @rule(entity=everything)
    def put(self, entity: Any) -> None:
        self.write(entity, lambda: self.graph.put(entity))

    @rule(entity=everything)
    def add(self, entity: Any) -> None:
        self.write(entity, lambda: self.graph.add(entity), is_refused=key_of(entity) in self.there)

    @rule(entities=st.lists(everything, max_size=8))
    def put_many(self, entities: list[Any]) -> None:
        for place, entity in enumerate(entities):
            if isinstance(entity, Person) and self.is_taken(entity):
                # Up to there it is done, but for what was to be written in a batch.
                entities = [each for each in entities[:place] if isinstance(each, Person)]
                break
            self.there[key_of(entity)] = entity
        else:
            assert self.graph.put_many(entities) == len(entities)
            return
        self.graph.put_many([each for each in self.there.values() if not isinstance(each, Person)])
        self.graph.put_many(entities)

    @rule(entity=everything, verb=st.sampled_from(["put", "add"]))
    def transaction(self, entity: Any, verb: str) -> None:
        def call() -> None:
            with self.graph.transaction() as t:
                getattr(t, verb)(entity)

        self.write(entity, call, is_refused=verb == "add" and key_of(entity) in self.there)

    @rule(entity=everything, names=st.data(), in_transaction=st.booleans())
    def update(self, entity: Any, names: st.DataObject, in_transaction: bool) -> None:
        fields = [name for name in type(entity).model_fields if name not in ("id", "source", "target")]
        chosen = names.draw(st.lists(st.sampled_from(fields), min_size=1, unique=True))
        changes = {name: getattr(entity, name) for name in chosen}
        ends: tuple[Any, ...] = (entity.id,) if isinstance(entity, Person) else (entity.source, entity.target)

        def call() -> None:
            if in_transaction:
                with self.graph.transaction() as t:
                    t.update(type(entity), *ends, **changes)
            else:
                assert self.graph.update(type(entity), *ends, **changes) == new.model_copy(
                    update={} if isinstance(entity, Person) else {"source": ends[0], "target": ends[1]}
                )

        old = self.there.get(key_of(entity))
        if old is None:
            with pytest.raises((NotFound, TransactionCanceled)):
                call()
            return
        new = old.model_copy(update=changes)
        self.write(new, call)

    @rule(id=ids, amount=st.integers(-1, 1))
    def count(self, id: str, amount: int) -> None:
        old = self.there.get((Person, id))
        if old is not None:
            new = old.model_copy(update={"age": (old.age or 0) + amount, "badge": (old.badge or 0) + amount})
            self.write(
                new,
                lambda: self.graph.update(Person, id, age=field("age") + amount, badge=field("badge") + amount),
            )

    @rule(id=ids, tag=words, out=st.booleans(), in_transaction=st.booleans())
    def tag(self, id: str, tag: str, out: bool, in_transaction: bool) -> None:
        old = self.there.get((Person, id))
        if old is None or old.tags is None:
            return
        change = field("tags").discard([tag]) if out else field("tags").append(tag)
        if in_transaction:
            with self.graph.transaction() as t:
                t.update(Person, id, change)
        else:
            self.graph.update(Person, id, change)
        tags = [each for each in old.tags if each != tag] if out else [*old.tags, tag]
        self.there[Person, id] = old.model_copy(update={"tags": tags})

    @rule(edge=likes | close, in_transaction=st.booleans())
    def disconnect(self, edge: Any, in_transaction: bool) -> None:
        if in_transaction:
            with self.graph.transaction() as t:
                t.disconnect(type(edge), edge.source, edge.target)
        else:
            assert self.graph.disconnect(type(edge), edge.source, edge.target) == (key_of(edge) in self.there)
        self.there.pop(key_of(edge), None)

    @rule(id=ids, stop=st.none() | st.integers(0, 12), when=st.sampled_from(["before", "after"]))
    def delete(self, id: str, stop: int | None, when: str) -> None:
        if stop is not None:
            self.store.stop_at(stop, when)
            with suppress(Interrupted):
                self.graph.delete(Person, id)
            self.store.recover()
        self.graph.delete(Person, id)
        self.forget(id)

    @rule(id=ids)
    def delete_in_transaction(self, id: str) -> None:
        with self.graph.transaction() as t:
            t.delete(Person, id)
        self.forget(id)

    def forget(self, id: str) -> None:
        self.there = {key: entity for key, entity in self.there.items() if id not in key[1:]}

    @invariant()
    def the_table_holds_that_and_nothing_else(self) -> None:
        layout = self.graph._layout
        expected: dict[str, Any] = {}
        for entity in self.there.values():
            items = layout.items(entity)
            kind = layout.schema.node(Person) if isinstance(entity, Person) else layout.schema.edge(type(entity))
            beside = [each.item for each in layout.satellites(kind, items, entity.__dict__) if each.item is not None]
            expected |= {str(layout.key_of(item)): item for item in (*items, *beside)}
        stored = {str(layout.key_of(item)): item for item in scanned(self.graph) if SHARDS not in item}
        for item in stored.values():
            item.pop(REVISION, None)
        assert stored == expected

    @invariant()
    def everything_is_found(self) -> None:
        for model, names in ((Person, ("name", "age")), (Likes, ("rank", "why")), (Close, ("how", "why"))):
            for name in names:
                mine = [entity for entity in self.there.values() if type(entity) is model]
                values = [getattr(entity, name) for entity in mine if getattr(entity, name) is not None]
                found = list(self.graph.find(model, order=name))
                assert [getattr(entity, name) for entity in found] == sorted(values)
                assert {key_of(entity) for entity in found} == {
                    key_of(entity) for entity in mine if getattr(entity, name) is not None
                }
        for tag in ("", "x", "y#"):
            tagged = self.graph.find(Person, field("tags").contains(tag))
            having = [who.id for who in self.there.values() if isinstance(who, Person) and tag in (who.tags or ())]
            assert [each.id for each in tagged] == sorted(having)
            assert tagged.count() == len(having)
        for email in ("", "x", "y#"):
            owners = [who for who in self.there.values() if isinstance(who, Person) and who.email == email]
            assert self.graph.get(Person, email=email, consistent=True) == (owners[0] if owners else None)


TestStoredExactly = pytest.mark.simulation(Machine.TestCase)
TestStoredExactly.settings = settings(
    max_examples=examples(20), stateful_step_count=20, deadline=None, suppress_health_check=[*HealthCheck]
)


def test_on_a_server(servers: Stores) -> None:
    servers.open("ministack")

    class Served(Machine):
        def make_store(self) -> Store:
            return servers.open("ministack")

    run_state_machine_as_test(
        Served,
        settings=settings(max_examples=8, stateful_step_count=10, deadline=None, suppress_health_check=[*HealthCheck]),
    )
