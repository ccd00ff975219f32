"""Where ledgers, ranks, markers and records lie."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Indexed, InvalidKey, Keys, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import indexed_text
from adjoin.layouts.managed_keys import without
from adjoin.layouts.own_items import COUNTED, LONGEST_RANK, Ledgers, digest_of, keys_on, rank_text
from adjoin.schema import Schema
from adjoin.units import MAX_SORT_KEY_SIZE
from adjoin.values import decode, encode


class Customer(Node):
    id: str


class Invoice(Node):
    id: str


class Placed(Edge[Customer, Invoice]):
    pass


@cache
def bound(tenant: str | None = None) -> BoundLayout:
    return AdjacencyList().bind(Schema([Customer, Invoice, Placed]), tenant)


def ledgers() -> Ledgers:
    return bound().ledgers


EDGE: dict[str, Any] = {"PK": {"S": "CUSTOMER#C1"}, "SK": {"S": "PLACED#INVOICE#I1"}}


def texts(key: Any) -> tuple[str, str]:
    return key["PK"]["S"], key["SK"]["S"]


def test_keys() -> None:
    found = [
        ledgers().ledger_key(EDGE, None),
        ledgers().ledger_key(EDGE, "INVOICE#I1"),
        ledgers().far_ledger_key("PLACED.out.far", EDGE, "INVOICE#I1"),
        ledgers().marker_key("CUSTOMER#C1"),
        ledgers().arrival_key("PLACED", "INVOICE#I1", EDGE),
        ledgers().record_key("MAINTAIN", "position"),
    ]
    assert [texts(key) for key in found] == [
        ("CUSTOMER#C1#=", "=E#PLACED#INVOICE#I1"),
        ("INVOICE#I1#=", "=E#PLACED#INVOICE#I1#CUSTOMER#C1"),
        ("INVOICE#I1#=", "=L#PLACED.out.far#CUSTOMER#C1#PLACED#INVOICE#I1"),
        ("CUSTOMER#C1#=", "=M"),
        ("INVOICE#I1#=", "=A#PLACED#CUSTOMER#C1#PLACED#INVOICE#I1"),
        ("#=MAINTAIN", "=position"),
    ]


@pytest.mark.parametrize("tenant", [None, "acme"])
def test_a_ledger_leads_back_to_its_edge(tenant: str | None) -> None:
    layout = bound(tenant)
    (item,) = layout.items(Placed(source="C1", target="I1"))
    edge = layout.key_of(item)
    source, target = layout.ends(layout.schema.edge(Placed), item)
    beside = layout.ledgers.ledger_key(edge, None)
    assert layout.ledgers.edge_key(beside, None) == edge
    assert layout.ledgers.node_beside(beside) == source
    afar = layout.ledgers.ledger_key(edge, target)
    assert layout.ledgers.edge_key(afar, len(source)) == edge
    assert layout.ledgers.node_beside(afar) == target


def test_what_is_too_long_for_a_key_ends_with_a_digest() -> None:
    room = MAX_SORT_KEY_SIZE - len("=E#")
    for length in (room - 1, room, room + 1, 1000 * room):
        keys = [ledgers().ledger_key({**EDGE, "SK": {"S": "x" * (length - 1) + end}}, None) for end in "ab"]
        sorts = [key["SK"]["S"] for key in keys]
        assert sorts[0] != sorts[1]
        assert all(len(sort) <= MAX_SORT_KEY_SIZE for sort in sorts)
        assert all(sort.startswith("=E#~") == (length > room) for sort in sorts)
    # It is bytes that count.
    assert ledgers().ledger_key({**EDGE, "SK": {"S": "é" * (room // 2 + 1)}}, None)["SK"]["S"].startswith("=E#~")


def test_ranks_of_a_life_lie_together() -> None:
    one = ledgers().rank_key("CUSTOMER#C1", "life", "rule", "p5", EDGE, "token1")
    other = ledgers().rank_key("CUSTOMER#C1", "life", "rule", "p5", EDGE, "token2")
    assert one != other
    for key in (one, other):
        (name, partition), sort = ledgers().ranks("CUSTOMER#C1", "life", "rule")
        assert key[name] == partition
        assert key["SK"]["S"].startswith(sort.operands[0]["S"])
        assert ledgers().generation_of_rank(key) == "life"
        assert key["SK"]["S"].startswith(ledgers().all_ranks("CUSTOMER#C1")[1].operands[0]["S"])
    assert not one["SK"]["S"].startswith(ledgers().ranks("CUSTOMER#C1", "life", "rul")[1].operands[0]["S"])


@pytest.mark.parametrize(
    "text", ["0", "7", "-7", "120", "-0.05", "123.45", "9" * 38, "1" + "0" * 125, f"0.{'0' * 129}1"]
)
def test_a_number_has_the_text_in_a_rank_that_it_has_in_an_index(text: str) -> None:
    assert rank_text({"N": text}) == indexed_text(decode({"N": text}))


@pytest.mark.parametrize("values", [[-5, 0, Decimal("0.5"), 3, 20, 100], ["", "a", "a b", "aa", "b"], [False, True]])
def test_values_of_ranks_have_their_order_as_text(values: list[Any]) -> None:
    spelled = [rank_text(encode(value)) for value in values]
    assert spelled == sorted(set(spelled))
    # The first one goes before the second.
    pairs = [rank_text(encode(one), encode(other)) for one in values for other in (1, 2)]
    assert pairs == sorted(set(pairs))


def test_what_has_no_rank() -> None:
    with pytest.raises(InvalidKey, match="a stored value of type L has no order"):
        rank_text({"L": []})
    assert rank_text({"S": "x" * LONGEST_RANK})
    with pytest.raises(InvalidKey, match="is too long to be put in order; use at most 600 bytes"):
        rank_text({"S": "x" * (LONGEST_RANK + 1)})


def test_digests_tell_items_apart() -> None:
    keys = [EDGE, {**EDGE, "SK": {"S": "PLACED#INVOICE#I2"}}, {"PK": {"S": "a"}, "SK": {"S": "bc"}}]
    digests = {digest_of(key) for key in [*keys, {"PK": {"S": "ab"}, "SK": {"S": "c"}}]}
    assert len(digests) == 4
    assert {len(digest) for digest in digests} == {32}


class Member(Node):
    id: str
    city: Annotated[str, Indexed()] = ""
    team: Annotated[str, Indexed()] = ""


class Knows(Edge[Member, Member]):
    since: Annotated[int, Indexed()] = 0
    rank: Annotated[int, Indexed()] = 0


@pytest.mark.parametrize("keys", [Keys("{id}", "m"), Keys("MEMBER#{id}", "m")])
def test_a_copy_is_told_apart_also_where_any_text_is_an_id(keys: Keys) -> None:
    """An id may not end as a copy's partition does. Then the end alone tells, for the copies of edges too."""
    layout = AdjacencyList(keys={Member: keys}).bind(Schema([Member, Knows]))
    entities: list[Any] = [Member(id="a", city="Rome", team="red"), Knows(source="a", target="b", since=1, rank=2)]
    for entity in entities:
        kind = layout.schema.node(Member) if isinstance(entity, Member) else layout.schema.edge(Knows)
        (item,) = layout.items(entity)
        copies = [satellite.key for satellite in layout.satellites_beside(kind, item)]
        assert len(copies) == 1
        assert [layout.is_bookkeeping(each) for each in (item, *copies)] == [False, True]


def test_a_rank_of_an_earlier_version_has_its_number_in_its_key() -> None:
    keys = [ledgers().untold_rank_key("CUSTOMER#C1", "now", "rule", "5", EDGE, number) for number in (0, 1)]
    assert [texts(key)[0] for key in keys] == ["CUSTOMER#C1#="] * 2
    ends = [texts(key)[1].removeprefix("=R#now#rule#5#") for key in keys]
    assert [len(end) for end in ends] == [20, 20]
    assert len({*ends}) == 2
    assert texts(ledgers().rank_key("CUSTOMER#C1", "now", "rule", "5", EDGE, "token123"))[1].endswith("token123")


def test_what_another_program_wrote_for_a_declaration_is_none() -> None:
    counted = {COUNTED: {"M": {"CUSTOMER.a": {"S": "one?"}, "CUSTOMER.b": {"N": "1"}, "CUSTOMER.c": {"S": "two"}}}}
    assert keys_on(counted) == {"one", "two"}
    assert keys_on({COUNTED: {"N": "1"}}) == set()
    assert keys_on({}) is None


def test_an_item_without_some_attributes() -> None:
    item = {"a": {"N": "1"}, "b": {"N": "2"}}
    assert without(item, ["a", "c"]) == {"b": {"N": "2"}}
    assert without(item, []) == item
    assert item == {"a": {"N": "1"}, "b": {"N": "2"}}
