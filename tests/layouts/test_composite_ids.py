"""Ids of several fields: one key for each id, and one id for each key."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    Edge,
    Expires,
    Graph,
    Index,
    Indexed,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    Unique,
    UnknownField,
    Version,
    field,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    stars: int = 0


class Reading(Node, key=("sensor", "at", "step")):
    sensor: UUID
    at: dt.datetime
    step: int


class Config(Node, key=()):
    theme: str = "light"


class Country(Node, key="code"):
    code: str


class User(Node, key=("id",)):
    id: str


class Fork(Edge[Repo, Repo]):
    at: int = 0


class Likes(Edge[User, Repo]):
    pass


class Uses(Edge[Repo, Config]):
    pass


class From(Edge[Repo, Country]):
    pass


MODELS: list[Any] = [Repo, Reading, Config, Country, User, Fork, Likes, Uses, From]
PARTED = AdjacencyList(keys={Repo: Keys(partition="r|{owner}|{name}", sort="r")})
WITHIN = AdjacencyList(keys={Repo: Keys(partition="o#{owner}", sort="r#{name}")})
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "two separators": PARTED,
    "two separators, escaped": AdjacencyList(keys=PARTED.keys, escape=True),
    "in two keys": WITHIN,
    "in two keys, escaped": AdjacencyList(keys=WITHIN.keys, escape=True),
}


def bound(layout: Layout | None = None, models: list[Any] = MODELS, tenant: str | None = None) -> BoundLayout:
    return Graph(":memory:", models, layout, tenant=tenant)._layout


def texts(item: Any) -> dict[str, str]:
    return {name: value["S"] for name, value in item.items()}


def test_the_default_keys() -> None:
    layout = bound()
    repo = Repo(owner="ann", name="a#b", stars=3)
    assert layout.items(repo) == ({"PK": {"S": "REPO#ann#a%23b"}, "SK": {"S": "#META"}, "stars": {"N": "3"}},)
    assert layout.items(Config(theme="dark")) == (
        {"PK": {"S": "CONFIG"}, "SK": {"S": "#META"}, "theme": {"S": "dark"}},
    )
    assert texts(layout.items(Fork(source=("ann", "x"), target=("bob", "y")))[0] | {"at": {"S": ""}}) == {
        "PK": "REPO#ann#x",
        "SK": "FORK#REPO#bob#y",
        "GSI1PK": "REPO#bob#y",
        "GSI1SK": "FORK#REPO#ann#x",
        "at": "",
    }
    assert texts(layout.items(Uses(source=("ann", "x"), target=()))[0]) == {
        "PK": "REPO#ann#x",
        "SK": "USES#CONFIG",
        "GSI1PK": "CONFIG",
        "GSI1SK": "USES#REPO#ann#x",
    }
    assert texts(layout.items(Country(code="CH"))[0]) == {"PK": "COUNTRY#CH", "SK": "#META"}


def test_an_id_of_one_field_is_its_value() -> None:
    layout = bound()
    assert layout.schema.node(Country).id("CH") == "CH"
    assert Country.ref(code="CH") == Country.ref("CH")
    assert User.ref(id="u") == User.ref("u")
    assert layout.node_key(layout.schema.node(User), "u") == {"PK": {"S": "USER#u"}, "SK": {"S": "#META"}}


def test_what_stands_for_an_id() -> None:
    kind = bound().schema.node(Repo)
    repo = Repo(owner="ann", name="x")
    given: list[Any] = [("ann", "x"), ["ann", "x"], repo, Repo.ref(("ann", "x")), Repo.ref(["ann", "x"])]
    for each in [*given, Repo.ref(owner="ann", name="x"), Repo.ref(name="x", owner="ann")]:
        assert kind.id(each) == ("ann", "x")
        assert Fork(source=each, target=each).source == ("ann", "x")
    at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    reading = bound().schema.node(Reading)
    assert reading.id((str(UUID(int=1)), "2024-01-01T00:00:00Z", "7")) == (UUID(int=1), at, 7)
    assert str(Repo.ref(("ann", "x"))) == "Repo(('ann', 'x'))"
    for wrong in ("ann", ("ann",), ("ann", "x", "y"), {"owner": "ann", "name": "x"}, 7):
        with pytest.raises(InvalidKey, match=r"the id of a Repo is \(owner, name\), got .*; pass a tuple"):
            kind.id(wrong)
    with pytest.raises(InvalidKey, match=r"does not fit Repo.name"):
        kind.id(("ann", None))
    with pytest.raises(InvalidKey, match=r"a Repo is needed, got User"):
        kind.id(User.ref("u"))
    with pytest.raises(InvalidKey, match=r"the id of a Repo is \(owner, name\), got owner; pass each of them"):
        Repo.ref(owner="ann")
    with pytest.raises(InvalidKey, match="pass only one of them"):
        Repo.ref(("ann", "x"), owner="ann")
    with pytest.raises(InvalidKey, match="needs at least one character"):
        bound().node_key(kind, ("ann", ""))


# --- distinct ids, distinct keys ---------------------------------------------------------------


ALPHABET = st.sampled_from("#|%=ab\0 ~/é") | st.characters(exclude_categories=["Cs"])
NAMES = st.text(ALPHABET, min_size=1, max_size=6)
IDS = st.tuples(NAMES, NAMES)


def keys_of(layout: BoundLayout, model: type[Any], id: Any) -> Any:
    """The key of a node; the example is dropped where the layout refuses the id."""
    try:
        return layout.node_key(layout.schema.node(model), id)
    except InvalidKey:
        assume(False)


PLACES = [(name, tenant) for name in sorted(LAYOUTS) for tenant in (None, "acme")]


@cache
def bound_as(name: str, tenant: str | None) -> BoundLayout:
    return bound(LAYOUTS[name], tenant=tenant)


@given(st.sampled_from(PLACES), IDS, IDS)
def test_every_id_has_its_own_key(name: Any, one: Any, other: Any) -> None:
    layout = bound_as(*name)
    kind = layout.schema.node(Repo)
    keys = [keys_of(layout, Repo, id) for id in (one, other)]
    node_keys = [layout.node_text(kind, id) for id in (one, other)]
    assert (keys[0] == keys[1]) == (one == other) == (node_keys[0] == node_keys[1])
    for id, key, text in zip((one, other), keys, node_keys, strict=True):
        assert layout.id_in(kind, text) == id
        assert layout.text_of(kind, key) == text
        assert layout.kind_of(key) is kind
        assert layout.read(key) == Repo(owner=id[0], name=id[1])
        assert not layout.is_bookkeeping(key)


@given(st.sampled_from(PLACES), IDS, IDS, NAMES)
def test_edges_name_both_ends(name: Any, one: Any, other: Any, user: str) -> None:
    layout = bound_as(*name)
    for id in (one, other):
        keys_of(layout, Repo, id)
    edges: list[Any] = [
        Fork(source=one, target=other, at=3),
        Likes(source=user, target=one),
        Uses(source=one, target=()),
        From(source=other, target=user),
    ]
    for edge in edges:
        try:
            (item,) = layout.items(edge)
        except InvalidKey:
            continue
        kind = layout.schema.edge(type(edge))
        assert layout.kind_of(item) is kind
        assert layout.read(item) == edge
        source, target = layout.ends(kind, item)
        assert (layout.id_in(kind.source, source), layout.id_in(kind.target, target)) == (edge.source, edge.target)
        assert layout.source_text(kind, layout.key_of(item)) == source
        assert item[layout.out(kind, edge.source).access.partition_key]["S"] == layout.out(kind, edge.source).partition
        arriving = layout.into(kind, edge.target)
        assert item[arriving.access.partition_key]["S"] == arriving.partition


@given(st.uuids(), st.datetimes(timezones=st.just(dt.UTC)), st.integers(-(10**20), 10**20))
def test_parts_of_all_types_come_back(sensor: UUID, at: dt.datetime, step: int) -> None:
    layout = bound_as("adjacency list", None)
    reading = Reading(sensor=sensor, at=at, step=step)
    (item,) = layout.items(reading)
    assert layout.read(item) == reading


def test_a_key_with_another_spelling_is_no_node() -> None:
    layout = bound()
    for text in ("REPO#a", "REPO#a#b#c", "REPO##b", "REPO#a#", "REPO#%41#b", "REPO#a#b%2G", "CONFIG#", "CONFIG#a"):
        assert layout.kind_of({"PK": {"S": text}, "SK": {"S": "#META"}}) is None, text


# --- what a class may declare ------------------------------------------------------------------


class Colour(Enum):
    RED = 1
    TEXT = "1"


def refused(model: Any, message: str, layout: Layout | None = None) -> None:
    with pytest.raises(InvalidModel, match=message):
        Graph(":memory:", [model], layout)


def test_keys_that_cannot_be_ids_are_refused() -> None:
    class Unknown(Node, key=("owner", "nmae")):
        owner: str
        name: str

    class Twice(Node, key=("owner", "owner")):
        owner: str

    class Listed(Node, key=("owner", "tags")):
        owner: str
        tags: list[str]

    class Perhaps(Node, key=("owner", "name")):
        owner: str
        name: str | None

    class Claimed(Node, key=("owner", "name")):
        owner: Annotated[str, Unique()]
        name: str

    class Found(Node, key=("owner", "name")):
        owner: Annotated[str, Indexed()]
        name: str

    class Counted(Node, key=("owner", "number")):
        owner: str
        number: Annotated[int, Version()]

    class Ending(Node, key=("owner", "at")):
        owner: str
        at: Annotated[dt.datetime, Expires()]

    class Painted(Node, key=("owner", "colour")):
        owner: str
        colour: Colour

    class Keyless(Node):
        name: str

    refused(Unknown, "key='nmae': Unknown has no field 'nmae'; did you mean 'name'")
    refused(Twice, "key= of Twice names a field twice")
    refused(Listed, "the key field Listed.tags has a type that cannot be part of a key")
    refused(Perhaps, "Perhaps.name may be None")
    refused(Claimed, "Claimed.owner is marked Unique")
    refused(Found, "Found.owner is marked Indexed")
    refused(Counted, "Counted.number is marked Version.*part of the id")
    refused(Ending, "Ending.at is marked Expires.*part of the id")
    refused(Painted, "Painted.colour is in keys")
    refused(Keyless, r"Keyless has no field 'id'.*key=")


def test_a_version_in_the_id_counts_nothing() -> None:
    class Draft(Node, key=("doc", "version")):
        doc: str
        version: int
        text: str = ""

    with Graph(":memory:", [Draft]) as g:
        g.put(Draft(doc="d", version=0, text="a"))
        g.put(Draft(doc="d", version=1, text="b"))
        assert g.update(Draft, ("d", 0), text="c") == Draft(doc="d", version=0, text="c")
        assert g.get(Draft, ("d", 1)) == Draft(doc="d", version=1, text="b")


def test_a_subclass_keeps_the_key() -> None:
    class Mirror(Repo):
        of: str = ""

    layout = bound(models=[Mirror])
    assert layout.schema.node(Mirror).key == ("owner", "name")
    assert texts(layout.node_key(layout.schema.node(Mirror), ("a", "b")))["PK"] == "MIRROR#a#b"


def test_templates_that_do_not_tell_the_id_are_refused() -> None:
    refused(
        Repo, "do not tell 'name', which is part of its id", AdjacencyList(keys={Repo: Keys(partition="r#{owner}")})
    )
    lossy = AdjacencyList(keys={Repo: Keys(partition="r#{owner}#{name:upper}")})
    refused(Repo, "do not tell 'name'.*without a transform", lossy)
    lossy = AdjacencyList(keys={Repo: Keys(partition="r#{owner}", sort="{name:lower}")})
    refused(Repo, "do not tell 'name'", lossy)
    refused(Repo, "uses 'stars', but a node is found by its id alone", AdjacencyList(keys={Repo: Keys(sort="{stars}")}))
    refused(Repo, "Repo has no field 'nmae'; did you mean 'name'", AdjacencyList(keys={Repo: Keys(sort="{nmae}")}))


def test_edges_name_parts_of_their_ends() -> None:
    keys = {
        Fork: Keys(
            sort="F#{target.owner}#{target.name}",
            reverse_partition="REPO#{target.owner}#{target.name}",
            reverse_sort="F#{source.name}#{source.owner}",
        )
    }
    layout = bound(AdjacencyList(keys=keys), [Repo, Fork])
    fork = Fork(source=("ann", "x"), target=("bob", "y"))
    (item,) = layout.items(fork)
    assert texts({name: item[name] for name in ("PK", "SK", "GSI1PK", "GSI1SK")}) == {
        "PK": "REPO#ann#x",
        "SK": "F#bob#y",
        "GSI1PK": "REPO#bob#y",
        "GSI1SK": "F#x#ann",
    }
    assert layout.read(item) == fork
    with pytest.raises(InvalidModel, match="does not contain its target"):
        bound(AdjacencyList(keys={Fork: Keys(sort="F#{target.owner}")}), [Repo, Fork])
    with pytest.raises(InvalidModel, match=r"no field 'target.nmae'; did you mean 'target.name'"):
        bound(AdjacencyList(keys={Fork: Keys(sort="F#{target.nmae}")}), [Repo, Fork])
    with pytest.raises(InvalidModel, match="cannot be changed by 'upper'"):
        bound(AdjacencyList(keys={Fork: Keys(sort="F#{target.owner:upper}#{target.name}")}), [Repo, Fork])
    with pytest.raises(InvalidModel, match=r"is not the key REPO#\{owner\}#\{name\} of its target"):
        bound(AdjacencyList(keys={Fork: Keys(reverse_partition="R#{target.owner}#{target.name}")}), [Repo, Fork])


def test_a_part_of_a_target_may_have_a_transform() -> None:
    class Score(Node, key=("game", "points")):
        game: str
        points: int

    class Reached(Edge[User, Score]):
        pass

    layout = bound(
        AdjacencyList(
            keys={Reached: Keys(sort="R#{target.game}#{target.points:sortable}")},
            reverse=Index("GSI1", "GSI1PK", "GSI1SK"),
        ),
        [User, Score, Reached],
    )
    reached = Reached(source="u", target=("chess", -7))
    (item,) = layout.items(reached)
    assert item["SK"] == {"S": "R#chess#n498.2~"}
    assert layout.read(item) == reached


def test_key_fields_cannot_be_compared_or_changed() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put(Repo(owner="ann", name="x"))
        with pytest.raises(UnknownField, match=r"Repo.owner is part of the id"):
            g.put(Repo(owner="ann", name="x"), only_if=field("owner") == "ann")
        with pytest.raises(InvalidValue, match=r"'name' of Repo .* is its key and cannot change"):
            g.update(Repo, ("ann", "x"), name="y")


def test_numbers_keep_their_one_spelling() -> None:
    class Priced(Node, key=("shop", "price")):
        shop: str
        price: Decimal

    layout = bound(models=[Priced])
    kind = layout.schema.node(Priced)
    assert layout.node_text(kind, kind.id(("s", "1.50"))) == layout.node_text(kind, ("s", Decimal("1.5")))
    assert layout.kind_of({"PK": {"S": "PRICED#s#1.50"}, "SK": {"S": "#META"}}) is None


# --- adjoin's own items ------------------------------------------------------------------------


class Org(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    place: Annotated[str | None, Indexed()] = None


class Team(Node, key=("org", "name")):
    org: str
    name: str


def test_an_id_that_would_reach_what_lies_beside_another_node_is_refused() -> None:
    layout = AdjacencyList(keys={Org: Keys(partition="ORG#{id}"), Team: Keys(partition="ORG#{org}#{name}")})
    with Graph(":memory:", [Org, Team], layout) as g:
        g.put(Org(id="a", name="A", place="Rome"))
        assert [org.id for org in g.find(Org, field("place") == "Rome")] == ["a"]
        with pytest.raises(InvalidKey, match="'ORG#a#=', and adjoin's own items have keys that end so"):
            g.put(Team(org="a", name="="))
        g.put(Team(org="a", name="=="))
        assert g.get(Team, ("a", "==")) == Team(org="a", name="==")
        assert g.collection(Org.ref("a")).others == []
    with Graph(":memory:", [Repo]) as g:
        g.put(Repo(owner="a", name="="))
        assert g.get(Repo, ("a", "=")) == Repo(owner="a", name="=")
