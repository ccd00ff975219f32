"""The mix's nodes and links as DynamoDB items, written out by hand for this one layout.

The hand-written program and the one for moto share this module; adjoin makes the same items from its classes.
In a file, the keys of an item are columns, and the body holds the other attributes.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from orjson import dumps

from benchmarks.workload import LinkRow, NodeRow

NODE_SORT_KEY = "#META"
LINK_PREFIX, AFTER_LINKS = "LINK#", "LINK$"

_KEYS = ("PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK")
_LINK_KEY = len("LINK#THING#")


def node_key(id: int) -> str:
    return f"THING#{id}"


def link_key(id2: int) -> str:
    return f"LINK#THING#{id2}"


def time_key(time: int, key: str) -> str:
    """The sort key of a link in an index by time; `time` is positive."""
    digits = str(time)
    return f"LINK#p{500 + len(digits)}.{digits.rstrip('0')}#{key}"


def node_keys(id: int) -> tuple[str, str]:
    """The keys as the columns pk and sk."""
    return node_key(id), NODE_SORT_KEY


def link_keys(id1: int, id2: int, time: int) -> tuple[str, str, str, str, str, str]:
    """The keys as the columns pk, sk, k1, k2, k3 and k4."""
    source, target = node_key(id1), node_key(id2)
    return source, link_key(id2), target, time_key(time, source), source, time_key(time, target)


def node_rest(node: NodeRow) -> dict[str, Any]:
    return {
        "type": {"N": str(node.type)},
        "version": {"N": str(node.version)},
        "time": {"N": str(node.time)},
        "data": {"B": encoded(node.data)},
    }


def link_rest(link: LinkRow) -> dict[str, Any]:
    return {
        "visibility": {"N": str(link.visibility)},
        "version": {"N": str(link.version)},
        "time": {"N": str(link.time)},
        "data": {"B": encoded(link.data)},
    }


def whole(keys: Sequence[str | None], rest: dict[str, Any]) -> dict[str, Any]:
    """The complete item with these keys. A node has only the first two."""
    item = {name: {"S": key} for name, key in zip(_KEYS, keys, strict=False) if key is not None}
    item.update(rest)
    return item


def image(keys: Sequence[str | None], rest: dict[str, Any]) -> bytes:
    """The item as the change stream stores it."""
    return dumps(whole(keys, rest))


def node_item(node: NodeRow) -> dict[str, Any]:
    return whole(node_keys(node.id), node_rest(node))


def link_item(link: LinkRow) -> dict[str, Any]:
    return whole(link_keys(link.id1, link.id2, link.time), link_rest(link))


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def plain_node(id: int, rest: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": id,
        "type": int(rest["type"]["N"]),
        "version": int(rest["version"]["N"]),
        "time": int(rest["time"]["N"]),
        "data": b64decode(rest["data"]["B"]),
    }


def plain_link(id1: int, key: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {
        "id1": id1,
        "id2": int(key[_LINK_KEY:]),
        "visibility": int(rest["visibility"]["N"]),
        "version": int(rest["version"]["N"]),
        "time": int(rest["time"]["N"]),
        "data": b64decode(rest["data"]["B"]),
    }


def number_size(digits: str) -> int:
    """The size in bytes of a non-negative integer, as DynamoDB counts it."""
    significant = len(digits.rstrip("0"))
    return 1 + (significant + 1) // 2 + (significant % 2 == 0 and len(digits) % 2 == 1 and significant > 0)


_NODE_NAMES = sum(map(len, (*_KEYS[:2], "type", "version", "time", "data")))
_LINK_NAMES = sum(map(len, (*_KEYS, "visibility", "version", "time", "data")))


def node_size(keys: Sequence[str], rest: dict[str, Any], payload: int) -> int:
    """The size in bytes of a node, as DynamoDB counts it; `payload` is the length of its data."""
    numbers = sum(number_size(rest[name]["N"]) for name in ("type", "version", "time"))
    return _NODE_NAMES + sum(map(len, keys)) + numbers + payload


def link_size(keys: Sequence[str], rest: dict[str, Any], payload: int) -> int:
    numbers = sum(number_size(rest[name]["N"]) for name in ("visibility", "version", "time"))
    return _LINK_NAMES + sum(map(len, keys)) + numbers + payload
