"""Whatever is sent, a request is read or refused: generated JSON, and requests that were right before."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjoin.errors import InvalidRequest
from adjoin.server.operations.checking import ShapeLimits, WrongType, reader_of
from adjoin.server.operations.interface import Refused
from tests.server.refusals import ALL, RIGHT, SHARD, STREAM, changed, refusal, validated
from tests.shares import examples

CODES = {"ValidationException", "SerializationException", "AccessDeniedException"}

WORDS = st.sampled_from(
    ["", "a", "ab", "abc", "a;b", "S", "N", "1", "1e999", "x" * 300, "HASH", "ALL_NEW", "ALL", "EQ", "YWJj", "true"]
)
TYPES = ["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"]
MEMBERS = sorted({name for operation in ALL.values() for name in operation.shape.members})
NAMES = st.sampled_from([*TYPES, *MEMBERS, "a", "abc", "Keys", "Put", "Get", "IndexName", "AttributeName", "KeyType"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def answer(operation: str, body: bytes | dict[str, Any]) -> dict[str, Any] | None:
    """What a request is read as; None for one that is refused, as it has to be."""
    refused = refusal(operation, body)
    if refused is None:
        return validated(operation, body)
    code, message = refused
    assert code in CODES
    assert message is None or message
    return None


@given(operation=st.sampled_from(sorted(ALL)), body=JSON)
@settings(max_examples=examples(134), deadline=None)
def test_any_json_is_read_or_refused(operation: str, body: Any) -> None:
    answer(operation, orjson.dumps(body))


@given(operation=st.sampled_from(sorted(ALL)), body=st.binary(max_size=30))
@settings(max_examples=examples(34), deadline=None)
def test_any_bytes_are_read_or_refused(operation: str, body: bytes) -> None:
    answer(operation, body)


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *[place for key, part in inner for place in places(part, (*way, key))]]


def replaced(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    if not way:
        return new
    value[way[0]] = replaced(value[way[0]], way[1:], new)
    return value


@st.composite
def almost_right(draw: st.DrawFn) -> tuple[str, Any]:
    """An operation, and a right request for it with something else in some places."""
    operation = draw(st.sampled_from(sorted(ALL)))
    body: Any = deepcopy(RIGHT[operation])
    for _ in range(draw(st.integers(1, 3))):
        body = replaced(body, draw(st.sampled_from(places(body)[1:] or [()])), draw(JSON))
    return operation, body


@given(almost_right())
@settings(max_examples=examples(200), deadline=None)
def test_what_was_read_reads_as_itself(sent: tuple[str, Any]) -> None:
    operation, body = sent
    read = answer(operation, orjson.dumps(body))
    if read is not None:
        assert validated(operation, orjson.dumps(read)) == read


@given(almost_right())
@settings(max_examples=examples(200), deadline=None)
def test_limits_do_not_hold_exactly_if_there_is_one_to_report(sent: tuple[str, Any]) -> None:
    operation, body = sent
    limits = ShapeLimits.of(ALL[operation].shape)
    try:
        read = reader_of(ALL[operation].shape)(body)
    except WrongType:
        return
    if limits.hold(read):
        limits.check(read)
    else:
        with pytest.raises(InvalidRequest, match=r"^\d+ validation errors? detected: Value "):
            limits.check(read)


@given(levels=st.integers(100, 500), tag=st.sampled_from("LM"))
@example(levels=500, tag="L")
@settings(max_examples=5, deadline=None)
def test_values_of_any_depth_are_refused(levels: int, tag: str) -> None:
    opening, closing = ('{"L":[', "]}") if tag == "L" else ('{"M":{"a":', "}}")
    body = '{"TableName":"abc","Item":{"a":' + opening * levels + '{"S":"x"}' + closing * levels + "}}"
    code, message = refusal("PutItem", body.encode()) or ("", "")
    assert code in CODES
    assert message is None or message.startswith("Nesting Levels have exceeded supported limits")


# Types before limits before rules, whatever stands first in the request.
ORDER: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    (
        "GetItem",
        {"Key": {"a": {}}, "TableName": "a;", "ConsistentRead": 1},
        ("SerializationException", "NUMBER_VALUE cannot be converted to Boolean"),
    ),
    ("GetItem", {"Key": {"a": {}}, "TableName": "a;b"}, ("ValidationException", "1 validation error detected")),
    (
        "CreateTable",
        {"TableName": None, "KeySchema": 1},
        ("SerializationException", "Unexpected field type"),
    ),
    ("CreateTable", {"TableName": "ab", "KeySchema": []}, ("ValidationException", "TableName must be at least 3")),
    ("CreateTable", {"BillingMode": "", "KeySchema": []}, ("ValidationException", "2 validation errors detected")),
    (
        "TagResource",
        {"ResourceArn": None, "Tags": "x"},
        ("SerializationException", "Unexpected field type"),
    ),
    (
        "GetShardIterator",
        {"StreamArn": STREAM, "ShardId": SHARD, "ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": "1"},
        ("ValidationException", "1 validation error detected: Value '1' at 'sequenceNumber'"),
    ),
]


@pytest.mark.parametrize(("operation", "members", "refused"), ORDER)
def test_the_fault_that_is_reported_of_two(operation: str, members: dict[str, Any], refused: tuple[str, str]) -> None:
    code, message = refusal(operation, changed(operation, **members)) or ("", "")
    assert (code, (message or "")[: len(refused[1])]) == refused


def test_what_a_refusal_says() -> None:
    refused = Refused("ValidationException", "the words", Item={"a": {"S": "x"}})
    assert (refused.code, refused.message, refused.members) == (
        "ValidationException",
        "the words",
        {"Item": {"a": {"S": "x"}}},
    )
    assert str(refused) == "ValidationException: the words"
    assert str(Refused("SerializationException")) == "SerializationException"
