"""The limits of a shape: whether a parameter keeps them, and what the service says where it does not.

`Limits.hold` only answers yes or no, and is all that a good request takes. `Limits.check` walks the request
again to say which limits it breaks, and where: all of them together, ten at most, in the order of the shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest
from adjoin.server.names import is_arn
from adjoin.server.shapes import (
    NAME_PATTERN,
    Attribute,
    Entries,
    Listing,
    Shape,
    Structure,
    TableReference,
    Text,
    Whole,
)

Fault: TypeAlias = tuple[str, str, str]
"""The value as it is shown, where it stands, and the limit it breaks."""

Test: TypeAlias = Callable[[Any], bool]

_MOST_LISTED = 10
_NOT_NULL = "Member must not be null"
_NAME = re.compile(NAME_PATTERN)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one operation's input."""

    shape: Structure
    hold: Test

    @classmethod
    def of(cls, shape: Structure) -> Limits:
        return cls(shape, _test(shape) or (lambda request: True))

    def check(self, request: dict[str, Any]) -> None:
        """Refuse a request for every limit that it breaks."""
        faults = list(islice(_member_faults(self.shape, request, ""), _MOST_LISTED))
        if faults:
            listed = "; ".join(
                f"Value {value} at '{path}' failed to satisfy constraint: {limit}" for value, path, limit in faults
            )
            number = f"{len(faults)} validation error{'s' if len(faults) > 1 else ''}"
            raise InvalidRequest(f"{number} detected: {listed}")


# --- what a value must be by itself ------------------------------------------------------------


def _longer(limit: int) -> tuple[Test, str]:
    return lambda value: len(value) >= limit, f"Member must have length greater than or equal to {limit}"


def _shorter(limit: int) -> tuple[Test, str]:
    return lambda value: len(value) <= limit, f"Member must have length less than or equal to {limit}"


def _limits(shape: Shape) -> list[tuple[Test, str]]:
    """Tests of a value, and what each says that does not hold; those of its parts are not among them."""
    limits: list[tuple[Test, str]] = []
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


def _lengths(shape: Text | Listing | Entries) -> list[tuple[Test, str]]:
    lengths = []
    if shape.least is not None:
        lengths.append(_longer(shape.least))
    if shape.most is not None:
        lengths.append(_shorter(shape.most))
    return lengths


def _said(pattern: str) -> str:
    return f"Member must satisfy regular expression pattern: {pattern}"


def _is_arn_or(test: Callable[[str], Any]) -> Test:
    # Of an empty name the service says only that it is empty.
    return lambda name: not name or is_arn(name) or bool(test(name))


# --- whether limits hold -----------------------------------------------------------------------


def _test(shape: Shape) -> Test | None:
    """Whether a value and its parts keep all limits; None for a shape that has none."""
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


def _all(tests: list[Test]) -> Test | None:
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


_PLAIN_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")


def _is_reference(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None or (is_arn(name) and len(name) <= 1024)


def _structure_test(shape: Structure) -> Test | None:
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


def _parts_test(shape: Listing | Entries, parts: Callable[[Any], Iterable[Any]]) -> Test | None:
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


def _faults(shape: Shape, value: Any, path: str) -> Iterator[Fault]:
    for test, limit in _limits(shape):
        if not test(value):
            yield _shown(shape, value), path, limit
    yield from _inner_faults(shape, value, path)


def _inner_faults(shape: Shape, value: Any, path: str) -> Iterator[Fault]:
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


def _member_faults(shape: Structure, value: dict[str, Any], path: str) -> Iterator[Fault]:
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
) -> Iterator[Fault]:
    # A limit of what has no name of its own is said of the whole.
    for part in parts.values():
        if part is not None and not _keeps(shape.of, part):
            yield _shown(shape, value), path, f"{what} must satisfy constraint: {_listed(shape.of)}"
    for key, part in parts.items():
        place = f"{path}.{key}.member"
        if part is None:
            yield "null", place, _NOT_NULL
        else:
            yield from _inner_faults(shape.of, part, place)


def _keeps(shape: Shape, value: Any) -> bool:
    return all(test(value) for test, _ in _limits(shape))


def _listed(shape: Shape) -> str:
    """All limits of a shape, in the order in which the service lists them: what is most first."""
    if isinstance(shape, TableReference):
        shape = Text(least=3, most=255, pattern=NAME_PATTERN)
    said = sorted((limit for _, limit in _limits(shape)), key=lambda limit: ("pattern" in limit, "greater" in limit))
    return f"[{', '.join(said)}]"


# --- how the service shows a value -------------------------------------------------------------


def _shown(shape: Shape, value: Any) -> str:
    return f"'{_written(shape, value)}'"


def _written(shape: Shape, value: Any) -> str:
    """A value as Java writes it."""
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
