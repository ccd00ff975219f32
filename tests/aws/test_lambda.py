"""The Lambda function: partial batch responses, records set aside, deadlines, and all that Lambda may do to it."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import botocore.parsers
import botocore.session
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoin
from adjoin import (
    AccessDenied,
    AdjacencyList,
    AsyncGraph,
    Copy,
    Count,
    Edge,
    Expires,
    Graph,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    OutcomeUnknown,
    ServiceUnreachable,
    Sum,
    Throttled,
    aws,
    field,
)
from adjoin.requests import Request, TransactWrite
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.aws.event_source_mapping import Context, EventSourceMapping, Table, event_of
from tests.faults import FaultyStore
from tests.maintenance.models import ALBUMS, MODELS, PARTS, PEOPLE, SHOP, WALLETS, Customer, Placed
from tests.maintenance.simulation import stored
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import Life, check

NOTHING: dict[str, Any] = {"batchItemFailures": []}


class Faulty(FaultyStore):
    """Refuses transactions about some node, or some of all of them, with an error."""

    error: Exception | None = None
    where = ""
    chance: random.Random | None = None

    def _one(self, request: Request) -> Any:
        is_meant = isinstance(request, TransactWrite) and self.where in repr(request)
        if self.error is not None and is_meant and (self.chance is None or self.chance.random() < 0.5):
            raise self.error
        return super()._one(request)


@pytest.fixture
def store() -> Iterator[Faulty]:
    faulty = Faulty(SQLiteStore(":memory:"))
    yield faulty
    faulty.close()


@pytest.fixture
def g(store: Faulty) -> Graph:
    return Graph(store, MODELS)


def number_of(record: dict[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def failures(answer: dict[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def invoices(g: Graph, id: str) -> int:
    found = g.get(Customer, id)
    assert found is not None
    return found.invoices


def unapplied(g: Graph) -> list[dict[str, Any]]:
    return [item for item in stored(g) if item["PK"]["S"] == "#=UNAPPLIED"]


# --- what it does with events ------------------------------------------------------------------


def test_it_applies_events(g: Graph) -> None:
    handler, table = aws.lambda_handler(g), Table(g, g._store)
    for act in (happen, happen_again):
        act(g)
        while records := list(table.records()):
            assert handler({"Records": records}, Context()) == NOTHING
        check(g)


def test_the_same_event_again_changes_nothing(g: Graph) -> None:
    happen(g)
    happen_again(g)
    handler, table = aws.lambda_handler(g), Table(g, g._store)
    everything: list[Any] = []
    while records := list(table.records()):
        everything += records
        handler({"Records": records}, Context())
    before = what_people_see(g)
    assert handler({"Records": everything}, Context()) == NOTHING
    backwards = [*reversed(everything), *everything]
    assert handler({"Records": backwards}, Context()) == NOTHING
    assert what_people_see(g) == before
    check(g)


def what_people_see(g: Graph) -> list[Any]:
    return [g._layout.read(item) for item in stored(g) if not g._layout.is_bookkeeping(item)]


def test_an_empty_event(g: Graph) -> None:
    assert aws.lambda_handler(g)({"Records": []}, Context()) == NOTHING


@pytest.mark.parametrize(
    "models", [SHOP, ALBUMS, PARTS, PEOPLE, WALLETS], ids=["shop", "albums", "parts", "people", "wallets"]
)
@pytest.mark.parametrize("seed", range(4))
def test_whatever_lambda_does(store: Faulty, g: Graph, models: list[Any], seed: int) -> None:
    """Batches of any size from several shards, duplicates, failures now and then, and everything is true in the end."""
    chance = random.Random(seed)
    generation = Life(g, chance, models, 3)
    mapping = EventSourceMapping(Table(g, store), aws.lambda_handler(g), chance)
    errors = [
        Throttled("slow down"),
        ServiceUnreachable("nobody there"),
        OutcomeUnknown("who knows"),
        AccessDenied("no"),
    ]
    store.chance = chance
    number = 0
    # Aggregates that are counted in the transaction leave little to apply, so it goes on until something failed.
    while number < 60 or mapping.failures == 0:
        store.error = None
        with suppress(adjoin.NotFound, adjoin.AlreadyExists, adjoin.TransactionCanceled):
            run(generation.act()[0], store)
        if number % 2 == 0:
            store.error = chance.choice(errors)
            mapping.poll()
        number += 1
    store.error = None
    mapping.drain()
    check(g)
    assert unapplied(g) == []


# --- what cannot be applied now ----------------------------------------------------------------


@pytest.mark.parametrize("error", [Throttled("slow down"), OutcomeUnknown("who knows"), ServiceUnreachable("gone")])
def test_the_first_record_that_fails_is_told(
    g: Graph, store: Faulty, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    g.put_many(Customer(id=f"C{number}") for number in range(10))
    aws.lambda_handler(g)(event_of(g), Context())
    before = len(event_of(g)["Records"])
    for number in range(10):
        g.put(Placed(source=f"C{number}", target="I1"))
    records = event_of(g)["Records"][before:]
    store.error, store.where = error, "CUSTOMER#C6'"
    with caplog.at_level(logging.ERROR, "adjoin.lambda"):
        answer = aws.lambda_handler(g)({"Records": records}, Context())
    # Where the service as a whole does not answer, it is not asked about each of them.
    first = 6 if isinstance(error, Throttled) else 0
    assert failures(answer) == [number_of(records[first])]
    assert f"{10 - first} of 10 records were not applied, from {number_of(records[first])} on" in caplog.text
    assert str(error) in caplog.text
    assert [invoices(g, f"C{number}") for number in range(first)] == [1] * first
    assert unapplied(g) == []
    store.error = None
    assert aws.lambda_handler(g)({"Records": records[first:]}, Context()) == NOTHING
    assert [invoices(g, f"C{number}") for number in range(10)] == [1] * 10


def test_what_is_about_everything_is_raised(g: Graph, store: Faulty) -> None:
    g.put(Customer(id="C1"))
    g.put(Placed(source="C1", target="I1"))
    event = event_of(g)
    store.error = AccessDenied("not you")
    with pytest.raises(AccessDenied):
        aws.lambda_handler(g)(event, Context())
    assert unapplied(g) == []


def test_it_stops_before_its_time_is_over(g: Graph, store: Faulty, caplog: pytest.LogCaptureFixture) -> None:
    g.put_many(Customer(id=f"C{number}") for number in range(200))
    for number in range(200):
        g.put(Placed(source=f"C{number}", target="I1"))
    records, invocations, handler = event_of(g)["Records"], 0, aws.lambda_handler(g)
    with caplog.at_level(logging.ERROR, "adjoin.lambda"):
        while records:
            # Every request takes a quarter of a second, and there are five.
            answer = handler({"Records": records}, Context(5_000, 250))
            invocations += 1
            assert invocations < 200
            numbers = failures(answer)
            records = records[[number_of(each) for each in records].index(numbers[0]) :] if numbers else []
    assert invocations > 1
    assert "no time is left" in caplog.text
    assert sum(invoices(g, f"C{number}") for number in range(200)) == 200


def test_it_may_run_out_of_time_at_every_request() -> None:
    requests = 0
    while True:
        with Graph(":memory:", MODELS) as g:
            happen(g)
            happen_again(g)
            table, handler = Table(g, g._store), aws.lambda_handler(g)
            records = list(table.records())
            numbers = [number_of(each) for each in records]
            # A quarter of a second for each request, and the last quarter of the time is kept.
            answer = handler({"Records": records}, Context(1000 + 333 * requests, 250))
            stopped = failures(answer)
            assert len(stopped) <= 1
            records = records[numbers.index(stopped[0]) :] if stopped else []
            while records := [*records, *table.records()]:
                assert handler({"Records": records}, Context()) == NOTHING
                records = []
            check(g)
        if not stopped:
            break
        requests += 1
    assert requests > 30


def test_no_time_at_all_is_no_work_at_all(g: Graph, store: Faulty) -> None:
    g.put(Customer(id="C1"))
    g.put(Placed(source="C1", target="I1"))
    event, sent = event_of(g), store.sent
    assert failures(aws.lambda_handler(g)(event, Context(1000, 400))) == [number_of(event["Records"][0])]
    # Nothing but what comes first of all: which declarations are counted is looked up, and recorded.
    assert store.sent <= sent + 4


def test_a_context_that_tells_no_time(g: Graph) -> None:
    happen(g)
    assert aws.lambda_handler(g)(event_of(g), None) == NOTHING


# --- what can never be applied -----------------------------------------------------------------


def broken(event: dict[str, Any], how: str) -> Any:
    record = deepcopy(event["Records"][0])
    images = record["dynamodb"]
    match how:
        case "text":
            return "what is this?"
        case "nothing":
            return None
        case "no images":
            del record["dynamodb"]
        case "no keys":
            del images["Keys"]
        case "half a key":
            del images["Keys"]["SK"]
        case "a number for a key":
            images["Keys"]["SK"] = {"N": "7"}
        case "no such event":
            record["eventName"] = "EXPLODE"
        case "no new image":
            del images["NewImage"]
        case "an image of another item":
            images["NewImage"]["PK"] = {"S": "CUSTOMER#C9"}
        case "no number":
            del images["SequenceNumber"]
        case "no time":
            images["ApproximateCreationDateTime"] = "yesterday"
        case "a time that is no number":
            images["ApproximateCreationDateTime"] = float("nan")
        case "a time that never comes":
            images["ApproximateCreationDateTime"] = 10**400
        case "a text for who it was":
            record["userIdentity"] = "me"
        case "half a character":
            images["Keys"]["PK"] = images["NewImage"]["PK"] = {"S": "CUSTOMER#\ud800"}
        case "half a character, and no such event":
            images["Keys"]["PK"] = images["NewImage"]["PK"] = {"S": "CUSTOMER#\ud800"}
            record["eventName"] = images["SequenceNumber"] = "\ud800"
        case "a key larger than an item":
            images["Keys"]["PK"] = {"S": "x" * 500_000}
        case "a key of two types":
            images["Keys"]["PK"] |= {"N": 10**30}
            record["eventName"] = None
        case "a key without a name":
            images["Keys"][""] = {"S": ""}
            del images["NewImage"]
    return record


BROKEN = (
    "text", "nothing", "no images", "no keys", "half a key", "a number for a key", "no such event", "no new image",
    "an image of another item", "no number", "no time", "a time that is no number", "a time that never comes",
    "a text for who it was", "half a character", "half a character, and no such event", "a key larger than an item",
    "a key of two types", "a key without a name",
)  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_a_record_that_is_none(g: Graph, how: str, caplog: pytest.LogCaptureFixture) -> None:
    g.put(Customer(id="C1"))
    g.put(Placed(source="C1", target="I1"))
    event = event_of(g)
    event["Records"].insert(1, broken(event, how))
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "adjoin.maintain"):
            assert aws.lambda_handler(g)(event, Context()) == NOTHING
        (record,) = unapplied(g)
        assert record["reason"]["S"] in caplog.text
    assert invoices(g, "C1") == 1
    check_plain = [item for item in stored(g) if item["PK"]["S"] == "CUSTOMER#C1"]
    assert check_plain


def test_an_item_that_does_not_fit_its_class(g: Graph) -> None:
    g.put(Customer(id="C1"))
    g.put(Placed(source="C1", target="I1", balance=Decimal(4)))
    item = stored_edge(g) | {"SK": {"S": "PLACED#INVOICE#I2"}, "balance": {"S": "four"}}
    g._store.execute((adjoin.requests.Put("adjoin", item),))
    g.put(Placed(source="C1", target="I3", balance=Decimal(5)))
    assert aws.lambda_handler(g)(event_of(g), Context()) == NOTHING
    found = g.get(Customer, "C1")
    assert found is not None
    assert found.owed == 9
    reasons = [each["reason"]["S"] for each in stored(g) if "reason" in each]
    assert reasons
    assert all("balance" in reason for reason in reasons)


def stored_edge(g: Graph) -> dict[str, Any]:
    (edge,) = (item for item in stored(g) if item["SK"]["S"].startswith("PLACED#"))
    return edge


def test_a_record_set_aside_that_cannot_be_written_down_now(g: Graph, store: Faulty) -> None:
    g.put(Customer(id="C1"))
    event = event_of(g)
    event["Records"].append(broken(event, "no keys") | {"eventID": "2"})
    event["Records"].append("nothing with a number")

    class Busy(Faulty):
        def _one(self, request: Request) -> Any:
            if "UNAPPLIED" in repr(request):
                raise Throttled("slow down")
            return super()._one(request)

    busy = Graph(Busy(store), MODELS)
    answer = aws.lambda_handler(busy)(event, Context())
    assert failures(answer) == [number_of(event["Records"][-2])]
    # A record without a number is named by the last one before it that has one; without any, all come again.
    assert failures(aws.lambda_handler(busy)({"Records": ["?"]}, Context())) == [""]


# --- records as boto3 has them -----------------------------------------------------------------


class Film(Node):
    id: str
    poster: bytes = b""
    scenes: Annotated[int, Count("Shows")] = 0
    stills: Annotated[int, Sum("Shows", field="size", where=field("still") == b"\x00\xff")] = 0


class Scene(Node):
    id: str


class Shows(Edge[Film, Scene]):
    still: bytes = b""
    frames: set[bytes] = set()
    more: dict[str, list[bytes]] = {}
    size: int = 0


def as_boto3(record: dict[str, Any]) -> dict[str, Any]:
    """A record as botocore parses it from an answer to GetRecords."""
    model = botocore.session.get_session().get_service_model("dynamodbstreams").operation_model("GetRecords")
    images = record["dynamodb"] | {"ApproximateCreationDateTime": record["dynamodb"]["ApproximateCreationDateTime"]}
    body = json.dumps({"Records": [record | {"dynamodb": images}]}).encode()
    parser = botocore.parsers.create_parser("json")
    parsed = parser.parse({"body": body, "headers": {}, "status_code": 200}, model.output_shape)
    read: dict[str, Any] = parsed["Records"][0]
    return read


def test_records_as_boto3_returns_them() -> None:
    with Graph(":memory:", [Film, Scene, Shows]) as g:
        g.put(Film(id="F1", poster=b"\x00\xff"))
        still = Shows(source="F1", target="S1", still=b"\x00\xff", frames={b"\xfe"}, more={"a": [b"\xfd"]}, size=3)
        g.put_many([still, Shows(source="F1", target="S2", size=4)])
        records = [as_boto3(each) for each in event_of(g)["Records"]]
        # The first is the record of what is declared.
        assert isinstance(records[1]["dynamodb"]["ApproximateCreationDateTime"], datetime)
        assert any(b"\x00\xff" in value.values() for value in records[1]["dynamodb"]["NewImage"].values())
        assert aws.lambda_handler(g)({"Records": records}, Context()) == NOTHING
        assert unapplied(g) == []
        assert g.get(Film, "F1") == Film(id="F1", poster=b"\x00\xff", scenes=2, stills=3)
        # What went is told by the old image alone.
        before = len(event_of(g)["Records"])
        g.disconnect(Shows, "F1", "S1")
        records = [as_boto3(each) for each in event_of(g)["Records"][before:]]
        assert aws.lambda_handler(g)({"Records": records}, Context()) == NOTHING
        assert g.get(Film, "F1") == Film(id="F1", poster=b"\x00\xff", scenes=1, stills=0)


def test_a_fault_of_our_own_fails_the_batch(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    g.put(Customer(id="C1"))
    g.put_many(Placed(source="C1", target=f"I{number}") for number in range(3))
    event = event_of(g)

    def broken_code(kind: Any, item: Any) -> Any:
        raise TypeError("a fault of our own")

    with monkeypatch.context() as patch:
        patch.setattr(g._layout, "ends", broken_code)
        with pytest.raises(TypeError, match="a fault of our own"):
            aws.lambda_handler(g)(event, Context())
    assert unapplied(g) == []
    assert aws.lambda_handler(g)(event, Context()) == NOTHING
    assert invoices(g, "C1") == 3


def test_a_fault_in_reading_records_fails_the_batch(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_code(record: Any) -> Any:
        raise AttributeError("a fault of our own")

    g.put(Customer(id="C1"))
    monkeypatch.setattr("adjoin.stores.records.changed_at", broken_code)
    with pytest.raises(AttributeError, match="a fault of our own"):
        aws.lambda_handler(g)(event_of(g), Context())
    assert unapplied(g) == []


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["S", "N", "B", "SS", "NS", "BS", "L", "M", "NULL", "BOOL", "x", ""]), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_a_record_holds_it_is_applied_or_set_aside(data: st.DataObject) -> None:
    """Nothing that comes from outside is taken for a fault of our own."""
    with Graph(":memory:", [Film, Scene, Shows]) as g:
        g.put(Film(id="F1"))
        g.put(Shows(source="F1", target="S1"))
        records = event_of(g)["Records"]
        place: Any = records
        while True:
            steps = list(range(len(place))) if isinstance(place, list) else list(place)
            step = data.draw(st.sampled_from(steps))
            if not isinstance(place[step], dict | list) or not place[step] or data.draw(st.booleans()):
                break
            place = place[step]
        place[step] = data.draw(anything)
        with suppress(InvalidValue):
            assert aws.lambda_handler(g)({"Records": records}, Context()) == NOTHING


@pytest.mark.parametrize("event", [{}, None, [], {"Records": "x"}, {"detail": {}}, "text"])
def test_an_event_of_something_else(g: Graph, event: Any) -> None:
    with pytest.raises(InvalidValue, match="the event is not of a DynamoDB stream"):
        aws.lambda_handler(g)(event, Context())


def test_a_stream_without_images(g: Graph) -> None:
    g.put(Customer(id="C1"))
    less = json.loads(json.dumps(event_of(g)).replace("NEW_AND_OLD_IMAGES", "KEYS_ONLY"))
    with pytest.raises(InvalidValue, match="the stream has the view type KEYS_ONLY; disable it"):
        aws.lambda_handler(g)(less, Context())


def renamed(part: Any) -> Any:
    return json.loads(json.dumps(part).replace("table/adjoin/", "table/other/"))


def test_a_file_is_no_table_of_a_stream(g: Graph) -> None:
    """Whatever table an event names that is tried on a file, it can only stand for the graph's."""
    g.put(Customer(id="C1"))
    g.put(Placed(source="C1", target="I1"))
    assert aws.lambda_handler(g)(renamed(event_of(g)), Context()) == NOTHING
    assert invoices(g, "C1") == 1
    assert unapplied(g) == []


def test_a_mapping_on_another_stream(tmp_path: Any) -> None:
    pytest.importorskip("botocore")
    with adjoin.serve(tmp_path / "served.db", port=0) as server:
        location = f"dynamodb://adjoin?endpoint={server.endpoint}&region=eu-west-1"
        with Graph(location, MODELS) as g:
            g.create_table()
            g.put(Customer(id="C1"))
            g.put(Placed(source="C1", target="I1"))
            handler, (_, *records) = aws.lambda_handler(g), list(Table(g, g._store).records())
            assert len(records) == 2, "besides the record of what is declared"
            with pytest.raises(
                InvalidValue, match="the record comes from the table other, and the graph's table is adjoin"
            ):
                handler(renamed({"Records": records}), Context())
            # No mapping has two streams, so this one is about the record.
            assert handler({"Records": [renamed(records[0]), records[1]]}, Context()) == NOTHING
            assert invoices(g, "C1") == 1
            (record,) = unapplied(g)
            assert record["reason"]["S"] == "the record comes from the table other, and the graph's table is adjoin"


def test_expired_edges_are_records_like_any_other(g: Graph) -> None:
    g.put(Customer(id="C1"))
    g.put(Placed(source="C1", target="I1"))
    handler, table = aws.lambda_handler(g), Table(g, g._store)
    handler({"Records": list(table.records())}, Context())
    g.disconnect(Placed, "C1", "I1")
    records = list(table.records())
    for record in records:
        record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    handler({"Records": records}, Context())
    assert invoices(g, "C1") == 0


def test_adjoins_own_items_cost_nothing(g: Graph, store: Faulty) -> None:
    happen(g)
    g.maintain(once=True)
    own = [each for each in event_of(g)["Records"] if g._layout.is_bookkeeping(each["dynamodb"]["Keys"])]
    assert len(own) > 20
    sent = store.sent
    assert aws.lambda_handler(g)({"Records": own}, Context()) == NOTHING
    assert store.sent == sent


# --- metrics -----------------------------------------------------------------------------------


def test_metrics_in_the_embedded_format(g: Graph, store: Faulty, capsys: pytest.CaptureFixture[str]) -> None:
    g.put(Customer(id="C1"))
    g.put_many(Placed(source="C1", target=f"I{number}") for number in range(3))
    event = event_of(g)
    event["Records"].insert(0, broken(event, "no such event"))
    aws.lambda_handler(g)(event, Context())
    assert capsys.readouterr().out == ""
    handler = aws.lambda_handler(g, metrics="Shop/Aggregates")
    handler(event, Context())
    g.put(Placed(source="C1", target="I9"))
    store.error = Throttled("slow down")
    handler({"Records": event_of(g)["Records"][-1:]}, Context())
    done, failed = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    for line in (done, failed):
        is_embedded_metric_format(line)
    assert (done["Table"], done["Changes"], done["SetAside"], done["Retried"]) == ("adjoin", 4, 1, 0)
    assert (failed["Changes"], failed["Retried"]) == (0, 1)
    assert 0 <= done["Lag"] < 600_000
    handler({"Records": []}, Context())
    (empty,) = map(json.loads, capsys.readouterr().out.splitlines())
    is_embedded_metric_format(empty)
    assert "Lag" not in empty


def is_embedded_metric_format(line: dict[str, Any]) -> None:
    """What the specification of the format demands."""
    metadata = line["_aws"]
    assert type(metadata["Timestamp"]) is int
    assert 1.7e12 < metadata["Timestamp"] < 4e12, "milliseconds since 1970"
    (directive,) = metadata["CloudWatchMetrics"]
    assert directive.keys() == {"Namespace", "Dimensions", "Metrics"}
    assert 1 <= len(directive["Namespace"]) <= 1024
    for dimensions in directive["Dimensions"]:
        assert len(dimensions) <= 30
        assert all(isinstance(line[name], str) and line[name] for name in dimensions)
    assert 1 <= len(directive["Metrics"]) <= 100
    for metric in directive["Metrics"]:
        assert metric["Unit"] in ("Count", "Milliseconds")
        assert type(line[metric["Name"]]) in (int, float)


@pytest.mark.parametrize("namespace", ["", "a b", "x" * 256, "ü"])
def test_a_namespace_that_cloudwatch_would_not_take(g: Graph, namespace: str) -> None:
    with pytest.raises(InvalidValue, match="must be a namespace of up to 255 letters"):
        aws.lambda_handler(g, metrics=namespace)


# --- the filter of the mapping -----------------------------------------------------------------


def lets_through(pattern: dict[str, Any], record: dict[str, Any]) -> bool:
    """What Lambda does with a filter: one of the rules for a value has to hold."""
    ((name, wanted),) = pattern["dynamodb"]["Keys"].items()
    text: str = record["dynamodb"]["Keys"][name]["S"]
    return any(text.startswith(each["prefix"]) for each in wanted["S"])


class Numbered(Node):
    id: int
    until: Annotated[datetime | None, Expires()] = None


class Beside(Edge[Numbered, Numbered]):
    pass


def test_keys_that_are_no_text_are_not_filtered() -> None:
    layout = AdjacencyList(
        partition_key="a",
        sort_key="b",
        types={"a": "N", "b": "N"},
        reverse=None,
        keys={Numbered: Keys(sort="{id}"), Beside: Keys(sort="{target}")},
    )
    assert aws.stream_filter([Numbered, Beside], layout) is None


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph(shards=2)], ids=["list", "graph"])
def test_what_the_filter_lets_through_is_enough(layout: Any) -> None:
    pattern = aws.stream_filter(MODELS, layout)
    assert pattern is not None
    with Graph(":memory:", MODELS, layout) as g:
        handler, table = aws.lambda_handler(g), Table(g, g._store)
        for act in (happen, happen_again):
            act(g)
            while records := list(table.records()):
                wanted = [each for each in records if lets_through(pattern, each)]
                assert handler({"Records": wanted}, Context()) == NOTHING
            check(g)
        own = [each for each in event_of(g)["Records"] if g._layout.is_bookkeeping(each["dynamodb"]["Keys"])]
        assert len(own) > 20
        assert not any(lets_through(pattern, each) for each in own)


class Box(Node):
    id: str
    name: str = ""


def joining(number: int) -> Any:
    class Joins(Edge[Box, Box], label=f"{'Ü' * 40}{number}"):
        name: Annotated[str, Copy("source.name")] = ""

    Joins.__name__ = f"Joins{number}"
    return Joins


def test_a_filter_is_not_longer_than_lambda_takes() -> None:
    patterns = [aws.stream_filter([Box, *map(joining, range(count))]) for count in range(1, 25)]
    lengths = [len(json.dumps(pattern)) for pattern in patterns if pattern is not None]
    assert 3500 < max(lengths) <= 4096
    # Without any, everything is let through.
    assert patterns[-1] is None


# --- graphs ------------------------------------------------------------------------------------


def test_a_graph_that_is_opened_by_the_first_event(store: Faulty) -> None:
    opened: list[Graph] = []

    def opening() -> Graph:
        opened.append(Graph(store, MODELS))
        return opened[-1]

    handler = aws.lambda_handler(opening)
    assert opened == []
    for _ in range(2):
        assert handler({"Records": []}, Context()) == NOTHING
    assert len(opened) == 1
    with pytest.raises(InvalidValue, match="is not a graph"):
        aws.lambda_handler("dynamodb://Table")  # type: ignore[arg-type]


def test_a_graph_that_cannot_be_opened_yet() -> None:
    attempts: list[int] = []

    def opening() -> Graph:
        attempts.append(1)
        if len(attempts) == 1:
            raise ServiceUnreachable("nobody there")
        return Graph(":memory:", MODELS)

    handler = aws.lambda_handler(opening)
    with pytest.raises(ServiceUnreachable):
        handler({"Records": []}, Context())
    assert handler({"Records": []}, Context()) == NOTHING


def test_an_async_graph(tmp_path: Any) -> None:
    file = f"{tmp_path / 'graph.db'}?durability=process"
    with Graph(file, MODELS) as g:
        ag = AsyncGraph(file, MODELS)
        handler = aws.lambda_handler(ag)
        table = Table(g, g._store)
        for act in (happen, happen_again):
            act(g)
            while records := list(table.records()):
                assert handler({"Records": records}, Context()) == NOTHING
            check(g)
        asyncio.run(ag.close())


def test_a_tenant_applies_its_own(tmp_path: Any) -> None:
    file = f"{tmp_path / 'graph.db'}?durability=process"
    with Graph(file, MODELS, tenant="acme") as acme, Graph(file, MODELS, tenant="beta") as beta:
        for each in (acme, beta):
            each.put(Customer(id="C1"))
            each.put(Placed(source="C1", target="I1"))
        aws.lambda_handler(acme)(event_of(acme), Context())
        assert (invoices(acme, "C1"), invoices(beta, "C1")) == (1, 0)


def test_connections_that_died_while_the_process_was_frozen(tmp_path: Any) -> None:
    """A server that was gone in between has closed every connection, and the function does not notice."""
    pytest.importorskip("botocore")
    file = tmp_path / "served.db"
    server = adjoin.serve(file, port=0)
    port = int(server.endpoint.rsplit(":", 1)[1])
    try:
        location = f"dynamodb://adjoin?endpoint={server.endpoint}&region=eu-west-1"
        with Graph(location, MODELS) as g:
            g.create_table()
            handler, table = aws.lambda_handler(g), Table(g, g._store)
            for id in ("C1", "C2"):
                g.put(Customer(id=id))
                g.put(Placed(source=id, target="I1"))
                records = list(table.records())
                server.close()
                server = adjoin.serve(file, port=port)
                assert handler({"Records": records}, Context()) == NOTHING
                assert invoices(g, id) == 1
    finally:
        server.close()
