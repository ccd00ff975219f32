"""Answers that are none: what a server says in truth, altered anywhere, ends in a response or in an error of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import Graph, field
from adjoin.errors import AdjoinError, OutcomeUnknown, ServiceFailed
from adjoin.expressions import Add, Exists, Set, Value, attribute
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Check,
    CreateTable,
    Delete,
    DescribeTable,
    DropTable,
    Get,
    ListStreams,
    ListTables,
    ListTags,
    Put,
    Query,
    ReadChanges,
    Request,
    Scan,
    SetTimeToLive,
    TagTable,
    TransactGet,
    TransactWrite,
    Update,
    UpdateTable,
)
from adjoin.stores.dynamodb import DynamoDBStore
from adjoin.stores.dynamodb import streams as streams_module
from adjoin.stores.dynamodb.answers import SHAPES
from adjoin.stores.dynamodb.protocol import OPERATIONS
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from tests.models import ANN, ART, BOB, MATHS, SCHOOL, Course, Enrollment, Friendship, Student
from tests.servers.open import Stores
from tests.shares import examples
from tests.stores.dynamodb.misbehaving import Exchange, MisbehavingServer, Misbehaviour, json_answer

_NAMES = count()

# --- what is altered, and how --------------------------------------------------------------------

DEEP: Any = {"S": ""}
for _ in range(40):
    DEEP = {"L": [DEEP]}
LEAVES: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e300, 2**70, "", "x", "*", "a/b=c", "1e9999999", "9" * 5000, "NaN", "é" * 3,
    [], {}, [None], [[]], {"": None}, {"S": 1}, {"S": None}, {"N": "x"}, {"N": 1}, {"N": "1e9999999"}, {"N": "NaN"},
    {"N": "9" * 5000}, {"Q": ""}, {"B": "!"}, {"B": 1}, {"BOOL": "true"}, {"NULL": False}, {"L": {}}, {"L": ["x"]},
    {"M": []}, {"SS": []}, {"SS": ["a", "a"]}, {"NS": ["x"]}, {"S": "a", "N": "1"}, DEEP, {"a": {"S": "b"}},
]  # fmt: skip
values = st.sampled_from(LEAVES) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(found: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is anything in some JSON, itself included."""
    yield at
    for name, inner in (
        found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    ):
        yield from places(inner, (*at, name))


def altered(found: Any, at: tuple[Any, ...], how: str, value: Any) -> Any:
    if not at:
        return value
    first, *rest = at
    if rest:
        inner = altered(found[first], tuple(rest), how, value)
    elif how == "remove":
        pairs = found.items() if isinstance(found, dict) else enumerate(found)
        kept = {name: each for name, each in pairs if name != first}
        return kept if isinstance(found, dict) else list(kept.values())
    elif how == "repeat" and isinstance(found, list):
        return [*found, found[first]]
    elif how == "rename" and isinstance(found, dict):
        return {f"{name}x" if name == first else name: each for name, each in found.items()}
    else:
        inner = value
    copy = dict(found) if isinstance(found, dict) else list(found)
    copy[first] = inner
    return copy


def altering(where: float, how: str, value: Any, status: int | None) -> Misbehaviour:
    """The answer of the server behind, altered at a place that is so far from its beginning."""

    async def act(exchange: Exchange) -> None:
        answer = await exchange.forward()
        found = json.loads(answer.body or b"{}")
        all_places = list(places(found))
        at = all_places[int(where * len(all_places))]
        await exchange.say(json_answer(status or answer.status, altered(found, at, how, value)))

    return Misbehaviour(f"{how} at {where}", act)


alterations = st.builds(
    altering,
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(["replace", "replace", "replace", "remove", "rename", "repeat"]),
    values,
    st.none() | st.none() | st.none() | st.sampled_from([200, 400, 500]),
)


@pytest.fixture(scope="module")
def altering_server(servers: Stores) -> Iterator[MisbehavingServer]:
    """In front of a server with streams, tags and all the rest."""
    server = MisbehavingServer(servers.address("serve"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def store(altering_server: MisbehavingServer, quick: None) -> Iterator[DynamoDBStore]:
    # What is altered into a failure is tried again; a shard that is said to be closed is read to its end.
    store = DynamoDBStore(endpoint=altering_server.url, timeout=5, deadline=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams_module, "_LOOKS_FOR_AN_END", 20)
        yield store
    store.close()


# --- the store -----------------------------------------------------------------------------------

KEYS = (KeyAttribute("PK", "S"), KeyAttribute("SK", "S"))


def key(number: int) -> dict[str, Any]:
    return {"PK": {"S": "a"}, "SK": {"S": str(number)}}


def item(number: int) -> dict[str, Any]:
    return {**key(number), "n": {"N": "1.5"}, "l": {"L": [{"S": "x"}, {"M": {"b": {"B": "AA=="}}}]}, "s": {"SS": ["a"]}}


def programs(table: str) -> dict[str, tuple[Request, ...]]:
    index = IndexDefinition.over(
        "by-n", [KeyAttribute("n", "N"), KeyAttribute("m")], [KeyAttribute("o"), KeyAttribute("p")]
    )
    definition = TableDefinition(table, *KEYS, stream=True)
    other = replace(definition, name=f"{table}-2", tags=(("k", "v"),), ttl="t")
    get = Get(table, key(1))
    return {
        "items": (
            get,
            Get(table, key(1), projection=(attribute("n"),)),
            Put(table, item(3), return_old=True),
            Update(table, key(3), (Set(attribute("v"), Value({"S": "v"})),), returns="new"),
            Update(table, key(3), (Add(attribute("n"), {"N": "1"}),)),
            Put(table, item(3), Exists(attribute("none"))),
            Delete(table, key(3), return_old=True),
        ),
        "pages": (
            Query(table, ("PK", {"S": "a"}), limit=1),
            Query(table, ("PK", {"S": "a"}), limit=1, start=key(1)),
            Query(table, ("PK", {"S": "a"}), count_only=True),
            Scan(table, limit=2),
        ),
        "batches": (
            BatchGet((get, Get(table, key(2)), Get(table, key(9)))),
            BatchGet((Get(table, key(1), projection=(attribute("n"),)),)),
            BatchWrite((Put(table, item(4)), Delete(table, key(5)))),
            TransactGet((get, Get(table, key(9)))),
            TransactWrite((Put(table, item(4)), Check(table, key(1), Exists(attribute("n"))))),
            TransactWrite((Put(table, item(4)), Check(table, key(9), Exists(attribute("n"))))),
        ),
        "changes": (ReadChanges(table), ListStreams()),
        "tables": (
            ListTables(),
            DescribeTable(table),
            CreateTable(other),
            SetTimeToLive(other.name, None),
            TagTable(other.name, (("a", "b"),), ("k",)),
            ListTags(other.name),
            UpdateTable(other.name, add_indexes=(index,)),
            DropTable(other.name),
        ),
    }


@pytest.fixture(scope="module")
def own_table(store: DynamoDBStore) -> str:
    table = f"Misshapen{next(_NAMES)}"
    store.execute([CreateTable(TableDefinition(table, *KEYS, stream=True))])
    store.execute([Put(table, item(number)) for number in (1, 2)])
    return table


def perform(store: DynamoDBStore, request: Request) -> Exception | None:
    try:
        store.execute([request])
    except AdjoinError as error:
        return error
    return None


@pytest.mark.simulation
@pytest.mark.parametrize("program", programs("T"))
def test_any_answer_altered_anywhere(
    store: DynamoDBStore, altering_server: MisbehavingServer, own_table: str, program: str
) -> None:
    requests = programs(own_table)[program]
    made = []
    for request in requests:
        altering_server.behave()
        altering_server.calls.clear()
        perform(store, request)
        made.append(len(altering_server.calls))

    @settings(max_examples=examples(40))
    @given(st.integers(0, 10**6), alterations)
    def run(number: int, how: Misbehaviour) -> None:
        at = number % sum(made)
        for request, calls in zip(requests, made, strict=True):
            # Only the altered call is altered; the program goes on behind it, so that tables come and go.
            altering_server.behave()
            if 0 <= at < calls:
                altering_server.misbehave_at(at, how)
            at -= calls
            perform(store, request)

    run()
    altering_server.behave()


def test_every_operation_is_altered(store: DynamoDBStore, altering_server: MisbehavingServer, own_table: str) -> None:
    altering_server.behave()
    altering_server.calls.clear()
    for requests in programs(own_table).values():
        for request in requests:
            perform(store, request)
    rare = {"UpdateContinuousBackups"}
    assert set(SHAPES) - rare == set(altering_server.operations())
    assert {operation.target.partition(".")[2] for operation in OPERATIONS.values()} <= set(SHAPES)


ANSWERS: list[tuple[Callable[[str], Request], Any, str]] = [
    (
        lambda table: Get(table, key(1)),
        {"Item": {"a": {"X": "1"}}},
        "GetItem is malformed: Item is not an item: 'X' is not",
    ),
    (lambda table: Get(table, key(1)), {"Item": {"a": {"N": "1e9999999"}}}, "Item is not an item: Number overflow"),
    (lambda table: Get(table, key(1)), {"Item": []}, "Item is not an item"),
    (lambda table: Get(table, key(1)), {"ConsumedCapacity": {}}, "ConsumedCapacity has no TableName"),
    (
        lambda table: Update(table, key(3), (Set(attribute("v"), Value({"S": "v"})),), returns="new"),
        {},
        "UpdateItem is malformed: it has no Attributes",
    ),
    (
        lambda table: Update(table, key(3), (Set(attribute("v"), Value({"S": "v"})),), returns="new"),
        {"Attributes": {}},
        "it has no Attributes",
    ),
    (
        lambda table: Query(table, ("PK", {"S": "a"})),
        {"Count": 0, "ScannedCount": 0},
        "Query is malformed: it has no Items",
    ),
    (lambda table: Query(table, ("PK", {"S": "a"})), {"Items": []}, "it has no Count"),
    (
        lambda table: Query(table, ("PK", {"S": "a"}), start=key(1)),
        {"Items": [], "Count": 0, "ScannedCount": 0, "LastEvaluatedKey": key(1)},
        "pages would never end",
    ),
    (
        lambda table: BatchGet((Get(table, key(1)),)),
        lambda table: {"Responses": {table: [item(2)]}},
        r"Responses\..*\[0\] was not asked for",
    ),
    (lambda table: BatchGet((Get(table, key(1)),)), {}, "BatchGetItem is malformed: it has no Responses"),
    (
        lambda table: BatchWrite((Put(table, item(1)),)),
        lambda table: {"UnprocessedItems": {table: [{"PutRequest": {"Item": item(2)}}]}},
        "was not asked for",
    ),
    (
        lambda table: BatchWrite((Put(table, item(1)),)),
        {"UnprocessedItems": {"T": [{}]}},
        r"UnprocessedItems\.T\[0\] is neither a PutRequest nor a DeleteRequest",
    ),
    (lambda table: TransactGet((Get(table, key(1)),)), {"Responses": []}, "Responses has 0 answers to 1 gets"),
    (lambda table: DescribeTable(table), {"Table": {"TableName": "T"}}, "Table has no TableArn"),
    (lambda table: ListTables(), {"TableNames": [1]}, r"TableNames\[0\] is not text"),
]


@pytest.mark.parametrize(("asked", "answer", "says"), ANSWERS, ids=[says for _, _, says in ANSWERS])
def test_what_is_wrong_is_said(
    store: DynamoDBStore, altering_server: MisbehavingServer, own_table: str, asked: Any, answer: Any, says: str
) -> None:
    request = asked(own_table)
    said = answer(own_table) if callable(answer) else answer
    altering_server.misbehave_always(altering(0.0, "replace", said, None))
    altering_server.calls.clear()
    with pytest.raises(ServiceFailed, match=says):
        store.execute([request])
    # It does not get better.
    assert len(altering_server.calls) <= 2
    altering_server.behave()


def test_a_write_whose_answer_is_none_may_have_been_applied(
    store: DynamoDBStore, altering_server: MisbehavingServer, own_table: str
) -> None:
    counts = Update(own_table, key(7), (Add(attribute("n"), {"N": "1"}),))
    wrong = altering(0.0, "replace", {"Attributes": 1}, None)
    altering_server.misbehave(wrong)
    with pytest.raises(OutcomeUnknown, match="the answer to UpdateItem is malformed: Attributes is not an item"):
        store.execute([counts])
    altering_server.misbehave(altering(0.0, "replace", {"ConsumedCapacity": 1}, None))
    with pytest.raises(OutcomeUnknown, match="calling again could apply it twice"):
        store.execute([TransactWrite((counts,))])
    canceled = {"__type": "TransactionCanceledException", "CancellationReasons": []}
    altering_server.misbehave(altering(0.0, "replace", canceled, 400))
    with pytest.raises(OutcomeUnknown, match="has 0 reasons for the 1 parts"):
        store.execute([TransactWrite((counts,))])
    altering_server.behave()


@pytest.mark.parametrize(
    ("request_", "member", "found"),
    [
        (ListTables(), "LastEvaluatedTableName", {"TableNames": []}),
        (ListStreams(), "LastEvaluatedStreamArn", {"Streams": []}),
    ],
)
def test_listings_that_never_end(
    store: DynamoDBStore, altering_server: MisbehavingServer, request_: Request, member: str, found: Any
) -> None:
    altering_server.misbehave_always(altering(0.0, "replace", {**found, member: "same"}, 200))
    altering_server.calls.clear()
    with pytest.raises(ServiceFailed, match="do not come to an end"):
        store.execute([request_])
    assert len(altering_server.calls) == 2
    altering_server.behave()


# --- a graph -------------------------------------------------------------------------------------


def calls_of(graph: Graph) -> dict[str, Callable[[], object]]:
    def transact() -> None:
        with graph.transaction() as t:
            t.put(ART)
            t.update(Course, "maths", credits=field("credits") + 1)

    return {
        "get": lambda: graph.get(Student, "ann"),
        "get_many": lambda: graph.get_many(Student, ["ann", "bob", "eve"]),
        "edge": lambda: graph.edge(Enrollment, "ann", "maths"),
        "out": lambda: list(graph.out("ann", Enrollment)),
        "into": lambda: list(graph.into("maths", Enrollment)),
        "page": lambda: graph.out("ann", Friendship).page(1),
        "collection": lambda: list(graph.collection(ANN)),
        "find": lambda: list(graph.find(Course, field("credits") > 1)),
        "put": lambda: graph.put(MATHS),
        "put_many": lambda: graph.put_many([MATHS, ART]),
        "add": lambda: graph.add(MATHS),
        "update": lambda: graph.update(Course, "maths", name="Maths"),
        "count": lambda: graph.update(Course, "maths", credits=field("credits") + 1),
        "transact": transact,
        "connect": lambda: graph.connect(Friendship, "ann", "bob"),
        "disconnect": lambda: graph.disconnect(Friendship, "ann", "bob"),
        "delete": lambda: graph.delete(ART),
        "changes": lambda: [change for change, _ in zip(graph.changes(), range(5), strict=False)],
        "verify": lambda: graph.verify(),
    }


@pytest.mark.simulation
def test_any_answer_to_a_graph_altered_anywhere(altering_server: MisbehavingServer, quick: None) -> None:
    altering_server.behave()
    location = f"dynamodb://Graph{next(_NAMES)}?endpoint={altering_server.url}&deadline=20"
    with Graph(location, SCHOOL) as graph:
        graph.create_table()
        graph.put_many([ANN, BOB, MATHS, ART])
        graph.connect(Enrollment, "ann", "maths")
        calls = calls_of(graph)

        @settings(max_examples=examples(100))
        @given(st.sampled_from([*calls]), st.integers(0, 2), alterations)
        def run(name: str, at: int, how: Misbehaviour) -> None:
            altering_server.misbehave_at(at, how)
            with suppress(AdjoinError):
                calls[name]()
            altering_server.behave()

        run()
