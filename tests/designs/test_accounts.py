"""Accounts and logins as other programs write them: key prefixes, words in the type attribute and a time to live that
have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic.alias_generators import to_camel

from adjoin import (
    AdjacencyList,
    Child,
    Edge,
    Expires,
    Graph,
    Index,
    InvalidItem,
    InvalidModel,
    Keys,
    Node,
    NotFound,
    TransactionCanceled,
    field,
)
from adjoin.aggregates import Count
from adjoin.requests import Put
from tests.designs.table_of_others import STORES, filled, item, stored
from tests.servers.open import Stores


class User(Node, alias_generator=to_camel):
    id: str
    display_name: str
    logins: Annotated[int, Count("LoggedIn")] = 0


class Device(Node, alias_generator=to_camel):
    id: str


class Token(Child[User], alias_generator=to_camel):
    id: str
    expires_at: Annotated[int | None, Expires()] = None


class LoggedIn(Edge[User, Device], key=("year",), alias_generator=to_camel):
    year: int
    times: int = 1


MODELS: list[Any] = [User, Device, Token, LoggedIn]
LAYOUT = AdjacencyList(
    table="Accounts",
    partition_key="pk",
    sort_key="sk",
    type_attribute="entityType",
    reverse=Index("ByDevice", "gsi1pk", "gsi1sk"),
    keys={
        User: Keys("u#{id}", "profile", type="USER_V2"),
        Device: Keys("d#{id}", "profile", type="device"),
        Token: Keys(sort="t#{id}", type="session token"),
        LoggedIn: Keys(
            sort="d#{target.id}#{year}",
            reverse_partition="d#{target.id}",
            reverse_sort="u#{source.id}#{year}",
            type="USER_DEVICE",
        ),
    },
)
ITEMS = [
    item(pk="u#1", sk="profile", entityType="USER_V2", displayName="Ines"),
    item(pk="u#1", sk="t#a", entityType="session token", expiresAt=4_000_000_000),
    item(pk="u#1", sk="t#b", entityType="session token"),
    item(pk="u#1", sk="d#x#2024", entityType="USER_DEVICE", gsi1pk="d#x", gsi1sk="u#1#2024", times=3),
    item(pk="u#2", sk="profile", displayName="Ola"),
    item(pk="u#3", sk="profile", entityType="USER", displayName="the class before"),
    item(pk="d#x", sk="profile", entityType="device"),
]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, ITEMS) as graph:
        yield graph


def test_words_of_the_type_attribute(g: Graph) -> None:
    assert g.get(User, "1") == User(id="1", display_name="Ines")
    assert g.get(User, "2") == User(id="2", display_name="Ola")
    with pytest.raises(InvalidItem, match="an item of another type"):
        g.get(User, "3")
    assert [each.target for each in g.out(User.ref("1"), LoggedIn)] == ["x"]
    assert [each.source for each in g.into(Device.ref("x"), LoggedIn)] == ["1"]
    assert sorted(each.id for each in g.scan(User)) == ["1", "2"]
    assert (g.count(User), g.count(Device), g.count(Token), g.count(LoggedIn)) == (2, 1, 2, 1)
    assert [each["displayName"] for each in g.scan().others] == ["the class before"]


def test_what_is_written_has_them(g: Graph) -> None:
    g.put_many([User(id="9", display_name="Bo"), Token(parent="9", id="c", expires_at=4_000_000_001)])
    g.connect(LoggedIn, "9", "x", year=2025)
    assert stored(g, "u#9", "profile") == item(pk="u#9", sk="profile", entityType="USER_V2", displayName="Bo")
    token = item(pk="u#9", sk="t#c", entityType="session token", expiresAt=4_000_000_001)
    assert stored(g, "u#9", "t#c") == token
    login = item(pk="u#9", sk="d#x#2025", entityType="USER_DEVICE", gsi1pk="d#x", gsi1sk="u#9#2025", times=1)
    assert stored(g, "u#9", "d#x#2025") == login


def test_an_update_without_reading_asks_for_the_word(g: Graph) -> None:
    assert g.update(User, "1", display_name="Inés").display_name == "Inés"
    assert g.update(User, "2", display_name="Olá").display_name == "Olá"
    with pytest.raises(NotFound, match="an item of another type"):
        g.update(User, "3", display_name="not a user of today")


def test_batch_jobs_read_the_word() -> None:
    with filled("embedded", Stores(), MODELS, LAYOUT, ITEMS) as g:
        g.rebuild()
        assert [g.get(User, id).logins for id in ("1", "2")] == [1, 0]  # type: ignore[union-attr]
        assert g.verify().faults == 0


def test_a_time_to_live_in_seconds(g: Graph) -> None:
    assert g.get(Token, ("1", "a")) == Token(parent="1", id="a", expires_at=4_000_000_000)
    assert g.get(Token, ("1", "b")) == Token(parent="1", id="b")
    assert g.update(Token, ("1", "b"), expires_at=4_000_000_002).expires_at == 4_000_000_002
    assert g.update(Token, ("1", "b"), expires_at=field("expires_at") + 60).expires_at == 4_000_000_062
    late = g.children("1", Token).where(field("expires_at") > 4_000_000_000)
    assert [each.id for each in late] == ["b"]
    assert g._layout.definition.ttl == "expiresAt"


def test_a_word_that_nothing_uses_is_refused() -> None:
    with pytest.raises(InvalidModel, match="has no type attribute; give it type_attribute="):
        Graph(":memory:", [User, Device, LoggedIn], AdjacencyList(keys={User: Keys(type="USER_V2")}))
    for word in ("", "{label}", 7):
        layout = AdjacencyList(type_attribute="T", keys={User: Keys(type=word)})  # type: ignore[arg-type]
        with pytest.raises(InvalidModel, match="must be text without placeholders"):
            Graph(":memory:", [User, Device, LoggedIn], layout)


def test_a_word_alone_leaves_the_templates_as_they_are() -> None:
    words: dict[type[Any], Keys] = {User: Keys(type="USER_V2"), LoggedIn: Keys(type="login")}
    with Graph(":memory:", [User, Device, LoggedIn], AdjacencyList(type_attribute="T", keys=words)) as g:
        g.put(LoggedIn(source="a#b", target="x", year=2024))
        (change,) = g.changes()
    assert change.new_item is not None
    assert change.new_item["PK"] == {"S": "USER#a%23b"}
    assert (change.new_item["year"], change.new_item["T"]) == ({"N": "2024"}, {"S": "login"})


def test_an_item_of_another_type_is_not_deleted(g: Graph) -> None:
    """It has the key of a user, but its word says that another program has another use for it."""
    of_another = item(pk="u#1", sk="t#z", entityType="session cookie")
    edge = item(pk="u#1", sk="d#x#2025", entityType="USER_PHONE", gsi1pk="d#x", gsi1sk="u#1#2025")
    g._store.execute([Put("Accounts", of_another), Put("Accounts", edge)])
    calls: list[Any] = [
        lambda: g.delete(User, "3"),
        lambda: g.delete(Token, ("1", "z")),
        lambda: g.disconnect(LoggedIn, "1", "x", year=2025),
    ]
    for call in calls:
        with pytest.raises(InvalidItem, match="an item of another type"):
            call()
    with pytest.raises(InvalidItem, match="an item of another type"), g.transaction() as t:
        t.delete(User, "3")
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.disconnect(LoggedIn, "1", "x", year=2025)
    assert stored(g, "u#3", "profile") == ITEMS[5]
    assert stored(g, "u#1", "t#z") == of_another
    assert stored(g, "u#1", "d#x#2025") == edge
    assert g.delete(User, "1") is True
    assert [stored(g, "u#1", sort) for sort in ("profile", "t#a", "t#b", "d#x#2024")] == [None] * 4
    assert stored(g, "u#1", "t#z") == of_another


def test_a_token_is_deleted_with_one_request(g: Graph) -> None:
    with g.meter() as meter:
        assert g.delete(Token, ("1", "a")) is True
    assert (meter.requests, meter.rcu) == (1, 0)
    assert stored(g, "u#1", "t#a") is None
    assert g.delete(Token, ("1", "a")) is False
