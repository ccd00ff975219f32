"""Optimistic locking: what somebody else changed since it was read is neither replaced nor deleted."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import ConfigDict

from adjoin import (
    ConditionFailed,
    Copy,
    Count,
    Edge,
    Graph,
    Indexed,
    InvalidValue,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    Version,
    field,
)
from adjoin.requests import Delete, Put, TransactWrite, Update
from adjoin.stores.sqlite import SQLiteStore
from tests.conftest import Open


class Plain(Node):
    id: str
    text: str = ""
    revision: Annotated[int, Version()] = 0


class Anything(Node, label="ANY"):
    """One that takes fields of any name."""

    id: str
    text: str = ""
    revision: Annotated[int, Version()] = 0
    model_config = ConfigDict(extra="allow")


class Copied(Node):
    """One that is several items."""

    id: str
    text: Annotated[str, Indexed()] = ""
    other: Annotated[str, Indexed()] = "o"
    revision: Annotated[int, Version()] = 0


class Claimed(Node):
    id: str
    text: Annotated[str | None, Unique()] = None
    revision: Annotated[int, Version()] = 0


class Counted(Node):
    """One on which edges are counted by themselves."""

    id: str
    text: str = ""
    revision: Annotated[int, Version()] = 0
    links: Annotated[int, Count("Link")] = 0


class CountedAtOnce(Node):
    id: str
    text: Annotated[str, Indexed()] = ""
    revision: Annotated[int, Version()] = 0
    ties: Annotated[int, Count("Tie", consistency="transaction")] = 0


class Later(Node):
    """One whose versions begin with another number."""

    id: str
    text: str = ""
    revision: Annotated[int, Version()] = 5


class Link(Edge[Counted, Plain]):
    text: str = ""
    revision: Annotated[int, Version()] = 0


class Tie(Edge[CountedAtOnce, Plain]):
    text: str = ""
    revision: Annotated[int, Version()] = 0


class Friend(Edge[Plain, Plain], symmetric=True):
    text: str = ""
    revision: Annotated[int, Version()] = 0


class Named(Edge[Plain, Plain], key=("term",)):
    term: str = "t"
    text: Annotated[str, Indexed()] = ""
    name: Annotated[str, Copy("target.text")] = ""
    revision: Annotated[int, Version()] = 0


MODELS: list[type[Any]] = [Plain, Anything, Copied, Claimed, Counted, CountedAtOnce, Later, Link, Tie, Friend, Named]
NODES = [Plain, Anything, Copied, Claimed, Counted, CountedAtOnce, Later]
EDGES = [Link, Tie, Friend, Named]


@pytest.fixture
def g(open_graph: Open) -> Any:
    return open_graph(MODELS)


def made(model: type[Any], text: str, **fields: Any) -> Any:
    named = {"id": "a"} if issubclass(model, Node) else {"source": "a", "target": "b"}
    return model(**named, text=text, **fields)


def stored(g: Any, model: type[Any]) -> Any:
    if issubclass(model, Node):
        return g.get(model, "a", consistent=True)
    return g.edge(model, "a", "b", consistent=True, **({"term": "t"} if model is Named else {}))


def updated(g: Any, model: type[Any], **changes: Any) -> Any:
    ids = ("a",) if issubclass(model, Node) else ("a", "b")
    return g.update(model, *ids, **({"term": "t"} if model is Named else {}), **changes)


def first(model: type[Any]) -> int:
    return 5 if model is Later else 0


@pytest.fixture(params=[*NODES, *EDGES], ids=lambda model: model.__name__)
def model(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_stale_put_is_refused_and_sets_nothing_back(g: Any, model: type[Any]) -> None:
    new = made(model, "1")
    g.put(new)
    start = first(model)
    assert (new.revision, stored(g, model).revision) == (start, start)
    one, other = stored(g, model), stored(g, model)
    one.text, other.text = "2", "3"
    g.put(one)
    assert one.revision == start + 1
    assert (stored(g, model).text, stored(g, model).revision) == ("2", start + 1)
    with pytest.raises(ConditionFailed, match=f"its version is {start + 1}"):
        g.put(other)
    assert (stored(g, model).text, stored(g, model).revision) == ("2", start + 1)
    one.text = "4"
    g.put(one)
    assert updated(g, model, text="5", if_version=start + 2).revision == start + 3
    with pytest.raises(ConditionFailed, match=f"its version is {start + 3}"):
        g.put(one)


def test_what_was_built_by_hand_may_be_new_or_replace_its_own_version(g: Any, model: type[Any]) -> None:
    start = first(model)
    g.put(made(model, "1"))
    second = made(model, "2")
    g.put(second)
    assert second.revision == stored(g, model).revision == start + 1
    with pytest.raises(ConditionFailed):
        g.put(made(model, "3"))
    g.put(made(model, "4", revision=start + 1))
    assert (stored(g, model).text, stored(g, model).revision) == ("4", start + 2)


def test_what_is_not_there_any_more_is_not_made_anew(g: Any, model: type[Any]) -> None:
    g.put(made(model, "1"))
    read = stored(g, model)
    g.delete(read)
    if model is not Anything:
        with pytest.raises(NotFound, match="if_version=None"):
            g.put(read)
    with pytest.raises(NotFound, match="version 7"):
        g.put(made(model, "2", revision=7))
    assert stored(g, model) is None
    g.put(read, if_version=None)
    assert stored(g, model).text == "1"


def test_overwriting_counts_on(g: Any, model: type[Any]) -> None:
    start = first(model)
    g.put(made(model, "1"))
    for _ in range(3):
        updated(g, model, text="x")
    mine = made(model, "mine")
    g.put(mine, if_version=None)
    assert (stored(g, model).text, mine.revision, stored(g, model).revision) == ("mine", start + 4, start + 4)


def test_another_version_can_be_named(g: Any, model: type[Any]) -> None:
    start = first(model)
    g.put(made(model, "1"))
    updated(g, model, text="2")
    with pytest.raises(ConditionFailed):
        g.put(made(model, "3"), if_version=start)
    g.put(made(model, "4"), if_version=start + 1)
    assert (stored(g, model).text, stored(g, model).revision) == ("4", start + 2)


def test_a_stale_delete_is_refused(g: Any, model: type[Any]) -> None:
    start = first(model)
    g.put(made(model, "1"))
    read = stored(g, model)
    updated(g, model, text="2")
    with pytest.raises(ConditionFailed, match=f"its version is {start + 1}"):
        g.delete(read)
    assert stored(g, model).text == "2"
    with pytest.raises(ConditionFailed):
        g.delete(read, if_version=start)
    assert g.delete(read, if_version=start + 1) is True
    assert stored(g, model) is None
    assert g.delete(read) is False
    g.put(made(model, "3"))
    updated(g, model, text="4")
    assert g.delete(read, if_version=None) is True
    assert stored(g, model) is None


def test_by_id_a_version_is_compared_only_where_one_is_given(g: Any) -> None:
    for if_version, is_refused in ((7, True), (1, False)):
        g.put(Plain(id="a"), if_version=None)
        g.update(Plain, "a", text="x", revision=1)
        if is_refused:
            with pytest.raises(ConditionFailed):
                g.delete(Plain, "a", if_version=if_version)
            with pytest.raises(ConditionFailed):
                g.delete(Plain.ref("a"), if_version=if_version)
        assert g.delete(Plain, "a", if_version=None if is_refused else if_version) is True
    g.put(Link(source="a", target="b"))
    g.update(Link, "a", "b", text="x")
    with pytest.raises(ConditionFailed):
        g.disconnect(Link, "a", "b", if_version=0)
    assert g.disconnect(Link, "a", "b", if_version=1) is True
    assert g.disconnect(Link, "a", "b", if_version=1) is False


def test_a_node_with_many_edges_is_deleted_in_its_version_only(g: Any) -> None:
    g.put(Counted(id="a"))
    g.put_many(Link(source="a", target=str(number)) for number in range(120))
    stale = g.get(Counted, "a")
    g.update(Counted, "a", text="x")
    with pytest.raises(ConditionFailed):
        g.delete(stale)
    assert g.out("a", Link).count() == 120
    assert g.delete(g.get(Counted, "a")) is True
    assert g.out("a", Link).count() == 0


def test_in_transactions(g: Any, model: type[Any]) -> None:
    start = first(model)
    g.put(Plain(id="other"))
    new = made(model, "1")
    with g.transaction() as t:
        t.put(new)
    assert stored(g, model).revision == new.revision == start
    one, other = stored(g, model), stored(g, model)
    one.text = other.text = "2"
    with g.transaction() as t:
        t.put(one)
    assert (one.revision, stored(g, model).revision) == (start + 1, start + 1)
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.put(other)
        t.put(Plain(id="b"))
    assert (other.revision, g.get(Plain, "b")) == (start, None)
    by_hand = made(model, "3", revision=start + 1)
    with g.transaction() as t:
        t.put(by_hand)
    with g.transaction() as t:
        t.put(made(model, "4"), if_version=None)
    assert (stored(g, model).text, stored(g, model).revision) == ("4", start + 3)
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.put(Plain(id="b"))
        if issubclass(model, Node):
            t.delete(other)
        else:
            t.disconnect(model, "a", "b", if_version=start, **({"term": "t"} if model is Named else {}))
    assert stored(g, model).text == "4"
    with g.transaction() as t:
        if issubclass(model, Node):
            t.delete(stored(g, model))
        else:
            t.disconnect(model, "a", "b", if_version=start + 3, **({"term": "t"} if model is Named else {}))
    assert stored(g, model) is None


def test_a_transaction_deletes_an_instance_in_its_version_only(g: Any, model: type[Any]) -> None:
    """Edges as well as nodes, as `g.delete` does."""
    g.put(made(model, "1"))
    one, other = stored(g, model), stored(g, model)
    g.put(one)
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.put(Plain(id="z"))
        t.delete(other)
    assert (stored(g, model).revision, g.get(Plain, "z")) == (one.revision, None)
    with g.transaction() as t:
        t.delete(one)
    assert stored(g, model) is None
    g.put(made(model, "2"))
    with g.transaction() as t:
        t.delete(other, if_version=None)
    assert stored(g, model) is None


def test_many_are_each_put_in_their_version(g: Any, model: type[Any]) -> None:
    start = first(model)
    g.put(made(model, "1"))
    read, stale = stored(g, model), stored(g, model)
    read.text = stale.text = "2"
    assert g.put_many([read, Plain(id="z")]) == 2
    assert (read.revision, stored(g, model).revision) == (start + 1, start + 1)
    with pytest.raises(ConditionFailed, match=model.__name__):
        g.put_many([stale])
    assert stored(g, model).revision == start + 1


def test_what_a_put_costs(g: Any) -> None:
    a = Plain(id="a")
    with g.meter() as m:
        g.put(a)
    assert (m.requests, m.wcu, m.rcu) == (1, 1, 0)
    a.text = "x"
    with g.meter() as m:
        g.put(a)
    assert (m.requests, m.wcu, m.rcu) == (1, 1, 0)
    read = g.get(Plain, "a")
    with g.meter() as m:
        g.put(read)
        g.put(read, if_version=None)
    assert (m.requests, m.wcu) == (2, 2)


def test_a_put_leaves_nothing_of_what_it_replaces(g: Any) -> None:
    g.put(Anything(id="a", note="x"))
    g.put(Anything(id="a", revision=0, text="y"))
    assert g.get(Anything, "a") == Anything(id="a", text="y", revision=1)


def test_what_is_counted_stays_with_a_node_that_is_put(g: Any) -> None:
    g.put_many([Counted(id="a"), CountedAtOnce(id="a"), Plain(id="b")])
    g.connect(Link, "a", "b")
    g.connect(Tie, "a", "b")
    g.maintain(once=True)
    for model in (Counted, CountedAtOnce):
        node = g.get(model, "a")
        node.text = "x"
        g.put(node)
        with g.transaction() as t:
            t.put(node)
            t.put(Plain(id="c"), if_version=None)
        g.put(made(model, "y", revision=node.revision))
    assert (g.get(Counted, "a").links, g.get(CountedAtOnce, "a").ties) == (1, 1)


def test_a_copy_with_another_id_is_new(g: Any) -> None:
    g.put(Plain(id="a"))
    g.put(g.get(Plain, "a").model_copy(update={"id": "b"}))
    assert g.get(Plain, "b").revision == 0


def test_an_item_without_a_version_has_the_first(g: Any, open_graph: Open) -> None:
    class Before(Node, label="PLAIN"):
        id: str
        text: str = ""

    class Earlier(Node, label="LATER"):
        id: str
        text: str = ""

    for old, new, start in ((Before, Plain, 0), (Earlier, Later, 5)):
        before = open_graph([old])
        for way in ("what was read", "by hand", "update"):
            before.put(old(id="a"))
            one, other = g.get(new, "a"), g.get(new, "a")
            assert one.revision == start
            if way == "update":
                g.update(new, "a", text="3", if_version=start)
            else:
                g.put(one if way == "what was read" else new(id="a", text="3"))
            assert g.get(new, "a").revision == start + 1
            with pytest.raises(ConditionFailed):
                g.put(other)
            with pytest.raises(ConditionFailed):
                g.delete(other)


def test_a_frozen_instance_stays_as_it_is() -> None:
    class Frozen(Node):
        id: str
        revision: Annotated[int, Version()] = 0
        model_config = ConfigDict(frozen=True)

    g: Any = Graph(":memory:", [Frozen])
    a = Frozen(id="a")
    g.put(a)
    g.put(a)
    assert (a.revision, g.get(Frozen, "a").revision) == (0, 1)
    with pytest.raises(ConditionFailed):
        g.put(a)


def test_a_field_called_version_guards_only_where_it_is_asked_to() -> None:
    class Named(Node):
        id: str
        version: int = 0

    g: Any = Graph(":memory:", [Named])
    g.put(Named(id="a", version=3))
    g.put(Named(id="a", version=2))
    with pytest.raises(ConditionFailed, match="its version is 2"):
        g.put(Named(id="a"), if_version=1)
    g.put(Named(id="a"), if_version=2)
    assert g.get(Named, "a").version == 3
    with pytest.raises(ConditionFailed):
        g.delete(Named, "a", if_version=2)
    assert g.delete(Named(id="a")) is True


@pytest.mark.parametrize("version", ["1", 1.0, True, Decimal(1)])
def test_a_version_is_a_whole_number(g: Any, version: Any) -> None:
    g.put(Plain(id="a"))
    with pytest.raises(InvalidValue, match="whole number"):
        g.put(Plain(id="a"), if_version=version)
    with pytest.raises(InvalidValue, match="whole number"):
        g.update(Plain, "a", text="x", if_version=version)
    with pytest.raises(InvalidValue, match="whole number"):
        g.delete(Plain, "a", if_version=version)


def test_only_a_class_with_a_version_has_one_to_compare() -> None:
    class Bare(Node):
        id: str

    g: Any = Graph(":memory:", [Bare])
    with pytest.raises(InvalidValue, match=r"version: int = 0"):
        g.put(Bare(id="a"), if_version=0)
    with pytest.raises(InvalidValue, match=r"version: int = 0"):
        g.delete(Bare, "a", if_version=0)
    g.put(Bare(id="a"), if_version=None)
    assert g.delete(Bare(id="a"), if_version=None) is True


def test_relative_changes_count_as_well(g: Any) -> None:
    g.put(Plain(id="a"))
    assert g.update(Plain, "a", revision=field("revision") + 10).revision == 10


# --- somebody comes between --------------------------------------------------------------------


class Between:
    """A store in which something happens once, after the last read before a write."""

    creates_tables = True

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self.happens: Callable[[], Any] | None = None
        self.later = 0
        """How many writes go before."""

    def execute(self, requests: Any) -> Any:
        is_write = any(isinstance(each, _WRITES) for each in requests)
        if self.happens is not None and is_write and self.later:
            self.later -= 1
        elif self.happens is not None and is_write:
            happens, self.happens = self.happens, None
            happens()
        return self.store.execute(requests)

    def close(self) -> None:
        self.store.close()


_WRITES = (Put, Update, Delete, TransactWrite)


def test_a_change_that_comes_between_is_neither_overwritten_nor_deleted(model: type[Any]) -> None:
    store = Between(SQLiteStore(":memory:"))
    g: Any = Graph(store, MODELS)
    other: Any = Graph(store.store, MODELS)
    g.put(made(model, "1"))
    for write in (g.put, g.delete, lambda it: g.put(made(model, "x", revision=it.revision))):
        read = stored(g, model)
        store.happens = lambda: updated(other, model, text="between")
        with pytest.raises(ConditionFailed):
            write(read)
        assert (stored(g, model).text, stored(g, model).revision) == ("between", read.revision + 1)
    read = stored(g, model)
    store.happens = lambda: updated(other, model, text="between")
    g.put(read, if_version=None)
    assert stored(g, model).revision == read.revision == stored(other, model).revision
    for write in ("put", "delete"):
        read = stored(g, model)
        with pytest.raises(TransactionCanceled), g.transaction() as t:
            if write == "delete" and isinstance(read, Node):
                t.delete(read)
            else:
                t.put(read)
            store.happens = lambda: updated(other, model, text="between")
        assert stored(g, model).text == "between"


@pytest.mark.parametrize(("ties", "steps"), [(3, 1), (45, 1), (120, 4)])
def test_a_change_that_comes_between_is_noticed_by_each_step_of_a_delete(ties: int, steps: int) -> None:
    """Edges that are counted in the transaction go in several, if they are many, and each checks the version."""
    left = [ties]
    for step in range(steps + 1):
        store = Between(SQLiteStore(":memory:"))
        g: Any = Graph(store, MODELS)
        other: Any = Graph(store.store, MODELS)
        g.put(CountedAtOnce(id="1"))
        g.put_many(Tie(source="1", target=f"{number:03}") for number in range(ties))
        read, store.later = g.get(CountedAtOnce, "1"), step
        seen: list[int] = []

        def change(other: Any = other, seen: list[int] = seen) -> None:
            seen.append(other.out("1", Tie).count())
            other.update(CountedAtOnce, "1", text="between")

        store.happens = change
        if step == steps:
            assert g.delete(read) is True
            assert seen == []
            break
        with pytest.raises(ConditionFailed, match="does not meet the condition of the delete"):
            g.delete(read)
        node = g.get(CountedAtOnce, "1")
        assert [node.ties] == [g.out("1", Tie).count()] == seen
        left += seen
    assert left == sorted(left, reverse=True)


class Unversioned(Node):
    id: str


def test_nothing_is_noted_on_an_instance_without_versions() -> None:
    with Graph(":memory:", [Unversioned]) as g:
        made = Unversioned(id="a")
        g.put(made)
        read = g.get(Unversioned, "a")
        assert [vars(each) for each in (made, read)] == [{"id": "a"}] * 2


def test_a_missing_edge_has_no_version_to_compare(g: Any) -> None:
    assert g.disconnect(Named, "a", "b", term="t", if_version=3) is False


class Place(Node):
    id: str
    roads: Annotated[int, Count("Road", consistency="transaction")] = 0


class Road(Edge[Place, Place], symmetric=True):
    length: Annotated[int, Indexed()] = 0
    lanes: Annotated[int, Indexed()] = 0
    revision: Annotated[int, Version()] = 0


class Spot(Node):
    id: str


class Path(Edge[Spot, Spot], symmetric=True):
    length: Annotated[int, Indexed()] = 0
    lanes: Annotated[int, Indexed()] = 0
    revision: Annotated[int, Version()] = 0


@pytest.mark.parametrize("models", [(Place, Road), (Spot, Path)], ids=["counted", "with index copies"])
def test_a_symmetric_edge_with_more_items_is_put_again(models: Any) -> None:
    place, road = models
    g: Any = Graph(":memory:", models)
    with g:
        g.put_many([place(id="a"), place(id="b")])
        g.connect(road, "a", "b", length=1)
        for length, ends in enumerate((("a", "b"), ("b", "a")), 2):
            read, stale = g.edge(road, *ends), g.edge(road, *ends)
            read.length = length
            g.put(read)
            assert [each.length for id in "ab" for each in g.out(id, road)] == [length, length]
            with pytest.raises(ConditionFailed, match="its version is"):
                g.put(stale)
        assert [each.revision for each in g.find(road, field("length") == 3)] == [2]
