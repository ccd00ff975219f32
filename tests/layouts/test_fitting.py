"""What conditions say of a stored item, and of which fields only reading tells."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, create_model

from adjoin import Expires, Node
from adjoin.expressions import And, Compare, Exists, HasType, In, Not, Or, Value, attribute
from adjoin.layouts.fitting import Fit, fit
from adjoin.schema import Schema


class Colour(Enum):
    RED = "r"
    BLUE = "b"


class Thing(Node):
    id: str
    name: str
    size: int = 0
    limited: Annotated[int, Field(ge=1, le=9)] = 1
    colour: Colour = Colour.RED
    tags: set[str] = set()
    marks: set[str]
    note: str | None = None
    anything: Any = None
    needed: Any
    loose: Annotated[int, Field(strict=False)] = 0
    words: list[str] = []
    spelled: Annotated[str, Field(pattern="a+")] = "a"
    until: Annotated[dt.datetime | None, Expires()] = None


def fitted(model: type[Any], type: tuple[str, str] | None = None, trusted: tuple[str, ...] = ()) -> Fit:
    kind = Schema([model]).node(model)
    return fit(kind, kind.attributes.keys(), trusted, type)


def at(name: str) -> Any:
    return attribute(name)


def absent(name: str) -> Not:
    return Not(Exists(at(name)))


def of_type(name: str, *tags: str) -> Any:
    return tuple(HasType(at(name), tag) for tag in tags)


CONDITIONS: dict[str, Any] = {
    "name": of_type("name", "S")[0],
    "size": Or((absent("size"), *of_type("size", "N"))),
    "limited": Or(
        (
            absent("limited"),
            And(
                (
                    *of_type("limited", "N"),
                    Compare(">=", at("limited"), Value({"N": "1"})),
                    Compare("<=", at("limited"), Value({"N": "9"})),
                )
            ),
        )
    ),
    "colour": Or((absent("colour"), In(at("colour"), (Value({"S": "r"}), Value({"S": "b"}))))),
    "tags": Or((absent("tags"), Or(of_type("tags", "SS", "NS", "BS", "L")))),
    # A set without members is not stored, so also one that is required may be absent.
    "marks": Or((absent("marks"), Or(of_type("marks", "SS", "NS", "BS", "L")))),
    "note": Or((absent("note"), *of_type("note", "NULL", "S"))),
    "anything": None,
    "needed": Exists(at("needed")),
    "loose": Or((absent("loose"), *of_type("loose", "N"))),
    "words": Or((absent("words"), *of_type("words", "L"))),
    "until": Or((absent("until"), *of_type("until", "N"))),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_a_field_asks_of_its_attribute(name: str) -> None:
    assert fitted(Thing).told[name].condition == CONDITIONS[name]


def test_of_the_rest_only_reading_tells() -> None:
    found = fitted(Thing)
    assert found.untold == ("spelled",)
    assert found.told.keys() == CONDITIONS.keys()
    assert not found.is_whole
    # What nobody else writes need not be asked for.
    assert fitted(Thing, trusted=("size", "spelled")).told.keys() == CONDITIONS.keys() - {"size"}
    assert fitted(Thing, trusted=("size", "spelled")).untold == ()


def test_what_can_be_changed_by_what_is_stored() -> None:
    told = fitted(Thing).told
    changing = {name: each.changing for name, each in told.items() if each.changing is not None}
    assert changing == {
        "size": Or((absent("size"), *of_type("size", "N"))),
        "limited": Or((absent("limited"), *of_type("limited", "N"))),
        "loose": Or((absent("loose"), *of_type("loose", "N"))),
        "tags": Or((absent("tags"), *of_type("tags", "SS", "NS", "BS", "L"))),
        "marks": Or((absent("marks"), *of_type("marks", "SS", "NS", "BS", "L"))),
        "words": Or((absent("words"), *of_type("words", "L"))),
    }


def test_what_a_request_carries() -> None:
    plain = fitted(Thing)
    assert plain.conditions(["name", "spelled", "anything"], ["size", "name"]) == [
        CONDITIONS["name"],
        Or((absent("size"), *of_type("size", "N"))),
    ]
    assert plain.conditions([], ["spelled"], ["words", "spelled"]) == [HasType(at("words"), "L")]
    assert plain.conditions([], []) == []
    labelled = Or((absent("kind"), Compare("=", at("kind"), Value({"S": "a thing"}))))
    assert fitted(Thing, ("kind", "a thing")).conditions(["name"], []) == [labelled, CONDITIONS["name"]]
    assert plain.labelled is None


class Loose(Node):
    model_config = ConfigDict(extra="allow")
    id: str
    name: str = ""


class Typed(Node):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    id: str
    name: str = ""


class Looking(Node):
    id: str
    name: str = ""

    def model_post_init(self, context: Any) -> None:
        assert self.name != "x"


def test_classes_that_look_at_everything_have_to_read_everything() -> None:
    assert not fitted(Loose).is_whole
    for model in (Typed, Looking):
        found = fitted(model)
        assert (found.is_whole, found.told, found.untold) == (True, {}, ("name",))


MANY = tuple(f"choice {number}" for number in range(100))


class Choosing(Node):
    id: str
    one: Literal[MANY] = MANY[0]  # type: ignore[valid-type]
    two: Literal[MANY] = MANY[0]  # type: ignore[valid-type]
    three: Literal[MANY] = MANY[0]  # type: ignore[valid-type]
    four: Literal[MANY] = MANY[0]  # type: ignore[valid-type]


class ChoosingMore(Choosing, label="MORE"):
    five: Literal[MANY] = MANY[0]  # type: ignore[valid-type]


class ChoosingOfTooMany(Node):
    id: str
    one: Literal[(*MANY, "more")] = MANY[0]  # type: ignore[valid-type]


def test_what_is_too_long_for_an_expression_is_read() -> None:
    assert len(fitted(Choosing).told) == 4
    found = fitted(ChoosingMore)
    assert (found.told, found.untold, found.is_whole) == ({}, ("one", "two", "three", "four", "five"), False)
    # An `in` takes a hundred.
    assert fitted(ChoosingOfTooMany).untold == ("one",)


class Shelf(Node):
    id: str
    any: list[Any] = []
    whole: list[int] = []
    texts: dict[str, str] = {}
    nested: list[list[str]] = []
    limited: list[Annotated[str, Field(max_length=3)]] = []


def test_elements_that_have_limits_of_their_own_have_to_be_read() -> None:
    found = fitted(Shelf)
    assert found.untold == ("limited",)
    assert found.told.keys() == {"any", "whole", "texts", "nested"}


class Inner(BaseModel):
    name: str = ""


class Odd(Enum):
    """With a member that DynamoDB cannot store."""

    NOTHING = float("nan")


@pytest.mark.parametrize(
    ("annotation", "is_told"),
    [
        (str, True),
        (Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)], True),
        (Annotated[str, StringConstraints(min_length=1)], False),
        (Annotated[int, Field(ge=1, lt=5)], True),
        (Annotated[int, Field(multiple_of=5)], False),
        (Annotated[Decimal, Field(gt=0)], True),
        (Annotated[Decimal, Field(max_digits=3)], False),
        (Annotated[Decimal, Field(allow_inf_nan=False)], True),
        (Annotated[float, Field(le=1.5)], True),
        (int | None, True),
        (Annotated[int, Field(ge=1)] | None, True),
        (int | str, False),
        (dt.date, True),
        (Annotated[dt.date, Field(ge=dt.date(2026, 1, 1))], False),
        (dt.time, True),
        (dt.timedelta, True),
        (UUID, True),
        (bytes, True),
        (bool, True),
        (list[Any], True),
        (list[list[int]], True),
        (list[Annotated[int, Field(ge=1)]], False),
        (Annotated[list[int], Field(max_length=3)], False),
        (list[Inner], False),
        (Inner, False),
        (tuple[int, int], False),
        (dict[str, int], True),
        (dict[str, Any], True),
        (dict[str, Annotated[int, Field(ge=1)]], False),
        (dict[Annotated[str, Field(max_length=3)], int], False),
        (set[str], True),
        (frozenset[int], True),
        (set[Annotated[str, Field(max_length=3)]], False),
        (Literal["a", 1], True),
        (Colour, True),
        (Odd, False),
        (Annotated[str, AfterValidator(str.lower)], False),
    ],
)
def test_which_types_a_condition_can_check(annotation: Any, is_told: bool) -> None:
    """What refuses a value for another reason than its stored type, or changes it, has to be read."""
    model: Any = create_model("Model", __base__=Node, id=(str, ...), field=(annotation, ...))
    found = fitted(model)
    assert ({*found.told}, found.untold) == (({"field"}, ()) if is_told else (set(), ("field",)))


def test_what_may_be_absent_or_null() -> None:
    model: Any = create_model(
        "Model",
        __base__=Node,
        id=(str, ...),
        plain=(str, ...),
        optional=(str | None, ...),
        default=(str, "x"),
        both=(str | None, "x"),
        checked=(Annotated[str, Field(validate_default=True)], "x"),
    )
    text = {name: of_type(name, "S")[0] for name in model.model_fields}
    assert {name: each.condition for name, each in fitted(model).told.items()} == {
        "plain": text["plain"],
        "optional": Or((*of_type("optional", "NULL"), text["optional"])),
        "default": Or((absent("default"), text["default"])),
        "both": Or((absent("both"), *of_type("both", "NULL"), text["both"])),
    }
    assert fitted(model).untold == ("checked",)


def test_which_attributes_can_be_changed_inside() -> None:
    model: Any = create_model(
        "Model", __base__=Node, id=(str, ...), words=(list[str], ...), sizes=(dict[str, int], ...), tags=(set[str], ...)
    )
    inside = {name: each.inside for name, each in fitted(model).told.items()}
    assert inside == {"words": of_type("words", "L")[0], "sizes": of_type("sizes", "M")[0], "tags": None}
