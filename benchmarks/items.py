"""The mix's nodes and links as DynamoDB items, written out by hand for this one layout.

The hand-written program and the one for moto share it; adjoin makes the same items from its classes.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from benchmarks.workload import LinkRow, NodeRow

NODE_SORT_KEY = "#META"
LINK_PREFIX, AFTER_LINKS = "LINK#", "LINK$"

_NODE_KEY = len("THING#")
_LINK_KEY = len("LINK#THING#")


def node_key(id: int) -> str:
    return f"THING#{id}"


def link_key(id2: int) -> str:
    return f"LINK#THING#{id2}"


def time_key(time: int, key: str) -> str:
    """The sort key of a link in an index by time; `time` is positive."""
    digits = str(time)
    return f"LINK#p{500 + len(digits)}.{digits.rstrip('0')}#{key}"


def node_item(node: NodeRow) -> dict[str, Any]:
    return {
        "PK": {"S": node_key(node.id)},
        "SK": {"S": NODE_SORT_KEY},
        "type": {"N": str(node.type)},
        "version": {"N": str(node.version)},
        "time": {"N": str(node.time)},
        "data": {"B": encoded(node.data)},
    }


def link_item(link: LinkRow) -> dict[str, Any]:
    source, target = node_key(link.id1), node_key(link.id2)
    return {
        "PK": {"S": source},
        "SK": {"S": link_key(link.id2)},
        "GSI1PK": {"S": target},
        "GSI1SK": {"S": time_key(link.time, source)},
        "GSI2PK": {"S": source},
        "GSI2SK": {"S": time_key(link.time, target)},
        "visibility": {"N": str(link.visibility)},
        "version": {"N": str(link.version)},
        "time": {"N": str(link.time)},
        "data": {"B": encoded(link.data)},
    }


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def plain_node(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": int(item["PK"]["S"][_NODE_KEY:]),
        "type": int(item["type"]["N"]),
        "version": int(item["version"]["N"]),
        "time": int(item["time"]["N"]),
        "data": b64decode(item["data"]["B"]),
    }


def plain_link(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "id1": int(item["PK"]["S"][_NODE_KEY:]),
        "id2": int(item["SK"]["S"][_LINK_KEY:]),
        "visibility": int(item["visibility"]["N"]),
        "version": int(item["version"]["N"]),
        "time": int(item["time"]["N"]),
        "data": b64decode(item["data"]["B"]),
    }


def number_size(digits: str) -> int:
    """Bytes of a whole number, not negative, as DynamoDB counts them."""
    significant = len(digits.rstrip("0"))
    return 1 + (significant + 1) // 2 + (significant % 2 == 0 and len(digits) % 2 == 1 and significant > 0)


_NODE_NAMES = sum(map(len, ("PK", "SK", "type", "version", "time", "data")))
_LINK_NAMES = sum(
    map(len, ("PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK", "visibility", "version", "time", "data"))
)


def node_size(item: dict[str, Any], payload: int) -> int:
    """Bytes of a node as DynamoDB counts them; `payload` is the length of its data."""
    numbers = sum(number_size(item[name]["N"]) for name in ("type", "version", "time"))
    return _NODE_NAMES + len(item["PK"]["S"]) + len(NODE_SORT_KEY) + numbers + payload


def link_size(item: dict[str, Any], payload: int) -> int:
    keys = sum(len(item[name]["S"]) for name in ("PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"))
    numbers = sum(number_size(item[name]["N"]) for name in ("visibility", "version", "time"))
    return _LINK_NAMES + keys + numbers + payload
