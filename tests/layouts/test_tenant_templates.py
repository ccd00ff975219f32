"""`{tenant}` in key templates: the keys of a table that names its tenants, and no way from one tenant to another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    Child,
    Count,
    Edge,
    Graph,
    Index,
    InvalidKey,
    InvalidModel,
    Keys,
    Node,
    Unique,
    aws,
    field,
)
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.stores.sqlite import SQLiteStore


class User(Node):
    id: str
    email: Annotated[str | None, Unique()] = None
    follows: Annotated[int, Count("Follows")] = 0


class Post(Node):
    id: str
    state: str = "new"


class Follows(Edge[User, Post]):
    pass


MODELS: list[Any] = [User, Post, Follows]
LAYOUT = AdjacencyList(
    table="Saas",
    indexes=[Index("ByState", "GSI2PK", "GSI2SK")],
    keys={
        User: Keys("TENANT#{tenant}#USER#{id}", "PROFILE"),
        Post: Keys("TENANT#{tenant}#POST#{id}", "POST", indexes={"ByState": ("TENANT#{tenant}#{state}", "{id}")}),
        Follows: Keys(sort="FOLLOWS#{target.id}", reverse_partition="TENANT#{tenant}#POST#{target.id}"),
    },
)


@pytest.fixture
def store() -> Iterator[SQLiteStore]:
    opened = SQLiteStore(":memory:")
    yield opened
    opened.close()


def test_keys() -> None:
    layout = bound_layout(MODELS, LAYOUT, tenant="acme")
    (user,) = layout.items(User(id="1"))
    assert (user["PK"], user["SK"]) == ({"S": "TENANT#acme#USER#1"}, {"S": "PROFILE"})
    (post,) = layout.items(Post(id="2"))
    assert (post["GSI2PK"], post["GSI2SK"]) == ({"S": "TENANT#acme#new"}, {"S": "2"})
    (edge,) = layout.items(Follows(source="1", target="2"))
    assert [edge[name]["S"] for name in ("PK", "SK", "GSI1PK")] == [
        "TENANT#acme#USER#1",
        "FOLLOWS#2",
        "TENANT#acme#POST#2",
    ]


def test_tenants_do_not_see_each_other(store: SQLiteStore) -> None:
    graphs = {name: Graph(store, MODELS, LAYOUT, tenant=name) for name in ("acme", "ac")}
    for name, g in graphs.items():
        g.put_many([User(id="1", email=f"{name}@x"), Post(id="2"), Follows(source="1", target="2")])
        assert g.get(User, email=f"{name}@x") is not None
    for name, g in graphs.items():
        other = "ac" if name == "acme" else "acme"
        assert g.get(User, email=f"{other}@x") is None
        assert [each.email for each in g.scan(User)] == [f"{name}@x"]
        assert len(list(g.into(Post.ref("2"), Follows))) == 1
        assert [each.id for each in g.find(Post, field("state") == "new")] == ["2"]
        assert list(g.scan().others) == []


def test_a_graph_without_a_tenant_maintains_all_and_reads_none(store: SQLiteStore) -> None:
    with Graph(store, MODELS, LAYOUT) as whole:
        for name in ("acme", "ac"):
            whole.for_tenant(name).put_many([User(id="1"), Post(id="2"), Follows(source="1", target="2")])
        whole.maintain(once=True)
        assert [whole.for_tenant(name).get(User, "1").follows for name in ("acme", "ac")] == [1, 1]  # type: ignore[union-attr]
        whole.rebuild()
        audit = whole.verify()
        assert (audit.tenants, audit.faults) == (("ac", "acme"), 0)
        assert list(whole.scan(User)) == []
        with pytest.raises(InvalidKey, match="use for_tenant"):
            whole.put(User(id="1"))
        with pytest.raises(InvalidKey, match="use for_tenant"):
            whole.get(User, "1")


class Vehicle(Node, discriminator="kind"):
    id: str
    kind: str
    drivers: Annotated[int, Count("Drives")] = 0
    trips: Annotated[int, Count("Trip")] = 0


class Car(Vehicle):
    kind: Literal["car"] = "car"


class Truck(Vehicle):
    kind: Literal["truck"] = "truck"


class Trip(Child[Vehicle], key=("number",)):
    number: int


class Driver(Node):
    id: str


class Drives(Edge[Driver, Vehicle | Post]):
    pass


def test_a_family_has_the_keys_of_its_head(store: SQLiteStore) -> None:
    """Its classes need no templates of their own that name the tenant."""
    keys: dict[type[Any], Keys] = {
        Driver: Keys("TENANT#{tenant}#DRIVER#{id}", "PROFILE"),
        Post: Keys("TENANT#{tenant}#POST#{id}", "POST"),
        Vehicle: Keys("TENANT#{tenant}#VEHICLES", "V#{id}"),
        Trip: Keys("TENANT#{tenant}#TRIPS#{parent.id}", "{number:04}"),
        Drives: Keys(sort="D#{target}", indexes={"Drivers": ("TENANT#{tenant}#D#{target}#{shard}", "{source.id}")}),
    }
    layout = AdjacencyList(table="Saas", reverse=None, indexes=[Index("Drivers", "DPK", "DSK", shards=2)], keys=keys)
    with Graph(store, [Driver, Post, Vehicle, Car, Truck, Trip, Drives], layout) as whole:
        for name, model in (("acme", Car), ("ac", Truck)):
            g = whole.for_tenant(name)
            g.put_many([Driver(id="1"), model(id="v"), Trip(parent="v", number=1)])
            g.connect(Drives, "1", Vehicle.ref("v"))
        whole.maintain(once=True)
        for name, model in (("acme", Car), ("ac", Truck)):
            assert list(whole.for_tenant(name).scan(Vehicle)) == [model(id="v", drivers=1, trips=1)]
        audit = whole.verify(threads=1)
        assert (audit.tenants, audit.faults) == (("ac", "acme"), 0)


TEXTS = st.text(st.sampled_from("aUSER#%T-é"), min_size=1, max_size=8)
NAMES = TEXTS.filter(lambda text: "#" not in text)


@given(NAMES, NAMES, TEXTS, TEXTS, st.booleans())
def test_no_id_reaches_another_tenant(one: str, other: str, id: str, other_id: str, escape: bool) -> None:
    bound = bound_layout(MODELS, AdjacencyList(keys=LAYOUT.keys, indexes=LAYOUT.indexes, escape=escape))
    kinds = (bound.schema.node(User), bound.schema.node(Post))
    keys: list[tuple[Any, ...]] = []
    for tenant, text in ((one, id), (other, other_id)):
        layout = bound.for_tenant(tenant)
        for kind in kinds:
            try:
                key = layout.node_key(kind, text)
            except InvalidKey:
                continue
            assert bound.tenant_in(key) == tenant
            keys.append((key["PK"]["S"], key["SK"]["S"], tenant, kind.name, text))
            for reader in (one, other):
                found = bound.for_tenant(reader)
                is_own = not found.is_bookkeeping(key) and found.kind_of(key) is not None
                assert is_own == (reader == tenant)
    assert len({key[:2] for key in keys}) == len({key[2:] for key in keys})


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({User: Keys("TENANT#{tenant}#USER#{id}")}, "partition key of Post does not name the tenant"),
        ({User: Keys("T#{tenant}#U#{id}"), Post: Keys("X#{tenant}#P#{id}")}, "does not begin with"),
        ({User: Keys("U#{id}#{tenant}"), Post: Keys("P#{id}#{tenant}")}, "in another place"),
        ({User: Keys("T#{tenant}{id}"), Post: Keys("T#{tenant}{id}")}, "in another place"),
        ({User: Keys("T#{tenant}#U#{id}", "{tenant}"), Post: Keys("T#{tenant}#P#{id}")}, "in another place"),
        ({User: Keys(sort="{tenant}")}, "in another place"),
    ],
)
def test_templates_that_are_refused(keys: Any, reason: str) -> None:
    with pytest.raises(InvalidModel, match=reason):
        Graph(":memory:", MODELS, AdjacencyList(keys=keys), tenant="acme")


def test_a_filter_of_the_stream_lets_all_tenants_pass() -> None:
    keys = {
        User: Keys("T#{tenant}#U#{id}", "T#{tenant}#U#{id}"),
        Post: Keys("T#{tenant}#P#{id}", "T#{tenant}#P#{id}"),
        Follows: Keys(sort="T#{tenant}#P#{target.id}"),
    }
    layout = AdjacencyList(reverse=Index("Inverted", "SK"), keys=keys)  # type: ignore[arg-type]
    (edge,) = bound_layout(MODELS, layout, tenant="acme").items(Follows(source="1", target="2"))
    assert edge == {"PK": {"S": "T#acme#U#1"}, "SK": {"S": "T#acme#P#2"}}
    assert aws.stream_filter(MODELS, layout) is None
    assert aws.stream_filter(MODELS, layout, tenant="acme") is not None


@pytest.mark.parametrize(
    ("index", "given"),
    [(Index("ByState", "GSI2PK"), "{state}"), (Index("ByState", "GSI2PK", "GSI2SK"), ("{state}", "{id}"))],
)
def test_an_index_that_tenants_would_share_is_refused(index: Index, given: Any) -> None:
    keys: dict[type[Any], Keys] = {
        User: Keys("TENANT#{tenant}#USER#{id}"),
        Post: Keys("TENANT#{tenant}#POST#{id}", indexes={"ByState": given}),
        Follows: Keys(reverse_partition="TENANT#{tenant}#POST#{target.id}"),
    }
    with pytest.raises(InvalidModel, match=r"'\{state\}' of Post does not begin with"):
        bound_layout(MODELS, AdjacencyList(keys=keys, indexes=[index]), tenant="acme")


@pytest.mark.parametrize(
    "follows",
    [
        Keys(sort="F#{tenant}#{target.id}"),
        Keys(reverse_sort="F#{tenant}"),
        Keys(indexes={"ByState": ("TENANT#{tenant}#f", "F#{tenant}")}),
        Keys(attributes={"more": "{tenant}"}),
    ],
)
def test_a_tenant_within_another_key_is_refused(follows: Keys) -> None:
    layout = AdjacencyList(indexes=LAYOUT.indexes, keys={**LAYOUT.keys, Follows: follows})
    with pytest.raises(InvalidModel, match="names the tenant in another place than the beginning of a partition key"):
        bound_layout(MODELS, layout, tenant="acme")


def test_a_sort_key_that_an_index_turns_round_begins_with_the_tenant() -> None:
    """One such index is enough, whatever others there are."""
    inverted, other = Index("Inverted", "SK", "PK"), Index("ByState", "GSI2PK", "GSI2SK")
    keys = {
        Post: Keys(
            "TENANT#{tenant}#POST#{id}", "TENANT#{tenant}#POST", indexes={"ByState": ("TENANT#{tenant}#s", "{id}")}
        )
    }
    for indexes in ([inverted, other], [other, inverted]):
        layout = bound_layout([Post], AdjacencyList(reverse=None, indexes=indexes, keys=keys), tenant="acme")
        (item,) = layout.items(Post(id="1"))
        assert [item[name]["S"] for name in ("PK", "SK")] == ["TENANT#acme#POST#1", "TENANT#acme#POST"]
