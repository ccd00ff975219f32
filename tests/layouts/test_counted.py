"""What a node says of the declarations that its values are of, and which of its values are believed."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Edge, Node
from adjoin.aggregates import Avg, Count, Sum
from adjoin.declarations import rules_of
from adjoin.layouts.own_items import COUNTED, at_birth, believed, is_of, keys_on, when_counted
from adjoin.rules import Rules, Standing
from adjoin.schema import Schema


class Person(Node):
    id: str
    friends: Annotated[int, Count("Knows")] = 0
    weight: Annotated[int, Sum("Knows", field="weight")] = 0


class Club(Node):
    id: str
    members: Annotated[int, Count("Member")] = 0


class Knows(Edge[Person, Person]):
    weight: int = 0


class Member(Edge[Person, Club]):
    pass


SCHEMA = Schema([Person, Club, Knows, Member])
PERSON, CLUB = SCHEMA.node(Person), SCHEMA.node(Club)
FRIENDS, WEIGHT = "PERSON.friends", "PERSON.weight"
BOTH = frozenset({FRIENDS, WEIGHT})
KEYS = {rule.name: rule.key for rule in rules_of(SCHEMA).declared}
NODE: dict[str, Any] = {"PK": {"S": "PERSON#a"}, "friends": {"N": "3"}, "weight": {"N": "5"}}


def standing(**names: Any) -> Rules:
    rules = rules_of(SCHEMA)
    rules.standing = Standing(**names)
    return rules


def naming(keys: dict[str, str]) -> dict[str, Any]:
    """The node, with what it says of its values."""
    return NODE | {COUNTED: {"M": {name: {"S": key} for name, key in keys.items()}}}


def fields(item: dict[str, Any]) -> set[str]:
    return item.keys() & {"friends", "weight"}


@pytest.mark.parametrize(
    ("names", "item", "shown"),
    [
        # Nothing was ever declared otherwise.
        ({}, NODE, {"friends", "weight"}),
        # Of one nothing is counted yet.
        ({"due": frozenset({FRIENDS})}, NODE, {"weight"}),
        # It was declared otherwise before, and the node does not say that its value is the new one's.
        ({"listed": frozenset({FRIENDS})}, NODE, {"weight"}),
        ({"listed": BOTH}, naming({FRIENDS: KEYS[FRIENDS]}), {"friends"}),
        ({"listed": BOTH}, naming({FRIENDS: "other", WEIGHT: KEYS[WEIGHT]}), {"weight"}),
        ({}, naming({FRIENDS: "other"}), {"weight"}),
        # It was born while a rebuild ran: its values are right once that has ended, and not before.
        (
            {"listed": BOTH, "unfinished": BOTH},
            naming({FRIENDS: f"{KEYS[FRIENDS]}?", WEIGHT: KEYS[WEIGHT]}),
            {"weight"},
        ),
        ({"listed": BOTH, "due": BOTH}, naming({FRIENDS: f"{KEYS[FRIENDS]}?", WEIGHT: KEYS[WEIGHT]}), {"weight"}),
        ({"listed": BOTH}, naming({FRIENDS: f"{KEYS[FRIENDS]}?", WEIGHT: "other?"}), {"friends"}),
        ({"listed": BOTH, "unfinished": frozenset({WEIGHT})}, naming({FRIENDS: f"{KEYS[FRIENDS]}?"}), {"friends"}),
    ],
)
def test_what_is_believed(names: dict[str, frozenset[str]], item: dict[str, Any], shown: set[str]) -> None:
    found = believed(standing(**names), PERSON, item)
    assert fields(found) == shown
    assert found.keys() - {"friends", "weight"} == item.keys() - {"friends", "weight"}
    # A field of the same name in another class is no matter.
    assert believed(standing(**names), CLUB, item) == item


@pytest.mark.parametrize(
    ("listed", "unfinished", "born", "counted"),
    [
        (frozenset(), frozenset(), {}, {}),
        (frozenset(), BOTH, {}, {}),
        (BOTH, frozenset(), KEYS, KEYS),
        (frozenset({WEIGHT}), frozenset(), {WEIGHT: KEYS[WEIGHT]}, {WEIGHT: KEYS[WEIGHT]}),
        (BOTH, frozenset({WEIGHT}), {FRIENDS: KEYS[FRIENDS], WEIGHT: f"{KEYS[WEIGHT]}?"}, KEYS),
    ],
)
def test_what_a_node_names(
    listed: frozenset[str], unfinished: frozenset[str], born: dict[str, str], counted: dict[str, str]
) -> None:
    rules = standing(listed=listed, unfinished=unfinished)

    def said(keys: dict[str, str]) -> Any:
        named = {name: {"S": key} for name, key in keys.items() if name in BOTH}
        return {"M": named} if named else None

    assert at_birth(rules, PERSON) == said(born)
    assert when_counted(rules, PERSON) == said(counted)
    assert at_birth(rules, CLUB) is None
    assert when_counted(rules, CLUB) is None


def test_the_keys_that_a_node_names() -> None:
    assert keys_on(NODE) is None
    assert keys_on(naming({})) == set()
    assert keys_on(naming({FRIENDS: "one", WEIGHT: "two?"})) == {"one", "two"}


@pytest.mark.parametrize(
    ("keys", "listed", "expected"),
    [
        ({}, frozenset(), True),
        ({}, frozenset({FRIENDS}), False),
        ({FRIENDS: KEYS[FRIENDS]}, frozenset({FRIENDS}), True),
        ({FRIENDS: f"{KEYS[FRIENDS]}?"}, frozenset({FRIENDS}), True),
        ({FRIENDS: "other"}, frozenset(), False),
    ],
)
def test_whose_a_value_is(keys: dict[str, str], listed: frozenset[str], expected: bool) -> None:
    rules = standing(listed=listed)
    rule = next(rule for rule in rules.declared if rule.name == FRIENDS)
    assert is_of(rules, rule, naming(keys) if keys else NODE) == expected


class Shop(Node):
    id: str
    price: Annotated[Decimal | None, Avg("Sold", field="price")] = None
    sold: Annotated[int, Count("Sold")] = 0


class Sold(Edge[Shop, Club]):
    price: int = 0


class Stall(Node):
    id: str
    price: Annotated[Decimal | None, Avg("Lent", field="price")] = None


class Lent(Edge[Stall, Club]):
    price: int = 0


def test_a_mean_is_believed_if_its_sum_is() -> None:
    schema = Schema([Shop, Stall, Club, Sold, Lent, Person, Knows, Member])
    rules = rules_of(schema)
    shop = schema.node(Shop)
    attributes = {mean.attribute for mean in rules.means if mean.node is shop}
    item: dict[str, Any] = {name: {"N": "1"} for name in (*attributes, "sold", "other")}
    rules.standing = Standing(due=frozenset({"SHOP.price"}))
    left = believed(rules, shop, item)
    assert attributes
    assert left.keys() == {"sold", "other"}
    # What the other class lacks is no matter.
    rules.standing = Standing(due=frozenset({"STALL.price", "SHOP.sold"}))
    assert believed(rules, shop, item).keys() == {*attributes, "other"}
