"""`field(User.name)`: a field as an attribute of its class."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar

import pytest
from pydantic import BaseModel, Field, computed_field

from adjoin import Child, Edge, Graph, Indexed, InvalidValue, Node, field

T = TypeVar("T")


class Address(BaseModel):
    city: str
    lines: list[str] = []


class User(Node):
    id: str
    name: Annotated[str, Indexed()] = Field(alias="Name", default="")
    visits: int = 0
    address: Address = Address(city="")
    former: Address | None = None
    sizes: dict[str, int] = {}
    homes: list[Address] = []

    @computed_field  # type: ignore[prop-decorator]
    @property
    def shown(self) -> str:
        return self.name

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def length(self) -> int:
        return len(self.name)


class Admin(User):
    visits: int = 10
    level: int = 1


class Box(Node, Generic[T]):
    id: str
    value: T


class Knows(Edge[User, User], order="since"):
    since: int


class Note(Child[User]):
    id: str


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (lambda: User.id, "id"),
        (lambda: User.name, "name"),
        (lambda: Admin.name, "name"),
        (lambda: Admin.visits, "visits"),
        (lambda: Admin.level, "level"),
        (lambda: Box.value, "value"),  # type: ignore[misc]
        (lambda: Box[int].value, "value"),  # type: ignore[misc]
        (lambda: Knows.since, "since"),
        (lambda: Knows.source, "source"),
        (lambda: Note.parent, "parent"),
        (lambda: User.address.city, "address.city"),
        (lambda: User.address.lines[0], "address.lines.0"),
        (lambda: User.former.city, "former.city"),  # type: ignore[union-attr]
        (lambda: User.sizes["hat"], "sizes.hat"),
        (lambda: User.homes[1].city, "homes.1.city"),
        (lambda: User.shown, "shown"),
        (lambda: Admin.length, "length"),
    ],
)
def test_a_field_of_a_class_is_its_name(of: Any, name: str) -> None:
    assert field(of()).name == name


def test_it_has_no_value_of_its_own() -> None:
    compared: list[Any] = [
        lambda: User.visits > 3,
        lambda: User.visits == 3,
        lambda: User.visits != 3,
        lambda: bool(User.visits),
        lambda: User.visits + 1,
        lambda: list(User.name),
    ]
    for each in compared:
        with pytest.raises(
            InvalidValue, match=r"User\.\w+ is a field and has no value; compare or change field\(User\."
        ):
            each()
    for wrong in (True, "", "a.b", -1, 1.5):
        with pytest.raises(InvalidValue, match=r"User\.sizes has no part"):
            field(User.sizes[wrong])  # type: ignore[index]


def test_other_names_are_no_attributes() -> None:
    wrong: list[Any] = [
        lambda: User.nmae,  # type: ignore[attr-defined]
        lambda: User.address.town,  # type: ignore[attr-defined]
        lambda: User.name.city,  # type: ignore[attr-defined]
        lambda: User.__nothing__,  # type: ignore[attr-defined]
    ]
    for each in wrong:
        with pytest.raises(AttributeError):
            each()
    assert not hasattr(User, "nmae")
    assert not hasattr(Node, "name")
    assert hasattr(User, "name")
    with pytest.raises(InvalidValue, match=r'pass "name" or User\.name'):
        field(3)


def test_classes_are_made_as_before() -> None:
    """Pydantic asks bases for names of fields, and would take what is there for a default, or say that it is hidden."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Local(BaseModel):
            part: str

        class Base(Node):
            id: str
            name: str
            inner: Local | None = None

        class Derived(Base):
            name: str
            inner: Local | None = None

        class Again(Derived, Generic[T]):
            value: T

        class Between(Knows):
            since: int = 3

    assert Derived.model_fields["name"].is_required()
    assert Again[int].model_fields["name"].is_required()
    assert Between(source="a", target="b").since == 3
    assert field(Derived.inner.part).name == "inner.part"  # type: ignore[union-attr]
    user = Admin(id="a")
    assert pickle.loads(pickle.dumps(user)) == user
    assert copy.deepcopy(user) == user
    assert (user.name, user.visits, user.level) == ("", 10, 1)


def test_it_is_taken_wherever_a_name_is() -> None:
    with Graph(":memory:", [User, Knows]) as g:
        g.put_many([User(id="a", Name="Ann"), User(id="b", Name="Bob"), Knows(source="a", target="b", since=3)])
        found = g.find(User, field(User.name).begins_with("A"), order=field(User.name))
        assert [each.id for each in found] == ["a"]
        changed = g.update(User, "a", field(User.visits) + 2, field(User.address.city).set("Oslo"))
        assert (changed.visits, changed.address.city) == (2, "Oslo")
        assert g.upsert(User, "a", visits=field(User.visits) + 1, only_if=field(User.visits) == 2).visits == 3
        some = g.get(User, "a", only=[field(User.visits), "name"])
        assert some is not None
        assert (some.visits, some.name, "address" in some.__dict__) == (3, "Ann", False)
        assert [each.since for each in g.out("a", Knows).where(field(Knows.since) > 2).only(field(Knows.since))] == [3]
        walk = g.walk("a").out(Knows).order_by(field(Knows.since))
        assert (walk.sum(field(Knows.since)), walk.max(field(Knows.since))) == (3, 3)
        assert walk.top(field(Knows.since), 1) == [Knows(source="a", target="b", since=3)]
        with pytest.raises(InvalidValue, match="order must be the name of a field"):
            g.find(User, order=User.name)
        with pytest.raises(InvalidValue, match="only takes names of fields"):
            g.get(User, "a", only=[User.name])


def test_a_field_of_a_class_can_be_copied() -> None:
    class Copied(Node):
        id: str

    made: Any = Copied.id
    for each in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert repr(each) == "Copied.id"
