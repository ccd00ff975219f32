"""Key values as SQLite stores them, so that SQLite's order of columns is DynamoDB's order of keys.

Text is TEXT: SQLite compares it by UTF-8 bytes. Binary is BLOB, compared by bytes. A number is a BLOB
that sorts as the number does, and equal numbers are equal bytes:

    zero          01
    positive      02  exponent + 130  (digit pair + 1) ...
    negative      00  the same bytes after the first, each subtracted from 255, then FF

The exponent is that of the first digit; digits are taken two at a time from the first on, an odd one
out padded with 0. The file format document promises this encoding.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias
from zlib import crc32

from adjoin.items import normal_attribute
from adjoin.values import AttributeValue

KeyValue: TypeAlias = str | bytes
"""What a key column holds. Empty bytes, which no key can be, stand for the sort key of a table without."""

_INVERTED = bytes(255 - byte for byte in range(256))


def number_key(text: str) -> bytes:
    """The bytes of a canonical number."""
    if text == "0":
        return b"\x01"
    negative = text[0] == "-"
    whole, _, fraction = text.lstrip("-").partition(".")
    if whole == "0":
        digits = fraction.lstrip("0")
        exponent = len(digits) - len(fraction) - 1
    else:
        digits = whole + fraction
        exponent = len(whole) - 1
    digits = digits.rstrip("0")
    if len(digits) % 2:
        digits += "0"
    encoded = bytes([exponent + 130, *[int(digits[at : at + 2]) + 1 for at in range(0, len(digits), 2)]])
    return b"\x00" + encoded.translate(_INVERTED) + b"\xff" if negative else b"\x02" + encoded


def _text_key(value: str) -> str:
    return value


KEY_ENCODERS: dict[str, Callable[[str], str | bytes]] = {
    "S": _text_key,
    "N": number_key,
    "B": b64decode,
}


def key_value(attribute: AttributeValue, tag: str) -> str | bytes:
    """The column value of an attribute of the given type, which need not be in normal form."""
    return KEY_ENCODERS[tag](normal_attribute(attribute)[tag])


def segment_of(*arguments: Any) -> int:
    """The scan segment of a partition key: the same in every process and on every machine."""
    key, total = arguments
    return crc32(key.encode() if isinstance(key, str) else key) % int(total)


# --- prefixes ----------------------------------------------------------------------------------

_LAST_CHARACTER = "\U0010ffff"
_BEFORE_SURROGATES, _AFTER_SURROGATES = "\ud7ff", "\ue000"


@lru_cache(maxsize=1024)
def text_after(prefix: str) -> str | None:
    """The least text greater than all texts with this prefix; None where no text is."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return None
    last = kept[-1]
    return kept[:-1] + (_AFTER_SURROGATES if last == _BEFORE_SURROGATES else chr(ord(last) + 1))


def bytes_after(prefix: bytes) -> bytes | None:
    """The least bytes greater than all bytes with this prefix; None where there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def after_prefix(prefix: str | bytes) -> str | bytes | None:
    return text_after(prefix) if isinstance(prefix, str) else bytes_after(prefix)
