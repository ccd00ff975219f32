"""Items beside those of nodes and edges: whose they are, what they are for, and which go with an item."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Child,
    Edge,
    Expires,
    Indexed,
    InvalidKey,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    Ref,
    Unique,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import OWNER, Layout, Satellite
from adjoin.layouts.own_items import MAX_ELEMENTS
from adjoin.schema import Schema
from adjoin.values import Item


class User(Node):
    id: str
    name: Annotated[str | None, Indexed()] = None
    age: Annotated[int | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None
    phone: Annotated[int | None, Unique()] = None
    tags: Annotated[set[str], Indexed(elements=True)] = set()
    until: Annotated[dt.datetime | None, Expires()] = None


class Team(Node):
    id: str


class Leads(Edge[User, Team], one_source=True, one_target=True):
    since: Annotated[int, Indexed()] = 0
    rank: Annotated[int | None, Indexed()] = None


class Married(Edge[User, User], symmetric=True, one_target=True):
    pass


class Owns(Edge[User | Team, Team], one_source=True):
    pass


MODELS: list[Any] = [User, Team, Leads, Married, Owns]
UNTIL = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
ANN = User(id="a", name="Ann", age=40, email="a@b", phone=7, tags={"x", "y"}, until=UNTIL)
ENTITIES: list[Any] = [
    ANN,
    User(id="#=", name="Bob"),
    User(id="c"),
    Team(id="t"),
    Leads(source="a", target="t", rank=3),
    Leads(source="#=", target="u"),
    Married(source="b", target="a"),
    Married(source="a", target="a"),
    Owns(source=Ref(User, "a"), target="t"),
]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "own templates": AdjacencyList(keys={User: Keys("u/{id}", "user"), Team: Keys("t/{id}", "team")}, escape=True),
}
BOTH = pytest.mark.parametrize("tenant", [None, "acme"])
EACH = pytest.mark.parametrize("name", LAYOUTS)


def kind_of(layout: BoundLayout, entity: Any) -> Any:
    return layout.schema.edge(type(entity)) if isinstance(entity, Edge) else layout.schema.node(type(entity))


def stored(layout: BoundLayout, entity: Any) -> tuple[Any, tuple[Item, ...], list[Satellite]]:
    """The class of an entity, its items and its satellites."""
    kind, items = kind_of(layout, entity), layout.items(entity)
    return kind, items, layout.satellites(kind, items, entity.__dict__)


@EACH
@BOTH
def test_what_goes_with_an_item_is_what_was_put_beside_it(name: str, tenant: str | None) -> None:
    layout = LAYOUTS[name].bind(Schema(MODELS), tenant)
    for entity in ENTITIES:
        kind, items, satellites = stored(layout, entity)
        there = {repr(each.key): each for each in satellites if each.item is not None}
        # It is found from either item of a symmetric edge.
        for item in items:
            gone = layout.satellites_beside(kind, item)
            assert {repr(each.key) for each in gone} == there.keys()
            assert all(each.item is None and each.owner == there[repr(each.key)].owner for each in gone)
        assert not any(map(layout.is_bookkeeping, items))


@EACH
@BOTH
def test_what_is_beside_an_item_says_whose_it_is(name: str, tenant: str | None) -> None:
    layout = LAYOUTS[name].bind(Schema(MODELS), tenant)
    for entity in ENTITIES:
        kind, items, satellites = stored(layout, entity)
        keys = [layout.key_of(item) for item in items]
        for each in satellites:
            if each.item is None:
                continue
            assert layout.is_bookkeeping(each.item)
            assert layout.is_of_declared_field(kind, each.item)
            if OWNER not in each.item:
                assert layout.copied_key(each.item) in keys
                assert layout.found(kind, each.item) == layout.decode(
                    kind, items[keys.index(layout.copied_key(each.item))]
                )
                continue
            assert layout.claimed_by(each.item) == kind
            assert layout.key_texts(each.item)[0].startswith(layout.claim_start(kind))
            owner = each.item[OWNER]["S"]
            assert (each.owner, layout.owner_text(kind, layout.first_twin(keys))) == (owner, owner)
            if isinstance(entity, Edge):
                assert layout.edge_owning(owner) == layout.first_twin(keys)
            else:
                assert owner == layout.node_text(kind, entity.id)
        assert [layout.copied_key(item) for item in items] == keys, "an item of its own is no copy"


def plain(item: Item | None) -> str:
    return "" if item is None else " ".join(str(next(iter(value.values()))) for value in item.values())


def test_satellites_of_a_node() -> None:
    layout = AdjacencyList().bind(Schema(MODELS))
    _, _, satellites = stored(layout, ANN)
    assert [(*layout.key_texts(each.key), each.owner) for each in satellites] == [
        ("USER#a#=", "age##META", None),
        *(("USER#a#=", f"tags[]#{tag}##META", None) for tag in satellites_of_tags(satellites)),
        ("#=USER#email#a@b", "=", "USER#a"),
        ("#=USER#phone#p501.7", "=", "USER#a"),
    ]
    # What is claimed by a node that expires is free again when it has.
    assert [each.item["until"] for each in satellites if each.item and OWNER in each.item] == [{"N": "1893456000"}] * 2
    _, _, few = stored(layout, User(id="c"))
    assert [(layout.key_texts(each.key), each.item) for each in few] == [(("USER#c#=", "age##META"), None)]


def satellites_of_tags(satellites: list[Satellite]) -> list[str]:
    """A set has no order."""
    sorts = [each.key["SK"]["S"] for each in satellites]
    return [sort.split("#")[1] for sort in sorts if sort.startswith("tags[]#")]


@pytest.mark.parametrize(
    ("edge", "claims"),
    [
        (Leads(source="a", target="t"), ["#=LEADS#source#USER#a", "#=LEADS#target#TEAM#t"]),
        # It has no direction, and joins a node with itself once.
        (Married(source="b", target="a"), ["#=MARRIED#end#USER#b", "#=MARRIED#end#USER#a"]),
        (Married(source="a", target="a"), ["#=MARRIED#end#USER#a"]),
        (Owns(source=Ref(Team, "s"), target="t"), ["#=OWNS#target#TEAM#t"]),
    ],
)
def test_claims_of_edges(edge: Any, claims: list[str]) -> None:
    layout = AdjacencyList().bind(Schema(MODELS))
    _, _, satellites = stored(layout, edge)
    assert sorted(each.key["PK"]["S"] for each in satellites if each.owner is not None) == sorted(claims)


@pytest.mark.parametrize("owner", ["", "a", "x:ab", "0:ab", "2:ab", "3:ab", "-1:ab", "²:abc", ":ab"])
def test_a_claim_that_another_program_wrote_names_no_edge(owner: str) -> None:
    layout = AdjacencyList().bind(Schema(MODELS))
    assert layout.edge_owning(owner) is None
    assert layout.edge_owning("1:ab") == {"PK": {"S": "a"}, "SK": {"S": "b"}}


def test_what_a_stored_value_claims_need_not_be_valid() -> None:
    layout = AdjacencyList().bind(Schema(MODELS))
    kind = layout.schema.node(User)
    (item,) = layout.items(ANN)
    for changes, gone in (
        ({"email": {"NULL": True}, "phone": {"NULL": True}}, ["age##META", "tags"]),
        (
            {"age": {"S": "old"}, "email": {"S": "c@d"}},
            ["age##META", "tags", "#=USER#email#c@d", "#=USER#phone#p501.7"],
        ),
        # Elements that are none are in no index.
        ({"tags": {"N": "5"}}, ["age##META", "#=USER#email#a@b", "#=USER#phone#p501.7"]),
        ({"tags": {"NULL": True}, "age": {"NULL": True}}, ["#=USER#email#a@b", "#=USER#phone#p501.7"]),
    ):
        found = [layout.key_texts(each.key) for each in layout.satellites_beside(kind, {**item, **changes})]
        words = [
            "tags" if sort.startswith("tags[]#") else partition if sort == "=" else sort for partition, sort in found
        ]
        assert list(dict.fromkeys(words)) == gone, changes


def test_what_is_no_longer_declared_is_told() -> None:
    layout = AdjacencyList().bind(Schema(MODELS))
    user, leads = layout.schema.node(User), layout.schema.edge(Leads)
    claim: Item = {"PK": {"S": "#=USER#name#Ann"}, "SK": {"S": "="}, OWNER: {"S": "USER#a"}}
    assert not layout.is_of_declared_field(user, claim)
    assert layout.is_of_declared_field(user, {**claim, "PK": {"S": "#=USER#email#Ann"}})
    assert not layout.is_of_declared_field(leads, {**claim, "PK": {"S": "#=LEADS#end#USER#a"}})
    copy: Item = {"PK": {"S": "USER#a#="}, "SK": {"S": "email##META"}, "tags": {"SS": ["x"]}}
    assert not layout.is_of_declared_field(user, copy)
    assert layout.is_of_declared_field(user, {**copy, "SK": {"S": "age##META"}})
    assert layout.is_of_declared_field(user, {**copy, "SK": {"S": "tags[]#x##META"}})
    assert not layout.is_of_declared_field(user, {**copy, "SK": {"S": "tags[]#z##META"}})
    assert layout.claimed_by({**claim, "PK": {"S": "#=NOBODY#name#Ann"}}) is None
    assert layout.claimed_by({**claim, "PK": {"S": "#=TEAM#name#Ann"}}) is None, "a team claims nothing"


def test_there_are_not_too_many_elements() -> None:
    layout = AdjacencyList().bind(Schema(MODELS))
    most = User(id="a", tags={str(number) for number in range(MAX_ELEMENTS)})
    assert len(stored(layout, most)[2]) == 1 + MAX_ELEMENTS
    with pytest.raises(InvalidValue, match=f"^a User has {MAX_ELEMENTS + 1} different elements in tags; "):
        stored(layout, most.model_copy(update={"tags": {*most.tags, "one more"}}))


# --- where any text is an id -------------------------------------------------------------------


class Bare(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    city: Annotated[str, Indexed()] = ""


class Other(Node):
    id: str
    size: int = 0


class Sees(Edge[Other, Bare]):
    pass


class Part(Child[Bare]):
    id: str


APART = Keys("s#{target.id}", "s{source.id}")


@pytest.mark.parametrize(
    ("keys", "refused"),
    [
        ({}, []),
        # If the bare one is "OTHER", "OTHER#=" is the partition of what is beside it.
        ({Bare: Keys("{id}", "bare")}, ["Other"]),
        ({Bare: Keys("b/{id}", "bare")}, []),
        ({Bare: Keys("b#{id}", "bare")}, []),
        ({Bare: Keys("{id}", "bare"), Other: Keys("{id}", "other")}, []),
        ({Bare: Keys("{id}", "bare"), Other: Keys("o/{id}", "other")}, []),
        ({Bare: Keys("{id}", "bare"), Other: Keys("o#{id}", "other")}, ["Other"]),
        ({Bare: Keys("{id}", "bare"), Other: Keys("o#{id}#x", "other")}, []),
        (
            {Bare: Keys("{id}", "bare"), Other: Keys("o/{id}", "o"), Sees: Keys("s#{target.id}", "s{source.id}")},
            ["Sees"],
        ),
        ({Bare: Keys("s/{id}", "bare"), Other: Keys("o/{id}", "o"), Sees: Keys("s#{target.id}", "s{source.id}")}, []),
    ],
)
def test_ids_that_would_end_as_keys_of_adjoins_own(keys: dict[type[Any], Keys], refused: list[str]) -> None:
    layout = AdjacencyList(keys=keys, shared_ids=True).bind(Schema([Bare, Other, Sees]))
    found = []
    for entity in (Bare(id="="), Other(id="="), Sees(source="a", target="=")):
        try:
            items = layout.items(entity)
        except InvalidKey as error:
            if str(error).endswith("and adjoin's own items have keys that end so; choose another id"):
                found.append(type(entity).__name__)
        else:
            assert not any(map(layout.is_bookkeeping, items)), "it is not taken for one of adjoin's own"
    assert found == refused
    # Any other id is right.
    assert layout.items(Bare(id="==")) != layout.items(Bare(id="=a"))


def test_an_edge_that_names_no_nodes_has_claimed_none() -> None:
    bound = AdjacencyList().bind(Schema(MODELS))
    leads = bound.schema.edge(Leads)
    (item,) = bound.items(Leads(source="a", target="t"))
    assert len(bound.end_claims(leads, item)) == 2
    assert bound.end_claims(leads, {"PK": item["PK"], "SK": {"S": "LEADS#nobody"}}) == []


def test_what_is_beside_edges_in_partitions_of_their_own() -> None:
    """Their index copies are there: a key of a node that could be theirs is refused."""
    for own, refused in ((Keys("{target.id}", "s{source.id}"), True), (Keys("{source}", "s{target.id}"), False)):
        keys: dict[type[Any], Keys] = {Bare: Keys("b#{id}", "bare"), Sees: own}
        layout = AdjacencyList(keys=keys).bind(Schema([Bare, Other, Sees]))
        for model in (Bare, Other):
            assert layout.can_have(layout.schema.node(model), "=") is not refused
            assert layout.can_have(layout.schema.node(model), "x")


class Order(Node, key=("customer", "number")):
    customer: str
    number: int


class Odd(Node, key=("one", "two", "three")):
    one: str
    two: str
    three: str


def test_what_is_beside_nodes_that_share_a_partition() -> None:
    """It is under their node key, which is made of both keys."""
    keys: dict[type[Any], Keys] = {
        Order: Keys("c|{customer}", "o|{number}"),
        Odd: Keys("c|{one}##o|{two}#{three}", "odd"),
    }
    layout = AdjacencyList(keys=keys).bind(Schema([Order, Odd]))
    odd = layout.schema.node(Odd)
    assert layout.node_text(layout.schema.node(Order), ("C", 7)) == "c|C##o|7"
    assert not layout.can_have(odd, ("C", "7", "="))
    assert layout.can_have(odd, ("C", "7", "x"))
