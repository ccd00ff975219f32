"""Nodes that share a partition: what is whose, and what cannot work."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjoin import AdjacencyList, Count, Edge, Graph, Index, Indexed, InvalidKey, InvalidModel, Keys, Node, Unique
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.layouts.keys import Quoting, Template, delimiters, parse_template


class Customer(Node):
    id: str
    name: str = ""


class Order(Node, key=("customer", "number")):
    customer: str
    number: int
    code: Annotated[str | None, Unique()] = None
    state: Annotated[str | None, Indexed()] = None


class Product(Node):
    id: str


class Country(Node):
    id: str


class Contains(Edge[Order, Product]):
    amount: int = 1


class Gift(Edge[Order, Order], label="GIFT"):
    pass


class Knows(Edge[Customer, Customer]):
    pass


MODELS: list[Any] = [Customer, Order, Product, Country, Contains, Gift, Knows]
KEYS: dict[type[Any], Keys] = {
    Customer: Keys(partition="c#{id}", sort="c"),
    Order: Keys(partition="c#{customer}", sort="o#{number}"),
    Country: Keys(partition="COUNTRIES", sort="{id}"),
}
SHOP = AdjacencyList(keys=KEYS)


def bound(layout: Layout = SHOP, models: list[Any] = MODELS, tenant: str | None = None) -> BoundLayout:
    return Graph(":memory:", models, layout, tenant=tenant)._layout


def keys(item: Any, *names: str) -> list[str]:
    return [item[name]["S"] for name in names]


def test_keys_and_node_keys() -> None:
    layout = bound()
    order, country = layout.schema.node(Order), layout.schema.node(Country)
    assert keys(layout.node_key(order, ("C1", 7)), "PK", "SK") == ["c#C1", "o#7"]
    assert layout.node_text(order, ("C1", 7)) == "c#C1##o#7"
    assert layout.id_in(order, "c#C1##o#7") == ("C1", 7)
    assert keys(layout.node_key(country, "CH"), "PK", "SK") == ["COUNTRIES", "CH"]
    assert layout.node_text(country, "CH") == "COUNTRIES##CH"
    assert layout.node_text(layout.schema.node(Customer), "C1") == "c#C1"
    (item,) = layout.items(Contains(source=("C1", 7), target="P1"))
    assert keys(item, "PK", "SK", "GSI1PK", "GSI1SK") == [
        "c#C1",
        "o#7#CONTAINS#PRODUCT#P1",
        "PRODUCT#P1",
        "CONTAINS#c#C1##o#7",
    ]
    (item,) = layout.items(Gift(source=("C1", 7), target=("C2", 8)))
    assert keys(item, "PK", "SK", "GSI1PK", "GSI1SK") == [
        "c#C1",
        "o#7#GIFT#c#C2##o#8",
        "c#C2##o#8",
        "GIFT#c#C1##o#7",
    ]
    for wrong in ("c#C1", "c#C1##o#07", "c#C1##o#", "c#C1#o#7", "c#C1##o#7#x"):
        with pytest.raises(InvalidKey, match="is not the key of a Order"):
            layout.id_in(order, wrong)


def test_the_class_of_an_item_is_told_by_both_keys() -> None:
    layout = bound()
    for partition, sort, name in [
        ("c#C1", "c", "Customer"),
        ("c#C1", "o#7", "Order"),
        ("c#C1", "o#07", None),
        ("c#C1", "o#7#CONTAINS#PRODUCT#P1", "Contains"),
        ("c#C1", "KNOWS#c#C2", "Knows"),
        ("c#C1", "x", None),
        ("COUNTRIES", "CH", "Country"),
        ("COUNTRIES", "", None),
        ("COUNTRIES", "a#b", None),
    ]:
        kind = layout.kind_of({"PK": {"S": partition}, "SK": {"S": sort}})
        assert getattr(kind, "name", None) == name, (partition, sort)


def test_edges_are_one_stretch_of_the_partition() -> None:
    layout = bound()
    contains = layout.schema.edge(Contains)
    stretch = layout.out(contains, ("C1", 7))
    condition = stretch.condition()
    assert condition is not None
    assert (stretch.partition, condition.operator, condition.operands) == (
        "c#C1",
        "begins_with",
        ({"S": "o#7#CONTAINS#PRODUCT#"},),
    )
    # Every item of that stretch is an edge of the class, so nothing is filtered and the service counts them itself.
    assert stretch.access.exclusive
    within = stretch.within({"target": "P1"}).condition()
    assert within is not None
    assert (within.operator, within.operands) == ("=", ({"S": "o#7#CONTAINS#PRODUCT#P1"},))
    own = layout.collection(layout.schema.node(Order), ("C1", 7), arriving=False)
    condition = own.condition()
    assert condition is not None
    assert (own.partition, condition.operands) == ("c#C1", ({"S": "o#7"},))
    assert layout.into(layout.schema.edge(Gift), ("C2", 8)).partition == "c#C2##o#8"


def test_edges_that_do_not_lie_together_are_filtered() -> None:
    own = Keys(sort="{source.number}#{target.id}")
    layout = bound(
        AdjacencyList(keys={**KEYS, Order: Keys(partition="c#{customer}", sort="o|{number}"), Contains: own})
    )
    contains = layout.schema.edge(Contains)
    assert not layout.out(contains, ("C1", 7)).access.exclusive
    assert layout.collection(contains.source, ("C1", 7), arriving=False).condition() is None


NAMES = st.text(st.sampled_from("#|%=oc12\0é") | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
IDS = st.tuples(NAMES, st.integers(-99, 10**30))
PLACES = [(escape, tenant) for escape in (False, True) for tenant in (None, "t")]


@cache
def bound_as(escape: bool, tenant: str | None) -> BoundLayout:
    return bound(AdjacencyList(keys=KEYS, escape=escape), tenant=tenant)


@given(st.sampled_from(PLACES), IDS, IDS, NAMES)
def test_every_node_has_its_own_keys(place: tuple[bool, str | None], one: Any, other: Any, country: str) -> None:
    layout = bound_as(*place)
    kinds = [layout.schema.node(model) for model in (Order, Order, Customer, Country)]
    ids = [one, other, one[0], country]
    try:
        found = [layout.node_key(kind, id) for kind, id in zip(kinds, ids, strict=True)]
    except InvalidKey:
        assume(False)
    texts = [layout.node_text(kind, id) for kind, id in zip(kinds, ids, strict=True)]
    assert len({*texts}) == len({tuple(map(str, each.values())) for each in found}) == (3 if one == other else 4)
    for kind, id, key, text in zip(kinds, ids, found, texts, strict=True):
        assert layout.kind_of(key) is kind
        assert layout.text_of(kind, key) == text
        assert layout.id_in(kind, text) == id
        assert not layout.is_bookkeeping(key)
        beside = layout.ledgers.marker_key(text)
        assert layout.is_bookkeeping(beside)
        assert layout.ledgers.node_beside(beside) == text


@given(st.sampled_from(PLACES), IDS, IDS, NAMES)
def test_every_edge_names_its_source(place: tuple[bool, str | None], one: Any, other: Any, product: str) -> None:
    layout = bound_as(*place)
    edges: list[Any] = [Contains(source=one, target=product), Gift(source=one, target=other)]
    for edge in edges:
        try:
            (item,) = layout.items(edge)
        except InvalidKey:
            assume(False)
        kind = layout.schema.edge(type(edge))
        assert layout.kind_of(item) is kind
        assert layout.read(item) == edge
        assert layout.ends(kind, item) == (
            layout.node_text(kind.source, edge.source),
            layout.node_text(kind.target, edge.target),
        )


@given(st.lists(st.sampled_from(["o", "#", "|", "x#", "{a}", "{b}", "{c}"]), min_size=1, max_size=5), st.data())
def test_templates_that_are_apart_never_meet(pieces: list[str], data: st.DataObject) -> None:
    """No key of another template begins with the text up to the first part that is not known."""
    other = data.draw(st.lists(st.sampled_from(["o", "#", "|", "x#", "{a}", "{b}", "{c}"]), min_size=1, max_size=5))
    quoting = Quoting(delimiters([["#"], ["|"]]) | {"|"}, escape=True)
    try:
        mine, theirs = (Template("Thing", parse_template("".join(each)), quoting) for each in (pieces, other))
    except InvalidModel:
        assume(False)
    values = st.text("ox#|%", max_size=3)
    known = data.draw(st.sets(st.sampled_from("abc")))
    start, _ = mine.start({name: data.draw(values) for name in known})
    key = theirs.render({name: data.draw(values) for name in "abc"})
    if mine.is_apart(known, [theirs]):
        assert not key.startswith(start)


# --- what cannot work --------------------------------------------------------------------------


def refused(message: str, own: dict[type[Any], Keys], models: list[Any] = MODELS, **options: Any) -> None:
    with pytest.raises(InvalidModel, match=message):
        bound(AdjacencyList(keys={**KEYS, **own}, **options), models)


class Profile(Node):
    id: str


class Settings(Node):
    id: str
    email: Annotated[str | None, Unique()] = None


class Follows(Edge[Settings, Profile]):
    pass


def test_keys_that_could_be_equal_are_refused() -> None:
    refused("Customer and Product can have the same partition key", {Product: Keys("c#{id}", "{id}")})
    refused("of Knows can be .* the sort key of a Order", {Order: Keys("c#{customer}", "KNOWS#c#{number}")})
    refused(
        "must begin with the rest of the id of its source; begin the template with {source.number}",
        {Contains: Keys(sort="CONTAINS#{target.id}")},
    )
    refused("must begin with the rest", {Contains: Keys(sort="CONTAINS#{target.id}#{source.number}")})
    refused("must begin with the rest", {}, edge="{label}#{target}")
    refused(
        "is not the key c#{customer}##o#{number} of its target Order",
        {Gift: Keys(reverse_partition="c#{target.customer}#o#{target.number}")},
    )
    refused("can be '#DELETING'", {Country: Keys("COUNTRIES", "#{id}")})
    refused(
        "can have the same key .* in the partition",
        {
            Contains: Keys(sort="o#{source.number}#X#{target.id}#{amount}"),
            Gift: Keys(sort="o#{source.number}#X#{target.customer}#{target.number}"),
        },
    )


def test_two_nodes_of_one_id() -> None:
    """A node key that two classes could have is refused only if both have edges, which it would mix up."""
    own: dict[type[Any], Keys] = {Profile: Keys("u#{id}", "profile"), Settings: Keys("u#{id}", "settings")}
    layout = AdjacencyList(keys=own)
    with Graph(":memory:", [Profile, Settings], layout) as g:
        g.put_many([Profile(id="1"), Settings(id="1", email="a")])
        assert g.get(Settings, email="a") == Settings(id="1", email="a")
        assert g.delete(Profile, "1")
        assert g.get(Settings, "1") == Settings(id="1", email="a")
    with pytest.raises(
        InvalidModel, match=r"Profile and Settings can have the same node key u#{id}, and both have edges"
    ):
        bound(layout, [Profile, Settings, Follows])


def test_an_inverted_index_over_a_shared_partition() -> None:
    layout = AdjacencyList(
        keys={
            Order: Keys("c#{customer}", "o#{number}"),
            Contains: Keys(sort="o#{source.number}#p#{target.id}", reverse_partition="PRODUCT#{target.id}"),
        },
        reverse=Index("GSI1", "GSI1PK", "PK"),
    )
    found = bound(layout, [Order, Product, Contains])
    (item,) = found.items(Contains(source=("C1", 7), target="P1"))
    assert keys(item, "PK", "SK", "GSI1PK") == ["c#C1", "o#7#p#P1", "PRODUCT#P1"]
    assert found.read(item) == Contains(source=("C1", 7), target="P1")


def test_a_count_needs_its_node_told_apart() -> None:
    class Basket(Node, key=("shop", "number")):
        shop: str
        number: int
        lines: Annotated[int, Count("Line")] = 0

    class Line(Edge[Basket, Product]):
        pass

    layout = AdjacencyList(keys={Basket: Keys("s#{shop}", "{number}")})
    with Graph(":memory:", [Basket, Product, Line], layout) as g:
        g.put_many([Basket(shop="s", number=number) for number in (1, 10)])
        g.put_many(
            [Line(source=("s", 1), target="a"), Line(source=("s", 10), target="a"), Line(source=("s", 10), target="b")]
        )
        g.maintain(once=True)
        assert [basket and basket.lines for basket in g.get_many(Basket, [("s", 1), ("s", 10)])] == [1, 2]
