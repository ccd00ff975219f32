"""What the operations on streams take."""

from __future__ import annotations

from adjoin.server.inputs.members import NAME, POSITIVE
from adjoin.server.shapes import Structure, Text, Whole, structure
from adjoin.units import MAX_CHANGES

_STREAM_ARN = Text(least=37, most=1024)
_SHARD = Text(least=28, most=65)

STREAM_INPUTS: dict[str, Structure] = {
    "ListStreams": structure(
        "ListStreamsInput",
        TableName=NAME,
        Limit=POSITIVE,
        ExclusiveStartStreamArn=_STREAM_ARN,
    ),
    "DescribeStream": structure(
        "DescribeStreamInput",
        "StreamArn",
        StreamArn=_STREAM_ARN,
        Limit=POSITIVE,
        ExclusiveStartShardId=_SHARD,
        ShardFilter=structure("ShardFilter", Type=Text(choices=("CHILD_SHARDS",)), ShardId=_SHARD),
    ),
    "GetShardIterator": structure(
        "GetShardIteratorInput",
        "StreamArn ShardId ShardIteratorType",
        StreamArn=_STREAM_ARN,
        ShardId=_SHARD,
        ShardIteratorType=Text(
            choices=("TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"),
        ),
        SequenceNumber=Text(least=21, most=40),
    ),
    "GetRecords": structure(
        "GetRecordsInput",
        "ShardIterator",
        ShardIterator=Text(least=1, most=2048),
        Limit=Whole("Integer", least=1, most=MAX_CHANGES),
    ),
}
