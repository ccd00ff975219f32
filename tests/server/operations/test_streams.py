"""The operations on streams: what changed, in the service's words."""

from __future__ import annotations

import time
from typing import Any

import pytest

from adjoin.requests import CreateTable, Delete, Put, SetTimeToLive, UpdateTable
from adjoin.server.operations.streams import Iterator
from adjoin.tables import KeyAttribute, StreamView, TableDefinition
from adjoin.values import Item
from tests.server.operations.calls import Calls
from tests.server.operations.conftest import Clock

KEY: Item = {"a": {"S": "x"}}
OLD: Item = {**KEY, "n": {"N": "1"}}
NEW: Item = {**KEY, "n": {"N": "2"}}


def make(call: Calls, name: str = "abc", view: StreamView = "NEW_AND_OLD_IMAGES") -> str:
    call.store.execute([CreateTable(TableDefinition(name, KeyAttribute("a"), stream_view=view))])
    arn: str = call("DescribeTable", TableName=name)["Table"]["LatestStreamArn"]
    return arn


def change(call: Calls) -> None:
    for request in (Put("abc", OLD), Put("abc", NEW), Delete("abc", KEY)):
        call.store.execute([request])


def shard(call: Calls, arn: str) -> str:
    (found,) = call("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
    name: str = found["ShardId"]
    return name


def iterator(call: Calls, arn: str, kind: str = "TRIM_HORIZON", **members: str) -> str:
    parameters = {"StreamArn": arn, "ShardId": shard(call, arn), "ShardIteratorType": kind, **members}
    found: str = call("GetShardIterator", **parameters)["ShardIterator"]
    return found


def records(call: Calls, arn: str, kind: str = "TRIM_HORIZON", **members: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("GetRecords", ShardIterator=iterator(call, arn, kind, **members))["Records"]
    return found


def test_a_stream_is_described(call: Calls, clock: Clock) -> None:
    arn = make(call)
    label = arn.rpartition("/")[2]
    described = call("DescribeStream", StreamArn=arn)["StreamDescription"]
    (found,) = described.pop("Shards")
    assert described == {
        "StreamArn": arn,
        "StreamLabel": label,
        "StreamStatus": "ENABLED",
        "StreamViewType": "NEW_AND_OLD_IMAGES",
        "CreationRequestDateTime": clock.now,
        "TableName": "abc",
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
    }
    assert 28 <= len(found["ShardId"]) <= 65
    assert found["SequenceNumberRange"] == {"StartingSequenceNumber": "000000010000000000001"}
    rest = call("DescribeStream", StreamArn=arn, ExclusiveStartShardId=found["ShardId"])
    assert rest["StreamDescription"]["Shards"] == []


def test_streams_are_listed(call: Calls) -> None:
    arns = [make(call, name) for name in ("abc", "abd", "abe")]
    call.store.execute([CreateTable(TableDefinition("quiet", KeyAttribute("a"), stream=False))])
    first = {"StreamArn": arns[0], "TableName": "abc", "StreamLabel": arns[0].rpartition("/")[2]}
    assert call("ListStreams", TableName="abc") == {"Streams": [first]}
    page = call("ListStreams", Limit=2)
    assert [each["StreamArn"] for each in page["Streams"]] == arns[:2]
    assert page["LastEvaluatedStreamArn"] == arns[1]
    rest = call("ListStreams", ExclusiveStartStreamArn=arns[1])
    assert [each["StreamArn"] for each in rest["Streams"]] == arns[2:]
    assert "LastEvaluatedStreamArn" not in rest


def test_records_of_an_item(call: Calls, clock: Clock) -> None:
    arn = make(call)
    change(call)
    found = records(call, arn)
    assert [each["eventName"] for each in found] == ["INSERT", "MODIFY", "REMOVE"]
    assert len({each.pop("eventID") for each in found}) == 3
    assert found[1] == {
        "eventName": "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": int(clock.now),
            "Keys": KEY,
            "NewImage": NEW,
            "OldImage": OLD,
            "SequenceNumber": "000000010000000000002",
            "SizeBytes": 12,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }


VIEWS: list[tuple[StreamView, list[set[str]]]] = [
    ("KEYS_ONLY", [set(), set(), set()]),
    ("NEW_IMAGE", [{"NewImage"}, {"NewImage"}, set()]),
    ("OLD_IMAGE", [set(), {"OldImage"}, {"OldImage"}]),
    ("NEW_AND_OLD_IMAGES", [{"NewImage"}, {"NewImage", "OldImage"}, {"OldImage"}]),
]


@pytest.mark.parametrize(("view", "images"), VIEWS)
def test_what_records_show(call: Calls, view: StreamView, images: list[set[str]]) -> None:
    arn = make(call, view=view)
    change(call)
    found = [each["dynamodb"] for each in records(call, arn)]
    assert [each.keys() & {"NewImage", "OldImage"} for each in found] == images
    assert {each["StreamViewType"] for each in found} == {view}
    assert all(each["Keys"] == KEY for each in found)


def test_where_iterators_begin(call: Calls) -> None:
    arn = make(call)
    change(call)
    first, second, third = (each["dynamodb"]["SequenceNumber"] for each in records(call, arn))

    def numbers(kind: str, **members: str) -> list[str]:
        return [each["dynamodb"]["SequenceNumber"] for each in records(call, arn, kind, **members)]

    assert numbers("AT_SEQUENCE_NUMBER", SequenceNumber=first) == [first, second, third]
    assert numbers("AT_SEQUENCE_NUMBER", SequenceNumber=second) == [second, third]
    assert numbers("AFTER_SEQUENCE_NUMBER", SequenceNumber=second) == [third]
    assert numbers("AFTER_SEQUENCE_NUMBER", SequenceNumber=third) == []
    assert numbers("LATEST") == []


def test_an_iterator_goes_on(call: Calls) -> None:
    arn = make(call)
    change(call)
    latest = iterator(call, arn, "LATEST")
    page = call("GetRecords", ShardIterator=iterator(call, arn), Limit=2)
    assert [each["eventName"] for each in page["Records"]] == ["INSERT", "MODIFY"]
    page = call("GetRecords", ShardIterator=page["NextShardIterator"])
    assert [each["eventName"] for each in page["Records"]] == ["REMOVE"]
    page = call("GetRecords", ShardIterator=page["NextShardIterator"])
    assert page["Records"] == []
    call.store.execute([Put("abc", OLD)])
    for following in (page["NextShardIterator"], latest):
        (record,) = call("GetRecords", ShardIterator=following)["Records"]
        assert record["eventName"] == "INSERT"


def test_what_expired_says_so(call: Calls, clock: Clock) -> None:
    arn = make(call)
    call.store.execute([SetTimeToLive("abc", "n")])
    call.store.execute([Put("abc", {**KEY, "n": {"N": str(int(clock.now) - 1)}})])
    call.store.sweep()
    *_, record = records(call, arn)
    assert record["eventName"] == "REMOVE"
    assert record["userIdentity"] == {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}


def test_a_stream_that_is_switched_off_ends(call: Calls) -> None:
    arn = make(call)
    change(call)
    before, latest = iterator(call, arn), iterator(call, arn, "LATEST")
    call.store.execute([UpdateTable("abc", stream="off")])
    call.store.execute([Put("abc", OLD)])
    described = call("DescribeStream", StreamArn=arn)["StreamDescription"]
    assert described["StreamStatus"] == "DISABLED"
    numbers = described["Shards"][0]["SequenceNumberRange"]
    assert numbers == {
        "StartingSequenceNumber": "000000010000000000001",
        "EndingSequenceNumber": "000000010000000000003",
    }
    page = call("GetRecords", ShardIterator=before, Limit=2)
    assert [each["eventName"] for each in page["Records"]] == ["INSERT", "MODIFY"]
    page = call("GetRecords", ShardIterator=page["NextShardIterator"])
    assert [each["eventName"] for each in page["Records"]] == ["REMOVE"]
    assert "NextShardIterator" not in page
    assert call("GetRecords", ShardIterator=latest) == {"Records": []}


def test_a_stream_that_is_switched_on_again_is_another(call: Calls, clock: Clock) -> None:
    arn = make(call)
    change(call)
    before = iterator(call, arn)
    call.store.execute([UpdateTable("abc", stream="off")])
    clock.now += 1
    call.store.execute([UpdateTable("abc", stream="NEW_IMAGE")])
    again = call("DescribeTable", TableName="abc")["Table"]["LatestStreamArn"]
    assert again != arn
    call.store.execute([Put("abc", OLD)])
    assert [each["eventName"] for each in records(call, again)] == ["INSERT"]
    ended = call("GetRecords", ShardIterator=before)["Records"]
    assert [each["eventName"] for each in ended] == ["INSERT", "MODIFY", "REMOVE"]
    assert {each["dynamodb"]["StreamViewType"] for each in ended} == {"NEW_AND_OLD_IMAGES"}
    assert call("DescribeStream", StreamArn=arn)["StreamDescription"]["StreamStatus"] == "DISABLED"
    listed = call("ListStreams", TableName="abc")["Streams"]
    assert [each["StreamArn"] for each in listed] == [arn, again]


def test_a_stream_is_forgotten_after_a_day(call: Calls, clock: Clock) -> None:
    arn = make(call)
    for _ in range(2):
        call.store.execute([UpdateTable("abc", stream="off")])
        clock.now += 86401
        call.store.execute([UpdateTable("abc", stream="NEW_IMAGE")])
    assert call.refusal("DescribeStream", StreamArn=arn)[0] == "ResourceNotFoundException"
    assert len(call("ListStreams", TableName="abc")["Streams"]) == 2
    held = str(Iterator(arn, "0", time.time()))
    assert call.fault("GetRecords", ShardIterator=held)["code"] == "ResourceNotFoundException"


def test_refused(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    arn = make(call)
    change(call)
    other = arn.replace("abc", "none")
    missing = ("ResourceNotFoundException", f"Requested resource not found: Stream: {other} not found")
    assert call.refusal("DescribeStream", StreamArn=other) == missing
    assert call.refusal("DescribeStream", StreamArn="x" * 40) == (
        "ValidationException",
        f"Invalid StreamArn: {'x' * 40}",
    )
    wrong = {"StreamArn": arn, "ShardId": "shardId-00000000000000000000-00000000", "ShardIteratorType": "LATEST"}
    assert call.refusal("GetShardIterator", **wrong) == (
        "ResourceNotFoundException",
        "Requested resource not found: Shard does not exist",
    )
    assert call.refusal("GetRecords", ShardIterator="nothing") == ("ValidationException", "Invalid ShardIterator")
    held = iterator(call, arn)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 901)
    assert call.refusal("GetRecords", ShardIterator=held)[0] == "ExpiredIteratorException"
