"""Daily deals of many brands, as books on DynamoDB draw them: everything of one day in one partition of an index.

    PK                  SK                  GSI1PK                      GSI2PK                            GSI1SK, GSI2SK
    DEAL#k1             DEAL#k1             DEALS#2024-02-01T00:00:00Z  BRAND#ACME#2024-02-01T00:00:00Z   DEAL#k1
    BRANDS              BRANDS
    BRAND#ACME          BRAND#ACME
    BRANDLIKE#ACME#ann  BRANDLIKE#ACME#ann
    BRANDWATCH#ACME     USER#ann
    MESSAGES#ann        MESSAGE#m2          MESSAGES#ann                                                  MESSAGE#m2

The keys of a deal have the day on which it was made, in the form of a time. A message is in GSI1 until it is read, and
UserIndex holds users and nothing else. The type attribute has the name of each class.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Annotated, Any, Self

import pytest
from pydantic import Field, model_validator
from pydantic.alias_generators import to_pascal

from adjoin import AdjacencyList, AlreadyExists, Child, Edge, Graph, Index, InvalidModel, Keys, Node, Stored, field
from adjoin.fields import Predicate
from adjoin.values import Item
from tests.designs.table_of_items import STORES, asked, at, filled, in_order, item, others, rewritten, stored
from tests.servers.open import Stores

DAY = "%Y-%m-%dT00:00:00Z"


class Deal(Node, label="Deal", alias_generator=to_pascal):
    id: str
    title: str
    brand: str
    price: Decimal
    created: Annotated[dt.datetime, Stored("%Y-%m-%dT%H:%M:%SZ")] = Field(alias="CreatedAt")


class Brand(Node, key="name", label="Brand", alias_generator=to_pascal):
    name: str
    likes: int = Field(0, alias="LikesCount")


class Brands(Node, key=(), label="Brands", alias_generator=to_pascal):
    brands: set[str]


class User(Node, key="username", label="User", alias_generator=to_pascal):
    username: str
    name: str
    user_index: str


class BrandLike(Edge[User, Brand], label="BrandLike"): ...


class BrandWatch(Edge[Brand, User], label="BrandWatch"): ...


class Message(Child[User], label="Message", alias_generator=to_pascal):
    id: str
    subject: str
    unread: bool = True
    unread_of: str | None = Field(None, alias="GSI1PK")

    @model_validator(mode="after")
    def _keep_key(self) -> Self:
        self.__dict__["unread_of"] = f"MESSAGES#{self.parent}" if self.unread else None
        return self


MODELS: list[Any] = [Deal, Brand, Brands, User, BrandLike, BrandWatch, Message]
LIKE = "BRANDLIKE#{target.name}#{source.username}"
LAYOUT = AdjacencyList(
    table="Deals",
    type_attribute="Type",
    reverse=None,
    indexes=[
        Index("GSI1", "GSI1PK", "GSI1SK"),
        Index("GSI2", "GSI2PK", "GSI2SK"),
        Index("UserIndex", "UserIndex"),
    ],
    keys={
        Deal: Keys(
            "DEAL#{id}",
            "DEAL#{id}",
            indexes={
                "GSI1": (f"DEALS#{{created:{DAY}}}", "DEAL#{id}"),
                "GSI2": (f"BRAND#{{brand:upper}}#{{created:{DAY}}}", "DEAL#{id}"),
            },
        ),
        Brand: Keys("BRAND#{name}", "BRAND#{name}"),
        Brands: Keys("BRANDS", "BRANDS"),
        User: Keys("USER#{username}", "USER#{username}", attributes={"Username": "{username}"}),
        BrandLike: Keys(LIKE, LIKE),
        BrandWatch: Keys("BRANDWATCH#{source.name}", "USER#{target.username}"),
        Message: Keys("MESSAGES#{parent.username}", "MESSAGE#{id}", indexes={"GSI1": (None, "MESSAGE#{id}")}),
    },
)


def deal(id: str, brand: str, day: int, hour: int = 13) -> Item:
    of = f"2024-02-{day:02}T00:00:00Z"
    values = {"Title": id.title(), "Brand": brand, "Price": Decimal("9.5"), "Type": "Deal"}
    values |= {"CreatedAt": f"2024-02-{day:02}T{hour:02}:00:00Z", "GSI1PK": f"DEALS#{of}", "GSI1SK": f"DEAL#{id}"}
    return item(f"DEAL#{id}", f"DEAL#{id}", **values, GSI2PK=f"BRAND#{brand.upper()}#{of}", GSI2SK=f"DEAL#{id}")


def user(name: str) -> Item:
    key = f"USER#{name}"
    return item(key, key, Username=name, Name=name.title(), UserIndex=key, Type="User")


def message(id: str, *, unread: bool) -> Item:
    keys = {"GSI1PK": "MESSAGES#ann", "GSI1SK": f"MESSAGE#{id}"} if unread else {}
    return item("MESSAGES#ann", f"MESSAGE#{id}", Subject=id, Unread=unread, Type="Message", **keys)


KNOWN = [
    deal("k1", "Acme", 1),
    deal("k2", "Acme", 2, 0),
    deal("k3", "Sonic", 2),
    deal("k4", "Acme", 2, 23),
    deal("k5", "Acme", 4),
    item("BRANDS", "BRANDS", Brands={"ACME"}, Type="Brands"),
    item("BRAND#ACME", "BRAND#ACME", LikesCount=1, Type="Brand"),
    *map(user, ("ann", "bob")),
    item("BRANDLIKE#ACME#ann", "BRANDLIKE#ACME#ann", Type="BrandLike"),
    *(item("BRANDWATCH#ACME", f"USER#{name}", Type="BrandWatch") for name in ("ann", "bob")),
    message("m1", unread=False),
    message("m2", unread=True),
    message("m3", unread=True),
]
OTHERS = [
    item("DEAL#a#b", "DEAL#a#b", Type="Deal"),
    item("DEAL#k9", "DEAL#k9", Type="Coupon"),
    item("FRONTPAGE", "FRONTPAGE", FeaturedDeals=[{"Title": "x"}]),
]
SECOND = dt.datetime(2024, 2, 2, tzinfo=dt.UTC)
HOURS, LAST = dt.timedelta(hours=1), dt.timedelta(hours=24) - dt.timedelta(seconds=1)


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*KNOWN, *OTHERS]) as graph:
        yield graph


def ids(found: Iterable[Any]) -> list[str]:
    return [each.id for each in found]


def made(low: dt.datetime, high: dt.datetime) -> Predicate:
    return field("created").between(low, high)


def test_the_table_is_what_adjoin_would_have_written(g: Graph) -> None:
    assert rewritten(g) == stored(g) == in_order([*KNOWN, *OTHERS])
    assert others(g) == in_order(OTHERS)
    counts = [g.count(model) for model in MODELS]
    assert counts == [len(list(g.scan(model))) for model in MODELS] == [5, 1, 1, 2, 1, 2, 3]


def test_deals_of_a_day(g: Graph) -> None:
    """The whole day is one partition of an index, and a part of it is filtered; two days are two."""
    of_day = made(SECOND, SECOND + LAST)
    assert ids(asked(g, lambda: list(g.find(Deal, of_day)), 1)) == ["k2", "k3", "k4"]
    assert ids(asked(g, lambda: list(g.find(Deal, of_day).reverse().limit(2)), 1)) == ["k4", "k3"]
    assert ids(asked(g, lambda: list(g.find(Deal, of_day & (field("id") > "k2"), index="GSI1")), 1)) == ["k3", "k4"]
    assert ids(asked(g, lambda: list(g.find(Deal, made(SECOND + HOURS, SECOND + LAST))), 1)) == ["k3", "k4"]
    assert ids(asked(g, lambda: list(g.find(Deal, made(SECOND - HOURS * 24, SECOND + LAST))), 2)) == [
        "k1",
        "k2",
        "k3",
        "k4",
    ]
    assert asked(g, lambda: g.find(Deal, of_day).count(), 1) == 3
    of_acme = (field("brand") == "Acme") & of_day
    assert ids(asked(g, lambda: list(g.find(Deal, of_acme)), 1)) == ["k2", "k4"]
    plan = g.explain(g.find(Deal, of_acme))
    assert (plan.index, plan.partitions) == ("GSI2", ("BRAND#ACME#2024-02-02T00:00:00Z",))


def test_brands_and_who_likes_or_watches_them(g: Graph) -> None:
    assert asked(g, lambda: g.get(Brands, ()), 1).brands == {"ACME"}
    assert asked(g, lambda: g.edge(BrandLike, "ann", "ACME"), 1) is not None
    assert asked(g, lambda: g.edge(BrandLike, "bob", "ACME"), 1) is None
    assert [each.target for each in asked(g, lambda: list(g.out("ACME", BrandWatch)), 1)] == ["ann", "bob"]
    with pytest.raises(InvalidModel, match=r"give an index a partition key made of {source\.username}$"):
        g.out("ann", BrandLike)
    with pytest.raises(InvalidModel, match=r"made of .*, or delete with edges=\"found\", which leaves them"):
        g.delete(User, "bob")
    with g.transaction() as t:
        t.add(BrandLike(source="bob", target="ACME"))
        t.update(Brand, "ACME", likes=field("likes") + 1)
    assert at(g, "BRANDLIKE#ACME#bob", "BRANDLIKE#ACME#bob") == item(*["BRANDLIKE#ACME#bob"] * 2, Type="BrandLike")
    assert at(g, "BRAND#ACME", "BRAND#ACME") == item("BRAND#ACME", "BRAND#ACME", LikesCount=2, Type="Brand")
    with pytest.raises(AlreadyExists):
        g.add(BrandLike(source="bob", target="ACME"))


def test_messages_that_nobody_has_read(g: Graph) -> None:
    assert ids(asked(g, lambda: list(g.children("ann", Message).reverse()), 1)) == ["m3", "m2", "m1"]
    unread = g.find(Message, field("unread_of") == "MESSAGES#ann")
    assert ids(asked(g, lambda: list(unread), 1)) == ["m2", "m3"]
    g.update(Message, ("ann", "m2"), unread=False)
    assert at(g, "MESSAGES#ann", "MESSAGE#m2") == message("m2", unread=False)
    assert ids(unread) == ["m3"]
    assert asked(g, lambda: g.delete(Message, ("ann", "m3")), 1) is True
    assert unread.count() == 0


def test_all_users_by_an_index_that_holds_nothing_else(g: Graph) -> None:
    assert sorted(each.username for each in asked(g, lambda: list(g.index("UserIndex")), 1)) == ["ann", "bob"]


def test_a_deal_of_another_brand(g: Graph) -> None:
    g.update(Deal, "k1", brand="Sonic")
    assert at(g, "DEAL#k1", "DEAL#k1") == deal("k1", "Sonic", 1)
    g.put(Deal(id="k7", title="K7", brand="Acme", price=Decimal("9.5"), created=SECOND + HOURS * 13))
    assert at(g, "DEAL#k7", "DEAL#k7") == deal("k7", "Acme", 2)
