"""JSON to the types of a shape, and what the service says of JSON that has others.

A reader takes a parameter as it came and answers it as its shape wants it. The first value of a wrong type,
in the order of the request, is a `SerializationException`; the service names no place for it. Null is as if
absent, and so is a member that the shape does not have. Nothing here looks at limits.

Values of attributes are checked as they stand and answered themselves wherever nothing has to change. Items
and keys that hold plain values only are answered as a `NormalItem`, and need no other check.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from adjoin.items import plain_item
from adjoin.server.faults import Refused
from adjoin.server.shapes import Attribute, Entries, Flag, Listing, Shape, Structure, Whole, java_type

Reader: TypeAlias = Callable[[Any], Any]

_MAP_EXPECTED = "Start of structure or map found where not expected"
_FIELD = "Unexpected field type"
_IN_PAYLOAD = "Unexpected value type in payload"
_PARAMETERIZED = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class"
    " (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base"
    " of loader 'bootstrap')"
)


def reader_of(shape: Shape) -> Reader:
    """The reader of a parameter."""
    return _reader(shape, within=False)


def _reader(shape: Shape, within: bool) -> Reader:
    """`within` is whether the value is an element of a list or an entry of a map, which have words of their own."""
    match shape:
        case Structure():
            return _structure(shape, _IN_PAYLOAD if within else _FIELD)
        case Attribute():
            return _attribute if within else _attribute_field
        case Listing():
            return _listing(shape, _PARAMETERIZED if within else _FIELD)
        case Entries():
            return _entries(shape, _PARAMETERIZED if within else _FIELD)
        case Whole():
            return _whole(shape.kind)
        case Flag():
            return _flag
        case _:
            return _text


def _refuse(message: str) -> NoReturn:
    raise Refused("SerializationException", message)


# --- scalars -----------------------------------------------------------------------------------


def _refuse_scalar(value: Any, kind: str) -> NoReturn:
    match value:
        case list():
            _refuse(f"Unrecognized collection type class java.lang.{kind}")
        case dict():
            _refuse(_MAP_EXPECTED)
        case bool():
            _refuse(f"{str(value).upper()}_VALUE cannot be converted to {kind}")
        case int():
            _refuse(f"NUMBER_VALUE cannot be converted to {kind}")
        case float():
            _refuse(f"DECIMAL_VALUE cannot be converted to {kind}")
        case _:
            _refuse(f"STRING_VALUE cannot be converted to {kind}")


def _text(value: Any) -> str:
    if type(value) is not str:
        _refuse_scalar(value, "String")
    return value


_LONG = 2**63


def _whole(kind: str) -> Reader:
    def read(value: Any) -> int:
        if type(value) is not int and (type(value) is not float or not math.isfinite(value)):
            _refuse_scalar(value, kind)
        number = math.floor(value)
        if not -_LONG <= number < _LONG:
            _refuse(f"Numeric value ({number}) out of range of long")
        return number

    return read


_FLAGS = {"TRUE": True, "1": True, "YES": True, "FALSE": False, "0": False, "NO": False}


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is not str:
        _refuse_scalar(value, "Boolean")
    flag = _FLAGS.get(value.upper())
    if flag is None:
        _refuse("Unexpected token received from parser")
    return flag


_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=]")


def _binary(value: Any) -> str:
    match value:
        case str():
            pass
        case list():
            _refuse("Unrecognized collection type class java.nio.ByteBuffer")
        case dict():
            _refuse(_MAP_EXPECTED)
        case _:
            _refuse("only base-64-encoded strings are convertible to bytes")
    if len(value) % 4:
        _refuse(f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(value)}")
    if foreign := _NOT_BASE64.search(value):
        _refuse(f"Invalid base 64 character: '{foreign[0]}'")
    try:
        canonical = b64encode(b64decode(value)).decode()
    except Base64Error:
        canonical = None
    if value != canonical:
        _refuse("Invalid last non-pad Base64 character dectected")
    return value


# --- lists, maps and structures ----------------------------------------------------------------


def _listing(shape: Listing, no_list: str) -> Reader:
    read = _reader(shape.of, within=True)
    absent: Any = {} if isinstance(shape.of, Attribute) else None

    def read_list(value: Any) -> list[Any]:
        if type(value) is not list:
            _refuse(_MAP_EXPECTED if type(value) is dict else no_list)
        return [absent if element is None else read(element) for element in value]

    return read_list


def _entries(shape: Entries, no_map: str) -> Reader:
    no_list = f"Unrecognized collection type {java_type(shape)}"
    read = _reader(shape.of, within=True)

    def read_map(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            _refuse(no_list if type(value) is list else no_map)
        return {name: None if entry is None else read(entry) for name, entry in value.items()}

    def read_attributes(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            _refuse(no_list if type(value) is list else no_map)
        plain = plain_item(value)
        if plain is not None:
            return plain
        altered = None
        for name, attribute in value.items():
            # The most frequent values, without the way through the readers.
            if type(attribute) is dict and len(attribute) == 1:
                (tag,) = attribute
                if tag in _PLAIN and type(attribute[tag]) is _PLAIN[tag]:
                    continue
            new = {} if attribute is None else _attribute(attribute)
            if new is not attribute:
                altered = altered or dict(value)
                altered[name] = new
        return value if altered is None else altered

    return read_attributes if isinstance(shape.of, Attribute) else read_map


def _structure(shape: Structure, no_structure: str) -> Reader:
    no_list = f"Unrecognized collection type class {java_type(shape)}"
    readers = {name: _reader(member, within=False) for name, member in shape.members.items()}

    def read_structure(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            _refuse(no_list if type(value) is list else no_structure)
        result = {}
        for name, member in value.items():
            if member is not None and name in readers:
                result[name] = readers[name](member)
        return result

    return read_structure


# --- values of attributes ----------------------------------------------------------------------

_PLAIN = {"S": str, "N": str, "BOOL": bool, "NULL": bool}
"""Types whose values need nothing but a look at their Python type."""

_CONTENTS: dict[str, Reader] = {
    "S": _text,
    "N": _text,
    "B": _binary,
    "BOOL": _flag,
    "NULL": _flag,
}


def _attribute(value: Any) -> Any:
    return _contents(value) if type(value) is dict else _refuse_attribute(value, _IN_PAYLOAD)


def _attribute_field(value: Any) -> Any:
    return _contents(value) if type(value) is dict else _refuse_attribute(value, _FIELD)


def _refuse_attribute(value: Any, no_structure: str) -> NoReturn:
    no_list = f"Unrecognized collection type class {java_type(Attribute())}"
    _refuse(no_list if type(value) is list else no_structure)


def _contents(attribute: dict[str, Any]) -> dict[str, Any]:
    result = {}
    same = True
    for tag, content in attribute.items():
        read = _CONTENTS.get(tag)
        if read is None or content is None:
            same = False
        else:
            new = result[tag] = read(content)
            same = same and new is content
    return attribute if same else result


def _set_reader(read: Reader) -> Reader:
    def read_set(value: Any) -> list[Any]:
        if type(value) is not list:
            _refuse(_MAP_EXPECTED if type(value) is dict else _FIELD)
        for element in value:
            if element is not None:
                read(element)
        return value

    return read_set


_CONTENTS |= {
    "SS": _set_reader(_text),
    "NS": _set_reader(_text),
    "BS": _set_reader(_binary),
    "L": reader_of(Listing(Attribute())),
    "M": reader_of(Entries(Attribute())),
}
