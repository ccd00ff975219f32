"""Every public function with arguments that nobody should pass: what comes back is an error of ours, if one comes.

That an argument is missing, or has a name that no function knows, is told by Python itself.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    AdjoinError,
    AsyncGraph,
    Child,
    Edge,
    Graph,
    Index,
    Indexed,
    Keys,
    MaterializedGraph,
    Node,
    Projection,
    Throughput,
    Unique,
    Version,
    aws,
    field,
)
from adjoin.aggregates import CommonNeighbours, Copy, Count, Max, Min, Sum, Top
from adjoin.plans import read
from adjoin.plans.read import decode_cursor
from adjoin.requests import PageResponse, Put, Scan
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import AttributeValue
from tests.shares import examples


class Person(Node):
    id: str
    name: str = ""
    age: int = 0
    size: float = 0.0
    born: dt.date | None = None
    tags: set[str] = set()
    anything: Any = None
    city: Annotated[str, Indexed()] = ""
    mail: Annotated[str | None, Unique()] = None


class Thing(Node):
    id: int
    note: str = ""


class Owns(Edge[Person, Thing], key=("since",)):
    since: int = 0
    share: Decimal = Decimal(1)


class Knows(Edge[Person, Person], symmetric=True):
    how: str = ""


MODELS = [Person, Thing, Owns, Knows]


def nested(depth: int, inner: Any = None) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


def mapped(depth: int) -> Any:
    inner: Any = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def inverted(times: int) -> Any:
    predicate: Any = field("name") == "a"
    for _ in range(times):
        predicate = ~predicate
    return predicate


def mixed(depth: int) -> Any:
    predicate: Any = field("name") == "a"
    for number in range(depth):
        other = field("age") > number
        predicate = (predicate & other) if number % 2 else (predicate | other)
    return predicate


_CIRCLE: list[Any] = []
_CIRCLE.append(_CIRCLE)

HOSTILE: dict[str, Any] = {
    "None": None,
    "a truth value": True,
    "zero": 0,
    "minus one": -1,
    "an int of 5,001 digits": 10**5000,
    "a negative int of 5,001 digits": -(10**5000),
    "2**63": 2**63,
    "nan": float("nan"),
    "infinity": float("inf"),
    "a decimal nan": Decimal("sNaN"),
    "a large decimal": Decimal("1e999999"),
    "no text": "",
    "NUL": "\0",
    "a long text": "x" * 5000,
    "a surrogate": "\ud800",
    "a path": "../x/y#z%00",
    "nines": "9" * 5000,
    "a number as text": "1e9999999",
    "bytes": b"\xff",
    "a list": [],
    "a list of None": [None],
    "a map": {},
    "a map of anything": {1: object()},
    "a set": {1, "1"},
    "nested lists": nested(900),
    "lists nested 33 deep": nested(33),
    "nested maps": mapped(900),
    "a circle": _CIRCLE,
    "an object": object(),
    "a class": int,
    "a node class": Person,
    "another class": Version,
    "a node": Person(id="x"),
    "an edge": Owns(source="x", target=1),
    "a ref": Thing.ref(1),
    "a field": field("name"),
    "a comparison": field("age") > 1,
    "a comparison inverted 501 times": inverted(501),
    "a comparison inverted 5,000 times": inverted(5000),
    "deep conditions": mixed(99),
    "a change": field("age") + 1,
    "a function": len,
    "a generator": iter(()),
    "a date": dt.date(1, 1, 1),
    "a time at the end": dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-23))),
    "an error": ValueError("x"),
}


def opened(**more: Any) -> Graph:
    return Graph(":memory:", MODELS, **more)


# Each takes a graph and something hostile.
VERBS: dict[str, Callable[[Graph, Any], object]] = {
    "put": lambda g, x: g.put(x),
    "put only_if": lambda g, x: g.put(Person(id="a"), only_if=x),
    "put value": lambda g, x: g.put(Person.model_construct(id="a", anything=x)),
    "put id": lambda g, x: g.put(Person.model_construct(id=x)),
    "put int id": lambda g, x: g.put(Thing.model_construct(id=x)),
    "put field": lambda g, x: g.put(Person.model_construct(id="a", age=x, size=x, born=x, tags=x, city=x, mail=x)),
    "put edge": lambda g, x: g.put(Owns.model_construct(source=x, target=1, since=0)),
    "put edge key": lambda g, x: g.put(Owns.model_construct(source="a", target=1, since=x)),
    "add": lambda g, x: g.add(x),
    "put_many": lambda g, x: g.put_many(x),
    "put_many of": lambda g, x: g.put_many([Person(id="b"), x]),
    "put_many progress": lambda g, x: g.put_many([Person(id="b")], progress=x),
    "get": lambda g, x: g.get(Person, x),
    "get int": lambda g, x: g.get(Thing, x),
    "get model": lambda g, x: g.get(x, "a"),
    "get unique": lambda g, x: g.get(Person, mail=x),
    "get consistent": lambda g, x: g.get(Person, "a", consistent=x),
    "get_many": lambda g, x: g.get_many(Person, x),
    "get_many of": lambda g, x: g.get_many(Person, [x]),
    "get_many model": lambda g, x: g.get_many(x, ["a"]),
    "edge": lambda g, x: g.edge(Owns, x, 1, since=0),
    "edge target": lambda g, x: g.edge(Owns, "a", x, since=0),
    "edge key": lambda g, x: g.edge(Owns, "a", 1, since=x),
    "edge model": lambda g, x: g.edge(x, "a", 1),
    "connect": lambda g, x: g.connect(Owns, x, 1),
    "connect target": lambda g, x: g.connect(Owns, "a", x),
    "connect field": lambda g, x: g.connect(Owns, "a", 1, since=x),
    "connect value": lambda g, x: g.connect(Owns, "a", 1, share=x),
    "connect model": lambda g, x: g.connect(x, "a", 1),
    "disconnect": lambda g, x: g.disconnect(Owns, x, 1, since=0),
    "disconnect key": lambda g, x: g.disconnect(Owns, "a", 1, since=x),
    "disconnect model": lambda g, x: g.disconnect(x, "a", 1),
    "update": lambda g, x: g.update(Person, x, name="b"),
    "update value": lambda g, x: g.update(Person, "a", anything=x),
    "update number": lambda g, x: g.update(Person, "a", age=x),
    "update set": lambda g, x: g.update(Person, "a", tags=x),
    "update indexed": lambda g, x: g.update(Person, "a", city=x),
    "update unique": lambda g, x: g.update(Person, "a", mail=x),
    "update by": lambda g, x: g.update(Person, "a", age=field("age") + x),
    "update append": lambda g, x: g.update(Person, "a", anything=field("anything").append(x)),
    "update add": lambda g, x: g.update(Person, "a", tags=field("tags").add(x)),
    "update only_if": lambda g, x: g.update(Person, "a", name="b", only_if=x),
    "update model": lambda g, x: g.update(x, "a", name="b"),
    "delete": lambda g, x: g.delete(x),
    "delete id": lambda g, x: g.delete(Person, x),
    "delete model": lambda g, x: g.delete(x, "a"),
    "out": lambda g, x: list(g.out(x, Owns)),
    "out model": lambda g, x: list(g.out("a", x)),
    "into": lambda g, x: list(g.into(x, Owns)),
    "out where": lambda g, x: list(g.out("a", Owns).where(x)),
    "out limit": lambda g, x: list(g.out("a", Owns).limit(x)),
    "out page": lambda g, x: g.out("a", Owns).page(x),
    "out after": lambda g, x: g.out("a", Owns).page(1, after=x),
    "out between": lambda g, x: list(g.out("a", Owns).where(field("since").between(x, x))),
    "out begins": lambda g, x: list(g.out("a", Owns).where(field("since").begins_with(x))),
    "collection": lambda g, x: list(g.collection(x)),
    "collection direction": lambda g, x: list(g.collection(Person.ref("a"), direction=x)),
    "find": lambda g, x: list(g.find(x)),
    "find predicate": lambda g, x: list(g.find(Person, x)),
    "find equal": lambda g, x: list(g.find(Person, field("city") == x)),
    "find filter": lambda g, x: list(g.find(Person, (field("city") == "a") & (field("anything") == x))),
    "find in": lambda g, x: list(g.find(Person, field("city").is_in(x))),
    "find contains": lambda g, x: list(g.find(Person, (field("city") == "a") & field("anything").contains(x))),
    "find order": lambda g, x: list(g.find(Person, order=x)),
    "find after": lambda g, x: g.find(Person).page(1, after=x),
    "scan": lambda g, x: list(g.scan(x)),
    "scan segments": lambda g, x: list(g.scan(Person, segments=x)),
    "scan consistent": lambda g, x: list(g.scan(Person, consistent=x)),
    "scan progress": lambda g, x: list(g.scan(Person, progress=x)),
    "scan where": lambda g, x: list(g.scan(Person).where(x)),
    "scan limit": lambda g, x: list(g.scan().limit(x)),
    "scan page": lambda g, x: g.scan(Person).page(x),
    "scan after": lambda g, x: g.scan(Person).page(1, after=x),
    "count": lambda g, x: g.count(x),
    "changes": lambda g, x: list(islice(g.changes(after=x), 2)),
    "field": lambda g, x: list(g.find(Person, field(x) == 1)),
    "and": lambda g, x: (field("age") > 1) & x,
    "or": lambda g, x: (field("age") > 1) | x,
    "explain": lambda g, x: g.explain(x),
    "explain of": lambda g, x: g.explain(g.get, Person, x),
    "explain put": lambda g, x: g.explain(g.put, x),
    "ref": lambda g, x: Person.ref(x),
    "get by ref": lambda g, x: g.get(Person, Person.ref(x)),
}


@pytest.fixture
def graph() -> Iterator[Graph]:
    with opened() as graph:
        graph.put(Person(id="a", city="a"))
        graph.put(Thing(id=1))
        graph.connect(Owns, "a", 1)
        yield graph


CALLED = {"explain", "put_many progress", "scan progress"}
"""What these are given they call, and whatever it raises is its own."""


def hostile_to(verb: str) -> dict[str, Any]:
    return {name: x for name, x in HOSTILE.items() if not (callable(x) and verb in CALLED)}


def refused(call: Callable[[], object]) -> str | None:
    """What a call says if it fails with anything but an error of ours."""
    try:
        call()
    except AdjoinError as error:
        # A message must be printable, and of a size that somebody reads.
        return None if len(str(error)) < 2000 else f"a message of {len(str(error))} characters"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


@pytest.mark.parametrize("verb", VERBS)
def test_verbs(graph: Graph, verb: str) -> None:
    found = {name: said for name, x in hostile_to(verb).items() if (said := refused(lambda: VERBS[verb](graph, x)))}  # noqa: B023
    assert found == {}


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    status: str = "open"
    stars: int = 0


class Comment(Child[Repo], key=("number",)):
    number: int
    text: str = ""


class Starred(Edge[Person, Repo | Thing]):
    stars: int = 0


SHARDED = AdjacencyList(
    indexes=[Index("ByStatus", "status", "stars"), Index("Sharded", "shard", "stars", shards=2)],
    keys={Repo: Keys(indexes={"Sharded": "{shard}"})},
)
NEWER: dict[str, Callable[[Graph, Any], object]] = {
    "put without an id": lambda g, x: g.put(Person.model_construct(name=x)),  # type: ignore[call-arg]
    "put a part of an id": lambda g, x: g.put(Repo.model_construct(owner="a", name=x)),
    "put without a part": lambda g, x: g.put(Repo.model_construct(owner="a")),  # type: ignore[call-arg]
    "get several fields": lambda g, x: g.get(Repo, ("a", x)),
    "get a tuple": lambda g, x: g.get(Repo, x),
    "ref by name": lambda g, x: Repo.ref(owner="a", name=x),
    "put a child": lambda g, x: g.put(Comment.model_construct(parent=x, number=1)),
    "put a child's key": lambda g, x: g.put(Comment.model_construct(parent=("a", "b"), number=x)),
    "add a child": lambda g, x: g.add(Comment.model_construct(parent=x, number=x)),
    "get a child": lambda g, x: g.get(Comment, ("a", "b", x)),
    "delete a child": lambda g, x: g.delete(Comment, ("a", x, 1)),
    "children": lambda g, x: list(g.children(x, Comment)),
    "children of a child": lambda g, x: list(g.children(Comment.model_construct(parent=x, number=1), Comment)),  # type: ignore[arg-type]
    "children model": lambda g, x: list(g.children(("a", "b"), x)),
    "children between": lambda g, x: list(g.children(("a", "b"), Comment).between(x, x)),
    "children begins_with": lambda g, x: list(g.children(("a", "b"), Comment).begins_with(x)),
    "children within": lambda g, x: list(g.children(("a", "b"), Comment).within(number=x)),
    "a child as an end": lambda g, x: list(g.collection(Comment.model_construct(parent=x, number=1))),
    "an end of several classes": lambda g, x: g.connect(Starred, "a", x),
    "put an edge without an end": lambda g, x: g.put(Owns.model_construct(target=x, since=0)),  # type: ignore[call-arg]
    "put an edge without its key": lambda g, x: g.put(Owns.model_construct(source="a", target=1, share=x)),
    "index": lambda g, x: list(g.index(x)),
    "index partition": lambda g, x: list(g.index("ByStatus").partition(x)),
    "index between": lambda g, x: list(g.index("ByStatus").partition("open").between(x, x)),
    "index begins_with": lambda g, x: list(g.index("ByStatus").partition("open").begins_with(x)),
    "index page": lambda g, x: g.index("ByStatus").page(1, after=x),
    "find index": lambda g, x: list(g.find(Repo, field("status") == "open", index=x)),
    "find key": lambda g, x: list(g.find(Repo, (field("status") == x) & (field("stars") > x))),
    "raise_shards": lambda g, x: g.raise_shards(x, 4),
    "raise_shards number": lambda g, x: g.raise_shards("Sharded", x),
    "for_tenant": lambda g, x: g.for_tenant(x),
    "delete edges": lambda g, x: g.delete(Person, "b", edges=x),
    "put if_version": lambda g, x: g.put(Person(id="a"), if_version=x),
    "delete if_version": lambda g, x: g.delete(Person, "a", if_version=x),
    "count segments": lambda g, x: g.count(Repo, segments=x),
    "count consistent": lambda g, x: g.count(Repo, consistent=x),
    "maintain every": lambda g, x: g.maintain(once=True, every=x),
    "maintain stop": lambda g, x: g.maintain(once=True, stop=x),
    "rebuild only": lambda g, x: g.rebuild(only=x),
    "rebuild state": lambda g, x: g.rebuild(state=x),
    "verify report": lambda g, x: g.verify(report=x),
    "verify repair": lambda g, x: g.verify(repair=x),
}


@pytest.mark.parametrize("verb", NEWER)
def test_newer_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = hostile_to(verb)
    if verb.startswith(("rebuild", "verify")):
        # What is accepted takes a while.
        hostile = {name: hostile[name] for name in ("minus one", "an object", "a class", "a node", "a date", "bytes")}
    with Graph(":memory:", [*MODELS, Repo, Comment, Starred], SHARDED) as graph:
        graph.put_many([Person(id="a", city="a"), Repo(owner="a", name="b")])
        found = {name: said for name, x in hostile.items() if (said := refused(lambda: NEWER[verb](graph, x)))}  # noqa: B023
    assert found == {}


def transacting(graph: Graph, work: Callable[[Any], object]) -> None:
    with graph.transaction() as t:
        work(t)


IN_TRANSACTIONS: dict[str, Callable[[Any, Any], object]] = {
    "put": lambda t, x: t.put(x),
    "put only_if": lambda t, x: t.put(Person(id="a"), only_if=x),
    "add": lambda t, x: t.add(x),
    "update": lambda t, x: t.update(Person, x, name="a"),
    "update value": lambda t, x: t.update(Person, "a", anything=x),
    "update model": lambda t, x: t.update(x, "a", name="a"),
    "connect": lambda t, x: t.connect(Owns, x, 1),
    "connect key": lambda t, x: t.connect(Owns, "a", 1, since=x),
    "disconnect": lambda t, x: t.disconnect(Owns, "a", x, since=0),
    "delete": lambda t, x: t.delete(x),
    "delete id": lambda t, x: t.delete(Person, x),
}


@pytest.mark.parametrize("verb", IN_TRANSACTIONS)
def test_transactions(graph: Graph, verb: str) -> None:
    def call(x: Any) -> None:
        transacting(graph, lambda t: IN_TRANSACTIONS[verb](t, x))

    found = {name: said for name, x in HOSTILE.items() if (said := refused(lambda: call(x)))}  # noqa: B023
    assert found == {}


DEFINITION = aws.table(MODELS)


def indexed(index: Index) -> None:
    Graph(":memory:", MODELS, AdjacencyList(indexes=[index])).close()


DECLARATIONS: dict[str, Callable[[Any], object]] = {
    "location": lambda x: Graph(x, MODELS).close(),
    "async location": lambda x: AsyncGraph(x, MODELS),
    "models": lambda x: Graph(":memory:", x).close(),
    "models of": lambda x: Graph(":memory:", [Person, x]).close(),
    "layout": lambda x: Graph(":memory:", MODELS, x).close(),
    "secret": lambda x: Graph(":memory:", MODELS, cursor_secret=x).close(),
    "consistent": lambda x: Graph(":memory:", MODELS, consistent=x).close(),
    "tenant": lambda x: Graph(":memory:", MODELS, tenant=x).close(),
    "AdjacencyList table": lambda x: Graph(":memory:", MODELS, AdjacencyList(x)).close(),
    "MaterializedGraph table": lambda x: Graph(":memory:", MODELS, MaterializedGraph(x)).close(),
    "Projection": lambda x: Projection(x),
    "Throughput": lambda x: Throughput(x, x),
    "Index": lambda x: Index(x, x),
    "Index partition_key": lambda x: indexed(Index("ByName", x)),
    "Index sort_key": lambda x: indexed(Index("ByName", "name", x)),
    "Index partition_keys": lambda x: indexed(Index("ByName", ("name", x))),
    "Index name": lambda x: indexed(Index(x, "name")),
    "Index shards": lambda x: indexed(Index("ByName", "shard", "name", partition="{shard}", shards=x)),
    "Index shard_by": lambda x: indexed(Index("ByName", "shard", "name", partition="{shard}", shards=2, shard_by=x)),
    "shards": lambda x: Graph(":memory:", MODELS, AdjacencyList(shards=x)).close(),
    "types": lambda x: Graph(":memory:", MODELS, AdjacencyList(types={"PK": x})).close(),
    "Count direction": lambda x: Count("Owns", direction=x),
    "Count where": lambda x: Count("Owns", where=x),
    "Count consistency": lambda x: Count("Owns", consistency=x),
    "Keys": lambda x: Keys(x),
    "Count": lambda x: Count(x),
    "Sum": lambda x: Sum(x, x),
    "Min": lambda x: Min(x, x),
    "Max": lambda x: Max(x, x),
    "Top": lambda x: Top(x, x),
    "Copy": lambda x: Copy(x),
    "CommonNeighbours": lambda x: CommonNeighbours(x),
    "aws.table": lambda x: aws.table(x),
    "aws.table layout": lambda x: aws.table(MODELS, x),
    "aws.table name": lambda x: aws.table(MODELS, name=x),
    "aws.cloudformation": lambda x: aws.cloudformation(x),
    "aws.cdk": lambda x: aws.cdk(x),
    "aws.terraform": lambda x: aws.terraform(x),
    "aws.workbench": lambda x: aws.workbench(x),
    "aws.iam_policy": lambda x: aws.iam_policy(x),
    "aws.iam_policy access": lambda x: aws.iam_policy(DEFINITION, access=x),
    "aws.leading_key": lambda x: aws.leading_key(x, MODELS),
    "aws.stream_filter": lambda x: aws.stream_filter(x),
    "aws.lambda_handler": lambda x: aws.lambda_handler(x),
    "aws.record_handler": lambda x: aws.record_handler(x),
}


@pytest.mark.parametrize("what", DECLARATIONS)
def test_declarations(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = {name: said for name, x in HOSTILE.items() if (said := refused(lambda: DECLARATIONS[what](x)))}  # noqa: B023
    assert found == {}


# --- conditions ----------------------------------------------------------------------------------


def test_what_is_inverted_twice_is_what_it_was() -> None:
    once = ~(field("age") > 1)
    assert inverted(500) == inverted(0)
    assert inverted(501) == inverted(1)
    assert ~~once == once


def test_conditions_can_be_long_but_not_deep(graph: Graph) -> None:
    wide: Any = field("age") > 0
    for number in range(200):
        wide = wide & (field("age") > number)
    assert graph.explain(graph.put, Person(id="a"), only_if=wide)
    assert refused(lambda: graph.put(Person(id="a", city="a"), only_if=mixed(100))) is None
    with pytest.raises(AdjoinError, match="nested at most 100 deep"):
        mixed(101)


# --- page tokens ---------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


@pytest.mark.simulation
@pytest.mark.parametrize("secret", [None, "secret"])
def test_forged_page_tokens(secret: str | None) -> None:
    """Whoever knows how tokens are made, and has the secret or needs none, gets a page or an error of ours."""
    with opened(cursor_secret=secret) as graph:
        graph.put_many(Person(id=str(number), city="a") for number in range(5))
        graph.put(Thing(id=1))
        for number in range(5):
            graph.connect(Owns, "1", 1, since=number)
            graph.connect(Owns, str(number), 1, since=9)
        queries: list[Any] = [
            graph.out("1", Owns),
            graph.into(1, Owns),
            graph.find(Person),
            graph.find(Person, field("city") == "a"),
            graph.collection(Person.ref("1")),
            graph.out("1", Owns).limit(3),
        ]
        starts = []
        for query in queries:
            token = query.page(1).next
            key, _ = decode_cursor(token, query._identity, query._context.secret)
            starts.append(key)

        def ask(query: Any, token: Any) -> None:
            assert refused(lambda: query.page(2, after=token)) is None

        @settings(max_examples=examples(50))
        @given(st.sampled_from(range(len(queries))), json_values, st.data())
        def forge(which: int, value: Any, data: st.DataObject) -> None:
            query, start = queries[which], starts[which]
            payload = data.draw(st.sampled_from(["all", "pair", "key", "given", "part", "type"]))
            name = data.draw(st.sampled_from(sorted(start) or [""]))
            forged = {
                "all": value,
                "pair": [value, value],
                "key": [value, 1],
                "given": [start, value],
                "part": [{**start, name: value}, 1],
                "type": [{**start, name: {"N": "1"}}, 1],
            }[payload]
            raw = json.dumps(forged).encode()
            ask(query, read._spelled(read._digest(raw, query._identity, query._context.secret) + raw))

        @settings(max_examples=examples(34))
        @given(st.sampled_from(range(len(queries))), st.text() | st.binary() | json_values)
        def invent(which: int, token: Any) -> None:
            ask(queries[which], token)

        forge()
        invent()


# --- items of others -----------------------------------------------------------------------------

FOREIGN: list[AttributeValue] = [
    {"S": ""}, {"S": "x"}, {"N": "1"}, {"N": "-1.5"}, {"N": "1" + "0" * 125}, {"B": ""}, {"B": "/w=="},
    {"BOOL": True}, {"NULL": True}, {"L": []}, {"L": [{"S": "x"}]}, {"M": {}}, {"M": {"a": {"N": "1"}}}, {"SS": ["a"]},
    {"NS": ["1"]}, {"BS": ["/w=="]},
]  # fmt: skip


def reading(graph: Graph) -> dict[str, Callable[[], object]]:
    return {
        "get": lambda: graph.get(Person, "1"),
        "get unique": lambda: graph.get(Person, mail="m"),
        "get_many": lambda: graph.get_many(Person, ["1", "2"]),
        "edge": lambda: graph.edge(Owns, "1", 1, since=0),
        "out": lambda: list(graph.out("1", Owns)),
        "into": lambda: list(graph.into(1, Owns)),
        "nodes": lambda: list(graph.out("1", Owns).nodes()),
        "knows": lambda: list(graph.out("1", Knows)),
        "collection": lambda: list(graph.collection(Person.ref("1"))),
        "find": lambda: list(graph.find(Person, field("city") == "a")),
        "find filtered": lambda: list(graph.find(Person, (field("city") == "a") & (field("age") > 0))),
        "changes": lambda: list(islice(graph.changes(), 20)),
        "maintain": lambda: graph.maintain(once=True),
        "update": lambda: graph.update(Person, "1", age=field("age") + 1),
        "update name": lambda: graph.update(Person, "1", name="b", city="b", mail="n"),
        "put": lambda: graph.put(Person(id="1", city="a", mail="m")),
        "disconnect": lambda: graph.disconnect(Knows, "1", "2"),
        "delete": lambda: graph.delete(Person, "1"),
    }


@pytest.mark.simulation
def test_items_that_others_wrote() -> None:
    """With our keys, and with attributes of any type: whoever reads or changes them gets an answer or an error."""
    store = SQLiteStore(":memory:")
    graph = Graph(store, MODELS)
    graph.put_many(Person(id=str(number), city="a", mail="m" if number == 1 else None) for number in (1, 2))
    graph.put(Thing(id=1))
    graph.connect(Owns, "1", 1)
    graph.connect(Knows, "1", "2")
    table = graph._layout.table
    (scanned,) = store.execute([Scan(table)])
    assert isinstance(scanned, PageResponse)
    items = list(scanned.items)
    places = [(number, name) for number, item in enumerate(items) for name in item if name not in ("PK", "SK")]

    def alter(place: tuple[int, str], value: AttributeValue, gone: bool, verbs: dict[str, Callable[[], Any]]) -> None:
        number, name = place
        altered = {key: each for key, each in items[number].items() if key != name}
        store.execute([Put(table, item) for item in items])
        try:
            store.execute([Put(table, altered if gone else {**altered, name: value})])
        except AdjoinError:
            # No such item can be there.
            return
        assert {verb: said for verb, call in verbs.items() if (said := refused(call))} == {}

    # An audit takes as long as a hundred of the others.
    for verbs, number in ((reading(graph), 14), ({"verify": graph.verify}, 8)):
        some = given(st.sampled_from(places), st.sampled_from(FOREIGN), st.booleans(), st.just(verbs))
        settings(max_examples=examples(number))(some(alter))()
    graph.close()
