"""Edges whose ends are nodes of several classes."""

from __future__ import annotations

from typing import Annotated, Any

from hypothesis import strategies as st

from adjoin import AdjacencyList, Child, Copy, Count, Edge, Indexed, Keys, MaterializedGraph, Max, Node, Sum, field
from adjoin.layouts.interface import Layout


class User(Node):
    id: str
    score: int = 0
    likes: Annotated[int, Count("Liked")] = 0
    best: Annotated[int | None, Max("Liked", field="score")] = None
    reach: Annotated[int, Sum("Liked", field="likes")] = 0


class Bot(Node, key=("owner", "number")):
    owner: str
    number: int
    score: int = 0
    likes: Annotated[int, Count("Liked", where=field("at") > 0)] = 0


class Post(Node):
    id: str
    title: str = ""
    score: int = 0
    likes: Annotated[int, Count("Liked")] = 0
    fans: Annotated[int, Sum("Liked", field="score")] = 0


class Comment(Node):
    id: int
    title: str = ""
    score: int = 0
    likes: Annotated[int, Count("Liked", consistency="transaction")] = 0


class Line(Child[Post], key=("number",)):
    number: int
    title: str = ""
    score: int = 0
    likes: int = 0


class Liked(Edge[User | Bot, Post | Comment | Line]):
    at: int = 0
    what: Annotated[str, Copy("target.title")] = ""


class Rated(Edge[User, Post | Comment | Line], key=("term",), order="at"):
    term: str
    at: int = 0
    stars: Annotated[int | None, Indexed()] = None
    mood: Annotated[str | None, Indexed()] = None


class Seen(Edge[User, Post | Comment | Line], key=("term",)):
    term: str


class Friend(Edge[User | Bot, User | Bot], symmetric=True):
    since: int = 0


MODELS: list[Any] = [User, Bot, Post, Comment, Line, Liked, Rated, Seen, Friend]

LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "own": AdjacencyList(
        keys={
            Post: Keys(partition="p#{id}", sort="p#{id}"),
            Comment: Keys(partition="c#{id:06}", sort="meta"),
            Friend: Keys(sort="f#{target}"),
            Rated: Keys(sort="r#{target}#{term}"),
            Liked: Keys(sort="l#{target}"),
        },
        escape=True,
    ),
}

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)

sources = st.one_of(st.builds(User.ref, texts), st.builds(Bot.ref, st.tuples(texts, st.integers(-5, 5))))
