"""`adjoin.dataclass` beside the standard library's: the same classes, made by both, do the same."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import InitVar, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from adjoin import dataclass as ours

T = TypeVar("T")
Decorator = Callable[..., Any]


def decorators() -> Iterator[Any]:
    yield pytest.param(ours.dataclass, id="ours")
    yield pytest.param(dataclasses.dataclass, id="the standard library's")


@pytest.fixture(params=list(decorators()))
def dataclass(request: pytest.FixtureRequest) -> Decorator:
    """Every test holds for both."""
    found: Decorator = request.param
    return found


OPTIONS = [
    {"frozen": frozen, "slots": slots, **more}
    for frozen in (True, False)
    for slots in (True, False)
    for more in ({}, {"eq": False}, {"repr": False}, {"kw_only": True}, {"order": True})
]


def point(dataclass: Decorator, **options: bool) -> Any:
    @dataclass(**options)
    class Point:
        """A place."""

        x: int
        y: int = 2
        names: list[str] = field(default_factory=list, compare=False)
        hidden: str = field(default="h", repr=False, kw_only=True)

    return Point


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_same_class(options: dict[str, bool]) -> None:
    one, other = point(ours.dataclass, **options), point(dataclasses.dataclass, **options)
    assert str(inspect.signature(one)) == str(inspect.signature(other))
    assert one.__match_args__ == other.__match_args__
    assert one.__doc__ == other.__doc__
    assert (one.__qualname__, one.__module__) == (other.__qualname__, other.__module__)
    assert repr(one.__dataclass_params__) == repr(other.__dataclass_params__)
    assert [str(each) for each in dataclasses.fields(one)] == [str(each) for each in dataclasses.fields(other)]
    assert vars(one).get("__slots__") == vars(other).get("__slots__")
    assert (one.__hash__ is None, one.__eq__ is object.__eq__) == (
        other.__hash__ is None,
        other.__eq__ is object.__eq__,
    )
    for make in ({"x": 1}, {"x": 1, "y": 3}, {"x": 1, "names": ["n"], "hidden": "i"}):
        first, second = one(**make), other(**make)
        assert dataclasses.asdict(first) == dataclasses.asdict(second)
        if options.get("repr", True):
            assert repr(first) == repr(second)
        again, changed = one(**make), dataclasses.replace(first, y=99)
        assert (first == again, first == changed) == (
            second == other(**make),
            second == dataclasses.replace(second, y=99),
        )
        assert first != second
        assert copy.copy(first).names == first.names
        if one.__hash__ is not None and options.get("eq", True):
            assert hash(first) == hash(again)
            assert hash(first) == hash(second)
        assert assigned(first, "x") is assigned(second, "x")
        assert (assigned(first, "other") is None) is (assigned(second, "other") is None)


def assigned(instance: Any, name: str) -> type[Exception] | None:
    try:
        setattr(instance, name, 1)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("given", [(), (1, 2, [], 4), (1,), (1, 2)], ids=str)
@pytest.mark.parametrize("named", [{}, {"x": 1}, {"z": 1}, {"hidden": "h"}], ids=str)
def test_the_same_refusals(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    def said(dataclass: Decorator) -> str:
        try:
            return repr(point(dataclass, frozen=True, slots=True)(*given, **named))
        except TypeError as error:
            return str(error)

    assert said(ours.dataclass) == said(dataclasses.dataclass)


def test_a_frozen_value_stays_as_it_is(dataclass: Decorator) -> None:
    value = point(dataclass, frozen=True, slots=True)(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        value.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del value.x
    assert value.x == 1


def test_lists_are_not_shared(dataclass: Decorator) -> None:
    made = point(dataclass, frozen=True, slots=True)
    one, other = made(1), made(1)
    one.names.append("n")
    assert other.names == []


def test_inheritance(dataclass: Decorator) -> None:
    @dataclass(frozen=True, slots=True)
    class Base(Generic[T]):
        a: T
        b: int = 1

        def __post_init__(self) -> None:
            seen.append(self.b)

    @dataclass(frozen=True, slots=True)
    class Derived(Base[str]):
        c: int = 2
        b: int = 3

        def doubled(self) -> int:
            return 2 * self.c

    class Plain(Derived):
        pass

    seen: list[int] = []
    assert repr(Derived("x")).endswith("Derived(a='x', b=3, c=2)")
    assert Derived("x", 5, c=4).doubled() == 8
    assert seen == [3, 5]
    assert Base("x") != Derived("x")
    plain: Any = Plain("x")
    vars(plain)["extra"] = 7
    assert (plain.extra, plain.a) == (7, "x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.a = "y"
    assert vars(Derived)["__slots__"] == ("c",)
    assert not hasattr(Derived("x"), "__dict__")


def test_what_a_class_defines_itself(dataclass: Decorator) -> None:
    @dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    @dataclass(frozen=True)
    class Equal:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    assert (repr(Own(1)), Own(1) == Own(2), hash(Own(1))) == ("own", True, 7)
    assert hash(Equal(1)) == hash((1,))


def test_the_same_object_is_equal_to_itself(dataclass: Decorator) -> None:
    """As in a tuple: also a value that is not equal to itself. The standard library's has ceased to do so."""
    if dataclass is dataclasses.dataclass and sys.version_info >= (3, 13):
        pytest.skip("compares field by field since Python 3.13")

    @dataclass(frozen=True)
    class One:
        a: Any

    nan = float("nan")
    assert One(nan) == One(nan)


def test_a_value_that_contains_itself(dataclass: Decorator) -> None:
    @dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")


@pytest.mark.parametrize("kind", ["default before", "list", "frozen from not frozen", "not frozen from frozen"])
def test_classes_that_are_refused(dataclass: Decorator, kind: str) -> None:
    is_frozen: Any = kind == "not frozen from frozen"
    decorator: Any = dataclass

    @decorator(frozen=is_frozen)
    class Base:
        a: int

    def make() -> None:
        match kind:
            case "default before":

                @decorator
                class Wrong:
                    a: int = 1
                    b: int

            case "list":

                @dataclass
                class Shared:
                    a: list[int] = []

            case _:

                @decorator(frozen=not is_frozen)
                class Other(Base):
                    b: int

    with pytest.raises((TypeError, ValueError)):
        make()


def test_what_is_left_to_the_standard_library(dataclass: Decorator) -> None:
    @dataclass(frozen=True)
    class Rare:
        a: int
        known: ClassVar[int] = 5
        given: InitVar[int] = 3
        made: int = field(default=9, init=False)

        def __post_init__(self, given: int) -> None:
            object.__setattr__(self, "a", self.a + given)

    assert [each.name for each in dataclasses.fields(Rare)] == ["a", "made"]
    assert (Rare(1).a, Rare(1, 10).a, Rare.known, Rare(1).made) == (4, 11, 5, 9)


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    a: int
    b: str = "b"


@ours.dataclass(frozen=True, slots=True)
class Ours:
    a: int
    b: str = "b"


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_pickling(kind: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(kind(1), protocol)) == kind(1)
    assert copy.deepcopy(kind(1, "c")) == kind(1, "c")
    match kind(1):
        case Ours(a, b) | Theirs(a, b):
            assert (a, b) == (1, "b")
