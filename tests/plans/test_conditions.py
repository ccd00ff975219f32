"""Conditions and changes by the names of fields: what is asked of the store, and what comes of it."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from adjoin import (
    AdjoinError,
    ConditionFailed,
    Count,
    Edge,
    Graph,
    Indexed,
    InvalidItem,
    InvalidValue,
    Node,
    NotFound,
    Unique,
    UnknownField,
    Version,
    field,
)
from adjoin.expressions import Compare, Value, attribute
from adjoin.requests import Put, TransactWrite
from adjoin.stores.sqlite import SQLiteStore


class Street(BaseModel):
    name: Annotated[str, Field(alias="streetName")] = ""
    number: int = 0


class Address(BaseModel):
    street: Street = Street()
    lines: list[str] = []


class Shop(Node):
    id: str
    address: Address = Address()
    rating: int | None = None
    visits: int = 0
    total: Decimal = Decimal(0)
    tags: set[str] = set()
    notes: list[str] = []
    open_for: dt.timedelta = dt.timedelta(0)


class Knows(Edge[Shop, Shop]):
    rating: int | None = None
    address: Address = Address()


def shops(*conditions: Any) -> list[str]:
    """The targets of edges for which something holds."""
    with Graph(":memory:", [Shop, Knows]) as g:
        street = Street(streetName="Main", number=5)
        g.put(Knows(source="a", target="one", rating=1, address=Address(street=street, lines=["x", "y"])))
        g.put(Knows(source="a", target="two", rating=2))
        g.put(Knows(source="a", target="none"))
        return [edge.target for edge in g.out("a", Knows).where(*conditions)]


@pytest.mark.parametrize(
    ("condition", "targets"),
    [
        (field("rating").is_in([1, 2]), ["one", "two"]),
        (field("rating").is_in([None]), ["none"]),
        (field("rating").is_in([None, 2]), ["none", "two"]),
        (field("rating") == None, ["none"]),  # noqa: E711
        (field("rating") != None, ["one", "two"]),  # noqa: E711
        (field("rating").exists(), ["one", "two"]),
        (field("rating").between(1, 1), ["one"]),
        # Inside a field a name is the model's own, and is looked for where it is stored.
        (field("address.street.name") == "Main", ["one"]),
        (field("address.street.number") > 4, ["one"]),
        (field("address.lines.1") == "y", ["one"]),
        (field("address.lines").begins_with(["x"]), ["one"]),
        (field("address.lines").begins_with(["y"]), []),
        (field("address.lines").begins_with([]), ["none", "one", "two"]),
        (field("address.lines").contains("y"), ["one"]),
    ],
)
def test_what_holds(condition: Any, targets: list[str]) -> None:
    assert shops(condition) == targets


def test_a_name_inside_a_field_that_is_not_there() -> None:
    with pytest.raises(UnknownField, match=r"Street.*'nmae'.*'name'"):
        shops(field("address.street.nmae") == "Main")


def test_a_duration_has_no_order() -> None:
    with Graph(":memory:", [Shop]) as g:
        g.put(Shop(id="a", open_for=dt.timedelta(hours=2)))
        g.update(Shop, "a", only_if=field("open_for") == dt.timedelta(hours=2), visits=1)
        with pytest.raises(
            InvalidValue, match=r"Shop.open_for is a duration, which is stored as text that does not sort"
        ):
            g.update(Shop, "a", only_if=field("open_for") > dt.timedelta(hours=1), visits=2)
        assert [shop.visits for shop in g.get_many(Shop, ["a"]) if shop is not None] == [1]


# --- changes -----------------------------------------------------------------------------------


class Indexing(Shop, label="INDEXING"):
    """The same with a copy in an index, so that a change is worked out and written whole."""

    name: Annotated[str, Unique()] = "x"
    size: Annotated[int, Indexed()] = 0
    weight: Annotated[int, Indexed()] = 0


@pytest.mark.parametrize("model", [Shop, Indexing])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"visits": field("visits") + 3}, {"visits": 8}),
        ({"visits": field("visits") - 3}, {"visits": 2}),
        ({"total": field("visits") + 3}, {"total": 8, "visits": 5}),
        ({"total": field("visits") - Decimal("0.5")}, {"total": Decimal("4.5")}),
        ({"rating": field("rating") + 1}, {"rating": 1}),
        ({"tags": field("tags").add({"b", "c"})}, {"tags": {"a", "b", "c"}}),
        ({"tags": field("tags").discard({"a", "c"})}, {"tags": {"b"}}),
        ({"notes": field("notes").append("y", "z")}, {"notes": ["x", "y", "z"]}),
    ],
)
def test_changes_by_what_is_stored(model: Any, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    with Graph(":memory:", [model]) as g:
        g.put(model(id="a", visits=5, tags={"a", "b"}, notes=["x"]))
        for after in (g.update(model, "a", **changes), g.get(model, "a")):
            assert {name: getattr(after, name) for name in expected} == expected


@pytest.mark.parametrize("model", [Shop, Indexing])
def test_nothing_is_added_to_what_is_no_number(model: Any) -> None:
    with Graph(":memory:", [model]) as g:
        g.put(model(id="a", notes=["x"]))
        with pytest.raises(InvalidValue, match=r"number|total"):
            g.update(model, "a", total=field("notes") + 1)
        assert g.get(model, "a") == model(id="a", notes=["x"])


def test_elements_are_put_into_the_set_that_the_field_holds() -> None:
    with Graph(":memory:", [Shop]) as g:
        g.put(Shop(id="a", notes=["x"]))
        for name, change in (("tags", field("notes").add({"b"})), ("notes", field("notes").add({"b"}))):
            changes: dict[str, Any] = {name: change}
            with pytest.raises(InvalidValue, match=r"is \['x'\], and add changes sets only"):
                g.update(Shop, "a", **changes)


class Stock(Node):
    id: str
    left: Annotated[int, Field(ge=0, lt=10)] = 5


@pytest.mark.parametrize(
    ("change", "left"),
    [(field("left") - 5, 0), (field("left") - 6, None), (field("left") + 4, 9), (field("left") + 5, None)],
)
def test_a_change_ends_within_the_limits_of_its_field(change: Any, left: int | None) -> None:
    with Graph(":memory:", [Stock]) as g:
        g.put(Stock(id="a"))
        if left is None:
            with pytest.raises(AdjoinError):
                g.update(Stock, "a", left=change)
        else:
            assert g.update(Stock, "a", left=change).left == left
        assert g.get(Stock, "a") == Stock(id="a", left=5 if left is None else left)


# --- who is named ------------------------------------------------------------------------------


def test_an_edge_is_named_by_two_ids_and_a_node_by_one() -> None:
    with Graph(":memory:", [Shop, Knows]) as g:
        call: Any = g.update
        with pytest.raises(InvalidValue, match="a Knows is identified by its source and its target, got 1 ids"):
            call(Knows, "a", rating=1)
        with pytest.raises(InvalidValue, match="a Shop is identified by one id, got 2"):
            call(Shop, "a", "b", rating=1)


class Versioned(Node):
    id: str
    name: Annotated[str, Unique()] = ""
    revision: Annotated[int, Version()] = 0


def test_a_claim_that_names_no_node_is_nobodys() -> None:
    with Graph(":memory:", [Versioned, Shop]) as g:
        g.put(Versioned(id="a", name="x"))
        assert g.get(Versioned, name="x") == g.get(Versioned, "a")
        claim = g._layout.claim_key(g._layout.schema.node(Versioned), "name", "y")
        for owner in ("SHOP#a", "VERSIONED#", "VERSIONED#b", "VERSIONED#a"):
            g._store.execute((Put("adjoin", {**claim, "adjoin:owner": {"S": owner}}),))
            assert g.get(Versioned, name="y") is None
        # Whoever has the value may have the claim then.
        g.put(Versioned(id="c", name="y"))
        found = g.get(Versioned, name="y")
        assert found is not None
        assert found.id == "c"


def test_a_stored_version_that_is_no_number() -> None:
    with Graph(":memory:", [Versioned]) as g:
        item = {"PK": {"S": "VERSIONED#a"}, "SK": {"S": "#META"}, "revision": {"S": "two"}, "name": {"S": "x"}}
        g._store.execute((Put("adjoin", item),))
        with pytest.raises(InvalidItem):
            g.put(Versioned(id="a", name="z"))
        with pytest.raises((InvalidItem, NotFound)):
            g.update(Versioned, "a", name="z")


class Colour(Enum):
    RED = "r"
    BLUE = "b"


class Painted(Node):
    id: str
    colour: Annotated[Colour, Indexed()]
    shade: Annotated[Colour, Indexed()]
    name: str = ""


def test_a_rehearsal_thinks_of_a_node_that_its_class_could_have() -> None:
    with Graph(":memory:", [Painted]) as g:
        requests = g.explain(lambda: g.update(Painted, "a", name="x")).requests
        (transaction,) = [request for request in requests if isinstance(request, TransactWrite)]
        items = [write.item for write in transaction.writes if isinstance(write, Put)]
        # The node, and its copy for the second index.
        assert [item["shade"] for item in items] == [{"S": "r"}] * 2


# --- fields that are younger than an item ------------------------------------------------------


class Draft(Node, label="TEXT"):
    id: str


class Text(Node, label="TEXT"):
    id: str
    status: str = "new"
    size: int = 3
    said: str | None = "x"
    place: Address = Address(lines=["a"])
    tags: list[str] = Field(default_factory=list)
    born: int = Field(default_factory=lambda: 1)
    read: Annotated[int, Count("Reading")] = 0


class Reading(Edge[Text, Text]):
    pass


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (field("status") == "new", True),
        (field("status") != "new", False),
        (~(field("status") == "new"), False),
        (field("status") != "old", True),
        (field("status").is_in(["old", "new"]), True),
        (field("status").size() == 3, True),
        (field("size") > 3, False),
        (field("size").between(1, 3), True),
        (field("said") == None, False),  # noqa: E711
        (field("place.lines").contains("a"), True),
        (field("place.street.number") == 0, True),
        (field("tags").size() == 0, True),
        (field("read") == 0, True),
        (field("status").exists(), False),
        (field("born") == 1, False),
        ((field("status") == "old") | (field("size") == 3), True),
    ],
)
def test_an_item_without_a_field_has_its_default_in_conditions(condition: Any, *, holds: bool) -> None:
    store = SQLiteStore(":memory:")
    Graph(store, [Draft]).put(Draft(id="1"))
    g = Graph(store, [Text, Reading])
    assert [each.id for each in g.scan(Text).where(condition)] == ["1"] * holds
    with nullcontext() if holds else pytest.raises(ConditionFailed):
        g.delete(Text, "1", only_if=condition)


def test_what_is_not_stored_at_all_has_no_defaults_in_conditions() -> None:
    g = Graph(":memory:", [Text, Reading])
    with pytest.raises(NotFound):
        g.put(Text(id="1"), only_if=field("status") == "new")
    Graph(g._store, [Draft]).put(Draft(id="1"))
    g.put(Text(id="1"), only_if=field("status") == "new")


class Bag(Node):
    id: str
    numbers: set[int]
    words: frozenset[str] = frozenset({"a"})


class Holds(Edge[Bag, Bag]):
    numbers: set[int] = set()
    words: set[str]


_SOME: dict[str, set[Any]] = {"numbers": {1}, "words": {"a"}}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (lambda name: field(name) == set(), True),
        (lambda name: field(name) != set(), False),
        (lambda name: ~(field(name) == frozenset()), False),
        (lambda name: field(name) == _SOME[name], False),
        (lambda name: field(name) != _SOME[name], True),
        (lambda name: field(name).is_in([_SOME[name], set()]), True),
        (lambda name: field(name).is_in([_SOME[name]]), False),
        (lambda name: field(name).size() == 0, True),
        (lambda name: field(name).size() < 1, True),
        (lambda name: field(name).size() > 0, False),
        (lambda name: field(name).exists(), False),
    ],
)
def test_a_set_that_is_not_stored_is_empty_in_conditions(condition: Any, *, holds: bool) -> None:
    with Graph(":memory:", [Bag, Holds]) as g:
        g.put(Bag(id="1", numbers=set(), words=frozenset()))
        g.put(Bag(id="2", numbers={1, 2}, words=frozenset("b")))
        g.put(Holds(source="1", target="2", words=set()))
        g.put(Holds(source="1", target="1", words={"b"}, numbers={2}))
        for wanted in map(condition, ("numbers", "words")):
            assert ("1" in [each.id for each in g.scan(Bag).where(wanted)]) == holds
            assert ("2" in [edge.target for edge in g.out("1", Holds).where(wanted)]) == holds
            assert (Bag.ref("2") in [*g.walk(Bag.ref("1")).out(Holds).where(wanted, on="edges").refs()]) == holds
            with nullcontext() if holds else pytest.raises(ConditionFailed):
                g.update(Bag, "1", words=frozenset(), only_if=wanted)


def test_conditions_on_fields_without_a_default_stay_as_they_are() -> None:
    with Graph(":memory:", [Shop, Knows]) as g:
        asked = g.out("a", Knows).where(field("rating") == 1)._question.filter
        assert asked == Compare("=", attribute("rating"), Value({"N": "1"}))


@pytest.mark.parametrize(
    "calculate",
    [
        lambda it: it * 2,
        lambda it: 2 * it,
        lambda it: it / 2,
        lambda it: 2.5 / it,
        lambda it: it // 2,
        lambda it: 2 // it,
        lambda it: it % 2,
        lambda it: Decimal(2) % it,
        lambda it: it**2,
        lambda it: 2**it,
        lambda it: pow(it, 2, 3),
        lambda it: 2 - it,
        lambda it: 2 + it,
    ],
)
def test_arithmetic_that_no_update_does_is_refused(calculate: Any) -> None:
    with pytest.raises(InvalidValue, match=r"can only be added to or subtracted from, as by field\('visits'\) \+ 1"):
        calculate(field("visits"))
