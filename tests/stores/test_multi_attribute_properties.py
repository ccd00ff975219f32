"""Indexes with several attributes in their keys, whatever the keys, items and conditions: against plain Python."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin.requests import CreateTable, DropTable, Query, Scan, SortCondition, SortOperator, UpdateTable
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute, KeyType, TableDefinition
from adjoin.values import AttributeValue, Item
from tests.shares import examples
from tests.stores.examples import page, put, s

# Few values, so that items agree in the first attributes of their keys; the last text has no simple successor.
VALUES: dict[str, list[AttributeValue]] = {
    "S": [s(each) for each in ("a", "aa", "b", "b\0", "\ue000", "\U0010ffff")],
    "N": [{"N": each} for each in ("-10", "-1.5", "0", "2", "10")],
    "B": [{"B": b64encode(each).decode()} for each in (b"\0", b"\0\0", b"\x7f", b"\xff", b"\xff\xff")],
}
NAMES = "abcdefgh"
KINDS: tuple[KeyType, ...] = ("S", "N", "B")
TABLES = (
    TableDefinition("Items", KeyAttribute("PK"), KeyAttribute("SK", "N")),
    TableDefinition("Items", KeyAttribute("PK")),
)


def plain(value: AttributeValue) -> Any:
    """A key value as Python orders it: text by its bytes."""
    ((kind, content),) = value.items()
    return {"S": str.encode, "N": Decimal, "B": b64decode}[kind](content)  # type: ignore[operator]


HOLDS: dict[SortOperator, Callable[..., bool]] = {
    "=": lambda value, other: value == other,
    "<": lambda value, other: value < other,
    "<=": lambda value, other: value <= other,
    ">": lambda value, other: value > other,
    ">=": lambda value, other: value >= other,
    "between": lambda value, low, high: low <= value <= high,
    "begins_with": lambda value, prefix: value.startswith(prefix),
}


@st.composite
def definitions(draw: st.DrawFn) -> TableDefinition:
    """A table and an index over some attributes, among which may be keys of the table."""
    table = draw(st.sampled_from(TABLES))
    own = [*table.keys, *(KeyAttribute(name, draw(st.sampled_from(KINDS))) for name in NAMES)]
    keys = draw(st.permutations(own))
    partitions = draw(st.integers(1, 4))
    sorts = draw(st.integers(0, min(4, len(own) - partitions)))
    index = IndexDefinition.over("Idx", keys[:partitions], keys[partitions : partitions + sorts])
    return TableDefinition("Items", table.partition, table.sort, (index,), stream=draw(st.booleans()))


@st.composite
def items_of(draw: st.DrawFn, definition: TableDefinition) -> list[Item]:
    """Items with and without the keys of the index; most have them."""
    own = {key.name for key in definition.keys}
    items: dict[Any, Item] = {}
    for _ in range(draw(st.integers(0, 25))):
        item: Item = {}
        for key in definition.key_attributes:
            if key.name in own or draw(st.integers(0, 14)):
                # Of two values, so that there are many with the same first keys.
                item[key.name] = draw(st.sampled_from(VALUES[key.type][: 6 if key.name in own else 3]))
        items[tuple(plain(item[name]) for name in sorted(own))] = item
    return list(items.values())


@st.composite
def queries(draw: st.DrawFn, index: IndexDefinition, items: list[Item]) -> Query:
    """A query with conditions on the first sort keys, often such that an item fulfils all but the last."""
    like: Item = draw(st.sampled_from([{}, *items]))
    value = {key.name: like.get(key.name) or draw(st.sampled_from(VALUES[key.type][:3])) for key in index.keys}
    named = draw(st.integers(0, len(index.sorts)))
    equal = [key.name for key in (*index.partitions, *index.sorts[: max(named - 1, 0)])]
    sort = None
    if named:
        last = index.sorts[named - 1]
        operators = sorted(HOLDS.keys() - ({"begins_with"} if last.type == "N" else set()))
        operator: SortOperator = draw(st.sampled_from(operators))
        operands = [draw(st.sampled_from([value[last.name], *VALUES[last.type]]))]
        if operator == "between":
            operands = sorted([*operands, draw(st.sampled_from(VALUES[last.type]))], key=plain)
        sort = SortCondition(last.name, operator, tuple(operands))
    first, *others = draw(st.permutations(equal))
    pairs = tuple((name, value[name]) for name in others)
    return Query("Items", (first, value[first]), sort, index="Idx", equal=pairs, forward=draw(st.booleans()))


def entries(definition: TableDefinition, items: list[Item]) -> list[Item]:
    """The items in the index, in its order."""
    (index,) = definition.indexes
    keys = [key.name for key in (*index.keys, *definition.keys)]
    held = [item for item in items if all(key.name in item for key in index.keys)]
    return sorted(held, key=lambda item: [plain(item[name]) for name in keys])


def expected(definition: TableDefinition, items: list[Item], query: Query) -> list[Item]:
    found = [
        item
        for item in entries(definition, items)
        if all(plain(item[name]) == plain(value) for name, value in (query.partition, *query.equal))
        and (
            query.sort is None
            or HOLDS[query.sort.operator](plain(item[query.sort.attribute]), *map(plain, query.sort.operands))
        )
    ]
    return found if query.forward else found[::-1]


def pages(store: SQLiteStore, request: Query | Scan, limit: int) -> list[Item]:
    found: list[Item] = []
    start = None
    while True:
        kind = type(request)
        members = {name: getattr(request, name) for name in request.__slots__}
        response = page(store, kind(**{**members, "limit": limit, "start": start}))
        assert len(response.items) <= limit
        found += response.items
        start = response.last
        if start is None:
            return found
        last = response.items[-1]
        assert start == {name: last[name] for name in start}


@settings(deadline=None, max_examples=examples(50))
@given(st.data())
def test_an_index_of_several_keys_is_what_python_says(data: st.DataObject) -> None:
    definition = data.draw(definitions())
    items = data.draw(items_of(definition))
    (index,) = definition.indexes
    store = SQLiteStore(":memory:")
    is_late = data.draw(st.booleans(), "the index is made after the items")
    bare = TableDefinition("Items", definition.partition, definition.sort, (), stream=definition.stream)
    store.execute([CreateTable(bare if is_late else definition)])
    put(store, "Items", *items)
    if is_late:
        store.execute([UpdateTable("Items", add_indexes=(index,))])
    for query in data.draw(st.lists(queries(index, items), min_size=1, max_size=4)):
        wanted = expected(definition, items, query)
        assert page(store, query).items == wanted
        assert pages(store, query, data.draw(st.integers(1, 5))) == wanted
    scanned = pages(store, Scan("Items", index="Idx"), data.draw(st.integers(1, 5)))
    assert scanned == entries(definition, items)
    total = data.draw(st.integers(1, 3))
    parts = [pages(store, Scan("Items", index="Idx", segment=(each, total)), 2) for each in range(total)]
    assert sorted(str(item) for part in parts for item in part) == sorted(map(str, scanned))
    store.execute([DropTable("Items")])
    store.close()
