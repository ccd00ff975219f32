"""The Lambda function: partial batch responses, records set aside, deadlines, and all that Lambda may do to it."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest

import adjoin
from adjoin import (
    AccessDenied,
    AdjacencyList,
    AsyncGraph,
    Copy,
    Edge,
    Expires,
    Graph,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    OutcomeUnknown,
    ServiceUnreachable,
    Throttled,
    aws,
)
from adjoin.requests import Request
from adjoin.runner import run
from tests.aws.event_source_mapping import Context, EventSourceMapping, Table, event_of
from tests.aws.lambda_invoices import NOTHING, Faulty, broken, invoices, unapplied
from tests.maintenance.models import ALBUMS, MODELS, PARTS, PEOPLE, SHOP, WALLETS, Customer, Placed
from tests.maintenance.simulation import stored
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import Life, check
from tests.shares import stride


def number_of(record: dict[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def failures(answer: dict[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


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


@pytest.mark.simulation
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
        requests += stride(4)
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
