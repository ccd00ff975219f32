"""Whatever keys and items there are: order, ranges and round trips, against plain Python."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from orjson import dumps, loads

from adjoin.errors import InvalidRequest
from adjoin.items import NormalItem, check_item, normal_attribute, normal_item, plain_item
from adjoin.requests import CreateTable, DropTable, Get, Put, Query, SortCondition
from adjoin.stores.dynamodb.answers import are_plain
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.rows import after_prefix, number_key
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import AttributeValue, Item, canonical_number, item_size
from tests.stores.examples import page, put, s, stored

texts = st.text(st.characters(codec="utf-8"), max_size=8)
numbers = st.builds(
    lambda digits, exponent: canonical_number(Decimal(digits).scaleb(exponent)),
    st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-20, 20),
    st.integers(-100, 80),
)
# Few characters, so that prefixes and neighbours are frequent; the last ones have no simple successor.
near_texts = st.text("a\0b\ud7ff\ue000\U0010ffff", min_size=1, max_size=4)
near_bytes = st.lists(st.sampled_from([0, 1, 254, 255]), min_size=1, max_size=4).map(bytes)
near_numbers = st.integers(-30, 30).map(lambda each: canonical_number(Decimal(each) / 4))

scalars: st.SearchStrategy[AttributeValue] = st.one_of(
    texts.map(s),
    numbers.map(lambda each: {"N": each}),
    st.binary(max_size=8).map(lambda each: {"B": b64encode(each).decode()}),
    st.booleans().map(lambda each: {"BOOL": each}),
    st.just({"NULL": True}),
    st.sets(texts, min_size=1, max_size=4).map(lambda each: {"SS": sorted(each)}),
    st.sets(numbers, min_size=1, max_size=4).map(lambda each: {"NS": sorted(each)}),
    st.sets(st.binary(max_size=4), min_size=1, max_size=4).map(
        lambda each: {"BS": sorted(b64encode(raw).decode() for raw in each)}
    ),
)
attributes: st.SearchStrategy[AttributeValue] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: {"L": each})
        | st.dictionaries(texts, inner, max_size=3).map(lambda each: {"M": each})
    ),
    max_leaves=8,
)


@given(numbers, numbers)
def test_number_keys_order_as_numbers(left: str, right: str) -> None:
    assert (number_key(left) < number_key(right)) == (Decimal(left) < Decimal(right))
    assert (number_key(left) == number_key(right)) == (Decimal(left) == Decimal(right))


@given(st.one_of(near_texts, texts.filter(bool)), st.one_of(near_texts, texts))
def test_the_end_of_a_prefix_of_text(prefix: str, text: str) -> None:
    end = after_prefix(prefix)
    assert end is None or isinstance(end, str)
    within = text.encode() >= prefix.encode() and (end is None or text.encode() < end.encode())
    assert within == text.startswith(prefix)


@given(near_bytes, near_bytes)
def test_the_end_of_a_prefix_of_bytes(prefix: bytes, raw: bytes) -> None:
    end = after_prefix(prefix)
    assert end is None or isinstance(end, bytes)
    assert (raw >= prefix and (end is None or raw < end)) == raw.startswith(prefix)


@pytest.fixture(scope="module")
def memory() -> SQLiteStore:
    store = SQLiteStore(":memory:")
    store.execute([CreateTable(TableDefinition("Items", KeyAttribute("PK"), KeyAttribute("SK")))])
    return store


def vars_of(response: Any) -> dict[str, Any]:
    return {name: getattr(response, name) for name in ("item", "items") if hasattr(response, name)}


names = texts.filter(lambda name: name not in ("PK", "SK"))


@given(st.dictionaries(names, attributes, max_size=5), texts.filter(bool), texts.filter(bool))
def test_any_item_comes_back_as_it_was(memory: SQLiteStore, rest: Item, pk: str, sk: str) -> None:
    whole = {"PK": s(pk), "SK": s(sk), **rest}
    put(memory, "Items", whole)
    assert stored(memory, "Items", {"PK": s(pk), "SK": s(sk)}) == whole
    assert normal_item(whole) == (whole, item_size(whole))
    for request in (Get("Items", {"PK": s(pk), "SK": s(sk)}), Query("Items", ("PK", s(pk)))):
        sent = loads(dumps(vars_of(memory.text(request))))
        assert whole in (sent.get("item"), *sent.get("items", ())), "what is sent on as text is the item"


odd_numbers = st.sampled_from(["0", "-0", "007", "1.50", "100", "1200", "-12", "1e3", "0.5", "1" * 38, "1" * 39, "²"])
plain = st.one_of(
    st.text("ab é", max_size=4).map(s),
    (numbers | odd_numbers).map(lambda each: {"N": each}),
    st.sampled_from([{"BOOL": True}, {"BOOL": False}, {"NULL": True}, {"NULL": False}, {"BOOL": "true"}]),
)
broken: st.SearchStrategy[Any] = st.sampled_from(
    [None, [], {}, "S", 1, {"S": None}, {"S": 1}, {"N": 1}, {"S": "a", "N": "1"}, {"X": "y"}]
)


@given(st.dictionaries(st.text("abé", max_size=3), plain | broken | attributes, max_size=4))
def test_plain_items_are_what_the_rules_say(whole: Any) -> None:
    """An item that is taken for plain is in normal form, of that size; whatever JSON it was."""
    found = plain_item(whole)
    if found is not None:
        assert type(found) is NormalItem
        assert normal_item(dict(whole)) == (whole, found.size)
        assert normal_item(dict(whole))[0] == found == whole
        assert normal_item(found) == (found, found.size)


@given(
    st.dictionaries(st.text("abé\ud800", max_size=3), plain | broken | attributes | st.just(s("\udfff")), max_size=4)
)
@example({"\ud800": s("a")})
@example({"a": {"N": 1}})
@example({"a": {"L": [{"N": 1}]}})
@example({"a": {"M": {"b": {"N": 1}}}})
@example({"a": {"X": "1"}})
def test_an_item_is_refused_by_the_quick_check_as_by_the_rules(whole: Any) -> None:
    refused: list[str] = []
    for check in (normal_item, check_item):
        try:
            check(whole)
        except InvalidRequest as error:
            refused.append(str(error))
    assert len(refused) in (0, 2)
    assert len(set(refused)) < 2


@given(
    st.lists(st.dictionaries(st.text("abé", max_size=3), plain | broken | attributes, max_size=4) | broken, max_size=3)
)
@example([{"a": {"X": "1"}}])
@example([{"a": s("b"), "n": {"N": "1" * 42}}])
def test_what_is_taken_for_plain_is_not_refused(items: Any) -> None:
    if are_plain(items):
        for item in items:
            check_item(item)
    usual = [{"s": s("text"), "n": {"N": "7"}}] * 2
    assert are_plain(usual)
    assert not are_plain([*usual, {"b": {"BOOL": True}}])


@given(st.dictionaries(st.text("ab", min_size=1, max_size=3), numbers.map(lambda each: {"N": each}), max_size=4))
def test_items_of_ascii_and_numbers_are_plain(whole: Item) -> None:
    found = plain_item({**whole, "s": s("text"), "t": {"BOOL": False}, "n": {"NULL": True}})
    assert (found is not None) == all(_is_short(each["N"]) for each in whole.values())


def _is_short(number: str) -> bool:
    """Whether a canonical number is spelled in digits that are not too many to tell at a glance."""
    whole, _, fraction = number.lstrip("-").partition(".")
    return len(whole) <= (19 if fraction else 38) and len(fraction) <= 18


@given(attributes)
def test_normal_form_is_its_own_normal_form(attribute: AttributeValue) -> None:
    assert normal_attribute(normal_attribute(attribute)) == normal_attribute(attribute) == attribute


# --- queries against brute force ---------------------------------------------------------------

ORDER: dict[str, Callable[[str], Any]] = {"S": str.encode, "N": Decimal, "B": b64decode}
VALUES: dict[str, st.SearchStrategy[str]] = {
    "S": near_texts,
    "N": near_numbers,
    "B": near_bytes.map(lambda raw: b64encode(raw).decode()),
}


def satisfies(kind: str, operator: str, value: str, operands: list[str]) -> bool:
    order = ORDER[kind]
    found, first = order(value), order(operands[0])
    if operator == "between":
        return bool(first <= found <= order(operands[1]))
    if operator == "begins_with":
        return bool(found.startswith(first))
    results = {"=": found == first, "<": found < first, "<=": found <= first, ">": found > first, ">=": found >= first}
    return bool(results[operator])


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, list[tuple[str, str, str]], SortCondition | None, bool, int, bool]:
    kind = draw(st.sampled_from("SNB"))
    rows = draw(st.lists(st.tuples(st.sampled_from("pq"), VALUES[kind], VALUES[kind]), max_size=25))
    operators = ["=", "<", "<=", ">", ">=", "between"] + ([] if kind == "N" else ["begins_with"])
    operator = draw(st.sampled_from(operators))
    operands = draw(st.lists(VALUES[kind], min_size=1, max_size=1))
    if operator == "between":
        operands = sorted([*operands, draw(VALUES[kind])], key=ORDER[kind])
    condition = SortCondition("SK", operator, tuple({kind: each} for each in operands))  # type: ignore[arg-type]
    return (
        kind,
        rows,
        draw(st.none() | st.just(condition)),
        draw(st.booleans()),
        draw(st.integers(1, 6)),
        draw(st.booleans()),
    )


@settings(deadline=None)
@given(queries())
def test_queries_find_what_brute_force_finds(
    memory: SQLiteStore, drawn: tuple[str, list[tuple[str, str, str]], SortCondition | None, bool, int, bool]
) -> None:
    kind, rows, condition, forward, limit, indexed = drawn
    sort = KeyAttribute("SK", kind)  # type: ignore[arg-type]
    index = IndexDefinition("Idx", KeyAttribute("group"), KeyAttribute("ISK", kind))  # type: ignore[arg-type]
    memory.execute([CreateTable(TableDefinition("Queried", KeyAttribute("PK"), sort, (index,)))])
    try:
        items: dict[tuple[str, str], Item] = {
            (pk, sk): {"PK": s(pk), "SK": {kind: sk}, "ISK": {kind: isk}, "group": s("g")} for pk, sk, isk in rows
        }
        memory.execute([Put("Queried", each) for each in items.values()])
        order = ORDER[kind]
        if indexed:
            expected = sorted(
                items.values(), key=lambda each: (order(each["ISK"][kind]), each["PK"]["S"], order(each["SK"][kind]))
            )
            name, partition = "ISK", ("group", s("g"))
        else:
            expected = sorted(
                (each for (pk, _), each in items.items() if pk == "p"), key=lambda each: order(each["SK"][kind])
            )
            name, partition = "SK", ("PK", s("p"))
        if condition is not None:
            condition = SortCondition(name, condition.operator, condition.operands)
            operands = [each[kind] for each in condition.operands]
            expected = [each for each in expected if satisfies(kind, condition.operator, each[name][kind], operands)]
        if not forward:
            expected.reverse()

        found: list[Item] = []
        start = None
        while True:
            part = page(
                memory,
                Query(
                    "Queried",
                    partition,
                    condition,
                    index="Idx" if indexed else None,
                    limit=limit,
                    start=start,
                    forward=forward,
                ),
            )
            found += part.items
            start = part.last
            if start is None:
                break
        assert found == expected
    finally:
        memory.execute([DropTable("Queried")])
