"""Checks the types and limits of a request, from the shape of the operation's input, with DynamoDB's messages.

A reader takes a parameter as it arrived and returns it in the form of its shape. The first value of a wrong type, in
the order of the request, raises `WrongType`; DynamoDB does not say where it is. Null counts as missing, and members
that the shape does not have are ignored. A reader does not check limits.

Values of attributes are returned unchanged wherever nothing has to change. Items and keys that contain only plain
values are returned as a `NormalItem` and need no other check.

`ShapeLimits.hold` returns only yes or no; a valid request needs nothing else. `ShapeLimits.check` walks through the
request again to report the limits that it breaks, and where: all of them together, at most ten, in the order of the
shape.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NoReturn, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidRequest
from adjoin.items import plain_item
from adjoin.server.operations.shapes import (
    NAME_PATTERN,
    Attribute,
    Entries,
    Flag,
    Listing,
    ParameterShape,
    Structure,
    TableReference,
    Text,
    Whole,
    is_arn,
    java_type,
)

ParameterReader: TypeAlias = Callable[[Any], Any]


class WrongType(Exception):
    """A value has a type that its shape does not allow; the message is DynamoDB's."""


_MAP_EXPECTED = "Start of structure or map found where not expected"
_FIELD = "Unexpected field type"
_IN_PAYLOAD = "Unexpected value type in payload"
_PARAMETERIZED = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class"
    " (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base"
    " of loader 'bootstrap')"
)


def reader_of(shape: ParameterShape) -> ParameterReader:
    """Returns the reader for a parameter of this shape."""
    return _reader(shape, within=False)


def _reader(shape: ParameterShape, within: bool) -> ParameterReader:
    """Returns a reader. `within` says that the value is inside a list or a map, where DynamoDB's messages differ."""
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
    raise WrongType(message)


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


def _whole(kind: str) -> ParameterReader:
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


def _listing(shape: Listing, no_list: str) -> ParameterReader:
    read = _reader(shape.of, within=True)
    absent: Any = {} if isinstance(shape.of, Attribute) else None

    def read_list(value: Any) -> list[Any]:
        if type(value) is not list:
            _refuse(_MAP_EXPECTED if type(value) is dict else no_list)
        return [absent if element is None else read(element) for element in value]

    return read_list


def _entries(shape: Entries, no_map: str) -> ParameterReader:
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
            # The most frequent values are handled here, without a call.
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


def _structure(shape: Structure, no_structure: str) -> ParameterReader:
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
"""Types of values for which checking the Python type is enough."""

_CONTENTS: dict[str, ParameterReader] = {
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


def _set_reader(read: ParameterReader) -> ParameterReader:
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


# --- limits ------------------------------------------------------------------------------------

_Fault: TypeAlias = tuple[str, str, str]
"""The value as the message shows it, its place in the request, and the limit that it breaks."""

_Test: TypeAlias = Callable[[Any], bool]

_MOST_LISTED = 10
_NOT_NULL = "Member must not be null"
_NAME = re.compile(NAME_PATTERN)


@dataclass(frozen=True, slots=True)
class ShapeLimits:
    """The limits of the input of one operation."""

    shape: Structure
    hold: _Test

    @classmethod
    def of(cls, shape: Structure) -> ShapeLimits:
        return cls(shape, _test(shape) or (lambda request: True))

    def check(self, request: dict[str, Any]) -> None:
        """Raises one error for all limits that the request breaks."""
        faults = list(islice(_member_faults(self.shape, request, ""), _MOST_LISTED))
        if faults:
            listed = "; ".join(
                f"Value {value} at '{path}' failed to satisfy constraint: {limit}" for value, path, limit in faults
            )
            number = f"{len(faults)} validation error{'s' if len(faults) > 1 else ''}"
            raise InvalidRequest(f"{number} detected: {listed}")


# --- what a value must be by itself ------------------------------------------------------------


def _longer(limit: int) -> tuple[_Test, str]:
    return lambda value: len(value) >= limit, f"Member must have length greater than or equal to {limit}"


def _shorter(limit: int) -> tuple[_Test, str]:
    return lambda value: len(value) <= limit, f"Member must have length less than or equal to {limit}"


def _limits(shape: ParameterShape) -> list[tuple[_Test, str]]:
    """Returns tests of a value, each with the message for its failure; without those of its parts."""
    limits: list[tuple[_Test, str]] = []
    match shape:
        case Whole():
            least, most = shape.least, shape.most
            if least is not None:
                limits.append(
                    (lambda value: value >= least, f"Member must have value greater than or equal to {least}")
                )
            if most is not None:
                limits.append((lambda value: value <= most, f"Member must have value less than or equal to {most}"))
        case TableReference():
            limits.append((_is_arn_or(_NAME.fullmatch), _said(NAME_PATTERN)))
            if shape.lengths:
                limits += [
                    (lambda name: name != "", _longer(1)[1]),
                    (_is_arn_or(lambda name: len(name) >= 3), _longer(3)[1]),
                    (_is_arn_or(lambda name: len(name) <= 255), _shorter(255)[1]),
                    _shorter(1024),
                ]
        case Text():
            if shape.pattern is not None:
                pattern = re.compile(shape.pattern)
                limits.append((lambda value: pattern.fullmatch(value) is not None, _said(shape.pattern)))
            limits += _lengths(shape)
            if shape.choices:
                choices = frozenset(shape.choices)
                limits.append(
                    (choices.__contains__, f"Member must satisfy enum value set: [{', '.join(shape.choices)}]")
                )
        case Listing() | Entries():
            limits += _lengths(shape)
    return limits


def _lengths(shape: Text | Listing | Entries) -> list[tuple[_Test, str]]:
    lengths = []
    if shape.least is not None:
        lengths.append(_longer(shape.least))
    if shape.most is not None:
        lengths.append(_shorter(shape.most))
    return lengths


def _said(pattern: str) -> str:
    return f"Member must satisfy regular expression pattern: {pattern}"


def _is_arn_or(test: Callable[[str], Any]) -> _Test:
    # For an empty name, DynamoDB reports only that it is empty.
    return lambda name: not name or is_arn(name) or bool(test(name))


# --- whether limits hold -----------------------------------------------------------------------


def _test(shape: ParameterShape) -> _Test | None:
    """Returns a test whether a value and its parts keep all limits; None for a shape without limits."""
    match shape:
        case Structure():
            return _structure_test(shape)
        case TableReference(lengths=True):
            return _is_reference
        case Listing():
            return _parts_test(shape, iter)
        case Entries():
            return _parts_test(shape, dict.values)
        case _:
            return _all([test for test, _ in _limits(shape)])


def _all(tests: list[_Test]) -> _Test | None:
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


_PLAIN_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")


def _is_reference(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None or (is_arn(name) and len(name) <= 1024)


def _structure_test(shape: Structure) -> _Test | None:
    required, one_of = shape.required, frozenset(shape.one_of)
    tests = {name: test for name, member in shape.members.items() if (test := _test(member)) is not None}
    if not required and not tests and not one_of:
        return None

    def hold(value: dict[str, Any]) -> bool:
        if not value.keys() >= required or (one_of and not value.keys() & one_of):
            return False
        for name, member in value.items():  # noqa: SIM110
            if name in tests and not tests[name](member):
                return False
        return True

    return hold


def _parts_test(shape: Listing | Entries, parts: Callable[[Any], Iterable[Any]]) -> _Test | None:
    if isinstance(shape.of, Attribute):
        return _all([test for test, _ in _limits(shape)])
    own = [test for test, _ in _limits(shape)]
    keys = _test(shape.keys) if isinstance(shape, Entries) and shape.keys is not None else None
    inner = _test(shape.of)

    def hold(value: Any) -> bool:
        for test in own:
            if not test(value):
                return False
        if keys is not None:
            for name in value:
                if not keys(name):
                    return False
        for part in parts(value):  # noqa: SIM110
            if part is None or (inner is not None and not inner(part)):
                return False
        return True

    return hold


# --- which limits do not hold ------------------------------------------------------------------


def _faults(shape: ParameterShape, value: Any, path: str) -> Iterator[_Fault]:
    for test, limit in _limits(shape):
        if not test(value):
            yield _shown(shape, value), path, limit
    yield from _inner_faults(shape, value, path)


def _inner_faults(shape: ParameterShape, value: Any, path: str) -> Iterator[_Fault]:
    match shape:
        case Structure():
            yield from _member_faults(shape, value, f"{path}.")
        case Listing():
            yield from _part_faults(shape, value, path, "Member", dict(enumerate(value, 1)))
        case Entries():
            for name in value:
                if shape.keys is not None and not _keeps(shape.keys, name):
                    yield _shown(shape, value), path, f"Map keys must satisfy constraint: {_listed(shape.keys)}"
            yield from _part_faults(shape, value, path, "Map value", value)


def _member_faults(shape: Structure, value: dict[str, Any], path: str) -> Iterator[_Fault]:
    required = set(shape.required)
    if not any(name in value for name in shape.one_of):
        required.update(shape.one_of[:1])
    for name, member in shape.members.items():
        place = path + name[0].lower() + name[1:]
        if name in value:
            yield from _faults(member, value[name], place)
        elif name in required:
            yield "null", place, _NOT_NULL


def _part_faults(
    shape: Listing | Entries, value: Any, path: str, what: str, parts: Mapping[Any, Any]
) -> Iterator[_Fault]:
    # The elements of a list have no names, so DynamoDB reports their limits for the whole list.
    for part in parts.values():
        if part is not None and not _keeps(shape.of, part):
            yield _shown(shape, value), path, f"{what} must satisfy constraint: {_listed(shape.of)}"
    for key, part in parts.items():
        place = f"{path}.{key}.member"
        if part is None:
            yield "null", place, _NOT_NULL
        else:
            yield from _inner_faults(shape.of, part, place)


def _keeps(shape: ParameterShape, value: Any) -> bool:
    return all(test(value) for test, _ in _limits(shape))


def _listed(shape: ParameterShape) -> str:
    """Returns all limits of a shape, in the order in which DynamoDB lists them: the greatest values first."""
    if isinstance(shape, TableReference):
        shape = Text(least=3, most=255, pattern=NAME_PATTERN)
    said = sorted((limit for _, limit in _limits(shape)), key=lambda limit: ("pattern" in limit, "greater" in limit))
    return f"[{', '.join(said)}]"


# --- how the service shows a value -------------------------------------------------------------


def _shown(shape: ParameterShape, value: Any) -> str:
    return f"'{_written(shape, value)}'"


def _written(shape: ParameterShape, value: Any) -> str:
    """Returns a value as Java prints it, because DynamoDB's messages show it so."""
    if value is None:
        return "null"
    match shape:
        case Listing():
            return f"[{', '.join(_written(shape.of, element) for element in value)}]"
        case Entries():
            return f"{{{', '.join(f'{name}={_written(shape.of, entry)}' for name, entry in value.items())}}}"
        case Structure():
            members = (
                f"{name[0].lower()}{name[1:]}={_written(member, value.get(name))}"
                for name, member in shape.members.items()
            )
            return f"{shape.name}({', '.join(members)})"
        case Attribute():
            return f"AttributeValue({', '.join(f'{tag}={content}' for tag, content in value.items())})"
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)
