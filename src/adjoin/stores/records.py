"""Records of DynamoDB Streams, as its API and Lambda deliver them, read into changes.

The two differ in the case of a few names only. Images are in the service's JSON, which is how items are
stored everywhere here; bytes are base64 text in both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from adjoin.errors import InvalidItem
from adjoin.requests import ItemChange
from adjoin.values import Item

IMAGES = "NEW_AND_OLD_IMAGES"
"""The kind of stream that has everything: what came and what went can be told from nothing less."""
_NEVER = 1e11
"""Seconds since 1970: thousands of years, and less than what is no number at all."""
_EXPIRY = ("Service", "dynamodb.amazonaws.com")
_HALF = re.compile("[\ud800-\udfff]")
_NEEDED = {"INSERT": ("NewImage",), "MODIFY": ("NewImage", "OldImage"), "REMOVE": ("OldImage",)}


def change_in(record: Mapping[str, Any], key_names: Sequence[str], position: str) -> ItemChange:
    """The change that a record is about, trusted to be one."""
    images = record["dynamodb"]
    key: Item = {name: images["Keys"][name] for name in key_names}
    by = record.get("userIdentity") or {}
    expired = (by.get("Type") or by.get("type"), by.get("PrincipalId") or by.get("principalId")) == _EXPIRY
    return ItemChange(position, changed_at(record), key, images.get("OldImage"), images.get("NewImage"), expired)


def sequence_number(record: Mapping[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def changed_at(record: Mapping[str, Any]) -> float:
    at = float(record["dynamodb"].get("ApproximateCreationDateTime", 0.0))
    if not 0 <= at < _NEVER:
        raise ValueError(f"{at} is no time at which an item changed")
    return at


def check_record(record: Any, key_names: Sequence[str]) -> None:
    """`InvalidItem` for what is no record of a change in a table with these keys."""
    images = record.get("dynamodb") if isinstance(record, Mapping) else None
    if not isinstance(images, Mapping):
        raise InvalidItem("it is no record of DynamoDB Streams: it has no 'dynamodb'")
    if not isinstance(images.get("SequenceNumber"), str):
        raise InvalidItem("the record has no sequence number")
    keys = images.get("Keys")
    if not isinstance(keys, Mapping) or not all(_is_text(keys.get(name)) for name in key_names):
        raise InvalidItem(f"the record does not tell the key {' and '.join(key_names)} of its item")
    if not isinstance(record.get("userIdentity") or {}, Mapping):
        raise InvalidItem("the record does not tell who changed the item: its userIdentity is no map")
    event = record.get("eventName")
    if event not in _NEEDED:
        raise InvalidItem(f"{event!r} is nothing that happens to an item; it is one of {', '.join(_NEEDED)}")
    for name in _NEEDED[event]:
        image = images.get(name)
        if not isinstance(image, Mapping) or any(image.get(key) != keys[key] for key in key_names):
            raise InvalidItem(f"the {event} does not tell the item: its {name} is missing, or is of another item")


def _is_text(value: Any) -> bool:
    """Whether it is a stored text; half a character, which JSON can spell, is none."""
    text = value.get("S") if isinstance(value, Mapping) else None
    return isinstance(text, str) and not _HALF.search(text)
