"""`delete_many`: in batches where nothing else belongs to it, one by one otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import pytest

from adjoin import ConditionFailed, Count, Edge, Graph, Indexed, InvalidValue, Node, Unique, Version, field
from adjoin.requests import BatchWrite, Request, Response, WriteResponse
from adjoin.stores.sqlite import SQLiteStore
from tests.verbs.conftest import Everywhere


class Note(Node):
    id: int
    text: str = ""


class Person(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    email: Annotated[str | None, Unique()] = None
    likes: Annotated[int, Count("Likes", consistency="transaction")] = 0


class Likes(Edge[Person, Person]):
    stars: int = 0


class Knows(Edge[Person, Person], symmetric=True):
    since: Annotated[int, Indexed()] = 0
    place: Annotated[str, Indexed()] = ""


class Paper(Node):
    id: str
    revision: Annotated[int, Version()] = 0


MODELS: list[Any] = [Note, Person, Likes, Knows, Paper]


def test_nodes_without_edges_are_deleted_in_batches(everywhere: Everywhere) -> None:
    g = everywhere(MODELS)
    g.put_many(Note(id=number) for number in range(1001))
    told: list[int] = []
    given = (Note.ref(number) if number % 2 else Note(id=number) for number in range(1001))
    with g.meter() as meter:
        assert g.delete_many(given, progress=told.append) == 1001
    assert (meter.requests, told) == (41, [400, 800, 1001])
    assert g.count(Note) == 0
    assert g.delete_many([Note.ref(1), Note.ref(1)]) == 2, "it need not exist, and may come twice"
    assert g.delete_many([]) == 0


def test_edges_are_deleted_with_what_belongs_to_them(everywhere: Everywhere) -> None:
    g = everywhere(MODELS)
    g.put_many([Person(id=id, email=f"{id}@b.c") for id in "abc"])
    edges = [Knows(source="a", target="b", since=1, place="x"), Knows(source="b", target="c", since=2, place="y")]
    g.put_many([*edges, Likes(source="a", target="b"), Likes(source="a", target="c")])
    with g.meter() as meter:
        assert g.delete_many(edges) == 2
    assert meter.requests == 1
    assert [list(g.out(id, Knows)) for id in "abc"] == [[], [], []]
    assert list(g.find(Knows, field("place") == "x")) == []
    assert g.delete_many([Likes(source="a", target="b")]) == 1
    assert g.get(Person, "a").likes == 1, "an edge that is counted takes its count with it"
    assert g.delete_many([Person.ref("a"), Person(id="b"), Likes(source="a", target="c")]) == 3
    assert g.get_many(Person, "abc") == [None, None, g.get(Person, "c")]
    assert g.get(Person, email="a@b.c") is None
    assert list(g.into("c", Likes)) == []


def test_instances_with_a_version_are_deleted_if_it_is_theirs(everywhere: Everywhere) -> None:
    g = everywhere(MODELS)
    papers = [Paper(id=id) for id in "abc"]
    for each in papers:
        g.put(each)
    g.put(g.get(Paper, "b"))
    with pytest.raises(ConditionFailed, match="Paper 'b'"):
        g.delete_many(papers)
    assert [paper and paper.id for paper in g.get_many(Paper, "abc")] == [None, "b", "c"]
    assert g.delete_many([Paper.ref("b"), papers[2]]) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Note(id=1), "use delete for a single one"),
        (Note.ref(1), "use delete for a single one"),
        (3, "takes a list"),
        ([3], r"Model\.ref\(id\)"),
        ([Note], "takes nodes, refs and edges"),
    ],
)
def test_what_is_refused(everywhere: Everywhere, given: Any, words: str) -> None:
    g = everywhere(MODELS)
    with pytest.raises(InvalidValue, match=words):
        g.delete_many(given)
    with pytest.raises(InvalidValue, match="progress"):
        g.delete_many([], progress=3)


class Loaded(SQLiteStore):
    """Leaves the last write of every batch of several unprocessed."""

    batches = 0

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        answers: list[Response] = []
        for request in requests:
            if isinstance(request, BatchWrite) and len(request.writes) > 1:
                Loaded.batches += 1
                (answer,) = super().execute((BatchWrite(request.writes[:-1]),))
                assert isinstance(answer, WriteResponse)
                answers.append(WriteResponse(request.writes[-1:], answer.consumed))
            else:
                answers += super().execute((request,))
        return answers


def test_what_is_left_unprocessed_is_sent_again() -> None:
    with Graph(Loaded(":memory:"), MODELS) as g:
        for number in range(60):
            g.put(Note(id=number))
        assert g.delete_many(Note.ref(number) for number in range(60)) == 60
        assert g.count(Note) == 0
        assert Loaded.batches == 4
