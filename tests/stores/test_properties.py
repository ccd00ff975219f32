"""Whatever keys and items there are: order, ranges and round trips, against plain Python."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin.requests import CreateTable, DropTable, Put, Query, SortCondition
from adjoin.stores.items import normal_attribute, normal_item
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.keys import after_prefix, number_key
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


names = texts.filter(lambda name: name not in ("PK", "SK"))


@given(st.dictionaries(names, attributes, max_size=5), texts.filter(bool), texts.filter(bool))
def test_any_item_comes_back_as_it_was(memory: SQLiteStore, rest: Item, pk: str, sk: str) -> None:
    whole = {"PK": s(pk), "SK": s(sk), **rest}
    put(memory, "Items", whole)
    assert stored(memory, "Items", {"PK": s(pk), "SK": s(sk)}) == whole
    assert normal_item(whole) == (whole, item_size(whole))


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
