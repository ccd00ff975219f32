"""What a delete that was interrupted leaves: every verb says the same of an edge with its mark, there or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AlreadyExists,
    Child,
    ConditionFailed,
    Edge,
    Graph,
    Indexed,
    Node,
    NotFound,
    TransactionCanceled,
    field,
)
from adjoin.aggregates import Copy, Count
from adjoin.expressions import Set, Value, attribute
from adjoin.layouts.interface import DELETING
from adjoin.plans.deletion import TOKENS
from adjoin.plans.transaction import Buffer
from adjoin.requests import Delete, Put, Update
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.simulation import stored
from tests.plans.test_repair import performed
from tests.shares import stride


class Hub(Node):
    id: str
    name: str = ""


class Spoke(Node):
    id: str
    name: str = ""
    counted: Annotated[int, Count("Counted", consistency="transaction")] = 0


class Plain(Edge[Hub, Spoke]):
    note: str = "old"
    version: int = 0


class Ordered(Edge[Hub, Spoke], order="place"):
    place: int = 0
    note: str = "old"
    version: int = 0


class Backward(Edge[Spoke, Hub]):
    note: str = "old"
    version: int = 0


class Mutual(Edge[Hub, Hub], symmetric=True):
    note: str = "old"
    version: int = 0


class Found(Edge[Hub, Spoke]):
    """With copies of its own for the index of fields."""

    name: Annotated[str, Indexed()] = "x"
    size: Annotated[int, Indexed()] = 1
    note: str = "old"
    version: int = 0


class Copying(Edge[Hub, Spoke]):
    title: Annotated[str, Copy("target.name")] = ""
    note: str = "old"
    version: int = 0


class Counted(Edge[Hub, Spoke]):
    note: str = "old"
    version: int = 0


EDGES: list[Any] = [Plain, Ordered, Backward, Mutual, Found, Copying, Counted]
MODELS: list[Any] = [Hub, Spoke, *EDGES]
EACH = 19
"""Edges of each class; one for each way to ask."""


def pair(model: Any, number: int) -> tuple[str, str]:
    far = f"{number:02}"
    return (far, "hub") if model is Backward else ("hub", far)


def graph() -> tuple[Graph, FaultyStore]:
    """A hub with more edges than one transaction takes."""
    store = FaultyStore(SQLiteStore(":memory:"))
    g = Graph(store, MODELS)
    g.put_many([Hub(id="hub"), *(model(id=f"{number:02}") for model in (Hub, Spoke) for number in range(EACH))])
    g.put_many(model(source=source, target=target) for model in EDGES for source, target in pairs(model))
    g.put_many(Plain(source="hub", target=f"more{number}") for number in range(60))
    return g, store


def pairs(model: Any) -> list[tuple[str, str]]:
    return [pair(model, number) for number in range(EACH)]


# --- ways to ask --------------------------------------------------------------------------------


def _raises(call: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        call()
    except errors:
        return True
    return False


def _committed(g: Graph, add: Callable[[Any], object]) -> Callable[[], None]:
    def call() -> None:
        with g.transaction() as t:
            add(t)

    return call


def _found(g: Graph, model: Any, ends: tuple[str, str]) -> bool:
    if model is not Found:
        return g.edge(model, *ends) is not None
    found = [list(g.find(Found, predicate)) for predicate in (field("name") == "x", field("size") == 1)]
    assert found[0] == found[1]
    assert g.find(Found, field("name") == "x").count() == len(found[0])
    return ends in [(edge.source, edge.target) for edge in found[0]]


READS: dict[str, Callable[[Graph, Any, tuple[str, str]], bool]] = {
    "edge": lambda g, model, ends: g.edge(model, *ends) is not None,
    "out": lambda g, model, ends: ends[1] in [edge.target for edge in g.out(ends[0], model)],
    "into": lambda g, model, ends: ends[0] in [edge.source for edge in g.into(ends[1], model)],
    "a page": lambda g, model, ends: ends[1] in [edge.target for edge in g.out(ends[0], model).page(limit=EACH)],
    "count": lambda g, model, ends: g.out(ends[0], model).count() > 0,
    "count into": lambda g, model, ends: g.into(ends[1], model).count() > 0,
    "nodes": lambda g, model, ends: ends[1] in [node.id for _, node in g.out(ends[0], model).nodes()],
    "collection": lambda g, model, ends: any(
        type(edge) is model and edge.target == ends[1]
        for edge in g.collection((Spoke if model is Backward else Hub).ref(ends[0])).edges
    ),
    "find": _found,
}
"""Those that change nothing."""

WRITES: dict[str, Callable[[Graph, Any, tuple[str, str]], bool]] = {
    "connect": lambda g, model, ends: _raises(lambda: g.connect(model, *ends, note="new"), AlreadyExists),
    "add": lambda g, model, ends: _raises(lambda: g.add(model(source=ends[0], target=ends[1])), AlreadyExists),
    "disconnect": lambda g, model, ends: g.disconnect(model, *ends),
    "delete": lambda g, model, ends: g.delete(model(source=ends[0], target=ends[1])),
    "update": lambda g, model, ends: not _raises(lambda: g.update(model, *ends, note="new"), NotFound),
    "put if": lambda g, model, ends: (
        not _raises(lambda: g.put(model(source=ends[0], target=ends[1]), only_if=field("note") == "old"), NotFound)
    ),
    "put if not": lambda g, model, ends: _raises(
        lambda: g.put(model(source=ends[0], target=ends[1]), only_if=~field("note").exists()), Exception
    ),
    "connect in a transaction": lambda g, model, ends: _raises(
        _committed(g, lambda t: t.connect(model, *ends, note="new")), TransactionCanceled
    ),
    "add in a transaction": lambda g, model, ends: _raises(
        _committed(g, lambda t: t.add(model(source=ends[0], target=ends[1]))), TransactionCanceled
    ),
    "update in a transaction": lambda g, model, ends: (
        not _raises(_committed(g, lambda t: t.update(model, *ends, note="new")), TransactionCanceled)
    ),
    "put if in a transaction": lambda g, model, ends: (
        not _raises(
            _committed(g, lambda t: t.put(model(source=ends[0], target=ends[1]), only_if=field("note") == "old")),
            TransactionCanceled,
        )
    ),
    "disconnect in a version": lambda g, model, ends: g.disconnect(model, *ends, if_version=0),
    "disconnect in another version": lambda g, model, ends: _raises(
        lambda: g.disconnect(model, *ends, if_version=7), ConditionFailed
    ),
    "disconnect another version in a transaction": lambda g, model, ends: _raises(
        _committed(g, lambda t: t.disconnect(model, *ends, if_version=7)), TransactionCanceled
    ),
    "put in a version": lambda g, model, ends: (
        not _raises(lambda: g.put(model(source=ends[0], target=ends[1]), if_version=0), NotFound)
    ),
    "put if in a version": lambda g, model, ends: (
        not _raises(
            lambda: g.put(model(source=ends[0], target=ends[1]), if_version=0, only_if=field("note") == "old"), NotFound
        )
    ),
    "put if in a version in a transaction": lambda g, model, ends: (
        not _raises(
            _committed(
                g,
                lambda t: t.put(model(source=ends[0], target=ends[1]), if_version=0, only_if=field("note") == "old"),
            ),
            TransactionCanceled,
        )
    ),
    "add to it in a transaction": lambda g, model, ends: (
        not _raises(_committed(g, lambda t: t.update(model, *ends, version=field("version") + 1)), TransactionCanceled)
    ),
}
"""Those that tell by what they do."""


def interrupted(step: int) -> tuple[Graph, FaultyStore] | None:
    """A graph whose delete was interrupted after some request; None once it was not any more."""
    g, store = graph()
    store.stop_at(step, "after")
    try:
        g.delete(Hub, "hub")
    except Interrupted:
        store.recover()
        return g, store
    store.close()
    return None


def test_there_are_marks_and_a_switch() -> None:
    seen = set()
    step = 0
    while (made := interrupted(step)) is not None:
        g, store = made
        seen.add((any(DELETING in item for item in stored(g)), g.get(Hub, "hub") is not None))
        store.close()
        step += 1
    assert seen == {(False, True), (True, True), (True, False), (False, False)}


@pytest.mark.simulation
@pytest.mark.parametrize("is_made_anew", [True, False])
def test_all_verbs_agree(is_made_anew: bool) -> None:
    step = int(is_made_anew) * (stride(2) - 1)
    while (made := interrupted(step)) is not None:
        g, store = made
        if is_made_anew:
            g.put(Hub(id="hub", name="new"))
        for model in EDGES:
            look(g, model)
        for model in EDGES:
            write(g, model)
        assert g.delete(Hub, "hub") in (True, False)
        assert [item for item in stored(g) if "#hub" in str(item) and "marked" not in item] == []
        assert all(node.counted == 0 for node in g.get_many(Spoke, map("{:02}".format, range(EACH))) if node)
        store.close()
        step += stride(2)
    assert step > 2


def look(g: Graph, model: Any) -> None:
    """What every way to read says of some edges of a class."""
    is_any = any(g.edge(model, *ends) is not None for ends in pairs(model))
    has_hub = g.get(Hub, "hub") is not None
    for ends in (pair(model, 0), pair(model, EACH - 1)):
        is_there = g.edge(model, *ends) is not None
        for verb, ask in READS.items():
            if verb == "count":
                wanted = (is_there if model is Backward else is_any) or (model is Plain and is_more(g))
            else:
                # An edge to a node that is gone has no node to show.
                wanted = is_there and (verb != "nodes" or has_hub or model is not Backward)
            assert ask(g, model, ends) is wanted, (verb, model, ends)


def is_more(g: Graph) -> bool:
    return any(g.edge(Plain, "hub", f"more{number}") is not None for number in range(60))


def write(g: Graph, model: Any) -> None:
    """What every way to write says, each of another edge of a class; it is true for all afterwards."""
    has_hub = g.get(Hub, "hub") is not None
    for ends, (verb, tell) in zip(pairs(model), WRITES.items(), strict=False):
        if "connect" in verb.split() and not has_hub:
            continue
        is_there = g.edge(model, *ends) is not None
        assert tell(g, model, ends) is is_there, (verb, model, ends)
        is_there = g.edge(model, *ends) is not None
        for way in ("out", "into", "find"):
            assert READS[way](g, model, ends) is is_there, (verb, way, model, ends)


def test_marks_from_a_time_when_nobody_counted() -> None:
    """A class may be counted at once later than a delete marked its edges; they are told and removed like others."""

    class Hub(Node):
        id: str

    class Spoke(Node):
        id: str

    class Counted(Edge[Hub, Spoke]):
        note: str = "old"

    store = FaultyStore(SQLiteStore(":memory:"))
    before = Graph(store, [Hub, Spoke, Counted])
    before.put_many([Hub(id="hub"), *(Spoke(id=f"{number:03}") for number in range(150))])
    before.put_many(Counted(source="hub", target=f"{number:03}") for number in range(150))
    step = 0
    while before.get(Hub, "hub") is not None:
        store.stop_at(step, "after")
        with pytest.raises(Interrupted):
            before.delete(Hub, "hub")
        store.recover()
        step += 1
    g = Graph(store, MODELS)
    g.put(MODELS[0](id="hub"))
    model = EDGES[-1]
    assert any(DELETING in item for item in stored(g))
    for number, (verb, tell) in enumerate(WRITES.items()):
        ends = ("hub", f"{number:03}")
        assert g.edge(model, *ends) is None
        assert tell(g, model, ends) is False, verb
    for step in range(40):
        store.stop_at(step, "after")
        try:
            g.delete(MODELS[0], "hub")
        except Interrupted:
            store.recover()
            assert g.edge(model, "hub", "140") is None, "it came back"
    assert [item for item in stored(g) if "#hub" in str(item) and "marked" not in item] == []
    spokes: list[Any] = g.get_many(MODELS[1], map("{:03}".format, range(150)))
    assert {spoke.counted for spoke in spokes} == {0}
    store.close()


def test_a_transaction_deletes_what_is_shown_only() -> None:
    """What is left of a former delete may be more than it takes, and stays hidden."""
    step = 0
    while (made := interrupted(step)) is not None:
        g, store = made
        if g.get(Hub, "hub") is None and any(DELETING in item for item in stored(g)):
            g.put(Hub(id="hub"))
            g.connect(Plain, "hub", "00", note="new")
            with g.transaction() as t:
                t.delete(Hub, "hub")
            assert g.get(Hub, "hub") is None
            assert all(g.edge(model, *ends) is None for model in EDGES for ends in pairs(model))
            g.put(Hub(id="hub"))
            assert g.collection(Hub.ref("hub")).edges == []
        store.close()
        step += 1


def test_half_of_a_symmetric_edge_was_none_and_goes() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many([Hub(id="a"), Hub(id="b"), Mutual(source="a", target="b")])
        layout = g._layout
        kind = layout.schema.edge(Mutual)
        g._store.execute((Delete(layout.table, layout.edge_key(kind, "b", "a", {})),))
        assert g.disconnect(Mutual, "a", "b") is False
        assert [item for item in stored(g) if layout.kind_of(item) is kind] == []


def test_a_change_that_asks_for_something_asks_an_edge_with_a_mark_for_it_too() -> None:
    """The delete that marked it did not come to its switch, so the edge is there."""
    with Graph(":memory:", MODELS) as g:
        g.put_many([Hub(id="hub"), Spoke(id="00"), Plain(source="hub", target="00")])
        key = g._layout.edge_key(g._layout.schema.edge(Plain), "hub", "00", {})
        mark = Set(attribute(DELETING), Value({"S": "never"}))
        g._store.execute((Update(g._layout.table, key, (mark,)),))
        with pytest.raises(ConditionFailed):
            g.update(Plain, "hub", "00", only_if=field("note") == "new", note="newer")
        assert g.update(Plain, "hub", "00", only_if=field("note") == "old", note="new").note == "new"


class Spelled(Edge[Hub, Spoke]):
    """No condition says whether its code fits, so an update in a transaction reads it first."""

    code: Annotated[str, Field(pattern="a+")] = "a"
    note: str = "old"


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_mark_that_comes_after_an_edge_was_read_for_a_transaction(is_gone: bool) -> None:
    """Only with a record of the delete does the mark hide the edge. Until then it is there, and can change."""
    with Graph(":memory:", [*MODELS, Spelled]) as g:
        g.put_many([Hub(id="h"), Spoke(id="s"), Spelled(source="h", target="s")])
        layout = g._layout
        key = layout.edge_key(layout.schema.edge(Spelled), "h", "s", {})

        def hide() -> None:
            mark = Set(attribute(DELETING), Value({"SS": ["token:SPOKE#s"]}))
            g._store.execute((Update("adjoin", key, (mark,)),))
            if is_gone:
                record = layout.deletion_key("SPOKE#s") | {TOKENS: {"SS": ["token"]}}
                g._store.execute(
                    (Put("adjoin", record), Delete("adjoin", layout.node_key(layout.schema.node(Spoke), "s")))
                )

        def transaction() -> Any:
            made = Buffer(layout)
            made.update(g._changed("update", Spelled, ("h", "s"), {"note": "new"}, None, None))
            return made.commit()

        if is_gone:
            with pytest.raises(TransactionCanceled):
                performed(g, transaction(), hide)
        else:
            performed(g, transaction(), hide)
        (item,) = (item for item in stored(g) if DELETING in item)
        assert item["note"]["S"] == ("old" if is_gone else "new")


@pytest.mark.parametrize("is_gone", [False, True])
def test_an_edge_that_is_hidden_cannot_change_in_a_transaction(is_gone: bool) -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many([Hub(id="h"), Spoke(id="s"), Plain(source="h", target="s")])
        layout = g._layout
        key = layout.edge_key(layout.schema.edge(Plain), "h", "s", {})
        g._store.execute((Update("adjoin", key, (Set(attribute(DELETING), Value({"SS": ["token:SPOKE#s"]})),)),))
        record = layout.deletion_key("SPOKE#s") | {TOKENS: {"SS": ["token" if is_gone else "another"]}}
        g._store.execute((Put("adjoin", record),))
        change = _committed(g, lambda t: t.update(Plain, "h", "s", note="new"))
        assert _raises(change, TransactionCanceled) is is_gone
        (item,) = (item for item in stored(g) if DELETING in item)
        assert item["note"]["S"] == ("old" if is_gone else "new")


class Owner(Node):
    id: str


class Thing(Child[Owner]):
    id: str


def test_of_many_children_those_of_a_deleted_node_are_not_there() -> None:
    """A mark alone hides nothing: the delete that left it may not have passed its switch."""
    with Graph(":memory:", [Owner, Thing]) as g:
        g.put_many([Thing(parent=parent, id=id) for parent in "ab" for id in "12"])
        layout = g._layout
        kind = layout.schema.node(Thing)
        mark = {"a": "token:OWNER#a", "b": "other:OWNER#b"}
        for parent in "ab":
            key = layout.node_key(kind, (parent, "1"))
            g._store.execute((Update("adjoin", key, (Set(attribute(DELETING), Value({"SS": [mark[parent]]})),)),))
        for parent in "ab":
            record = layout.deletion_key(f"OWNER#{parent}") | {TOKENS: {"SS": ["token"]}}
            g._store.execute((Put("adjoin", record),))
        ids = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "3"), ("b", "2"), ("a", "2")]
        assert [each and (each.parent, each.id) for each in g.get_many(Thing, ids)] == [
            None, ("a", "2"), ("b", "1"), None, ("b", "2"), ("a", "2"),
        ]  # fmt: skip
        assert [g.get(Thing, id) is None for id in ids] == [True, False, False, True, False, False]
