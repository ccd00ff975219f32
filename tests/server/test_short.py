"""The short ways: a request takes one only if the long way would ask, and answer, the same."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjoin.requests import CreateTable, ItemResponse, Put, WriteResponse
from adjoin.server.operations import OPERATIONS
from adjoin.server.operations.interface import ShortGet, ShortWrite
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute, TableDefinition
from tests.server.test_validation import JSON, places, replaced
from tests.shares import examples

PLAIN = {"PK": {"S": "a"}, "SK": {"N": "1"}, "x": {"BOOL": True}}
KEYS: dict[str, Any] = {
    "abc": {"PK": {"S": "a"}, "SK": {"N": "1"}},
    "Bytes": {"PK": {"B": "YQ=="}},
}
WRITES: dict[str, Any] = {
    "PutItem": {"TableName": "abc", "Item": PLAIN},
    "DeleteItem": {"TableName": "abc", "Key": PLAIN},
    "BatchWriteItem": {"RequestItems": {"abc": [{"PutRequest": {"Item": PLAIN}}, {"PutRequest": {"Item": PLAIN}}]}},
}
GETS = [
    *({"TableName": name, "Key": key} for name, key in KEYS.items()),
    {"TableName": "abc", "Key": KEYS["abc"], "ConsistentRead": True},
]


def short_write(name: str) -> ShortWrite:
    way = OPERATIONS[name].short
    assert isinstance(way, ShortWrite)
    return way


def whole_get(asked: Any) -> Any:
    way = OPERATIONS["GetItem"].short
    assert isinstance(way, ShortGet)
    return way.read(asked)


@pytest.fixture(scope="module")
def store() -> Iterator[SQLiteStore]:
    opened = SQLiteStore(":memory:")
    opened.execute(
        [
            CreateTable(TableDefinition("abc", KeyAttribute("PK", "S"), KeyAttribute("SK", "N"))),
            CreateTable(TableDefinition("Bytes", KeyAttribute("PK", "B"))),
            *(Put(name, {**key, "x": {"L": []}}) for name, key in KEYS.items()),
        ]
    )
    for name in KEYS:
        opened.definition(name)
    yield opened
    opened.close()


@st.composite
def almost(draw: st.DrawFn, requests: dict[str, Any]) -> tuple[str, Any]:
    """A request of these, in which a value or two may be anything else."""
    operation = draw(st.sampled_from(sorted(requests)))
    body = deepcopy(requests[operation])
    for _ in range(draw(st.integers(0, 2))):
        body = replaced(body, draw(st.sampled_from(places(body))), draw(JSON))
    return operation, body


@given(almost(WRITES))
@settings(max_examples=examples(200), deadline=None)
def test_writes_are_those_of_the_long_way(store: SQLiteStore, sent: tuple[str, Any]) -> None:
    name, body = sent
    asked = short_write(name).read(deepcopy(body))
    # As JSON, where 1 is not true.
    if orjson.dumps(body) == orjson.dumps(WRITES[name]):
        assert asked is not None
    if asked is not None:
        assert OPERATIONS[name].request(OPERATIONS[name].validated(body), store) == asked


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_answered_as_on_the_long_way(store: SQLiteStore, name: str) -> None:
    parameters = OPERATIONS[name].validated(deepcopy(WRITES[name]))
    response = WriteResponse((), ()) if name == "BatchWriteItem" else ItemResponse(None, ())
    answer = OPERATIONS[name].answer(parameters, response, store)
    assert orjson.dumps(answer) == short_write(name).answer


@given(almost({str(number): get for number, get in enumerate(GETS)}))
@example(("", {"TableName": "Bytes", "Key": {"PK": {"B": "YR=="}}}))
@example(("", {"TableName": "abc", "Key": {"PK": {"S": "a"}, "SK": {"N": "1e0"}}}))
@example(("", {"TableName": "abc", "Key": {"PK": {"S": "b"}, "SK": {"N": "1"}}}))
@settings(max_examples=examples(200), deadline=None)
def test_items_are_those_of_the_long_way(store: SQLiteStore, sent: tuple[str, Any]) -> None:
    _, body = sent
    get = whole_get(deepcopy(body))
    text = None if get is None else store.item_text(*get)
    if orjson.dumps(body) in map(orjson.dumps, (GETS[0], GETS[2])):
        assert text is not None
    if text is not None:
        parameters = OPERATIONS["GetItem"].validated(body)
        response = store.text(OPERATIONS["GetItem"].request(parameters, store))
        answer = OPERATIONS["GetItem"].answer(parameters, response, store)
        assert orjson.dumps(answer) == (b'{"Item":%b}' % text if text else b"{}")


@pytest.mark.parametrize("get", GETS)
def test_what_asks_for_a_whole_item_takes_the_short_way(get: dict[str, Any]) -> None:
    assert whole_get(get) == (get["TableName"], get["Key"])


@pytest.mark.parametrize(
    "more",
    [
        {"ConsistentRead": "true"},
        {"ConsistentRead": None},
        {"ReturnConsumedCapacity": "TOTAL"},
        {"ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"},
        {"ConsistentRead": True, "ProjectionExpression": "x"},
    ],
)
def test_what_asks_for_more_takes_the_long_way(more: dict[str, Any]) -> None:
    assert whole_get({**GETS[0], **more}) is None
