"""`before_put` and `after_load`: a class has a say before an instance is written as a whole, and after it is read."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import PrivateAttr

from adjoin import Edge, Graph, InvalidModel, Node, Unique, Version, field
from tests.verbs.conftest import Everywhere


class User(Node):
    id: str
    name: str = ""
    slug: str = ""
    puts: int = 0

    def before_put(self) -> None:
        self.slug = self.name.lower()
        self.puts += 1


class Member(Node):
    id: str
    email: Annotated[str, Unique()]
    puts: int = 0
    revision: Annotated[int, Version()] = 0

    def before_put(self) -> None:
        self.email = self.email.lower()
        self.puts += 1


class Knows(Edge[User, User]):
    note: str = ""

    def before_put(self) -> None:
        if not self.note:
            raise ValueError("a note is needed")
        self.note += "!"


MODELS: list[Any] = [User, Member, Knows]


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    return everywhere(MODELS)


def test_each_write_of_an_instance_calls_it_once(g: Any) -> None:
    ann = User(id="a", name="Ann")
    with g.meter() as meter:
        g.put(ann)
    assert meter.requests == 1
    assert g.get(User, "a") == ann == User(id="a", name="Ann", slug="ann", puts=1)
    g.add(User(id="b", name="Ben"))
    g.put_many([User(id="c", name="Cleo"), Member(id="m", email="A@B.C")])
    with g.transaction() as t:
        t.put(User(id="d", name="Dan"))
        t.add(Member(id="n", email="X@Y.Z"))
    assert [each.slug for each in g.get_many(User, "bcd")] == ["ben", "cleo", "dan"]
    assert [each.puts for each in g.get_many(User, "bcd")] == [1, 1, 1]
    assert [each.puts for each in g.get_many(Member, "mn")] == [1, 1]
    assert g.get(Member, email="a@b.c").id == "m", "what is claimed is what is written"
    assert g.connect(Knows, "a", "b", note="x").note == "x!"
    with g.transaction() as t:
        made = t.connect(Knows, "b", "a", note="y")
    assert made.note == g.edge(Knows, "b", "a").note == "y!"


def test_an_upsert_that_makes_one_calls_it_and_update_does_not(g: Any) -> None:
    for name, requests in (("Ann", 2), ("Anna", 1)):
        with g.meter() as meter:
            assert g.upsert(User, "a", name=name).slug == "ann"
        assert meter.requests == requests
    assert g.update(User, "a", puts=field("puts") + 1).puts == 2
    with g.transaction() as t:
        t.upsert(User, "b", name="Ben")
    assert g.get(User, "b").slug == "ben"


def test_what_it_raises_writes_nothing(g: Any) -> None:
    g.put_many([User(id="a"), User(id="b")])
    with pytest.raises(ValueError, match="a note is needed"):
        g.connect(Knows, "a", "b")
    with pytest.raises(ValueError, match="a note is needed"), g.transaction() as t:
        t.put(User(id="c"))
        t.put(Knows(source="a", target="b"))
    assert (g.get(User, "c"), g.edge(Knows, "a", "b")) == (None, None)


def test_explain_leaves_the_instance_as_it_is() -> None:
    ann = User(id="a", name="Ann")
    with Graph(":memory:", MODELS) as g:
        assert len(g.explain(g.put, ann).requests) == 1
    assert ann.puts == 0


class Session(Node):
    id: str
    name: str = ""
    _loaded: int = 0

    def after_load(self) -> None:
        self._loaded += 1


class Opens(Edge[Session, Session], order="at"):
    at: int = 0
    _loaded: bool = PrivateAttr(default=False)

    def after_load(self) -> None:
        self._loaded = True


class Meddling(Node):
    id: str
    name: str = ""

    def after_load(self) -> None:
        self.name = self.name.upper()


def test_what_is_read_is_told_so(everywhere: Everywhere) -> None:
    g = everywhere([Session, Opens])
    new = Session(id="a")
    g.put_many([new, Session(id="b"), Opens(source="a", target="b")])
    assert new._loaded == 0
    assert g.get(Session, "a")._loaded == 1
    assert [each._loaded for each in g.get_many(Session, "ab")] == [1, 1]
    assert [(edge._loaded, node._loaded) for edge, node in g.out(Session.ref("a"), Opens).nodes()] == [(True, 1)]
    assert g.update(Session, "a", name="x")._loaded == 1
    assert sorted(each._loaded for each in g.scan(Session)) == [1, 1]


def test_what_is_read_is_not_changed_by_it(everywhere: Everywhere) -> None:
    g = everywhere([Meddling])
    g.put(Meddling(id="a", name="x"))
    with pytest.raises(InvalidModel, match="after_load of Meddling changed 'name', which is stored"):
        g.get(Meddling, "a")


def test_hooks_are_plain_methods() -> None:
    class Before(Node):
        id: str

        async def before_put(self) -> None:  # type: ignore[override]
            self.id += "!"

    class After(Edge[User, User]):
        async def after_load(self) -> None:  # type: ignore[override]
            self.source += "!"

    with pytest.raises(InvalidModel, match=r"Before\.before_put is an async method"):
        Graph(":memory:", [Before])
    with pytest.raises(InvalidModel, match=r"After\.after_load is an async method"):
        Graph(":memory:", [User, After])
