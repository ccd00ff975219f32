"""The graph against a plain dictionary: random verbs, pages, transactions and failures.

The dictionary is the whole truth about what a graph must answer. After every step, everything that
can be asked about the few ids in play is asked, and compared.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from adjoin import AlreadyExists, ConditionFailed, Graph, MaterializedGraph, NotFound, TransactionCanceled, field
from adjoin.layouts.interface import Layout
from adjoin.plans import deletion
from adjoin.requests import Scan
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.faults import FaultyStore, Interrupted
from tests.models import SCHOOL, Attendance, Course, Enrollment, Exam, Friendship, Student
from tests.servers.open import Stores
from tests.servers.processes import NAMES
from tests.shares import examples

IDS = ["a", "b#", "%23"]
TERMS = ["x", "y#|"]
ids = st.sampled_from(IDS)
pair = st.tuples(ids, ids)
faults = st.sampled_from([None, None, None, None, "before", "after"])

NODES: dict[type[Any], st.SearchStrategy[dict[str, Any]]] = {
    Student: st.fixed_dictionaries({"name": st.text(max_size=3), "year_level": st.integers(-3, 3)}),
    Course: st.fixed_dictionaries({"name": st.text(max_size=3), "credits": st.integers(-3, 3)}),
}
EDGES: dict[type[Any], st.SearchStrategy[dict[str, Any]]] = {
    Enrollment: st.fixed_dictionaries({"grade": st.sampled_from("ABC"), "points": st.integers(-9, 9)}),
    Attendance: st.fixed_dictionaries({"day": st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 3))}),
    Exam: st.fixed_dictionaries({"term": st.sampled_from(TERMS), "mark": st.decimals(-9, 9, places=2)}),
    Friendship: st.fixed_dictionaries({"since": st.integers(2000, 2003)}),
}
ENDS: dict[type[Any], tuple[type[Any], type[Any]]] = {
    Enrollment: (Student, Course),
    Attendance: (Student, Course),
    Exam: (Student, Course),
    Friendship: (Student, Student),
}


@st.composite
def nodes(draw: st.DrawFn) -> Any:
    model = draw(st.sampled_from(list(NODES)))
    return model(id=draw(ids), **draw(NODES[model]))


@st.composite
def edges(draw: st.DrawFn) -> Any:
    model = draw(st.sampled_from(list(EDGES)))
    source, target = draw(pair)
    return model(source=source, target=target, **draw(EDGES[model]))


Key = tuple[Any, ...]


def key_of(entity: Any) -> Key:
    if isinstance(entity, Student | Course):
        return type(entity), entity.id
    term = (entity.term,) if isinstance(entity, Exam) else ()
    return type(entity), entity.source, entity.target, *term


def spelled(entity: Any) -> str:
    return repr(key_of(entity))


def spelled_once(entity: Any) -> str:
    """The same for both items of a symmetric edge."""
    return min(spelled(entity), spelled(twin_of(entity))) if isinstance(entity, Friendship) else spelled(entity)


def place_of(graph: Graph, item: Item) -> str:
    return str(graph._layout.key_of(item))


def twin_of(edge: Any) -> Any:
    return edge.model_copy(update={"source": edge.target, "target": edge.source})


class Reference:
    """What a graph is, as two dictionaries."""

    def __init__(self) -> None:
        self.nodes: dict[Key, Any] = {}
        self.edges: dict[Key, Any] = {}

    def copy(self) -> Reference:
        other = Reference()
        other.nodes, other.edges = dict(self.nodes), dict(self.edges)
        return other

    def has(self, entity: Any) -> bool:
        return key_of(entity) in self.nodes or key_of(entity) in self.edges

    def put(self, entity: Any) -> None:
        if isinstance(entity, Student | Course):
            self.nodes[key_of(entity)] = entity
            return
        self.edges[key_of(entity)] = entity
        if isinstance(entity, Friendship):
            self.edges[key_of(twin_of(entity))] = twin_of(entity)

    def ends_are_there(self, edge: Any) -> bool:
        source, target = ENDS[type(edge)]
        return (source, edge.source) in self.nodes and (target, edge.target) in self.nodes

    def remove(self, edge: Any) -> None:
        self.edges.pop(key_of(edge), None)
        if isinstance(edge, Friendship):
            self.edges.pop(key_of(twin_of(edge)), None)

    def delete(self, model: type[Any], id: str) -> None:
        self.nodes.pop((model, id), None)
        for key, edge in list(self.edges.items()):
            source, target = ENDS[type(edge)]
            if (source is model and edge.source == id) or (target is model and edge.target == id):
                del self.edges[key]

    def out(self, model: type[Any], id: str) -> list[Any]:
        found = [edge for edge in self.edges.values() if type(edge) is model and edge.source == id]
        return sorted(found, key=lambda edge: sort_key(edge, edge.target))

    def into(self, model: type[Any], id: str) -> list[Any]:
        found = [edge for edge in self.edges.values() if type(edge) is model and edge.target == id]
        return sorted(found, key=lambda edge: sort_key(edge, edge.source))


def sort_key(edge: Any, far: str) -> tuple[Any, ...]:
    order = (edge.day,) if isinstance(edge, Attendance) else ()
    term = (edge.term.encode(),) if isinstance(edge, Exam) else ()
    return *order, far.encode(), *term


class GraphMachine(RuleBasedStateMachine):
    layout: Layout | None = None

    def make_store(self) -> Store:
        return SQLiteStore(":memory:")

    @initialize()
    def open(self) -> None:
        self.store = FaultyStore(self.make_store())
        self.graph = Graph(self.store, SCHOOL, self.layout)
        if not self.store.creates_tables:
            self.graph.create_table()
        self.reference = Reference()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.the_change_stream_tells_the_same_story()
            self.graph.close()

    # --- writes, each in its first request or after so many reads, which may fail before or after it takes effect ---

    def attempt(self, call: Callable[[], Any], fault: str | None, effect: Callable[[], None], reads: int = 0) -> Any:
        if fault is not None:
            self.store.stop_at(reads, fault)
        try:
            result = call()
        except Interrupted:
            result = None
            assert fault is not None
        finally:
            self.store.recover()
        if fault != "before":
            effect()
        return result

    @rule(entity=nodes() | edges(), fault=faults, halve=st.booleans())
    def put(self, entity: Any, fault: str | None, halve: bool) -> None:
        self.attempt(lambda: self.graph.put(entity), fault, lambda: self.reference.put(entity))

    @rule(entities=st.lists(nodes() | edges(), max_size=30), halve=st.booleans())
    def put_many(self, entities: list[Any], halve: bool) -> None:
        self.store.halve_batches = halve
        assert self.graph.put_many(entities) == len(entities)
        self.store.halve_batches = False
        for entity in entities:
            self.reference.put(entity)

    @rule(entity=nodes() | edges(), fault=faults)
    def add(self, entity: Any, fault: str | None) -> None:
        if self.reference.has(entity):
            with pytest.raises(AlreadyExists):
                self.graph.add(entity)
        else:
            self.attempt(lambda: self.graph.add(entity), fault, lambda: self.reference.put(entity))

    @rule(edge=edges(), fault=faults)
    def connect(self, edge: Any, fault: str | None) -> None:
        fields = edge.model_dump(exclude={"source", "target"})

        def call() -> Any:
            return self.graph.connect(type(edge), edge.source, edge.target, **fields)

        if not self.reference.ends_are_there(edge):
            with pytest.raises(NotFound):
                call()
        elif self.reference.has(edge):
            with pytest.raises(AlreadyExists):
                call()
        else:
            made = self.attempt(call, fault, lambda: self.reference.put(edge))
            assert made is None or made == edge

    @rule(edge=edges(), fault=faults)
    def disconnect(self, edge: Any, fault: str | None) -> None:
        key: dict[str, Any] = {"term": edge.term} if isinstance(edge, Exam) else {}
        there = self.reference.has(edge)
        removed = self.attempt(
            lambda: self.graph.disconnect(type(edge), edge.source, edge.target, **key),
            fault,
            lambda: self.reference.remove(edge),
        )
        assert removed is None or removed is there

    @rule(id=ids, change=st.integers(-5, 5), version=st.none() | st.integers(0, 3), fault=faults)
    def update_node(self, id: str, change: int, version: int | None, fault: str | None) -> None:
        stored = self.reference.nodes.get((Student, id))

        def call() -> Student:
            return self.graph.update(
                Student, id, year_level=field("year_level") + change, name=str(change), if_version=version
            )

        if stored is None:
            with pytest.raises(NotFound):
                call()
        elif version is not None and stored.version != version:
            with pytest.raises(ConditionFailed):
                call()
        else:
            new = stored.model_copy(
                update={
                    "year_level": stored.year_level + change,
                    "name": str(change),
                    "version": stored.version + 1,
                }
            )
            updated = self.attempt(call, fault, lambda: self.reference.put(new))
            assert updated is None or updated == new

    @rule(edge=edges(), fault=faults)
    def update_edge(self, edge: Any, fault: str | None) -> None:
        key: dict[str, Any] = {"term": edge.term} if isinstance(edge, Exam) else {}
        changes = edge.model_dump(exclude={"source", "target", "term"})
        stored = self.reference.edges.get(key_of(edge))

        def call() -> Any:
            return self.graph.update(type(edge), edge.source, edge.target, **key, **changes)

        if stored is None:
            with pytest.raises(NotFound):
                call()
        else:
            new = stored.model_copy(update=changes)
            is_two_items = isinstance(edge, Friendship) and edge.source != edge.target
            updated = self.attempt(call, fault, lambda: self.reference.put(new), reads=int(is_two_items))
            assert updated is None or updated == new

    @rule(model=st.sampled_from(list(NODES)), id=ids, stop=st.none() | st.integers(0, 3), when=faults)
    def delete(self, model: type[Any], id: str, stop: int | None, when: str | None) -> None:
        if stop is not None and when is not None:
            self.store.stop_at(stop, when)
        try:
            self.graph.delete(model, id)
        except Interrupted:
            pass
        else:
            self.reference.delete(model, id)
        finally:
            self.store.recover()
        if (model, id) in self.reference.nodes and self.graph.get(model, id) is None:
            self.reference.delete(model, id)
        elif (model, id) not in self.reference.nodes:
            # A node that was not there had perhaps edges; they are all there or all gone.
            gone = self.reference.copy()
            gone.delete(model, id)
            if all(not list(self.graph.out(id, edge)) for edge, ends in ENDS.items() if ends[0] is model) and all(
                not list(self.graph.into(id, edge)) for edge, ends in ENDS.items() if ends[1] is model
            ):
                self.reference = gone

    @rule(entities=st.lists(nodes() | edges(), max_size=6, unique_by=key_of), verbs=st.data(), fault=faults)
    def transaction(self, entities: list[Any], verbs: st.DataObject, fault: str | None) -> None:
        after = self.reference.copy()
        taken: set[Key] = set()
        fails = False
        steps: list[tuple[str, Any]] = []
        for entity in entities:
            keys = {key_of(entity)}
            if isinstance(entity, Friendship):
                keys.add(key_of(twin_of(entity)))
            if keys & taken:
                continue
            taken |= keys
            is_node = isinstance(entity, Student | Course)
            verb = verbs.draw(st.sampled_from(["put", "add"] if is_node else ["put", "add", "connect", "disconnect"]))
            steps.append((verb, entity))
        for verb, entity in steps:
            if verb == "disconnect":
                after.remove(entity)
                continue
            if verb in ("add", "connect") and self.reference.has(entity):
                fails = True
            after.put(entity)
        if any(verb == "connect" and not after.ends_are_there(entity) for verb, entity in steps):
            fails = True

        def call() -> None:
            with self.graph.transaction() as t:
                for verb, entity in steps:
                    if verb in ("put", "add"):
                        getattr(t, verb)(entity)
                    elif verb == "connect":
                        fields = entity.model_dump(exclude={"source", "target"})
                        t.connect(type(entity), entity.source, entity.target, **fields)
                    else:
                        key: dict[str, Any] = {"term": entity.term} if isinstance(entity, Exam) else {}
                        t.disconnect(type(entity), entity.source, entity.target, **key)

        def effect() -> None:
            self.reference = after

        if fails:
            with pytest.raises(TransactionCanceled) as error:
                call()
            assert any(reason.code == "ConditionalCheckFailed" for reason in error.value.reasons)
        else:
            self.attempt(call, fault if steps else None, effect)

    # --- reads, by page and by condition -------------------------------------------------------

    @rule(model=st.sampled_from(list(EDGES)), id=ids, limit=st.integers(1, 4), backward=st.booleans())
    def pages(self, model: type[Any], id: str, limit: int, backward: bool) -> None:
        query, expected = self.graph.out(id, model), self.reference.out(model, id)
        if backward:
            query, expected = query.reverse(), expected[::-1]
        found: list[Any] = []
        token: str | None = None
        while True:
            page = query.page(limit=limit, after=token)
            found += page
            token = page.next
            if token is None:
                break
        assert found == expected
        assert list(query.limit(limit)) == expected[:limit]
        assert query.first() == (expected[0] if expected else None)

    @rule(id=ids, grade=st.sampled_from("ABC"), limit=st.integers(1, 3))
    def conditions(self, id: str, grade: str, limit: int) -> None:
        query = self.graph.into(id, Enrollment).where((field("grade") >= grade) & (field("points") > 0))
        expected = [edge for edge in self.reference.into(Enrollment, id) if edge.grade >= grade and edge.points > 0]
        assert list(query) == expected
        assert list(query.page(limit=limit)) == expected[:limit]
        assert query.count() == len(expected)

    @rule(segments=st.integers(1, 5), limit=st.integers(1, 4))
    def scans(self, segments: int, limit: int) -> None:
        """Everything, also between the steps of a delete: each of them once, a friendship in one direction."""
        everything = [*self.reference.nodes.values(), *self.reference.edges.values()]
        for model in (None, *NODES, *EDGES):
            query: Any = self.graph.scan(model, segments=segments)
            expected = sorted({spelled_once(each): each for each in everything if model in (None, type(each))})
            found = list(query)
            assert sorted(map(spelled_once, found)) == expected
            assert all(each in everything for each in found)
            assert query.count() == len(expected)
            paged, token = [], None
            while True:
                page = query.page(limit=limit, after=token)
                paged += page
                token = page.next
                if token is None:
                    break
            assert sorted(map(spelled_once, paged)) == expected
        assert list(self.graph.scan(segments=segments).others) == []

    @rule(id=ids)
    def neighbours(self, id: str) -> None:
        pairs = list(self.graph.out(id, Enrollment).nodes())
        edges = self.reference.out(Enrollment, id)
        courses = [self.reference.nodes.get((Course, edge.target)) for edge in edges]
        assert pairs == [(edge, course) for edge, course in zip(edges, courses, strict=True) if course is not None]

    @invariant()
    def everything_is_as_the_dictionary_says(self) -> None:
        for model in NODES:
            assert self.graph.get_many(model, IDS) == [self.reference.nodes.get((model, id)) for id in IDS]
        for model in EDGES:
            for id in IDS:
                assert list(self.graph.out(id, model)) == self.reference.out(model, id)
                assert list(self.graph.into(id, model)) == self.reference.into(model, id)
                assert self.graph.out(id, model).count() == len(self.reference.out(model, id))
        for id in IDS:
            collection = self.graph.collection(Student.ref(id))
            assert collection.node == self.reference.nodes.get((Student, id))
            mine = [edge for edge in self.reference.edges.values() if edge.source == id]
            assert sorted(collection.edges, key=spelled) == sorted(mine, key=spelled)
            assert collection.others == []

    def the_change_stream_tells_the_same_story(self) -> None:
        items: dict[str, Any] = {}
        for change in self.graph.changes():
            item = change.new_item or change.old_item
            assert item is not None
            assert items.pop(place_of(self.graph, item), None) == change.old_item
            if change.new_item is not None:
                items[place_of(self.graph, item)] = change.new_item
        scanned: Any = self.store.inner.execute((Scan("adjoin"),))[0]
        # The stream leaves out what adjoin keeps for itself, such as the record of a deletion that was interrupted.
        others = [item for item in scanned.items if not self.graph._layout.is_bookkeeping(item)]
        assert items == {place_of(self.graph, item): item for item in others}


class LargeDeletesMachine(GraphMachine):
    """The same, where a transaction takes so little that most deletes go the way of large ones."""

    @initialize()
    def open(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(deletion, "MAX_TRANSACTION", 2)
        super().open()

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "patch"):
            self.patch.undo()


class MaterializedMachine(GraphMachine):
    layout = MaterializedGraph()


TestGraph = pytest.mark.simulation(GraphMachine.TestCase)
TestLargeDeletes = pytest.mark.simulation(LargeDeletesMachine.TestCase)
TestGraph.settings = TestLargeDeletes.settings = settings(
    max_examples=examples(50), stateful_step_count=30, deadline=None, suppress_health_check=[*HealthCheck]
)
TestMaterializedGraph = pytest.mark.simulation(MaterializedMachine.TestCase)
TestMaterializedGraph.settings = settings(TestGraph.settings, max_examples=examples(20))


@pytest.mark.simulation
@pytest.mark.parametrize("name", [name for name in NAMES if name != "dynalite"])
def test_a_graph_on_a_server(servers: Stores, name: str) -> None:
    """The same on independent servers; dynalite has no transactions."""
    servers.open(name)

    class Served(GraphMachine):
        def make_store(self) -> Store:
            return servers.open(name)

    run_state_machine_as_test(
        Served,
        settings=settings(TestGraph.settings, max_examples=examples(5), stateful_step_count=12),
    )


def test_the_reference_is_not_trivial() -> None:
    reference = Reference()
    reference.put(Student(id="a", name=""))
    reference.put(Exam(source="a", target="b", term="x", mark=Decimal(1)))
    reference.put(Friendship(source="a", target="b"))
    assert len(reference.edges) == 3
    reference.delete(Student, "a")
    assert not reference.edges
    assert not reference.nodes
