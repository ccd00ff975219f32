"""The rules of each operation that need neither its expressions nor its table.

A rule takes a request whose types and limits are right, and may bring values in it to normal form. What it
finds wrong is `InvalidRequest` with the service's own words, or `Refused`. Rules for what expressions and the
older parameters say are those of `grammar`; they are called where the service would look at them.
"""

from __future__ import annotations

from adjoin.server.rules.batches import batch_get_item, batch_write_item, transact_get_items, transact_write_items
from adjoin.server.rules.items import delete_item, get_item, put_item, update_item
from adjoin.server.rules.reads import query, scan
from adjoin.server.rules.resources import (
    Rule,
    get_shard_iterator,
    list_tags_of_resource,
    require_items,
    require_resource,
    require_table,
    tag_resource,
    untag_resource,
)
from adjoin.server.rules.tables import create_table, update_table

PRECONDITIONS: dict[str, Rule] = {
    "CreateTable": require_table,
    "UpdateTable": require_table,
    "DescribeTable": require_table,
    "DeleteTable": require_table,
    "DescribeTimeToLive": require_table,
    "UpdateTimeToLive": require_table,
    "DescribeContinuousBackups": require_table,
    "UpdateContinuousBackups": require_table,
    "BatchGetItem": require_items("BatchGetItem"),
    "BatchWriteItem": require_items("BatchWriteItem"),
    "TagResource": require_resource("TagResource"),
    "UntagResource": require_resource("UntagResource"),
    "ListTagsOfResource": require_resource("ListTagsOfResource"),
}
"""What is looked at before the limits of a request."""

RULES: dict[str, Rule] = {
    "GetItem": get_item,
    "PutItem": put_item,
    "DeleteItem": delete_item,
    "UpdateItem": update_item,
    "Query": query,
    "Scan": scan,
    "BatchGetItem": batch_get_item,
    "BatchWriteItem": batch_write_item,
    "TransactWriteItems": transact_write_items,
    "TransactGetItems": transact_get_items,
    "CreateTable": create_table,
    "UpdateTable": update_table,
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "ListTagsOfResource": list_tags_of_resource,
    "GetShardIterator": get_shard_iterator,
}
"""What is looked at after them; an operation that is not here has no such rules."""

__all__ = ["PRECONDITIONS", "RULES", "Rule"]
