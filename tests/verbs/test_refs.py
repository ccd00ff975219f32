"""A ref, a node or an edge, wherever a class and an id are taken."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    Child,
    ConditionFailed,
    Edge,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    Version,
    field,
)
from tests.verbs.conftest import Everywhere


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    stars: int = 0


class Release(Child[Repo], key=("at",)):
    at: dt.date
    notes: str = ""


class User(Node):
    id: int
    name: str = ""
    revision: Annotated[int, Version()] = 0


class Starred(Edge[User, Repo], key=("year",)):
    year: int
    note: str = ""


REPO = Repo(owner="ann", name="adjoin")
RELEASE = Release(parent=REPO, at=dt.date(2024, 1, 2))
STARRED = Starred(source=1, target=REPO, year=2024)
MODELS = [Repo, Release, User, Starred]


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    graph = everywhere(MODELS)
    graph.put_many([REPO, RELEASE, STARRED])
    graph.put(User(id=1, name="Ann"))
    return graph


def test_get_takes_a_ref_or_a_node(g: Any) -> None:
    with g.meter() as meter:
        assert g.get(Repo.ref(("ann", "adjoin"))) == REPO
        assert g.get(Release.ref(parent=REPO, at=dt.date(2024, 1, 2))) == RELEASE
        assert g.get(RELEASE, consistent=True) == RELEASE
        assert g.get(User.ref(9)) is None
    assert meter.requests == 4
    assert g.get_many(Repo, [Repo.ref(owner="ann", name="adjoin"), REPO]) == [REPO, REPO]


def test_update_takes_a_ref_a_node_or_an_edge(g: Any) -> None:
    with g.meter() as meter:
        assert g.update(Repo.ref(("ann", "adjoin")), stars=field("stars") + 1).stars == 1
        assert g.update(REPO, stars=field("stars") + 1).stars == 2
        assert g.update(Release.ref(("ann", "adjoin", dt.date(2024, 1, 2))), notes="x").notes == "x"
        assert g.update(RELEASE, notes="y").notes == "y"
        assert g.update(STARRED, note="good").note == "good"
    assert meter.requests == 5, "as many as with a class and an id"
    assert g.edge(Starred, User.ref(1), REPO, year=2024).note == "good"
    with g.transaction() as t:
        t.update(REPO, stars=7)
        t.update(STARRED, note="best")
    assert g.get(REPO).stars == 7
    assert g.edge(Starred, 1, ("ann", "adjoin"), year=2024).note == "best"
    with pytest.raises(NotFound, match="User 9"):
        g.update(User.ref(9), name="x")


def test_update_of_an_instance_compares_its_version(g: Any) -> None:
    read = g.get(User, 1)
    assert g.update(read, name="Anna").revision == 1
    with pytest.raises(ConditionFailed, match="User 1"):
        g.update(read, name="Anne")
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.update(read, name="Anne")
    assert error.value.reasons[0].error is ConditionFailed
    assert g.update(read, name="Anne", if_version=1).revision == 2
    assert g.update(read, name="Anni", if_version=None).revision == 3
    assert g.update(User, 1, name="Ann").revision == 4, "an id has no version to compare"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.update(REPO, "x", stars=1), InvalidValue, "without an id"),
        (lambda g: g.update(Repo.ref(("a", "b")), "x", stars=1), InvalidValue, "without an id"),
        (lambda g: g.update("x", stars=1), InvalidValue, "a class and an id, a ref, a node or an edge, got 'x'"),
        (lambda g: g.update(STARRED, year=2025), InvalidValue, "'year' of Starred is its key"),
        (lambda g: g.update(REPO), InvalidValue, "no field of Repo"),
        (lambda g: g.get(REPO, "x"), InvalidValue, "alone"),
        (lambda g: g.get(Repo.ref(("a", "b")), name="x"), InvalidValue, "alone"),
        (lambda g: g.get(Repo.ref("a")), InvalidKey, r"\(owner, name\)"),
        (lambda g: g.get("x"), InvalidModel, "'x'"),
    ],
)
def test_what_is_refused(everywhere: Everywhere, call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(everywhere(MODELS))


class Person(Node):
    id: str
    name: Annotated[str, Field(alias="Name")]
    mail: Annotated[str | None, Unique(), Field(alias="Mail")] = None


class Met(Edge[Person, Person], key=("place",)):
    place: Annotated[str, Field(alias="Place")]
    note: Annotated[str, Field(alias="Note")] = ""


def test_keywords_may_be_aliases_as_for_an_instance(everywhere: Everywhere) -> None:
    g = everywhere([Person, Met])
    g.put_many([Person(id="1", Name="Ann", Mail="ann@x"), Person(id="2", Name="Ben")])  # type: ignore[call-arg]
    assert g.update(Person, "1", Name="Anna").name == "Anna"
    assert g.upsert(Person, "2", Name="Bo", mail="bo@x").mail == "bo@x"
    assert g.get(Person, Mail="ann@x").name == "Anna"
    g.connect(Met, "1", "2", Place="Faro")
    assert g.update(Met, "1", "2", Place="Faro", Note="x").note == "x"
    assert g.edge(Met, "1", "2", Place="Faro") == g.edge(Met, "1", "2", place="Faro")
    with g.transaction() as t:
        t.update(Person, "1", Name="Ada")
        t.disconnect(Met, "1", "2", Place="Faro")
    assert (g.get(Person, "1").name, g.out("1", Met).count()) == ("Ada", 0)
    with pytest.raises(InvalidValue, match=r"Person\.name is given twice, also as 'Name'"):
        g.update(Person, "1", name="A", Name="B")


def test_a_ref_is_shown_as_it_is_written() -> None:
    assert repr(Repo.ref(("ann", "adjoin"))) == "Repo.ref(('ann', 'adjoin'))"
    assert str(User.ref(3)) == "User(3)"
