"""What writes are made of, each part by itself: actions on an item, conditions for edges with marks, what misfits."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    ConditionFailed,
    Edge,
    Graph,
    Immutable,
    Index,
    InvalidItem,
    InvalidRequest,
    InvalidValue,
    Keys,
    Node,
    NotFound,
    Version,
    field,
)
from adjoin.expressions import Action, Add, Compare, Exists, Not, Or, Remove, Set, Value, all_of, attribute
from adjoin.layouts.interface import DELETING
from adjoin.plans.deletion import UNMARKED, Neighbourhood, _transactions
from adjoin.plans.managed_fields import refuse_changed
from adjoin.plans.steps.batches import acted
from adjoin.plans.steps.conditions import initial
from adjoin.plans.steps.predicates import holds
from adjoin.plans.transaction import Buffer
from adjoin.plans.update import identified, misfits
from adjoin.plans.versions import Seen, as_seen
from adjoin.plans.write import relieved
from adjoin.runner import run
from adjoin.units import MAX_TRANSACTION_SIZE


@pytest.mark.parametrize(
    ("item", "action", "after"),
    [
        ({}, Set(attribute("a"), Value({"S": "x"})), {"a": {"S": "x"}}),
        ({"a": {"S": "x"}}, Set(attribute("a"), Value({"N": "1"})), {"a": {"N": "1"}}),
        # What another attribute holds is not known here.
        ({"a": {"S": "x"}}, Set(attribute("b"), attribute("a")), {"a": {"S": "x"}}),
        ({"a": {"S": "x"}, "b": {"N": "1"}}, Remove(attribute("a")), {"b": {"N": "1"}}),
        ({}, Remove(attribute("a")), {}),
        ({}, Add(attribute("a"), {"N": "2"}), {"a": {"N": "2"}}),
        ({"a": {"N": "1.5"}}, Add(attribute("a"), {"N": "-2"}), {"a": {"N": "-0.5"}}),
        ({}, Add(attribute("a"), {"SS": ["y", "x"]}), {"a": {"SS": ["x", "y"]}}),
        ({"a": {"SS": ["z", "x"]}}, Add(attribute("a"), {"SS": ["y", "x"]}), {"a": {"SS": ["x", "y", "z"]}}),
        ({"b": {"N": "1"}}, Add(attribute("a"), {"BS": ["eA=="]}), {"b": {"N": "1"}}),
    ],
)
def test_an_item_after_an_action(item: Any, action: Action, after: Any) -> None:
    before = dict(item)
    assert acted(item, [action]) == after
    assert item == before, "what was read stays as it was"


class Person(Node):
    id: str
    size: int = 0
    limited: Annotated[int, Field(ge=1)] = 1
    anything: Any = None
    owner: Annotated[str | None, Immutable()] = None


class Knows(Edge[Person, Person]):
    since: int = 0


MARK = {"SS": ["token:PERSON#a"]}
SINCE = Compare("=", attribute("since"), Value({"N": "1"}))


def test_conditions_for_an_edge_with_a_mark() -> None:
    """A visible edge must fulfil the rest. A hidden one counts as absent, as long as its mark stays the same."""
    with Graph(":memory:", [Person, Knows]) as g:
        layout = g._layout
        absent, hidden = Not(layout.present), Compare("=", attribute(DELETING), Value(MARK))
        gone = Or((absent, hidden))
        for wanted, shown, not_shown in (
            (UNMARKED, None, gone),
            (all_of(UNMARKED, SINCE), SINCE, None),
            (all_of(SINCE, UNMARKED, Not(Exists(attribute("x")))), all_of(SINCE, Not(Exists(attribute("x")))), None),
            (all_of(UNMARKED, Not(SINCE)), Not(SINCE), gone),
            (absent, None, gone),
            (all_of(absent, UNMARKED), None, gone),
        ):
            assert wanted is not None
            assert relieved(layout, wanted, MARK, is_shown=True) == shown
            assert relieved(layout, wanted, MARK, is_shown=False) == not_shown


def test_fields_that_fail_their_conditions_although_they_can_be_read() -> None:
    with Graph(":memory:", [Person, Knows]) as g:
        layout = g._layout

        def found(changes: dict[str, Any], **stored: Any) -> list[str]:
            identity, rest = identified(layout, Person, ("a",), changes)
            return misfits(layout, identity, rest, {**identity.keys[0], **stored})

        fitting = {"size": {"N": "5"}, "limited": {"N": "2"}, "anything": {"L": []}}
        assert found({"size": 3}, **fitting) == []
        # Another program wrote a text, which is read as a number.
        assert found({"limited": 3}, **fitting | {"size": {"S": "5"}}) == ["size"]
        assert found({"size": field("size") + 1}, **fitting | {"size": {"S": "5"}}) == ["size"]
        # What is replaced need not fit.
        assert found({"size": 3}, **fitting | {"size": {"S": "5"}}) == []
        with pytest.raises(InvalidItem):
            found({"size": 3}, **fitting | {"limited": {"N": "0"}})


def test_an_immutable_field_that_has_another_value() -> None:
    with Graph(":memory:", [Person, Knows]) as g:
        kind = g._layout.schema.node(Person)
        ann, none = {"owner": {"S": "ann"}}, {"size": {"N": "1"}}
        for item, there in ((ann, None), (ann, none), (ann, ann), (none, none), (none, None)):
            refuse_changed(g._layout, kind, item, there, "Person 'a'")
        for item in (none, {"owner": {"S": "bob"}}):
            with pytest.raises(
                InvalidValue,
                match=r"^Person.owner is immutable, and Person 'a' already has another value; put it as it is stored$",
            ):
                refuse_changed(g._layout, kind, item, ann, "Person 'a'")


class Plain(Node):
    id: str
    version: Annotated[int, Version()] = 3


class Made(Node):
    id: str
    version: Annotated[int, Version()] = Field(default_factory=lambda: 7)


class Required(Node):
    id: str
    version: Annotated[int, Version()]


@pytest.mark.parametrize(("model", "version"), [(Plain, 3), (Made, 7), (Required, 0)])
def test_the_first_version(model: Any, version: int) -> None:
    with Graph(":memory:", [model]) as g:
        assert initial(g._layout.schema.node(model)) == version


class Item(Node):
    id: Decimal


class Holds(Edge[Person, Item]):
    pass


@pytest.mark.parametrize(
    ("predicate", "is_so"),
    [
        (field("target") == 7, True),
        (field("target") == Decimal(7), True),
        (field("target") == "7", True),
        (field("target.id") == "7", True),
        (field("target").is_in(["6", "7"]), True),
        (field("target") == "8", False),
        (field("target") == None, False),  # noqa: E711
        (field("target") > "10", False),
    ],
)
def test_an_end_is_compared_as_the_id_that_it_is(predicate: Any, is_so: bool) -> None:
    with Graph(":memory:", [Person, Item, Holds]) as g:
        edge: Any = Holds(source="a", target=Decimal(7))
        assert holds(g._layout.schema.edge(Holds), predicate, edge) is is_so


class Versioned(Edge[Person, Person]):
    version: Annotated[int, Version()] = 0


def test_a_put_holds_as_long_as_the_item_is_what_was_seen() -> None:
    with Graph(":memory:", [Person, Plain, Versioned]) as g:
        layout = g._layout
        edge, node = layout.schema.edge(Versioned), layout.schema.node(Plain)
        three = Compare("=", attribute("version"), Value({"N": "3"}))
        none = Not(Exists(attribute("version")))
        zero = Or((Compare("=", attribute("version"), Value({"N": "0"})), none))
        marked = Compare("=", attribute(DELETING), Value(MARK))
        for kind, seen, condition in (
            (edge, Seen(), Not(layout.present)),
            (edge, Seen(mark=MARK), marked),
            (edge, Seen(3), all_of(layout.present, three, UNMARKED)),
            (edge, Seen(0), all_of(layout.present, zero, UNMARKED)),
            (edge, Seen(3, MARK), all_of(layout.present, three, marked)),
            # A node has no marks. Its first version is 3, which it has also without one.
            (node, Seen(3), all_of(layout.present, Or((three, none)))),
            (node, Seen(), Not(layout.present)),
        ):
            assert as_seen(layout, kind, seen) == condition


def test_a_transaction_of_too_many_items_is_refused() -> None:
    with Graph(":memory:", [Person, Knows]) as g:
        for number in (100, 101):
            made = Buffer(g._layout)
            for each in range(number):
                made.put(Person(id=str(each)), None, None)
            if number == 100:
                run(made.commit(), g._store)
                continue
            with pytest.raises(
                InvalidRequest, match=r"^the transaction would have 101 items, but DynamoDB takes 100; split it$"
            ):
                run(made.commit(), g._store)
        assert g.count(Person) == 100


class Order(Node):
    id: str


class Line(Edge[Order, Person], key=("number",)):
    number: int
    amount: int = 1


def test_an_update_of_an_edge_whose_key_does_not_tell_its_target() -> None:
    """There is an edge with this key, but it leads elsewhere."""
    keys = Keys(sort="LINE#{number:03}", attributes={"person": "{target.id}"})
    layout = AdjacencyList(reverse=None, indexes=[Index("ByPerson", "person")], keys={Line: keys})
    with Graph(":memory:", [Order, Person, Line], layout) as g:
        g.put(Line(source="o", target="ann", number=1))
        with pytest.raises(
            NotFound, match=r"^there is no Line from 'o' to 'bob'; the edge with this key has other ends$"
        ):
            g.update(Line, "o", "bob", number=1, amount=5)
        with pytest.raises(ConditionFailed):
            g.update(Line, "o", "ann", number=1, amount=5, only_if=field("amount") == 7)
        with pytest.raises(NotFound, match="put it first"):
            g.update(Line, "o", "ann", number=2, amount=5)
        assert g.update(Line, "o", "ann", number=1, amount=5).amount == 5


@pytest.mark.parametrize(
    ("sizes", "most", "groups"),
    [
        ([], 3, []),
        ([1, 1, 1], 3, [[0, 1, 2]]),
        ([1, 1, 1, 1], 3, [[0, 1, 2], [3]]),
        ([MAX_TRANSACTION_SIZE - 100], 3, [[0]]),
        # Each grows by ten bytes, and a transaction may be just full.
        ([MAX_TRANSACTION_SIZE - 30, 10], 3, [[0, 1]]),
        ([MAX_TRANSACTION_SIZE - 30, 11], 3, [[0], [1]]),
        ([11, MAX_TRANSACTION_SIZE - 30, 1], 3, [[0], [1, 2]]),
        ([MAX_TRANSACTION_SIZE, MAX_TRANSACTION_SIZE, 1], 3, [[0], [1], [2]]),
    ],
)
def test_how_many_edges_a_transaction_takes(sizes: list[int], most: int, groups: list[list[int]]) -> None:
    places = [("a", str(number)) for number in range(len(sizes))]
    around = Neighbourhood(sizes=dict(zip(places, sizes, strict=True)))
    found = list(_transactions(around, places, 10, most))
    assert found == [[places[number] for number in group] for group in groups]


def test_an_edge_that_an_index_no_longer_shows_is_known_from_the_look_before() -> None:
    one, two, three = (("P", name) for name in "123")
    held = {name: Exists(attribute(name)) for name in "ab"}
    before = Neighbourhood(None, {one: {"x": {"N": "1"}}, two: {}}, {one: 5, two: 6}, own={one}, held={one: held["a"]})
    now = Neighbourhood({"y": {"N": "2"}}, {one: {}, three: {}}, {one: 7, three: 8}, own={three}, held={one: held["b"]})
    both = now.also(before)
    assert both.node == now.node
    assert both.edges == {one: {}, two: {}, three: {}}
    assert both.sizes == {one: 7, two: 6, three: 8}
    assert (both.own, both.held) == ({one, three}, {one: held["b"]})
