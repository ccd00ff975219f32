"""`upsert`: changed if it exists, made if it does not."""

from __future__ import annotations

import threading
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, Field, model_validator

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    ConditionFailed,
    Copy,
    Count,
    Edge,
    Expires,
    Graph,
    Immutable,
    Indexed,
    InvalidItem,
    InvalidValue,
    Keys,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    UnknownField,
    Version,
    field,
)
from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.layouts.interface import DELETING, WRITTEN
from adjoin.plans.deletion import TOKENS
from adjoin.requests import Get, ItemResponse, Put, Update
from tests.verbs.conftest import Everywhere


class User(Node):
    id: str
    name: str
    visits: int = 0
    level: int = 5
    tags: set[str] = set()
    log: list[str] = ["made"]
    nickname: str | None = None
    revision: Annotated[int, Version()] = 3


class Page(Node):
    id: str
    title: Annotated[str, Indexed()] = "untitled"
    views: int = 0


class Seen(Edge[User, Page], order="times"):
    times: int = 0
    note: str = ""


MODELS: list[Any] = [User, Page, Seen]


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    return everywhere(MODELS)


def test_what_does_not_exist_is_made_and_what_exists_is_changed_in_one_request(g: Any) -> None:
    with g.meter() as meter:
        made = g.upsert(User, "1", name="Jo", visits=field("visits") + 1, level=field("level") - 1)
    assert meter.requests == 1
    assert made == User(id="1", name="Jo", visits=1, level=4, revision=3)
    assert g.get(User, "1") == made
    g.put(User(id="2", name="Ben", visits=7, nickname="B", tags={"x"}, log=["a"]))
    with g.meter() as meter:
        changed = g.upsert(
            User.ref("2"),
            name="Benn",
            visits=field("visits") + 1,
            tags=field("tags").add({"y"}),
            log=field("log").append("b"),
        )
    assert meter.requests == 1
    assert changed == User(id="2", name="Benn", visits=8, nickname="B", tags={"x", "y"}, log=["a", "b"], revision=4)
    assert g.get(User, "2") == changed
    assert g.upsert(User, "3", name="Cleo", log=field("log").append("b")).log == ["made", "b"]


def test_what_is_made_is_stored_as_add_stores_it(g: Any) -> None:
    g.upsert(User, "u", name="Jo")
    g.upsert(Page, "p", views=field("views") + 1)
    g.upsert(Seen, "u", "p", note="x")
    made = [change.new_item for change in g.changes() if change.new_item]
    entities = [g.get(User, "u"), g.get(Page, "p"), g.edge(Seen, "u", "p")]
    for each in reversed(entities):
        g.delete(each)
    for each in entities:
        g.add(each)
    assert [change.new_item for change in g.changes() if change.new_item][-3:] == made[-3:]


def test_edges_and_indexed_fields(g: Any) -> None:
    g.put_many([User(id="u", name="Jo"), Page(id="p"), Page(id="q", title="News", views=3)])
    with g.meter() as meter:
        assert g.upsert(Seen, "u", "p", times=2) == Seen(source="u", target="p", times=2)
        assert g.upsert(Seen, "u", "p", note="again").times == 2
        assert g.upsert(Page, "q", views=field("views") + 1).views == 4
        assert g.upsert(Page, "r", title="Art").views == 0
    assert meter.requests == 4
    g.upsert(Seen, "u", "q", times=1)
    assert [(edge.target, edge.times) for edge in g.out("u", Seen)] == [("q", 1), ("p", 2)]
    assert [edge.target for edge in g.into("p", Seen)] == ["p"]
    assert [page.id for page in g.find(Page, field("title") == "News")] == ["q"], "its entry stayed"
    assert [page.id for page in g.find(Page, field("title") == "Art")] == ["r"]
    with g.meter() as meter:
        changed = g.upsert(Seen, "u", "p", times=field("times") - 2)
    assert (changed.times, meter.requests) == (0, 2), "the order is a key, so it is read first, as update does"
    assert [edge.target for edge in g.out("u", Seen)] == ["p", "q"]


def test_conditions(g: Any) -> None:
    with pytest.raises(ConditionFailed, match="User '1', which does not exist"):
        g.upsert(User, "1", name="Jo", only_if=field("visits") == 0)
    assert g.upsert(User, "1", name="Jo", only_if=~field("name").exists()).name == "Jo"
    with pytest.raises(ConditionFailed, match="User '1'"):
        g.upsert(User, "1", name="Ann", only_if=~field("name").exists())
    assert g.upsert(User, "1", name="Ann", only_if=field("visits") == 0).name == "Ann"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.upsert(User, "1", visits=1), InvalidValue, "User.name has no default"),
        (lambda g: g.upsert(User, "1", name=field("name") + 1), InvalidValue, "nothing to start from"),
        (lambda g: g.upsert(User, "1", nmae="x"), UnknownField, "did you mean 'name'"),
        (lambda g: g.upsert(User, "1", name=3), InvalidValue, "User.name"),
        (lambda g: g.upsert(User, "1", name="x", visits=field("vists") + 1), UnknownField, "did you mean 'visits'"),
        (lambda g: g.upsert(User, "1", id="2", name="x"), InvalidValue, "'id'"),
        (lambda g: g.upsert(User, "1"), InvalidValue, "User.name has no default"),
        (lambda g: g.upsert(User(id="1", name="x"), name="y", only_if=1), InvalidValue, "not a comparison"),
    ],
)
def test_what_is_refused(g: Any, call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(g)
    assert g.get(User, "1") is None


class Tag(Node):
    id: str


class Tagged(Edge[Page, Tag]):
    pass


class Beside(Edge[Page, Page], symmetric=True):
    weight: int = 1


def test_without_a_field_it_is_made_if_there_is_none(everywhere: Everywhere) -> None:
    g = everywhere([*MODELS, Tag, Tagged, Beside])
    g.put(Page(id="p", title="old", views=7))
    with g.meter() as meter:
        for _ in range(2):
            assert g.upsert(Tag, "t") == Tag(id="t")
            assert g.upsert(Tagged, "p", "t") == Tagged(source="p", target="t")
        assert g.upsert(Page, "p") == Page(id="p", title="old", views=7)
        assert g.upsert(Page, "q") == Page(id="q")
    assert meter.requests == 6
    assert [edge.source for edge in g.into("t", Tagged)] == ["p"]
    with pytest.raises(ConditionFailed):
        g.upsert(Tag, "t", only_if=~field("id").exists())
    # A symmetric edge is two items, so it is read and then added.
    assert g.upsert(Beside, "p", "q") == Beside(source="p", target="q")
    g.update(Beside, "p", "q", weight=5)
    assert g.upsert(Beside, "q", "p").weight == 5
    with pytest.raises(ConditionFailed):
        g.upsert(Beside, "q", "p", only_if=field("weight") == 1)
    with g.transaction() as t:
        for tag in ("t", "new"):
            t.upsert(Tag, tag)
            t.upsert(Tagged, "p", tag)
        t.upsert(Beside, "p", "q")
    assert [edge.target for edge in g.out("p", Tagged)] == ["new", "t"]
    assert g.edge(Beside, "p", "q").weight == 5
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.upsert(Tag, "t", only_if=~field("id").exists())
    assert [(each.call, each.id, each.error) for each in error.value.reasons] == [("upsert", "t", ConditionFailed)]


def test_without_a_field_the_version_stays(everywhere: Everywhere) -> None:
    class Draft(Node):
        id: str
        revision: Annotated[int, Version()] = 3

    g = everywhere([Draft])
    assert [g.upsert(Draft, "d").revision for _ in range(2)] == [3, 3]
    assert g.update(Draft, "d", revision=9, if_version=3).revision == 9
    assert g.upsert(Draft, "d").revision == 9


def test_transactions(g: Any) -> None:
    g.put(User(id="2", name="Ben", visits=7))
    with g.meter() as meter, g.transaction() as t:
        t.upsert(User, "1", name="Jo", visits=field("visits") + 1)
        t.upsert(User, "2", name="Ben", visits=field("visits") + 1)
        t.upsert(Seen, "1", "p", times=1)
        t.put(Page(id="p"))
    assert meter.requests == 1
    assert [(user.visits, user.revision) for user in g.get_many(User, ["1", "2"])] == [(1, 3), (8, 4)]
    assert g.edge(Seen, "1", "p").times == 1
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.upsert(User, "2", name="x", only_if=field("visits") == 0)
    assert [(each.call, each.id, each.error) for each in error.value.reasons] == [("upsert", "2", ConditionFailed)]
    with g.transaction() as t:
        t.upsert(Seen, "1", "p", times=field("times") + 4)
    assert g.edge(Seen, "1", "p").times == 5


# --- where other items are involved ------------------------------------------------------------


class Member(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    joined: Annotated[int, Indexed()] = 0
    email: Annotated[str | None, Unique()] = None
    pages: Annotated[int, Count("Likes", consistency="transaction")] = 0


class Likes(Edge[Member, Page]):
    stars: int = 1
    title: Annotated[str, Copy("target.title")] = ""


class Friend(Edge[Member, Member], symmetric=True):
    since: int = 0


def test_unique_values_further_indexed_fields_copies_and_counts_stay_true(everywhere: Everywhere) -> None:
    g = everywhere([Member, Page, Likes, Friend])
    with g.meter() as meter:
        assert g.upsert(Member, "m", name="Ann", email="a@b.c").name == "Ann"
    assert meter.requests == 2, "a read and a transaction"
    with g.meter() as meter:
        assert g.upsert(Member, "m", joined=2024, email="x@y.z").name == "Ann"
    assert meter.requests == 2
    assert g.get(Member, email="x@y.z").joined == 2024
    assert g.get(Member, email="a@b.c") is None
    with pytest.raises(AlreadyExists, match="belongs to Member 'm'"):
        g.upsert(Member, "n", email="x@y.z")
    assert g.get(Member, "n") is None
    assert [member.id for member in g.find(Member, field("joined") == 2024)] == ["m"]
    g.put(Page(id="p", title="News"))
    assert g.upsert(Likes, "m", "p", stars=2).title == "News"
    assert g.upsert(Likes, "m", "p", stars=field("stars") + 1).stars == 3
    assert g.get(Member, "m").pages == 1
    g.upsert(Member, "n", name="Ben")
    g.upsert(Friend, "n", "m", since=1)
    assert g.upsert(Friend, "m", "n", since=field("since") + 1).since == 2
    assert [edge.since for edge in g.out("n", Friend)] == [2]
    with g.transaction() as t:
        t.upsert(Member, "o", email="o@o.o")
        t.upsert(Member, "m", email="new@y.z")
        t.upsert(Likes, "n", "p", stars=5)
        t.upsert(Likes, "m", "p", stars=field("stars") + 1)
        t.upsert(Friend, "n", "m", since=7)
    assert (g.get(Member, email="o@o.o").id, g.get(Member, email="new@y.z").id) == ("o", "m")
    assert (g.get(Member, "n").pages, g.edge(Likes, "m", "p").stars, g.edge(Friend, "m", "n").since) == (1, 4, 7)
    assert g.edge(Likes, "n", "p").title == "News"
    with pytest.raises(InvalidValue, match=r"Member\.pages is a managed field"):
        g.upsert(Member, "m", pages=3)
    with pytest.raises(ConditionFailed, match="Member 'q', which does not exist"):
        g.upsert(Member, "q", name="x", only_if=field("name") == "y")
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.upsert(Member, "q", name="x", only_if=field("name") == "y")
    assert error.value.reasons[0].error is ConditionFailed
    assert g.get(Member, "q") is None
    with g.transaction() as t:
        t.upsert(Member, "q", name="x", only_if=~field("name").exists())
    assert g.upsert(Member, "r", name="x", only_if=~field("name").exists()).name == g.get(Member, "q").name == "x"


# --- what classes and other programs make of it ------------------------------------------------


class Bounded(Node):
    id: str
    left: Annotated[int, Field(ge=0)] = 2


class Renamed(Node):
    id: str
    count: Annotated[int, Field(validation_alias=AliasChoices("count", "number"), serialization_alias="count")] = 0
    other: int = 0


class Marked(Node):
    id: str
    tags: set[str] = {"new"}
    other: int = 0


class Span(Node):
    id: str
    low: int = 0
    high: int = 9

    @model_validator(mode="after")
    def _in_order(self) -> Span:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Signed(Node):
    id: str
    by: Annotated[str, Immutable()]
    text: str = ""


class Placed(Node):
    id: str
    country: str = "PT"
    city: str | None = "Porto"


def opened(*models: Any, layout: Any = None) -> Graph:
    return Graph(":memory:", models, layout)


def test_bounds_hold_for_new_and_for_stored_values() -> None:
    g = opened(Bounded)
    with pytest.raises(InvalidValue, match="Bounded '1' does not exist, and cannot be made: left"):
        g.upsert(Bounded, "1", left=field("left") - 3)
    assert g.upsert(Bounded, "1", left=field("left") - 2).left == 0
    with pytest.raises(ConditionFailed):
        g.upsert(Bounded, "1", left=field("left") - 1)
    g.put(Bounded(id="2", left=8))
    assert g.upsert(Bounded, "2", left=field("left") - 3).left == 5


def test_values_under_former_names_and_empty_sets_are_not_lost() -> None:
    g = opened(Renamed, Marked)
    key = g._layout.node_key(g._layout.schema.node(Renamed), "1")
    g._store.execute(
        (Put("adjoin", {**key, "number": {"N": "4"}, "other": {"N": "1"}, "EntityType": {"S": "RENAMED"}}),)
    )
    assert g.upsert(Renamed, "1", other=2).count == 4
    g.put(Marked(id="1", tags=set()))
    assert g.upsert(Marked, "1", other=1).tags == set()
    assert g.upsert(Marked, "2", other=1).tags == {"new"}
    assert g.upsert(Marked, "3", tags=field("tags").add({"x"})).tags == {"new", "x"}
    with g.meter() as meter:
        assert g.upsert(Marked, "4", tags={"z"}).tags == {"z"}
    assert meter.requests == 1, "a set that the call gives needs no default"


def test_a_class_that_checks_fields_together() -> None:
    g = opened(Span)
    with pytest.raises(InvalidValue, match="low is above high"):
        g.upsert(Span, "1", low=10)
    assert g.upsert(Span, "1", high=20).low == 0
    assert g.upsert(Span, "1", low=10).high == 20


def test_an_immutable_field_without_a_default_is_refused_with_the_reason() -> None:
    g = opened(Signed)
    with pytest.raises(InvalidValue, match=r"Signed\.by is immutable and has no default"):
        g.upsert(Signed, "1", text="x")


def test_an_item_is_not_put_into_an_index_by_a_default() -> None:
    layout = AdjacencyList(keys={Placed: Keys(reverse_partition="PLACES", reverse_sort="{city}#{id}")})
    g = opened(Placed, layout=layout)
    g.put(Placed(id="1", city=None))
    assert g.upsert(Placed, "1", country="ES").city is None
    assert g.upsert(Placed, "2", country="ES").city == "Porto"
    items = {item["PK"]["S"]: item for change in g.changes() if (item := change.new_item)}
    assert ["GSI1SK" in items[f"PLACED#{id}"] for id in "12"] == [False, True]


def test_an_item_that_has_no_version_counts_as_one_with_the_first() -> None:
    g = opened(User)
    g.put(User(id="1", name="Jo"))
    key = g._layout.node_key(g._layout.schema.node(User), "1")
    g._store.execute((Update("adjoin", key, (Remove(attribute("revision")),)),))
    assert g.upsert(User, "1", name="Ann").revision == 4


def test_an_item_that_its_class_cannot_read_stays_as_it_is() -> None:
    g = opened(User)
    g.put(User(id="1", name="Jo"))
    key = g._layout.node_key(g._layout.schema.node(User), "1")
    g._store.execute((Update("adjoin", key, (Set(attribute("level"), Value({"S": "many"})),)),))
    with pytest.raises(InvalidItem):
        g.upsert(User, "1", name="Ann")
    with pytest.raises((InvalidItem, TransactionCanceled)), g.transaction() as t:
        t.upsert(User, "1", name="Ann")
    g._store.execute((Update("adjoin", key, (Set(attribute("level"), Value({"S": "7"})),)),))
    assert g.upsert(User, "1", name="Ann").level == 7
    with g.transaction() as t:
        t.upsert(User, "1", name="Anna")
    assert g.get(User, "1") == User(id="1", name="Anna", level=7, revision=5)


class Vehicle(Node, discriminator="kind"):
    id: str
    kind: str = ""
    wheels: int = 0


class Car(Vehicle):
    kind: Literal["car"] = "car"


class Truck(Vehicle):
    kind: Literal["truck"] = "truck"


def test_a_node_of_another_class_of_the_family_stays() -> None:
    g = opened(Vehicle, Car, Truck)
    assert g.upsert(Car, "1", wheels=4) == Car(id="1", wheels=4)
    with pytest.raises(AlreadyExists, match="Truck '1'"):
        g.upsert(Truck, "1", wheels=6)
    assert g.upsert(Car, "1", wheels=field("wheels") + 1).wheels == 5


def test_several_threads_count_every_visit(tmp_path: Any) -> None:
    with Graph(f"{tmp_path / 'g.db'}?durability=process", MODELS) as g:

        def visit() -> None:
            for _ in range(20):
                g.upsert(User, "1", name="Jo", visits=field("visits") + 1)

        threads = [threading.Thread(target=visit) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        found = g.get(User, "1")
        assert found is not None
        assert (found.visits, found.revision) == (80, 82)


def test_a_relative_change_starts_from_the_default_of_what_an_older_item_lacks() -> None:
    class Older(Node, label="NOTE"):
        id: str

    class Newer(Node, label="NOTE"):
        id: str
        likes: int = 10
        price: Decimal = Decimal("1.5")
        words: list[str] = ["a"]

    g = opened(Newer)
    other = Graph(g._store, [Older])
    other.put(Older(id="1"))
    changed = g.update(
        Newer, "1", likes=field("likes") + 1, price=field("price") - Decimal("0.5"), words=field("words").append("b")
    )
    assert (changed.likes, changed.price, changed.words) == (11, Decimal(1), ["a", "b"])


def test_upsert_can_be_explained() -> None:
    g = opened(*MODELS, Member, Likes, Friend)
    assert len(g.explain(g.upsert, User, "1", name="Jo").requests) == 1
    assert len(g.explain(g.upsert, Member, "1", name="Jo").requests) == 2
    with pytest.raises(NotFound):
        g.update(User, "1", name="x")


class Session(Node):
    id: str
    until: Annotated[datetime | None, Expires()] = None


class Took(Edge[Session, Page], key=("term",)):
    term: str
    mark: int = 1


class Loose(Edge[Page, Page], key=("number",)):
    number: int
    note: str = ""


def test_edges_of_nodes_that_expire_and_edges_with_keys() -> None:
    g = opened(Session, Page, Took)
    assert g.upsert(Took, "s", "p", term="a", mark=field("mark") + 1) == Took(source="s", target="p", term="a", mark=2)
    assert g.upsert(Took, "s", "p", term="a", mark=field("mark") + 1).mark == 3
    assert g.upsert(Took, "s", "p", term="b", mark=7).term == "b"
    items = [item for change in g.changes() if (item := change.new_item)]
    assert all(WRITTEN in item for item in items), "as put stores it"


class Opened(Edge[Page, Session]):
    mark: int = 1


@pytest.mark.parametrize(("model", "key"), [(Took, {"term": "a"}), (Opened, {})])
def test_a_change_does_not_say_when_an_edge_was_written(model: type[Any], key: dict[str, Any]) -> None:
    """The edge was stored before its node could expire, and is as old after the change."""
    g = opened(Session, Page, Took, Opened)
    g.put(model(source="a", target="b", **key))
    layout = g._layout
    stored = layout.edge_key(layout.schema.edge(model), "a", "b", key)
    g._store.execute((Update("adjoin", stored, (Remove(attribute(WRITTEN)),)),))
    assert g.upsert(model, "a", "b", **key, mark=5).mark == 5
    (response,) = g._store.execute((Get("adjoin", stored),))
    assert isinstance(response, ItemResponse)
    assert response.item is not None
    assert WRITTEN not in response.item


def test_an_edge_whose_key_does_not_tell_its_target() -> None:
    keys: dict[type[Any], Keys] = {Loose: Keys(sort="LINE#{number:03}", attributes={"product_id": "{target.id}"})}
    g = opened(Page, Loose, layout=AdjacencyList(keys=keys))
    assert g.upsert(Loose, "a", "b", number=1, note="x").target == "b"
    assert g.upsert(Loose, "a", "b", number=1, note="y").note == "y"
    with pytest.raises(AlreadyExists):
        g.upsert(Loose, "a", "c", number=1, note="z")
    found = g.edge(Loose, "a", "b", number=1)
    assert found is not None
    assert found.note == "y"


@pytest.mark.parametrize("is_gone", [True, False])
@pytest.mark.parametrize("is_together", [True, False])
def test_an_edge_with_the_mark_of_a_delete(is_gone: bool, is_together: bool) -> None:
    g = opened(*MODELS)
    g.put(Seen(source="u", target="p", times=7, note="old"))
    layout = g._layout
    key = layout.edge_key(layout.schema.edge(Seen), "u", "p", {})
    g._store.execute((Update("adjoin", key, (Set(attribute(DELETING), Value({"SS": ["token:PAGE#p"]})),)),))
    if is_gone:
        g._store.execute((Put("adjoin", layout.deletion_key("PAGE#p") | {TOKENS: {"SS": ["token"]}}),))
    if is_together:
        with g.transaction() as t:
            t.upsert(Seen, "u", "p", note="new")
    else:
        g.upsert(Seen, "u", "p", note="new")
    found = g.edge(Seen, "u", "p")
    assert found == Seen(source="u", target="p", times=0 if is_gone else 7, note="new"), "a hidden edge counts as none"
