"""A program that may write nothing reads everything, and which partitions of records it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import pytest

from adjoin import (
    AccessDenied,
    AdjacencyList,
    Child,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    Keys,
    Node,
    Unique,
    field,
)
from adjoin.requests import BatchGet, Delete, Get, Put, Query, Request, Response, Scan
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore


class Member(Node):
    id: str
    name: Annotated[str, Indexed()]
    town: Annotated[str, Indexed()] = "here"
    mail: Annotated[str | None, Unique()] = None
    groups: Annotated[int, Count("Joined")] = 0


class Club(Node):
    id: str
    name: str = ""


class Joined(Edge[Member, Club]):
    club: Annotated[str, Copy("target.name")] = ""


class Note(Child[Member], key=("number",)):
    number: int


class Later(Node):
    """A class that the record of declarations does not have yet."""

    id: str


MODELS: list[Any] = [Member, Club, Joined, Note]
LAYOUT = AdjacencyList(
    indexes=[Index("ByName", "ClubPK", "name", shards=4)],
    keys={Club: Keys(indexes={"ByName": "CLUBS#{shard}"})},
    escape=True,
)
READS = (Get, BatchGet, Query, Scan)


class ReadOnly:
    """Passes reads on, remembers their partitions, and refuses everything else, as a policy for reading does."""

    creates_tables = False

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.partitions: set[str] = set()

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        for request in requests:
            name = type(request).__name__
            if not isinstance(request, READS) and not name.startswith(("Describe", "Read")):
                raise AccessDenied(f"not authorized to perform {name}")
            key = request.partition[1] if isinstance(request, Query) else getattr(request, "key", {}).get("PK", {})
            self.partitions.add(str(key.get("S", "")))
        return self.inner.execute(requests)

    def close(self) -> None:
        """The file belongs to the test."""


QUESTIONS: list[Callable[[Graph], Any]] = [
    lambda g: g.get(Member, "1"),
    lambda g: g.get_many(Member, ["1", "2", "9"]),
    lambda g: g.get(Member, mail="m1"),
    lambda g: list(g.find(Member, field("name") >= "n1")),
    lambda g: g.find(Member, field("town") == "here").count(),
    lambda g: list(g.find(Club, order="name")),
    lambda g: list(g.out("1", Joined).nodes()),
    lambda g: list(g.into("1", Joined).nodes()),
    lambda g: list(g.children("1", Note)),
    lambda g: g.collection(Member.ref("1")).edges,
    lambda g: list(g.walk(Member.ref("1")).out(Joined).refs()),
    lambda g: (g.count(Member), len(list(g.scan()))),
    lambda g: len(list(g.changes())),
    lambda g: str(g.migrate(dry_run=True)),
]


LAYOUT_OF_CLUBS = AdjacencyList(
    indexes=[Index("ByName", "ClubPK", "name", shards=4)], keys={Club: Keys(indexes={"ByName": "CLUBS#{shard}"})}
)


def filled(graph: Graph) -> None:
    graph.put_many([Club(id=str(number), name=f"c{number}") for number in range(6)])
    graph.put_many([Member(id=str(number), name=f"n{number}", mail=f"m{number}") for number in range(6)])
    for number in range(3):
        graph.connect(Joined, str(number), str(number))
    graph.put(Note(parent="1", number=1))
    graph.maintain(once=True)


@pytest.mark.parametrize("models", [MODELS, [*MODELS, Later]], ids=["recorded", "a class more"])
def test_who_may_write_nothing_reads_everything(models: list[Any]) -> None:
    store = SQLiteStore(":memory:")
    with Graph(store, MODELS, LAYOUT) as writer:
        filled(writer)
        denied = ReadOnly(store)
        reader = Graph(denied, models, LAYOUT)
        for question in QUESTIONS:
            assert question(reader) == question(writer)
        records = {each for each in denied.partitions if each.startswith("#=") and each.count("#") == 1}
        # The latter two because the graph has indexed fields with adaptive shards, and aggregates.
        assert records == {"#=RECORDS", "#=SHARDS", "#=MAINTAIN"}
        with pytest.raises(AccessDenied):
            reader.put(Club(id="9"))


def test_a_table_without_records_is_read_by_who_may_write_nothing() -> None:
    store = SQLiteStore(":memory:")
    with Graph(store, [Club], LAYOUT_OF_CLUBS) as writer:
        key = {"PK": {"S": "CLUB#1"}, "SK": {"S": "#META"}}
        store.execute([Put("adjoin", {**key, "name": {"S": "c"}, "ClubPK": {"S": "CLUBS#3"}})])
        for record in ("=DECLARED#forms", "=SHARDS#ClubPK"):
            store.execute([Delete("adjoin", {"PK": {"S": "#=RECORDS"}, "SK": {"S": record}})])
        denied = ReadOnly(store)
        reader = Graph(denied, [Club], LAYOUT_OF_CLUBS)
        assert list(reader.find(Club, order="name")) == list(reader.scan(Club)) == [Club(id="1", name="c")]
        assert {each for each in denied.partitions if each.startswith("#=")} == {"#=RECORDS"}
        assert writer.count(Club) == 1
