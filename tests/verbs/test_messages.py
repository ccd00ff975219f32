"""Messages that say what is wrong in the words of the program, once, and instances that have what was written."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, ValidationError

from adjoin import (
    AlreadyExists,
    Child,
    ConditionFailed,
    Copy,
    Edge,
    Graph,
    Immutable,
    Indexed,
    InvalidRequest,
    InvalidValue,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    UnknownField,
    field,
)
from tests.verbs.conftest import Everywhere


class Student(Node):
    id: str
    name: str = ""


class Course(Node):
    id: UUID
    title: str = ""


class Room(Node):
    id: Annotated[str, Field(min_length=3)]
    size: Annotated[int, Immutable()] = 0


class Attends(Edge[Student, Course]):
    title: Annotated[str, Copy("target.title")] = ""
    name: Annotated[str, Copy("source.name")] = ""
    hours: int = 0


class Sits(Edge[Student, Room]):
    pass


MODELS: list[Any] = [Student, Course, Room, Attends, Sits]
ONE = UUID(int=1)


def test_a_wrong_end_is_told_once() -> None:
    with pytest.raises(ValidationError) as error:
        Attends(source=3, target="x")
    told = [(problem["loc"], problem["msg"]) for problem in error.value.errors()]
    assert told == [
        (("source",), "Input should be a valid string, a Student or its ref"),
        (("target",), "Input should be a valid UUID, a Course or its ref"),
    ]
    with pytest.raises(ValidationError) as error:
        Sits(source="s", target="x")
    (problem,) = error.value.errors()
    assert (problem["loc"], problem["msg"]) == (("target",), "String should have at least 3 characters")


def test_so_it_is_by_connect(everywhere: Everywhere) -> None:
    g = everywhere(MODELS)
    with pytest.raises(InvalidValue) as error:
        g.connect(Attends, 3, ONE)
    assert str(error.value) == (
        "this Attends is not valid: source: Input should be a valid string, a Student or its ref"
    )
    with pytest.raises(InvalidValue, match="use put for a single one"):
        g.put_many(Student(id="s"))


def test_an_edge_that_a_transaction_connected_has_its_copies(everywhere: Everywhere) -> None:
    g = everywhere(MODELS)
    g.put(Course(id=ONE, title="Art"))
    with g.transaction() as t:
        t.put(Student(id="s", name="Ann"))
        made = t.connect(Attends, "s", ONE, hours=3)
        assert (made.title, made.name) == ("", "")
    assert (made.title, made.name, made.hours) == ("Art", "Ann", 3)
    assert made == g.edge(Attends, "s", ONE)
    made.hours = 4
    g.put(made)
    assert g.edge(Attends, "s", ONE).hours == 4


def test_messages_have_no_keys(everywhere: Everywhere) -> None:
    g = everywhere(MODELS)
    g.put_many([Room(id="one", size=1), Room(id="two", size=2)])
    with pytest.raises(InvalidValue) as error:
        g.put_many([Room(id="one", size=3)])
    told = "Room.size is immutable, and Room 'one' already has another value; put it as it is stored"
    assert str(error.value).startswith(told)
    assert "ROOM" not in str(error.value)


class Address(BaseModel):
    city: str = ""


class Lodger(Node):
    id: str
    name: str = ""


class Settled(Node):
    id: str
    name: str = ""
    address: Address = Address()


class Listed(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    city: Annotated[str, Indexed()] = ""


class Hooked(Node):
    id: str
    name: str = ""

    def before_put(self) -> None:
        """Makes an upsert read first."""


class Lodges(Edge[Lodger, Room]):
    name: str = ""
    address: Address = Address()


class Shares(Edge[Lodger, Lodger], symmetric=True):
    name: str = ""


@pytest.mark.parametrize("verb", ["update", "upsert"])
@pytest.mark.parametrize("is_together", [False, True])
@pytest.mark.parametrize(
    ("changes", "condition", "words"),
    [
        ([], {"nmae": "Jo"}, "has no field 'nmae'; did you mean 'name'"),
        ([field("nmae").set("Jo")], {}, "has no field 'nmae'; did you mean 'name'"),
        ([field("nmae") + 1], {}, "has no field 'nmae'; did you mean 'name'"),
        ([], {"name": field("nmae") + 1}, "has no field 'nmae'; did you mean 'name'"),
        ([], {"name": "Jo", "only_if": field("nmae") == "Jo"}, "has no field 'nmae'; did you mean 'name'"),
        ([], {"name": "Jo", "only_if": field("nmae").size() > 3}, "has no field 'nmae'; did you mean 'name'"),
    ],
)
def test_an_unknown_field_is_told_before_anything_is_read(
    verb: str, is_together: bool, changes: list[Any], condition: dict[str, Any], words: str
) -> None:
    """Also of classes that are read before they change."""
    with Graph(":memory:", [Lodger, Settled, Listed, Hooked, Room, Lodges, Shares]) as g:
        for model, *ids in ((Settled, "1"), (Listed, "1"), (Hooked, "1"), (Lodges, "1", "one"), (Shares, "1", "2")):
            with g.meter() as meter, pytest.raises(UnknownField, match=words):
                if is_together:
                    with g.transaction() as t:
                        getattr(t, verb)(model, *ids, *changes, **condition)
                else:
                    getattr(g, verb)(model, *ids, *changes, **condition)
            assert meter.requests == 0


def test_an_id_that_a_write_names_is_told_to_be_left_out() -> None:
    with Graph(":memory:", [Lodger, Room, Lodges]) as g:
        for call, told in (
            (lambda: g.update(Lodger, "1", name="Jo", only_if=field("id") == "1"), "Lodger.id is part of the id"),
            (
                lambda: g.disconnect(Lodges, "1", "one", only_if=field("target") == "one"),
                "Lodges.target is part of the id",
            ),
            (lambda: g.connect(Lodges, "1", "one", only_if=field("target.id") == "one"), "Room.id is part of the id"),
        ):
            with pytest.raises(UnknownField, match=f"^{told}.*leave it out of only_if, or use field") as error:
                call()
            assert "it has" not in str(error.value)
        assert g.scan(Lodges).where(field("source") == "1").count() == 0


class Tenant(Node):
    id: str
    email: Annotated[str | None, Unique()] = None
    rooms: int = 0


class Neighbour(Edge[Tenant, Tenant], symmetric=True):
    since: int = 0


@pytest.mark.parametrize(
    ("write", "reason", "words"),
    [
        (lambda t: t.add(Tenant(id="a")), (AlreadyExists, Tenant, "a", "add"), "add Tenant 'a': it already exists"),
        (
            lambda t: t.put(Tenant(id="b"), only_if=field("rooms") > 3),
            (ConditionFailed, Tenant, "b", "put"),
            "put Tenant 'b': its condition does not hold for what is stored",
        ),
        (
            lambda t: t.update(Neighbour, "a", "c", since=1),
            (NotFound, Neighbour, ("a", "c"), "update"),
            "update Neighbour from 'a' to 'c': it does not exist",
        ),
        (
            lambda t: t.connect(Neighbour, "b", "a"),
            (AlreadyExists, Neighbour, ("b", "a"), "connect"),
            "connect Neighbour from 'b' to 'a': it already exists",
        ),
        (
            lambda t: t.connect(Neighbour, "a", "c"),
            (NotFound, Tenant, "c", "connect"),
            "connect Neighbour from 'a' to 'c': there is no Tenant 'c'",
        ),
        (
            lambda t: t.delete(Neighbour(source="a", target="b"), only_if=field("since") > 3),
            (ConditionFailed, Neighbour, ("a", "b"), "delete"),
            "delete Neighbour from 'a' to 'b': its condition does not hold for what is stored",
        ),
    ],
)
def test_a_cancelled_transaction_says_once_why(everywhere: Everywhere, write: Any, reason: Any, words: str) -> None:
    g = everywhere([Tenant, Neighbour])
    g.put_many([Tenant(id="a", email="a@x"), Tenant(id="b")])
    g.connect(Neighbour, "a", "b")
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.put(Tenant(id="d"))
        write(t)
    assert str(error.value).partition(" (request")[0] == f"nothing was written, because of {words}"
    assert {(each.error, each.model, each.id, each.call) for each in error.value.reasons if each.error} == {reason}


def test_each_reason_has_its_own_error(everywhere: Everywhere) -> None:
    """Although one of them, a value that is not free, ends the transaction for all."""
    g = everywhere([Tenant, Neighbour])
    g.put_many([Tenant(id="a", email="a@x"), Tenant(id="b")])
    with pytest.raises(TransactionCanceled, match="belongs to Tenant 'a'") as error, g.transaction() as t:
        t.put(Tenant(id="b", email="a@x"))
        t.connect(Neighbour, "a", "c")
    told = {(each.error, each.model, each.id) for each in error.value.reasons if each.error}
    assert told == {(AlreadyExists, Tenant, "b"), (NotFound, Tenant, "c")}


class Bed(Child[Tenant], key=("number",)):
    number: int
    width: int = 90


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda t: t.put(Tenant(id="z"), only_if=field("id").exists()), NotFound),
        (lambda t: t.put(Tenant(id="z", email="z@x"), only_if=field("rooms") == 3), NotFound),
        (lambda t: t.put(Tenant(id="a"), only_if=~field("id").exists()), ConditionFailed),
        (lambda t: t.put(Neighbour(source="b", target="c"), only_if=field("since") == 3), NotFound),
        (lambda t: t.put(Bed(parent="a", number=2), only_if=field("width") == 90), NotFound),
        (lambda t: t.put(Bed(parent="a", number=1), only_if=field("width") == 80), ConditionFailed),
        (lambda t: t.add(Bed(parent="a", number=1)), AlreadyExists),
        (lambda t: t.update(Bed, ("a", 2), width=80, only_if=field("width") == 90), NotFound),
        (lambda t: t.update(Tenant, "a", rooms=1, only_if=field("rooms") == 7), ConditionFailed),
        (lambda t: t.upsert(Tenant, "z", rooms=1, only_if=field("rooms") == 7), ConditionFailed),
        (lambda t: t.connect(Neighbour, "b", "z", only_if=field("target.rooms") == 0), NotFound),
        (lambda t: t.connect(Neighbour, "b", "c", only_if=field("target.rooms") == 7), ConditionFailed),
        (lambda t: t.delete(Tenant, "a", only_if=field("rooms") == 7), ConditionFailed),
        (lambda t: t.disconnect(Neighbour, "a", "b", only_if=field("since") == 7), ConditionFailed),
    ],
)
def test_a_reason_has_the_error_of_the_call_alone(everywhere: Everywhere, call: Any, told: type[Exception]) -> None:
    g = everywhere([Tenant, Neighbour, Bed])
    g.put_many([*(Tenant(id=id) for id in "abc"), Bed(parent="a", number=1), Neighbour(source="a", target="b")])
    with pytest.raises(told):
        call(g)
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.put(Tenant(id="d"))
        call(t)
    assert {each.error for each in error.value.reasons if each.error} == {told}


named: Any = field
"""Type checkers would find these mistakes."""


@pytest.mark.parametrize(
    "condition",
    [
        lambda: named("name") == "a" & named("city") == "b",
        lambda: named("age") == 1 | named("age") == 2,
        lambda: named("name") & (named("city") == "b"),
        lambda: ~named("active"),
        lambda: (named("name") == "a") | named("active"),
    ],
)
def test_a_field_is_no_comparison(condition: Any) -> None:
    with pytest.raises(InvalidValue, match=r"is not a comparison.* put parentheses around each side"):
        condition()


class Stock(Node):
    id: str
    left: Annotated[int, Field(gt=0, le=9)] = 5
    code: Annotated[str | None, Unique()] = None


class Shelf(Node):
    id: str
    left: Annotated[int, Field(gt=0, le=9)] = 5


@pytest.mark.parametrize("model", [Stock, Shelf])
def test_a_broken_limit_is_named_with_its_field(everywhere: Everywhere, model: Any) -> None:
    """Whether the class is read before it is written or not."""
    g = everywhere([Stock, Shelf])
    g.put(model(id="a"))
    with pytest.raises(ConditionFailed, match=r"'a' does not change: left - 10 must be > 0, and left is 5"):
        g.update(model, "a", left=field("left") - 10)
    with pytest.raises(ConditionFailed, match=r"left \+ 5 must be <= 9, and left is 5"):
        g.update(model, "a", left=field("left") + 5)
    with pytest.raises(ConditionFailed, match="the condition does not hold"):
        g.update(model, "a", left=field("left") + 1, only_if=field("left") == 7)


def test_a_broken_limit_is_named_in_a_transaction() -> None:
    with Graph(":memory:", [Stock, Shelf]) as g:
        g.put(Shelf(id="a"))
        words = r"update Shelf 'a': left - 10 must be > 0, and left is 5$"
        with pytest.raises(TransactionCanceled, match=words), g.transaction() as t:
            t.update(Shelf, "a", left=field("left") - 10)


def test_unique_values_that_are_swapped_are_told_of() -> None:
    with Graph(":memory:", [Stock]) as g:
        g.put_many([Stock(id="a", code="x"), Stock(id="b", code="y")])
        words = "\"update Stock 'a'\" and \"update Stock 'b'\" are about the same unique"
        with pytest.raises(InvalidRequest, match=words), g.transaction() as t:
            t.update(Stock, "a", code="y")
            t.update(Stock, "b", code="x")
        g.update(Stock, "a", code=None)
        with g.transaction() as t:
            t.update(Stock, "b", code="x")
        g.update(Stock, "a", code="y")
