"""Which index is asked when several could be, and what of a condition is left to filter by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, Indexed, InvalidCursor, MaterializedGraph, Node, field
from adjoin.plans.read import decode_cursor, encode_cursor
from adjoin.requests import PageResponse, Query, Request, Response
from adjoin.stores.sqlite import SQLiteStore


class Person(Node):
    id: str
    city: Annotated[str, Indexed()] = ""
    team: Annotated[str, Indexed()] = ""


class Knows(Edge[Person, Person]):
    since: Annotated[int, Indexed()] = 0
    until: Annotated[int, Indexed()] = 0


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Person, Knows]) as graph:
        graph.put_many(Person(id=f"{number:02}", city=f"c{number:02}", team=f"t{number % 5}") for number in range(30))
        yield graph


@pytest.mark.parametrize(
    ("condition", "asked", "ids"),
    [
        ((field("team") == "t1") & (field("city") > "c10"), "team", [11, 16, 21, 26]),
        ((field("city") > "c10") & (field("team") == "t1"), "team", [11, 16, 21, 26]),
        (field("team").exists() & (field("city") == "c07"), "city", [7]),
        (field("team").begins_with("t") & field("city").is_in(["c07", "c08"]), "city", [7, 8]),
    ],
)
def test_what_finds_least_is_asked(g: Graph, condition: Any, asked: str, ids: list[int]) -> None:
    assert [int(person.id) for person in g.find(Person, condition)] == ids
    requests = g.explain(lambda: list(g.find(Person, condition))).requests
    assert all(asked in repr(getattr(request, "partition", "")) for request in requests)


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        (field("city").begins_with("c1") & (field("city") > "c13"), range(14, 20)),
        ((field("city") > "c13") & field("city").begins_with("c1"), range(14, 20)),
        (field("city").begins_with("c1") & (field("city") > "c13") & (field("city") <= "c15"), [14, 15]),
        (field("city").begins_with("c1") & field("city").begins_with("c12"), [12]),
        (field("city").begins_with("c1") & field("city").exists(), range(10, 20)),
        ((field("city") > "c13") & (field("city") < "c05"), []),
        (field("city").is_in(["c07", "c08", "c20"]) & (field("city") > "c07"), [8, 20]),
    ],
)
def test_several_conditions_on_one_field(g: Graph, condition: Any, ids: Any) -> None:
    assert [int(person.id) for person in g.find(Person, condition)] == list(ids)
    assert g.find(Person, condition).count() == len(ids)


def test_an_edge_that_goes_in_a_transaction_goes_from_every_index(g: Graph) -> None:
    g.put(Knows(source="01", target="02", since=3, until=4))
    with g.transaction() as t:
        t.disconnect(Knows, "01", "02")
    assert [g.find(Knows, field(name).exists()).count() for name in ("since", "until")] == [0, 0]


# --- tokens ------------------------------------------------------------------------------------

START: dict[str, Any] = {"PK": {"S": "PERSON#a"}, "SK": {"S": "KNOWS#PERSON#b"}}


@pytest.mark.parametrize("given", [0, 1, 2**31 - 1])
def test_a_token_comes_back(given: int) -> None:
    assert decode_cursor(encode_cursor(START, given, b"query", b"secret"), b"query", b"secret") == (START, given)


@pytest.mark.parametrize("given", [-1, 2**31])
def test_a_token_that_no_query_gave(given: int) -> None:
    with pytest.raises(InvalidCursor):
        decode_cursor(encode_cursor(START, given, b"query", b"secret"), b"query", b"secret")


@pytest.mark.parametrize(
    "start",
    [[], "PK", {"PK": "a"}, {"PK": {}}, {"PK": {"S": 1}}, {"PK": {"S": "a", "N": "1"}}, {"PK": {"X": "a"}}],
)
def test_a_token_with_a_start_that_is_no_key(start: Any) -> None:
    """One value that is none is enough. Who has no secret can make such a token."""
    for wrong in (start, {**START, **start} if isinstance(start, dict) else start):
        with pytest.raises(InvalidCursor, match="was not made by adjoin"):
            decode_cursor(encode_cursor(wrong, 1, b"query", b""), b"query", b"")
    with pytest.raises(InvalidCursor, match="was not made by adjoin"):
        decode_cursor(encode_cursor({**START, "SK": {"X": "a"}}, 1, b"query", b""), b"query", b"")


def test_a_token_is_spelled_as_ever() -> None:
    # People keep tokens, and other programs of the same graph read them.
    token = encode_cursor(START, 3, b"query", b"secret")
    assert token == "pIiGB6vv_psSq6O-BS0Rq1t7IlBLIjp7IlMiOiJQRVJTT04jYSJ9LCJTSyI6eyJTIjoiS05PV1MjUEVSU09OI2IifX0sM10"
    for query, secret in ((b"other", b"secret"), (b"query", b"other")):
        with pytest.raises(InvalidCursor):
            decode_cursor(token, query, secret)


class Counting:
    """A store with short pages of an index, which counts the entries that it returns."""

    def __init__(self) -> None:
        self.inner, self.creates_tables, self.returned = SQLiteStore(":memory:"), True, 0

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        short = [replace(each, limit=3) if isinstance(each, Query) and each.index else each for each in requests]
        responses = self.inner.execute(short)
        self.returned += sum(len(page.items) for page in responses if isinstance(page, PageResponse))
        return responses

    def close(self) -> None:
        self.inner.close()


def test_shards_that_cannot_change_are_read_once() -> None:
    """What was read of one shard beyond the last entry of another is kept for the next step."""
    store = Counting()
    with Graph(store, [Person], MaterializedGraph(shards=4)) as g:
        g.put_many(Person(id=f"{number:02}", city=f"c{number:02}") for number in range(30))
        store.returned = 0
        assert [int(person.id) for person in g.find(Person, field("city").exists())] == list(range(30))
        assert store.returned == 30
