"""Converts records of DynamoDB Streams into changes, as its API, Lambda and boto3 deliver them.

The API and Lambda differ only in the case of a few names. Images are in the service's JSON, in which adjoin stores
items everywhere; binary values are base64 text. boto3 instead returns datetimes for times and bytes for binary values.
"""

from __future__ import annotations

import datetime as dt
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from adjoin.errors import InvalidItem, InvalidRequest, InvalidValue
from adjoin.items import normal_item
from adjoin.requests import ItemChange
from adjoin.values import Item

IMAGES = "NEW_AND_OLD_IMAGES"
"""The stream view with both images; with any other, the item before or after a change is unknown."""
_NEVER = 1e11
"""Upper bound of times, in seconds since 1970: thousands of years from now. It also excludes inf and nan."""
_EXPIRY = ("Service", "dynamodb.amazonaws.com")
_HALF = re.compile("[\ud800-\udfff]")
_NEEDED = {"INSERT": ("NewImage",), "MODIFY": ("NewImage", "OldImage"), "REMOVE": ("OldImage",)}


def change_in(record: Mapping[str, Any], key_names: Sequence[str], position: str) -> ItemChange:
    """The change in a record, without checks."""
    images = record["dynamodb"]
    key: Item = {name: images["Keys"][name] for name in key_names}
    by = record.get("userIdentity") or {}
    expired = (by.get("Type") or by.get("type"), by.get("PrincipalId") or by.get("principalId")) == _EXPIRY
    return ItemChange(position, changed_at(record), key, images.get("OldImage"), images.get("NewImage"), expired)


def sequence_number(record: Mapping[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def changed_at(record: Mapping[str, Any]) -> float:
    """When an item changed, in seconds since 1970; 0 if the record has no time."""
    given = record["dynamodb"].get("ApproximateCreationDateTime", 0.0)
    try:
        at = _seconds(given) if isinstance(given, dt.datetime) else float(given)
    except (TypeError, ValueError, OverflowError):
        at = -1.0
    if not 0 <= at < _NEVER:
        raise InvalidItem(f"{str(given)[:40]} is not a time at which an item changed")
    return at


def _seconds(given: dt.datetime) -> float:
    return (given if given.tzinfo is not None else given.replace(tzinfo=dt.UTC)).timestamp()


def checked_change(record: Any, key_names: Sequence[str]) -> ItemChange:
    """The change in a record; raises `InvalidItem` if it is not a record of a table with these keys."""
    _check_record(record, key_names)
    images = dict(record["dynamodb"])
    for name in ("NewImage", "OldImage"):
        if images.get(name) is not None:
            images[name] = _plain_item(images[name], name)
    return change_in({**record, "dynamodb": images}, key_names, sequence_number(record))


def _plain_item(image: Any, name: str) -> Item:
    """An image in the service's JSON."""
    try:
        item, _ = normal_item({each: _plain(value) for each, value in image.items()})
    except (InvalidRequest, InvalidValue, AttributeError) as problem:
        raise InvalidItem(f"the {name} of the record is not an item: {problem}") from None
    return item


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    return value


def _check_record(record: Any, key_names: Sequence[str]) -> None:
    images = record.get("dynamodb") if isinstance(record, Mapping) else None
    if not isinstance(images, Mapping):
        raise InvalidItem("it is not a record of DynamoDB Streams: it has no 'dynamodb'")
    if not isinstance(images.get("SequenceNumber"), str):
        raise InvalidItem("the record has no sequence number")
    keys = images.get("Keys")
    if not isinstance(keys, Mapping) or not all(_is_text(keys.get(name)) for name in key_names):
        raise InvalidItem(f"the record does not have the key {' and '.join(key_names)} of its item")
    if not isinstance(record.get("userIdentity") or {}, Mapping):
        raise InvalidItem("the record does not say who changed the item: its userIdentity is not a map")
    event = record.get("eventName")
    if not isinstance(event, str) or event not in _NEEDED:
        raise InvalidItem(f"{event!r} is not an event of an item; it must be one of {', '.join(_NEEDED)}")
    for name in _NEEDED[event]:
        image = images.get(name)
        if not isinstance(image, Mapping) or any(image.get(key) != keys[key] for key in key_names):
            raise InvalidItem(f"the {event} does not have its item: its {name} is missing, or is of another item")


def _is_text(value: Any) -> bool:
    """Whether it is a stored text. Half of a surrogate pair, which JSON can spell, is not."""
    text = value.get("S") if isinstance(value, Mapping) else None
    return isinstance(text, str) and not _HALF.search(text)
