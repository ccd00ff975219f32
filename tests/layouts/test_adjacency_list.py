"""The default layout cannot collide or be escaped from; and items that others wrote can be read."""

from __future__ import annotations

import datetime as dt
from enum import Enum
from functools import cache
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidKey,
    InvalidModel,
    InvalidRequest,
    Keys,
    Node,
    Throughput,
    Unique,
    field,
)
from adjoin.aggregates import Copy, Count
from adjoin.layouts.bound import BoundLayout
from adjoin.requests import Put
from adjoin.schema import Schema
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import Item


class Person(Node):
    id: str


class PersonX(Node, label="PERSON_X"):
    id: str


class Knows(Edge[Person, Person]):
    pass


class KnowsWell(Edge[Person, Person], order="how", key=("how",), label="KNOWS_"):
    how: str


class Likes(Edge[Person, PersonX], key=("what", "when")):
    what: str
    when: dt.date = dt.date(2024, 1, 1)


class Ranked(Edge[Person, Person], order="rank"):
    rank: int = 0


MODELS: list[Any] = [Person, PersonX, Knows, KnowsWell, Likes, Ranked]


@cache
def bound() -> BoundLayout:
    return AdjacencyList().bind(Schema(MODELS))


ids = st.text(min_size=1, max_size=10) | st.text("#%|ab \n\0é€\U0001f600PERSONKW_", min_size=1, max_size=10)
entities: st.SearchStrategy[Any] = st.one_of(
    st.builds(Person, id=ids),
    st.builds(PersonX, id=ids),
    st.builds(Knows, source=ids, target=ids),
    st.builds(KnowsWell, source=ids, target=ids, how=ids),
    st.builds(Likes, source=ids, target=ids, what=ids),
    st.builds(Ranked, source=ids, target=ids, rank=st.integers(-99, 99)),
)


def key(item: Item) -> tuple[str, str]:
    return item["PK"]["S"], item["SK"]["S"]


def identity(entity: Any) -> tuple[Any, ...]:
    names = {"id", "source", "target", "how", "what", "when"} & set(type(entity).model_fields)
    return type(entity), *(getattr(entity, name) for name in sorted(names))


@given(entities, entities)
def test_distinct_nodes_and_edges_have_distinct_keys(one: Any, other: Any) -> None:
    (item,), (other_item,) = bound().items(one), bound().items(other)
    assert (key(item) == key(other_item)) == (identity(one) == identity(other))


@given(entities)
def test_keys_parse_back(entity: Any) -> None:
    (item,) = bound().items(entity)
    assert bound().read(item) == entity


@given(entities, ids)
def test_an_item_lands_in_its_own_node_s_partition_only(entity: Any, other: str) -> None:
    (item,) = bound().items(entity)
    owner_kind = Person if isinstance(entity, Edge) else type(entity)
    owner = entity.source if isinstance(entity, Edge) else entity.id
    for model in (Person, PersonX):
        text = bound().node_text(bound().schema.nodes[model], other)
        assert (item["PK"]["S"] == text) == (model is owner_kind and other == owner)


@given(st.lists(entities, max_size=12), ids)
def test_no_query_reads_from_another_node(stored: list[Any], asked: str) -> None:
    with Graph(":memory:", MODELS) as graph:
        distinct = {identity(entity): entity for entity in stored}
        graph.put_many(list(distinct.values()))
        for model in (Knows, KnowsWell, Likes, Ranked):
            edges = [entity for entity in distinct.values() if type(entity) is model]
            out, into = list(graph.out(asked, model)), list(graph.into(asked, model))
            assert sorted(map(repr, out)) == sorted(repr(edge) for edge in edges if edge.source == asked)
            assert sorted(map(repr, into)) == sorted(repr(edge) for edge in edges if edge.target == asked)
        collection = graph.collection(Person.ref(asked))
        mine = [entity for entity in distinct.values() if isinstance(entity, Edge) and entity.source == asked]
        assert sorted(map(repr, collection.edges)) == sorted(map(repr, mine))
        assert collection.others == []


@given(st.text(alphabet="#%|ab é", min_size=1, max_size=4), st.lists(ids, max_size=6, unique=True))
def test_begins_with_is_about_the_value_not_its_spelling(prefix: str, targets: list[str]) -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put_many([Knows(source="a", target=target) for target in targets])
        found = [edge.target for edge in graph.out("a", Knows).begins_with(prefix)]
        expected = sorted((target for target in targets if target.startswith(prefix)), key=str.encode)
        assert found == expected


@given(st.lists(st.integers(-(10**6), 10**6), max_size=8, unique=True), st.integers(-99, 99), st.integers(0, 99))
def test_between_numbers(ranks: list[int], low: int, width: int) -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put_many([Ranked(source="a", target=str(rank), rank=rank) for rank in ranks])
        assert [edge.rank for edge in graph.out("a", Ranked)] == sorted(ranks)
        found = [edge.rank for edge in graph.out("a", Ranked).between(low, low + width)]
        assert found == [rank for rank in sorted(ranks) if low <= rank <= low + width]


def test_ids_of_any_length_up_to_the_limit() -> None:
    with Graph(":memory:", MODELS) as graph:
        longest = "x" * (2048 - len("PERSON#"))
        graph.put(Person(id=longest))
        assert graph.get(Person, longest) == Person(id=longest)
        with pytest.raises(InvalidKey, match=r"2,049 bytes.*2,048"):
            graph.put(Person(id=longest + "x"))
        target = "é" * ((1024 - len("KNOWS#PERSON#")) // 2)
        source = "s" * (1024 - len("KNOWS#PERSON#"))
        graph.put(Knows(source=source, target=target))
        assert [edge.target for edge in graph.out(source, Knows)] == [target]
        assert [edge.source for edge in graph.into(target, Knows)] == [source]
        with pytest.raises(InvalidKey, match="shorter id"):
            graph.put(Knows(source="a", target=target + "é"))


class User(Node):
    id: str
    name: str = ""


class Group(Node):
    id: str


class Member(Edge[User, Group]):
    role: Annotated[str, Field(alias="Role")] = ""


OWN = AdjacencyList(
    table="People",
    partition_key="pk",
    sort_key="sk",
    node="{node}",
    edge="{target}",
    type_attribute="kind",
    reverse=Index("Reverse", "sk", "pk"),
    keys={User: Keys(partition="USER-{id}")},
)


@pytest.mark.parametrize("label", [None, "MEMBER"])
def test_items_that_another_program_wrote_are_readable(label: str | None) -> None:
    graph = Graph(":memory:", [User, Group, Member], OWN)
    item: Item = {"pk": {"S": "USER-100%"}, "sk": {"S": "GROUP#g"}, "Role": {"S": "boss"}, "more": {"N": "1"}}
    if label:
        item["kind"] = {"S": label}
    graph._store.execute([Put("People", item)])
    assert list(graph.out("100%", Member)) == [Member(source="100%", target="g", role="boss")]
    assert list(graph.into("g", Member)) == [Member(source="100%", target="g", role="boss")]
    assert graph.edge(Member, "100%", "g") == Member(source="100%", target="g", role="boss")


def test_items_that_no_class_explains_are_others() -> None:
    graph = Graph(":memory:", [User, Group, Member], OWN)
    foreign: list[Item] = [
        {"pk": {"S": "USER-1"}, "sk": {"S": "LOGIN"}, "at": {"N": "5"}},
        {"pk": {"S": "USER-1"}, "sk": {"S": "GROUP#g"}, "kind": {"S": "INVITATION"}},
    ]
    graph._store.execute([Put("People", item) for item in foreign])
    graph.put(User(id="1"))
    collection = graph.collection(User.ref("1"))
    assert collection.node == User(id="1")
    assert collection.edges == []
    assert collection.others == [
        {"pk": "USER-1", "sk": "GROUP#g", "kind": "INVITATION"},
        {"pk": "USER-1", "sk": "LOGIN", "at": 5},
    ]
    assert list(graph.out("1", Member)) == []
    assert graph.out("1", Member).count() == 0


def test_a_literal_layout_says_which_id_it_cannot_hold() -> None:
    graph = Graph(":memory:", [User, Group, Member], OWN)
    with pytest.raises(InvalidKey, match=r"User.id: 'a#b' holds '#'.*escape=True"):
        graph.put(User(id="a#b"))
    with pytest.raises(InvalidKey):
        graph.get(User, "a#b")


class Part(Node):
    id: str


class Contains(Edge[Part, Part]):
    pass


def test_an_edge_to_itself_cannot_take_the_key_of_its_node() -> None:
    graph = Graph(
        ":memory:", [Part, Contains], AdjacencyList(node="{node}", edge="{target}", reverse=Index("Reverse", "SK"))
    )
    graph.put(Part(id="a"))
    graph.put(Contains(source="a", target="b"))
    with pytest.raises(InvalidKey, match="itself"):
        graph.put(Contains(source="a", target="a"))
    assert graph.collection(Part.ref("a")).node == Part(id="a")
    assert graph.collection(Part.ref("a")).edges == [Contains(source="a", target="b")]
    assert [edge.source for edge in graph.into("b", Contains)] == ["a"]


def test_settings_of_the_table() -> None:
    assert bound().definition.stream
    layout = AdjacencyList(
        stream=False,
        throughput=Throughput(5, 6),
        point_in_time_recovery=True,
        deletion_protection=True,
        tags={"team": "billing", "stage": "test"},
    )
    definition = layout.bind(Schema([Person, Knows])).definition
    assert definition == TableDefinition(
        "adjoin",
        KeyAttribute("PK"),
        KeyAttribute("SK"),
        (IndexDefinition("GSI1", KeyAttribute("GSI1PK"), KeyAttribute("GSI1SK")),),
        stream=False,
        throughput=Throughput(5, 6),
        point_in_time_recovery=True,
        deletion_protection=True,
        tags=(("stage", "test"), ("team", "billing")),
    )


def test_a_protected_table_stays() -> None:
    with Graph(":memory:", [Person], AdjacencyList(deletion_protection=True)) as g:
        g.put(Person(id="1"))
        with pytest.raises(InvalidRequest, match="protected against deletion; disable deletion protection first"):
            g.drop_table()
        assert g.get(Person, "1") == Person(id="1")


# --- tenants -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "tenant"),
    [
        ({"PK": "acme#PERSON#1", "SK": "#META"}, "acme"),
        (
            {"PK": "acme#PERSON#1", "SK": "KNOWS#PERSON#2", "GSI1PK": "acme#PERSON#2", "GSI1SK": "KNOWS#PERSON#1"},
            "acme",
        ),
        ({"PK": "PERSON#1", "SK": "#META"}, None),
        ({"PK": "acme#NOBODY#1", "SK": "#META"}, None),
        ({"PK": "acme", "SK": "#META"}, None),
        ({"PK": "#PERSON#1", "SK": "#META"}, None),
        # A record of adjoin's own is nobody's, whatever it begins with.
        ({"PK": "#adjoin#x", "SK": "#META"}, None),
    ],
)
def test_whose_an_item_is(item: dict[str, str], tenant: str | None) -> None:
    assert bound().tenant_in({name: {"S": text} for name, text in item.items()}) == tenant


def test_an_item_is_of_a_tenant_if_all_its_keys_are() -> None:
    # Edges are found from their targets by the sort key, so that begins with the tenant as well.
    layout = AdjacencyList(node="{node}", edge="{target}", reverse=Index("Reverse", "SK"))
    bound = layout.bind(Schema([User, Group, Member]))
    tenants = {"acme#GROUP#g": "acme", "GROUP#g": None, "beta#GROUP#g": None}
    for sort, tenant in tenants.items():
        assert bound.tenant_in({"PK": {"S": "acme#USER#u"}, "SK": {"S": sort}}) == tenant
    (item,) = bound.for_tenant("acme").items(Member(source="u", target="g"))
    assert bound.tenant_in(item) == "acme"
    # A tenant knows of no tenants.
    assert bound.for_tenant("acme").tenant_in({"PK": {"S": "beta#USER#u"}, "SK": {"S": "beta#GROUP#g"}}) is None


def test_records_of_tenants_are_records_to_everybody() -> None:
    for tenant in (None, "acme"):
        layout = bound() if tenant is None else bound().for_tenant(tenant)
        record = layout.ledgers.record_key("MAINTAIN", "position")
        assert layout.is_bookkeeping(record)
        assert bound().is_bookkeeping(record)
        assert bound().for_tenant("beta").is_bookkeeping(record)
        (item,) = layout.items(Person(id="a"))
        assert not layout.is_bookkeeping(item)
        assert not bound().is_bookkeeping(item)


class Fan(Node):
    id: str
    follows: Annotated[int, Count("Follows")] = 0


class Star(Node):
    id: str


class Follows(Edge[Fan, Star]):
    pass


class Counting(Node):
    id: str
    fans: Annotated[int, Count("Likewise")] = 0


class Likewise(Edge[Fan, Counting]):
    pass


def test_what_is_counted_at_targets_needs_a_reverse_index() -> None:
    without = AdjacencyList(reverse=None)
    assert without.bind(Schema([Fan, Star, Follows]))
    with pytest.raises(InvalidModel, match="something is counted or copied at the target of Likewise, but the layout"):
        without.bind(Schema([Fan, Star, Follows, Counting, Likewise]))
    assert AdjacencyList().bind(Schema([Fan, Star, Follows, Counting, Likewise]))


class Ordered(Edge[Fan, Counting], order="fans"):
    fans: Annotated[int, Copy("target.fans")] = 0


def test_what_is_filled_in_by_itself_may_be_an_order() -> None:
    layout = AdjacencyList().bind(Schema([Fan, Star, Follows, Counting, Likewise, Ordered]))
    kind = layout.schema.edge(Ordered)
    (item,) = layout.items(Ordered(source="F1", target="C1", fans=7))
    assert "GSI2SK" not in item
    filled = layout.with_managed_keys(kind, item | {"fans": {"N": "12"}})
    assert (filled["GSI2SK"], filled["GSI1SK"]) == (
        {"S": "ORDERED#p502.12#COUNTING#C1"},
        {"S": "ORDERED#p502.12#FAN#F1"},
    )


class Sorted(Edge[Fan, Counting], order="fans"):
    fans: Annotated[int, Copy("target.fans")] = 0


def test_what_is_filled_in_by_itself_needs_an_attribute() -> None:
    keys = {Sorted: Keys(only_in_keys=["fans"])}
    with pytest.raises(InvalidModel, match=r"Sorted.fans is a managed field, so it needs an attribute of its own"):
        AdjacencyList(keys=keys).bind(Schema([Fan, Star, Follows, Counting, Likewise, Sorted]))


# --- what is said of keys ----------------------------------------------------------------------


def test_which_edges_may_have_the_key_of_a_node() -> None:
    own = AdjacencyList(node="{node}", edge="{target}", reverse=Index("Reverse", "SK")).bind(Schema([Part, Contains]))
    plain = AdjacencyList().bind(Schema([Part, Contains]))
    for layout, may_meet in ((own, True), (plain, False)):
        assert bool(layout.key_templates(layout.schema.edge(Contains)).meets) == may_meet
        assert not layout.key_templates(layout.schema.node(Part)).meets


class Mixed(Enum):
    NINE = 9
    TEN = 10
    TOP = "top"


class Numbered(Enum):
    ONE = 1
    TEN = 10
    TWO = 2


class Seen(Edge[Person, Person], order="how"):
    how: Mixed = Mixed.TOP


class Placed(Edge[Person, Person], order="how"):
    how: Numbered = Numbered.ONE


def test_members_that_are_numbers_come_in_their_order_and_others_as_text() -> None:
    with Graph(":memory:", [Seen, Placed]) as g:
        g.put_many(Placed(source="a", target=str(how.value), how=how) for how in Numbered)
        g.put_many(Seen(source="a", target=str(how.value), how=how) for how in Mixed)
        assert [edge.how for edge in g.out("a", Placed)] == [Numbered.ONE, Numbered.TWO, Numbered.TEN]
        assert [edge.how for edge in g.out("a", Seen)] == [Mixed.TEN, Mixed.NINE, Mixed.TOP]


class Named(Node):
    id: str
    name: Annotated[str | None, Unique()] = None


def test_a_unique_value_that_is_none_is_nobodys_claim() -> None:
    layout = AdjacencyList().bind(Schema([Named]))
    kind = layout.schema.node(Named)
    item = {"PK": {"S": "NAMED#a"}, "SK": {"S": "#META"}}
    for stored in ({}, {"name": {"NULL": True}}):
        assert layout.satellites_beside(kind, item | stored) == []
    (claim,) = layout.satellites_beside(kind, item | {"name": {"S": "x"}})
    assert claim.key == layout.claim_key(kind, "name", "x")
    assert layout.claimed_by(claim.key) is kind


class Bag(Node):
    id: str
    tags: set[str] = set()
    codes: frozenset[int] = frozenset()
    note: str | None = None
    given: str | None = "x"
    name: str = ""


def test_what_would_come_back_if_it_were_missing_is_not_stored() -> None:
    layout = AdjacencyList().bind(Schema([Bag]))
    keys = {"PK": {"S": "BAG#a"}, "SK": {"S": "#META"}}
    (empty,) = layout.items(Bag(id="a", given=None))
    assert empty == keys | {"given": {"NULL": True}, "name": {"S": ""}}
    (full,) = layout.items(Bag(id="a", tags={"t"}, codes=frozenset({1}), note="n"))
    stored = {"tags": {"SS": ["t"]}, "codes": {"NS": ["1"]}, "note": {"S": "n"}, "given": {"S": "x"}, "name": {"S": ""}}
    assert full == keys | stored
    assert layout.read(empty) == Bag(id="a", given=None)
    assert layout.read(full) == Bag(id="a", tags={"t"}, codes=frozenset({1}), note="n")


class Twice(Edge[Person, Person]):
    one: Annotated[str, Indexed()] = "x"
    of_a_rather_long_name: Annotated[str, Indexed()] = "y"


def test_a_copy_has_a_key_of_its_own_that_must_fit() -> None:
    with Graph(":memory:", [Person, Twice]) as g:
        room = 1024 - len("of_a_rather_long_name#TWICE#PERSON#")
        g.put(Twice(source="a", target="b" * room))
        with pytest.raises(
            InvalidKey, match=r"the copy of a Twice for the index of its 'of_a_rather_long_name'.*a shorter id"
        ):
            g.put(Twice(source="a", target="b" * (room + 1)))
        assert g.find(Twice, field("of_a_rather_long_name") == "y").count() == 1


# --- what does not fit any more ----------------------------------------------------------------


def test_an_item_is_decoded_as_far_as_it_fits() -> None:
    layout = AdjacencyList().bind(Schema([Person, Ranked]))
    kind = layout.schema.edge(Ranked)
    (item,) = layout.items(Ranked(source="a", target="b", rank=7))
    assert layout.decode_as_far(kind, item) == Ranked(source="a", target="b", rank=7)
    edge: Any = layout.decode_as_far(kind, {**item, "rank": {"S": "many"}})
    assert (type(edge), edge.source, edge.target, edge.rank) == (Ranked, "a", "b", "many")
    person = {"PK": {"S": "PERSON#a"}, "SK": {"S": "#META"}}
    assert layout.decode_as_far(layout.schema.node(Person), person) == Person(id="a")
    # What is of another class by its keys is nothing of this one.
    assert layout.decode_as_far(kind, person) is None
