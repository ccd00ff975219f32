"""What type checkers know, as a program that they accept: each `assert_type` names the type of an expression.

It is never run. `tests/types/test_types.py` gives it to pyright, and `make types` to mypy.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, assert_type

from pydantic import BaseModel, ConfigDict, Field, computed_field

from adjoin import (
    AsyncEdgeQuery,
    AsyncGraph,
    Child,
    ChildQuery,
    Collection,
    Edge,
    EdgeQuery,
    FieldReference,
    FindPairQuery,
    Graph,
    GroupCount,
    Indexed,
    Node,
    Page,
    PairQuery,
    Predicate,
    Reached,
    Ref,
    Stored,
    Unique,
)
from adjoin import field as of


class Address(BaseModel):
    city: str


class User(Node):
    id: str
    name: Annotated[str, Indexed()] = Field(alias="Name", default="")
    age: int = 0
    owed: Decimal = Decimal(0)
    limit: Decimal | None = None
    nick: str | None = None
    tags: list[str] = []
    marks: set[str] = set()
    address: Address = Address(city="")
    sizes: dict[str, int] = {}


class Admin(User):
    level: int = 0


class Post(Node):
    id: int
    title: str


class Comment(Node):
    id: int


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str


class Free(Node):
    model_config = ConfigDict(extra="allow")

    id: str


class Wrote(Edge[User, Post], order="since", key=("term",)):
    since: date
    term: str
    words: int = 0


class Likes(Edge[User, Post | Comment]):
    pass


class Owns(Edge[User, Repo]):
    pass


class Person(Node):
    id: str
    first: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def handle(self) -> Annotated[str, Unique()]:
        return self.first.lower()

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def length(self) -> Annotated[int, Stored()]:
        return len(self.first)


class Knows(Edge[User, User], symmetric=True):
    pass


class Note(Child[User]):
    id: str
    text: str


class About(Edge[Post, Note]):
    pass


class Mixed(Node):
    id: str
    pair: tuple[str, int] = ("", 0)


DAY = date(2024, 1, 1)


def queries(g: Graph, user: User, x: Ref[User], admin: Admin) -> None:
    assert_type(g.out("u1", Wrote), EdgeQuery[Wrote, Post])
    assert_type(g.out(x, Wrote).limit(3).nodes(), PairQuery[Wrote, Post])
    assert_type(g.out(admin, Wrote).first(), Wrote | None)
    assert_type(g.into(3, Wrote).nodes().first(), tuple[Wrote, User] | None)
    assert_type(g.out(user, Likes).nodes().page(), Page[tuple[Likes, Post | Comment]])
    assert_type(g.into(Comment.ref(3), Likes).nodes(), PairQuery[Likes, User])
    assert_type(g.out("u1", Owns).nodes(), PairQuery[Owns, Repo])
    assert_type(g.into(("ann", "adjoin"), Owns).nodes(), PairQuery[Owns, User])
    assert_type(g.children(user, Note), ChildQuery[Note])
    assert_type(g.collection(x).node, User | None)
    assert_type(g.collection(user).nodes().node, User | None)
    assert_type(g.find(Wrote, of(Wrote.since) > DAY).nodes(), FindPairQuery[Wrote, User])
    assert_type(g.find(Wrote, of("since") > DAY).nodes("target"), FindPairQuery[Wrote, Post])
    assert_type(g.find(User, of(User.name) == "Ann", order=of(User.age)).first(), User | None)


async def awaited(g: AsyncGraph, x: Ref[User]) -> None:
    assert_type(g.out(x, Wrote), AsyncEdgeQuery[Wrote, Post])
    async for wrote, post in g.out(x, Wrote).nodes():
        assert_type((wrote, post), tuple[Wrote, Post])
    assert_type(await g.out(x, Wrote).nodes().first(), tuple[Wrote, Post] | None)
    assert_type(await g.collection(x), Collection[User])
    assert_type(await g.get(x), User | None)
    assert_type(await g.update(x, age=3), User)
    assert_type(await g.connect(Wrote, x, 3, since=DAY, term="a"), Wrote)
    assert_type(await g.walk(x).out(Wrote).first(), Post | None)


def walks(g: Graph, x: Ref[User]) -> None:
    assert_type(g.walk(x).out(Wrote).into(Likes).nodes(), Reached[User])
    assert_type(g.walk("u1").out(Likes).refs(), Reached[Ref[Post | Comment]])
    assert_type(g.walk([x]).out(Wrote).edges(), Reached[Wrote])
    assert_type(g.walk(x).both(Knows).distinct().limit(3).nodes(), Reached[User])
    assert_type(g.walk(x).children(Note).first(), Note | None)
    assert_type(g.walk(x).out(Wrote).where(of(Wrote.words) > 3).group_count(), GroupCount[Post])
    assert_type(g.walk(x).repeat(Knows, max=3).nodes(), Reached[User])
    g.walk(x).out(Wrote).order_by(of(Wrote.words)).sum(of(Wrote.words))


def ends(
    wrote: Wrote, likes: Likes, owns: Owns, knows: Knows, note: Note, about: About, any_edge: Edge[Any, Any]
) -> None:
    assert_type(wrote.source, str)
    assert_type(wrote.target, int)
    assert_type(likes.target, Ref[Post | Comment])
    assert_type(owns.target, tuple[Any, ...])
    assert_type(knows.target, str)
    assert_type(note.parent, str)
    assert_type(about.target, tuple[Any, ...])
    assert_type(any_edge.source, Any)
    assert_type(Post.ref(3).id, int)
    assert_type(Repo.ref(("ann", "adjoin")).id, Any)
    assert_type(Note.ref(("u1", "n1")).id, tuple[Any, ...])


def fields(g: Graph, name: str) -> None:
    assert_type(of(User.name), FieldReference[str])
    assert_type(of(User.age), FieldReference[int])
    assert_type(of(User.owed), FieldReference[Decimal | int])
    assert_type(of(User.nick), FieldReference[str | None])
    assert_type(of(User.address.city), FieldReference[str])
    assert_type(of(User.tags[0]), FieldReference[str])
    assert_type(of(User.sizes["hat"]), FieldReference[int])
    assert_type(of(Wrote.source), FieldReference[str])
    assert_type(of("age"), FieldReference[Any])
    both: Predicate = (of(User.owed) > 5) & (of(User.limit) <= Decimal(7)) & (of(User.nick) == None)  # noqa: E711
    several = of(User.age).is_in([1, 2]) | of(User.nick).begins_with("a") | ~of(User.tags).contains("x")
    g.find(User, both | several | of(User.tags).begins_with(["x"])).where(of(User.nick) > "x")
    assert_type(g.get(User, "u1", only=[of(User.name), "age"]), User | None)
    g.out("u1", Wrote).only(of(Wrote.words))
    assert_type(g.find(User, of("id") > "a").only(of(User.name), "age").first(), User | None)
    assert_type(g.find(Wrote).only(of(Wrote.words)).nodes("target"), FindPairQuery[Wrote, Post])
    assert_type(g.scan(User).only(of(User.name)).first(), User | None)
    assert_type(of(Person.length), FieldReference[int])
    g.find(Person, of(Person.handle).begins_with("a"))
    assert_type(g.get(Person, handle="ann"), Person | None)


async def together(g: Graph, ag: AsyncGraph, x: Ref[User], post: Post, wrote: Wrote) -> None:
    assert_type(g.get_together(x), tuple[User | None])
    assert_type(g.get_together(x, post), tuple[User | None, Post | None])
    assert_type(g.get_together(wrote, post, x), tuple[Wrote | None, Post | None, User | None])
    four = await ag.get_together(x, Repo.ref(("ann", "adjoin")), wrote, Note.ref(("u1", "n1")))
    assert_type(four, tuple[User | None, Repo | None, Wrote | None, Note | None])
    assert_type(g.get_together(x, x, x, x, x), tuple[Any, ...])
    assert_type(g.get_many(User, ["u1", x, User(id="u2")]), list[User | None])
    assert_type(g.get_many(Repo, [("ann", "adjoin")], only=["name"]), list[Repo | None])
    g.delete(User, "u1")
    g.delete(Repo, ("ann", "adjoin"))
    g.delete(User, x)
    await ag.delete(wrote)


def writes(g: Graph, x: Ref[User], user: User) -> None:
    assert_type(g.update(User, "u1", Name="Jo", age=3, owed=5, nick=None, tags=[], marks=set()), User)
    assert_type(g.update(x, age=of(User.age) + 1, name="Jo"), User)
    assert_type(g.update(user, of(User.name).set("Jo"), of(User.tags).append("x", "y")), User)
    assert_type(g.update(Wrote, "u1", 3, words=3, term="a"), Wrote)
    assert_type(g.upsert(User, "u1", marks=of(User.marks).add(["x"]), owed=of(User.owed) - 3), User)
    g.update(User, "u1", of(User.address.city).set("Oslo"), of(User.marks).discard({"x"}))
    g.update(Free, "f1", what="ever")
    assert_type(g.connect(Wrote, user, Post.ref(3), since=DAY, term="a"), Wrote)
    assert_type(g.connect(Likes, "u1", Post.ref(3)), Likes)
    assert_type(g.edge(Wrote, "u1", 3, term="a"), Wrote | None)
    g.disconnect(Wrote, "u1", 3, term="a")
    with g.transaction() as t:
        assert_type(t.connect(Wrote, "u1", 3, since=DAY, term="a"), Wrote)
        t.update(User, "u1", age=of(User.age) + 1)
    Wrote(source=user, target=Post.ref(3), since=DAY, term="a")
    Likes(source="u1", target=Comment.ref(3))
    Note(parent=user, id="n1", text="")


def collections(g: Graph, x: Ref[User], unknown: Ref[Any], admin: Admin) -> None:
    assert_type(g.collection(x).nodes().of(Wrote), list[tuple[Wrote, Post]])
    assert_type(g.collection(Post.ref(3), direction="into").nodes().of(Wrote), list[tuple[Wrote, User]])
    assert_type(g.collection(x).nodes().of(Likes), list[tuple[Likes, Post | Comment]])
    assert_type(g.collection(admin).nodes().of(Knows), list[tuple[Knows, User]])
    for wrote, author in g.collection(unknown, direction="into").nodes().of(Wrote):
        print(wrote, author.name)


def elements(name: str) -> None:
    sought: FieldReference[Any] = of(name)
    typed: Predicate = of(User.tags).contains("x") & of(User.marks).contains("x") & of(User.nick).contains("x")
    print(typed, of("tags").contains(3), of("tags").contains(b"x"), sought.contains("x"), of(Mixed.pair).contains(3))


def changes(g: Graph) -> list[str]:
    return [each.new.name for each in g.changes() if isinstance(each.new, User)]
