"""IAM policies for a table: the actions that adjoin calls, on that table and no other.

Access to single partitions is a condition on `dynamodb:LeadingKeys`, the partition keys that a
request names: those of the table, or those of the index if a query names one. This has three consequences:

- The condition is "for all values", which is also true for a request that names no key at all. So a request
  must name one (the `Null` condition). Actions that never name one (scanning, reading the stream,
  managing the table) cannot be allowed for single partitions.
- Keys are compared literally. Where patterns are allowed, "*" and "?" in a key are escaped. "$" is escaped
  everywhere, because it begins a policy variable.
- Only partition keys are compared. A policy does not limit what a writer puts into the index keys of its items.

Records about the whole table, such as the number of shards of an index, are in a partition of their own. They hold no
values of items, so everybody who may read or write some partitions may read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

from adjoin.aws.templates import check_table
from adjoin.errors import InvalidValue, shown
from adjoin.reserved import OWN, RECORDS, tenant_prefix
from adjoin.tables import TableDefinition

Access: TypeAlias = Literal["read", "write", "scan", "stream", "manage", "list", "full"]

_LEADING_KEYS = "dynamodb:LeadingKeys"
_DESCRIBE = ("DescribeTable", "DescribeTimeToLive")
# Transactions have no permission of their own: IAM asks for those of their parts.
_READ = ("BatchGetItem", "GetItem", "Query")
_RECORDS = ("GetItem", "Query")
_WRITE = ("BatchWriteItem", "ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem")
_STREAM = ("DescribeStream", "GetRecords", "GetShardIterator")
_MANAGE = ("CreateTable", "DeleteTable", "DescribeContinuousBackups", "ListTagsOfResource", "UpdateTable")
_ALL: tuple[Access, ...] = tuple(each for each in get_args(Access) if each != "full")
_CONFINED: tuple[Access, ...] = ("read", "write")


def iam_policy(
    table: TableDefinition,
    *,
    access: Access | Iterable[Access] = "read",
    leading_keys: Iterable[str] | None = None,
    leading_patterns: Iterable[str] | None = None,
    tenant: str | None = None,
    region: str = "*",
    account: str = "*",
    partition: str = "aws",
) -> dict[str, Any]:
    """A policy document with the fewest permissions that the named kinds of access need.

    `access` is one or several of "read", "write", "scan", "stream", "manage" and "list", or "full" for
    all of them. The requests that a graph makes when it opens are always allowed.

    `leading_keys` allows only these partition keys, `leading_patterns` only keys that match (with "*", "?"
    and policy variables), and `tenant` only the keys of one tenant. With a tenant, keys and patterns are
    written without its prefix.
    """
    check_table(table)
    wanted = _accesses(table, access)
    condition = _condition(table, leading_keys, leading_patterns, tenant)
    if condition and (open_ones := [each for each in wanted if each not in _CONFINED]):
        raise InvalidValue(
            f"{open_ones[0]!r} access names no partition key, so it cannot be limited to some keys; "
            f"allow it in a separate policy, or leave it out"
        )
    arn = f"arn:{partition}:dynamodb:{region}:{account}:table/{table.name}"
    with_indexes = [arn, f"{arn}/index/*"] if table.indexes else [arn]
    statements = [_statement("Describe", _DESCRIBE, [arn])]
    if "read" in wanted:
        statements.append(_statement("Read", _READ, with_indexes, condition))
    if ("read" in wanted and condition) or (wanted == ["write"] and table.partition.type == "S"):
        records = _condition(table, [OWN + RECORDS], None, None)
        statements.append(_statement("ReadRecords", _RECORDS, [arn], records))
    if "write" in wanted:
        statements.append(_statement("Write", _WRITE, [arn], condition))
    if "scan" in wanted:
        statements.append(_statement("Scan", ("Scan",), with_indexes))
    if "stream" in wanted:
        statements.append(_statement("ReadStream", _STREAM, [f"{arn}/stream/*"]))
    if "manage" in wanted:
        statements.append(_statement("Manage", _managing(table), [arn]))
    # The List actions are not about one table, and IAM has no narrower resource for them.
    listing = [name for kind, name in (("stream", "ListStreams"), ("list", "ListTables")) if kind in wanted]
    if listing:
        statements.append(_statement("List", listing, ["*"]))
    return {"Version": "2012-10-17", "Statement": statements}


def _accesses(table: TableDefinition, access: Access | Iterable[Access]) -> list[Access]:
    asked = list(access) if isinstance(access, Iterable) and not isinstance(access, str) else [access]
    for each in asked:
        if each not in get_args(Access):
            raise InvalidValue(f"{shown(each)} is not a kind of access; choose from {', '.join(get_args(Access))}")
    if not asked:
        raise InvalidValue("access is empty; name at least one kind, such as 'read'")
    if "stream" in asked and not table.stream:
        raise InvalidValue(f"the table {table.name} has no stream to read; leave 'stream' out, or enable a stream")
    offered = [each for each in _ALL if each != "stream" or table.stream]
    return offered if "full" in asked else [each for each in offered if each in asked]


def _managing(table: TableDefinition) -> list[str]:
    actions = [*_MANAGE]
    actions += ["UpdateTimeToLive"] if table.ttl is not None else []
    actions += ["UpdateContinuousBackups"] if table.point_in_time_recovery else []
    actions += ["TagResource", "UntagResource"] if table.tags else []
    return sorted(actions)


def _statement(
    name: str, actions: Iterable[str], resources: list[str], condition: dict[str, Any] | None = None
) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Sid": name,
        "Effect": "Allow",
        "Action": [f"dynamodb:{action}" for action in actions],
        "Resource": resources,
    }
    return {**statement, "Condition": condition} if condition else statement


# --- single partitions -------------------------------------------------------------------------


def _condition(
    table: TableDefinition,
    keys: Iterable[str] | None,
    patterns: Iterable[str] | None,
    tenant: str | None,
) -> dict[str, Any] | None:
    if keys is None and patterns is None and tenant is None:
        return None
    if table.partition.type != "S":
        raise InvalidValue(
            f"the partition key {table.partition.name} has type {table.partition.type}, and IAM compares text; "
            f"leave leading keys out"
        )
    exact, matching = _texts("leading_keys", keys), _texts("leading_patterns", patterns)
    prefix = "" if tenant is None else tenant_prefix(tenant)
    if keys is None and patterns is None:
        matching = ["*"]
    if matching:
        values = [_escaped(prefix + key) for key in exact] + [_escaped(prefix) + pattern for pattern in matching]
        operator = "ForAllValues:StringLike"
    else:
        values = [_literal(prefix + key) for key in exact]
        operator = "ForAllValues:StringEquals"
    return {operator: {_LEADING_KEYS: values}, "Null": {_LEADING_KEYS: "false"}}


def _texts(name: str, given: Iterable[str] | None) -> list[str]:
    if given is None:
        return []
    texts = [] if isinstance(given, str) else list(given)
    if not texts or not all(isinstance(each, str) and each for each in texts):
        raise InvalidValue(f"{name} is {given!r}; pass a list of at least one partition key")
    return texts


def _literal(key: str) -> str:
    return key.replace("$", "${$}")


def _escaped(key: str) -> str:
    return re.sub(r"[$*?]", lambda found: f"${{{found[0]}}}", key)
