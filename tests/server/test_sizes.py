"""Sizes on the short ways: an item counts the same bytes and units, and meets the same limits, as on the long ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjoin.errors import InvalidRequest, ItemTooLarge
from adjoin.items import NormalItem, normal_attribute, normal_item, plain_item
from adjoin.requests import BatchWrite, CreateTable, Delete, DescribeTable, Get, ItemResponse, Put, TableResponse
from adjoin.server.operations.interface import Operation
from adjoin.server.serving import Server, serve
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute, TableDefinition
from adjoin.units import MAX_BATCH_WRITE, MAX_ITEM_SIZE, MAX_NAME_SIZE
from adjoin.values import Item, item_size
from tests.server.test_protocol import ask
from tests.server.test_serving import TABLE, client
from tests.server.test_short import short_write
from tests.shares import examples

NUMBERS = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1).map(str),
    st.decimals(-(10**6), 10**6, places=3).map(lambda each: f"{each:f}"),
    st.sampled_from(
        ["0", "1", "-1", "10", "100", "0.1", "0.01", "-0.01", "12", "1.2", "120", "9" * 38, f"-{'9' * 38}"]
    ),
)
VALUES: Any = st.one_of(
    st.text(st.characters(max_codepoint=0x7F), max_size=8).map(lambda each: {"S": each}),
    NUMBERS.map(lambda each: {"N": each}),
    st.booleans().map(lambda each: {"BOOL": each}),
    st.just({"NULL": True}),
)
ITEMS: Any = st.dictionaries(st.text("abcXYZ_.-1", min_size=1, max_size=6), VALUES, max_size=8)


# --- bytes -------------------------------------------------------------------------------------


@given(ITEMS)
@example({"a": {"N": "0"}})
@example({"a": {"N": "-0.01"}, "b": {"N": "100"}, "c": {"BOOL": False}, "d": {"NULL": True}})
@settings(max_examples=examples(167), deadline=None)
def test_a_plain_item_has_the_size_of_any_item(item: Item) -> None:
    plain = plain_item(item)
    normal, size = normal_item(dict(item))
    assert (plain is None) == (normal != item or item == {"": {}})
    if plain is not None:
        assert plain.size == size == item_size(item)
        # Which nobody counts again.
        assert normal_item(plain) == (plain, plain.size)


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({}, 0),
        ({"a": {"S": ""}}, 1),
        ({"name": {"S": "value"}}, 9),
        ({"a": {"BOOL": True}}, 2),
        ({"a": {"BOOL": False}}, 2),
        ({"a": {"NULL": True}}, 2),
        ({"a": {"N": "0"}}, 2),
        ({"a": {"N": "5"}}, 3),
        ({"a": {"N": "-5"}}, 4),
        ({"a": {"N": "1234"}}, 4),
        ({"a": {"N": "9" * 38}}, 21),
        ({"a": {"S": "bc"}, "de": {"N": "1"}, "f": {"BOOL": True}, "g": {"NULL": True}}, 3 + 4 + 2 + 2),
    ],
)
def test_sizes_of_plain_items(item: Item, size: int) -> None:
    plain = plain_item(item)
    assert plain is not None
    assert (plain, plain.size) == (item, size)
    assert normal_item(item)[1] == size


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({"ä": {"S": "öü"}}, 2 + 4),
        ({"a": {"B": "YWI="}}, 1 + 2),
        ({"a": {"SS": ["b", "cd"]}}, 1 + 1 + 2),
        ({"a": {"NS": ["1", "22"]}}, 1 + 2 + 2),
        ({"a": {"BS": ["YQ==", "YWI="]}}, 1 + 1 + 2),
        ({"a": {"L": []}}, 1 + 3),
        ({"a": {"M": {}}}, 1 + 3),
        ({"a": {"L": [{"S": "bc"}, {"N": "1"}]}}, 1 + 3 + (1 + 2) + (1 + 2)),
        ({"a": {"M": {"b": {"S": "cd"}, "ef": {"BOOL": True}}}}, 1 + 3 + (1 + 1 + 2) + (1 + 2 + 1)),
        ({"a": {"L": [{"L": [{"NULL": True}]}]}}, 1 + 3 + 1 + 3 + 1 + 1),
        # Bytes that are spelled as a number would be.
        ({"a": {"B": "12345678"}}, 1 + 6),
        ({"a": {"L": [{"B": "12345678"}]}}, 1 + 3 + (1 + 6)),
        ({"a": {"M": {"b": {"B": "12345678"}}}}, 1 + 3 + (1 + 1 + 6)),
    ],
)
def test_sizes_of_other_items(item: Item, size: int) -> None:
    assert plain_item(item) is None
    assert normal_item(item) == (item, size)
    assert item_size(item) == size


def test_what_is_plain_ends_where_a_name_could_be_too_long() -> None:
    for text, is_plain in ((MAX_NAME_SIZE, True), (MAX_NAME_SIZE + 1, False)):
        for item in ({"a": {"S": "x" * (text - 1)}}, {"a" * (text - 1): {"S": "x"}}):
            assert (plain_item(item) is not None) == is_plain
    others: list[Any] = [
        {"": {"S": "x"}}, {"a": {"S": "ä"}}, {"ä": {"S": "a"}}, {"a": {"NULL": False}}, {"a": {"N": "1" * 42}},
        {"a": {"N": "01"}}, {"a": {"N": "1.0"}}, {"a": {"N": "-0"}}, {"a": {"N": ""}}, {"a": {"S": "b", "N": "1"}},
        {"a": {}}, {"a": {"L": []}}, {"a": {"S": None}}, {"a": {"BOOL": 1}},
    ]  # fmt: skip
    for other in others:
        assert plain_item(other) is None


# --- units -------------------------------------------------------------------------------------


def of_size(size: int, key: str = "a") -> Item:
    """An item of exactly so many bytes, with a number and a truth in it."""
    start: Item = {"PK": {"S": key}, "n": {"N": "1234"}, "b": {"BOOL": True}, "x": {"S": ""}}
    return {**start, "x": {"S": "x" * (size - item_size(start))}}


@pytest.fixture
def store() -> Iterator[SQLiteStore]:
    """Two tables alike: one that items are put into in one pass, and one where they take the long way."""
    opened = SQLiteStore(":memory:")
    key = KeyAttribute("PK", "S")
    opened.execute(
        [
            CreateTable(TableDefinition("Simple", key, stream=False)),
            CreateTable(TableDefinition("Streamed", key, stream=True)),
        ]
    )
    yield opened
    opened.close()


def told(store: SQLiteStore, table: str) -> tuple[int, int]:
    """Items and bytes of a table."""
    (described,) = store.execute([DescribeTable(table)])
    assert isinstance(described, TableResponse)
    return described.item_count, described.size


def put_into(store: SQLiteStore, table: str, item: Item) -> float:
    (response,) = store.execute([Put(table, item)])
    assert isinstance(response, ItemResponse)
    return sum(each.write for each in response.consumed)


SIZES = [30, 1023, 1024, 1025, 2048, 2049, 1024, 1023, 30, 4096, 4097, 65_000, 64, 64]


def test_one_pass_counts_as_the_long_way(store: SQLiteStore) -> None:
    largest = 0
    for number, size in enumerate(SIZES):
        item = of_size(size)
        assert item_size(item) == size
        plain = plain_item(item)
        assert plain is not None
        units = [put_into(store, "Simple", plain), put_into(store, "Streamed", dict(item))]
        largest = max(size, SIZES[number - 1] if number else 0)
        assert units == [-(-largest // 1024)] * 2, (SIZES[number - 1], size)
        assert told(store, "Simple") == told(store, "Streamed") == (1, size)
    (units_of_read,) = [
        sum(each.read for each in response.consumed)
        for response in store.execute([Get("Simple", {"PK": {"S": "a"}}, consistent=True)])
        if isinstance(response, ItemResponse)
    ]
    assert units_of_read == 1
    store.execute([Delete(table, {"PK": {"S": "a"}}) for table in ("Simple", "Streamed")])
    assert told(store, "Simple") == told(store, "Streamed") == (0, 0)


def test_batches_in_one_pass_count_as_the_long_way(store: SQLiteStore) -> None:
    for sizes in ((1024, 1025, 100), (1025, 1024, 100), (1025, 1024, 4000)):
        items = [of_size(size, str(number)) for number, size in enumerate(sizes)]
        units = []
        for table in ("Simple", "Streamed"):
            given = [plain_item(item) or pytest.fail("it is plain") if table == "Simple" else item for item in items]
            batch = BatchWrite(tuple(Put(table, item) for item in given))
            (response,) = store.execute([batch])
            units.append(sum(each.write for each in response.consumed))
        assert units[0] == units[1]
        assert told(store, "Simple") == told(store, "Streamed") == (3, sum(sizes))


# --- limits ------------------------------------------------------------------------------------


def numerous(size: int) -> Item:
    """An item of so many bytes that is plain though it is large: numbers count more bytes than a plain item's text."""
    item: Item = {"PK": {"S": "a"}}
    total = item_size(item)
    number = 0
    while total + 24 <= size:
        name = f"{number:x}"
        item[name] = {"N": "9" * 38}
        total += len(name) + 20
        number += 1
    item["PK"] = {"S": "a" * (1 + size - total)}
    return item


def test_the_largest_item(store: SQLiteStore) -> None:
    for size in (MAX_ITEM_SIZE - 1, MAX_ITEM_SIZE):
        item = numerous(size)
        plain = plain_item(item)
        assert plain is not None
        assert plain.size == item_size(item) == size
        assert put_into(store, "Simple", plain) == put_into(store, "Streamed", dict(item)) == 400
    over = numerous(MAX_ITEM_SIZE + 1)
    plain = plain_item(over)
    assert plain is not None
    said = []
    for table, item in (("Simple", plain), ("Streamed", dict(over))):
        with pytest.raises(
            ItemTooLarge, match="Item size has exceeded the maximum allowed size: 409601 bytes"
        ) as caught:
            put_into(store, table, item)
        said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(":memory:") as opened:
        client(opened).create_table(**TABLE)
        yield opened


def both_ways(server: Server, operation: str, body: dict[str, Any]) -> tuple[int, Any]:
    """The answer to a request that takes the short way, which is that of the same request on the long way."""
    target = f"DynamoDB_20120810.{operation}"
    read = short_write(operation).read
    longer = {**body, "ReturnConsumedCapacity": "NONE"}
    assert read(json.loads(json.dumps(body))) is not None, "or it takes the long way"
    assert read(json.loads(json.dumps(longer))) is None
    answers = [
        (status, json.loads(content))
        for status, _, content in (
            ask(server, body=json.dumps(each).encode(), X_Amz_Target=target) for each in (body, longer)
        )
    ]
    assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.parametrize(
    ("partition", "sort", "fault"),
    [
        (1, 1, None),
        (2048, 1024, None),
        (2049, 1024, "Size of hashkey has exceeded the maximum size limit of2048 bytes"),
        (2048, 1025, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"),
        (0, 1, "an empty string value. Key: PK"),
        (1, 0, "an empty string value. Key: SK"),
    ],
)
def test_keys_at_their_limits(server: Server, partition: int, sort: int, fault: str | None) -> None:
    key = {"PK": {"S": "p" * partition}, "SK": {"S": "s" * sort}}
    asked: dict[str, dict[str, Any]] = {
        "PutItem": {"TableName": "Things", "Item": {**key, "x": {"N": "1"}}},
        "DeleteItem": {"TableName": "Things", "Key": key},
        "BatchWriteItem": {"RequestItems": {"Things": [{"PutRequest": {"Item": key}}]}},
    }
    for operation, body in asked.items():
        status, content = both_ways(server, operation, body)
        assert status == (200 if fault is None else 400)
        assert fault is None or fault in content["message"], content


def test_plain_requests_pass_the_long_way_by(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    long: list[str] = []

    validated = Operation.validated

    def counted(operation: Operation, body: bytes) -> Any:
        long.append(operation.name)
        return validated(operation, body)

    monkeypatch.setattr(Operation, "validated", counted)
    key = {"PK": {"S": "p"}, "SK": {"S": "s"}}
    asked: list[tuple[str, dict[str, Any], Any]] = [
        ("PutItem", {"TableName": "Things", "Item": {**key, "x": {"N": "1"}}}, {}),
        ("GetItem", {"TableName": "Things", "Key": key}, {"Item": {**key, "x": {"N": "1"}}}),
        ("DeleteItem", {"TableName": "Things", "Key": key}, {}),
        ("GetItem", {"TableName": "Things", "Key": key, "ConsistentRead": True}, {}),
        ("BatchWriteItem", {"RequestItems": {"Things": [{"PutRequest": {"Item": key}}]}}, {"UnprocessedItems": {}}),
    ]
    for _ in range(2):
        # Whoever asks for a table first takes the long way, and the others know it then.
        long.clear()
        for operation, body, content in asked:
            target = f"DynamoDB_20120810.{operation}"
            status, _, answer = ask(server, body=json.dumps(body).encode(), X_Amz_Target=target)
            assert (status, json.loads(answer)) == (200, content)
    assert long == []
    both_ways(server, *asked[0][:2])
    assert long == ["PutItem"]


def test_a_large_item_on_both_ways(server: Server) -> None:
    for size, status in ((MAX_ITEM_SIZE, 200), (MAX_ITEM_SIZE + 1, 400)):
        item = {**numerous(size - 3), "SK": {"S": "s"}}
        assert item_size(item) == size
        answered, content = both_ways(server, "PutItem", {"TableName": "Things", "Item": item})
        assert answered == status
        batch = {"RequestItems": {"Things": [{"PutRequest": {"Item": item}}]}}
        assert both_ways(server, "BatchWriteItem", batch)[0] == status
    assert content["message"] == "Item size has exceeded the maximum allowed size"


def test_batches_on_both_ways(server: Server) -> None:
    def batch(numbers: list[int]) -> dict[str, Any]:
        items = [{"PK": {"S": "a"}, "SK": {"S": str(number)}} for number in numbers]
        return {"RequestItems": {"Things": [{"PutRequest": {"Item": item}} for item in items]}}

    assert both_ways(server, "BatchWriteItem", batch(list(range(MAX_BATCH_WRITE)))) == (200, {"UnprocessedItems": {}})
    status, content = both_ways(server, "BatchWriteItem", batch([1, 2, 1]))
    assert (status, content["message"]) == (400, "Provided list of item keys contains duplicates")
    read = short_write("BatchWriteItem").read
    assert read(batch(list(range(MAX_BATCH_WRITE + 1)))) is None
    assert read(batch([])) is None
    assert read(batch([1])) is not None


@pytest.mark.parametrize(
    "entry",
    [
        {"PutRequest": {"Item": {"PK": {"S": "a"}}}, "DeleteRequest": {"Key": {"PK": {"S": "a"}}}},
        {"PutRequest": {"Item": {"PK": {"S": "a"}}, "Key": {}}},
        {"PutRequest": {}},
        {"DeleteRequest": {"Key": {"PK": {"S": "a"}}}},
        {},
    ],
)
def test_an_entry_of_a_batch_that_is_more_than_a_put(entry: dict[str, Any]) -> None:
    read = short_write("BatchWriteItem").read
    put = {"PutRequest": {"Item": {"PK": {"S": "b"}}}}
    assert read({"RequestItems": {"abc": [put]}}) is not None
    assert read({"RequestItems": {"abc": [put, entry]}}) is None


@pytest.mark.parametrize(("name", "is_short"), [("abc", True), ("ab", False), ("a" * 255, True), ("a" * 256, False)])
def test_names_of_tables(name: str, is_short: bool) -> None:
    item = {"PK": {"S": "a"}}
    for operation, body in (
        ("PutItem", {"TableName": name, "Item": item}),
        ("DeleteItem", {"TableName": name, "Key": item}),
        ("BatchWriteItem", {"RequestItems": {name: [{"PutRequest": {"Item": item}}]}}),
    ):
        read = short_write(operation).read
        assert (read(body) is not None) == is_short


@pytest.mark.parametrize(
    "value",
    [
        {"S": "ä"}, {"B": "YQ=="}, {"N": "1.5"}, {"BOOL": False}, {"NULL": True}, {"SS": ["a", "b"]},
        {"NS": ["1", "2"]}, {"BS": ["YQ=="]}, {"L": []}, {"L": [{"S": "a"}, {"B": "YQ=="}]}, {"M": {}},
        {"M": {"b": {"L": [{"NULL": True}]}}},
    ],
)  # fmt: skip
def test_what_is_in_normal_form_is_not_copied(value: dict[str, Any]) -> None:
    item = {"a": value}
    assert normal_item(item)[0] is item
    assert normal_attribute(value) is value


@pytest.mark.parametrize(
    ("value", "normal"),
    [
        ({"N": "1.0"}, {"N": "1"}),
        ({"B": "YR=="}, {"B": "YQ=="}),
        ({"SS": ["b", "a"]}, {"SS": ["a", "b"]}),
        ({"L": [{"S": "a"}, {"N": "1.0"}, {"S": "b"}]}, {"L": [{"S": "a"}, {"N": "1"}, {"S": "b"}]}),
        ({"L": [{"N": "1.0"}, {"S": "a"}]}, {"L": [{"N": "1"}, {"S": "a"}]}),
        ({"M": {"b": {"N": "1.0"}, "c": {"S": "a"}}}, {"M": {"b": {"N": "1"}, "c": {"S": "a"}}}),
    ],
)
def test_what_is_not_in_normal_form_is_left_as_it_is_and_copied(value: dict[str, Any], normal: dict[str, Any]) -> None:
    item = {"a": value, "x": {"S": "y"}}
    given = deepcopy(item)
    assert normal_item(item)[0] == {"a": normal, "x": {"S": "y"}}
    assert normal_attribute(value) == normal
    assert item == given


@pytest.mark.parametrize(
    ("tag", "value", "kind"),
    [
        ("S", 1, "str"), ("S", None, "str"), ("N", 1, "str"), ("B", 1, "str"), ("BOOL", "true", "bool"),
        ("L", {}, "list"), ("M", [], "dict"), ("M", "x", "dict"), ("SS", "a", "list"), ("NS", {}, "list"),
        ("BS", None, "list"),
    ],
)  # fmt: skip
def test_what_is_of_another_type_than_it_says_is_refused(tag: str, value: Any, kind: str) -> None:
    for attribute in ({tag: value}, {"L": [{tag: value}]}, {"M": {"a": {tag: value}}}):
        with pytest.raises(InvalidRequest) as refused:
            normal_attribute(attribute)
        assert str(refused.value) == f"a {tag} value must be a {kind}, not {value!r}"


def test_a_normal_item_is_the_item_that_was_given() -> None:
    plain = plain_item({"PK": {"S": "a"}})
    assert type(plain) is NormalItem
    assert plain == {"PK": {"S": "a"}}
