"""The Python type of an attribute, from its stored values: the narrowest one that writes each of them as it is.

A type is chosen only if every value that was read comes back byte for byte. Text stays text unless it is a date, a time
or a UUID in one form throughout.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterable, Sequence

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError
from adjoin.formats import EpochFormat, Format, date_format
from adjoin.values import AttributeValue, encode

DATETIMES = (
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S.%3fZ",
    "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%3f",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%MZ",
    "%Y-%m-%dT%H:%M",
    "%Y%m%dT%H%M%SZ",
)
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_OF_TIME = re.compile(r"(?i)(^|[^a-z])(at|on|ts|time|timestamp|date|ttl)($|[^a-z])|time|date|expir|created|updated")
_SECONDS, _MILLISECONDS = (9 * 10**8, 5 * 10**9), (9 * 10**11, 5 * 10**12)
"""From 1998 to 2128: other numbers are hardly times."""


@dataclass(frozen=True)
class Hint:
    """A type as it is written in a class, with the format in which its values are stored."""

    text: str = "str"
    stored: str | None = None
    """The format for `Stored`; None if adjoin writes the type so anyway."""
    in_key: str = ""
    """The transform that writes the same text in a key."""
    tag: str = "S"
    """The stored type."""


TEXT = Hint()


def text_hint(texts: Sequence[str]) -> Hint:
    """The type of texts, as attributes or as parts of keys."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return TEXT
    if _fits(distinct, lambda text: str(uuid.UUID(text)) == text):
        return Hint("UUID")
    if _fits(distinct, lambda text: dt.date.fromisoformat(text).isoformat() == text):
        return Hint("dt.date")
    formats = [spec for spec in DATETIMES if _written(date_format(spec, dt.datetime), distinct)]
    if formats:
        is_plain = _fits(distinct, lambda text: encode(dt.datetime.fromisoformat(text)) == {"S": text})
        return Hint("dt.datetime", None if is_plain else formats[0], formats[0])
    if _fits(distinct, lambda text: "T" in text and encode(dt.datetime.fromisoformat(text)) == {"S": text}):
        # Such a text has an offset, or microseconds in some values only; in a key it stays text.
        return Hint("dt.datetime", in_key="?")
    dates = [spec for spec in DATES if _written(date_format(spec, dt.date), distinct)]
    return Hint("dt.date", dates[0], dates[0]) if len(dates) == 1 else TEXT


def key_hint(texts: Sequence[str]) -> Hint:
    """The type of a part of a key that is text."""
    found = text_hint(texts)
    return TEXT if found.in_key == "?" else found


def hint_of(name: str, values: Iterable[AttributeValue]) -> Hint | None:
    """The type of an attribute with these values; None if no type writes all of them as they are."""
    present = list(values)
    tags = {tag for value in present for tag in value} - {"NULL"}
    if len(tags) != 1:
        return None if tags else Hint("None", tag="NULL")
    (tag,) = tags
    inner = [value[tag] for value in present if tag in value]
    match tag:
        case "S":
            return text_hint(inner)
        case "N":
            return number_hint(name, inner)
        case "BOOL":
            return Hint("bool", tag=tag)
        case "B":
            return Hint("bytes", tag=tag)
        case "SS":
            return Hint("set[str]", tag=tag)
        case "BS":
            return Hint("set[bytes]", tag=tag)
        case "NS":
            return Hint(f"set[{number_hint('', [each for value in inner for each in value]).text}]", tag=tag)
        case "L":
            return Hint(f"list[{_element([each for value in inner for each in value])}]", tag=tag)
        case "M":
            return Hint(f"dict[str, {_element([each for value in inner for each in value.values()])}]", tag=tag)
    return None


def number_hint(name: str, texts: Sequence[str]) -> Hint:
    if any("." in text for text in texts):
        return Hint("Decimal", tag="N")
    if texts and _OF_TIME.search(" ".join([name, *re.findall("[A-Z]?[a-z]+", name)])):
        for spec, (low, high) in (("epoch", _SECONDS), ("epoch_ms", _MILLISECONDS)):
            is_in_range = all(low < int(text) < high for text in texts)
            if is_in_range and _written(EpochFormat(spec, "N", dt.datetime), texts):
                return Hint("dt.datetime", spec, tag="N")
    return Hint("int", tag="N")


def _element(values: list[AttributeValue]) -> str:
    """The type of the elements of a list or a map: only types that are written in one way."""
    tags = {tag for value in values for tag in value}
    if len(tags) != 1:
        return "Any"
    (tag,) = tags
    if tag == "N":
        return number_hint("", [value["N"] for value in values]).text
    return {"S": "str", "BOOL": "bool", "B": "bytes", "M": "dict[str, Any]", "L": "list[Any]"}.get(tag, "Any")


def _fits(texts: Sequence[str], holds: Callable[[str], bool]) -> bool:
    try:
        return all(map(holds, texts))
    except (ValueError, AdjoinError):
        return False


def _written(format: Format | None, texts: Sequence[str]) -> bool:
    """Whether a format writes each text as it is."""
    return format is not None and _fits(texts, lambda text: format.text(format.value(text)) == text)
