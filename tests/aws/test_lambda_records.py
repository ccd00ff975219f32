"""The Lambda function with records as boto3 has them, and its metrics."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

import botocore.parsers
import botocore.session
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoin
from adjoin import Count, Edge, Graph, InvalidValue, Node, Sum, Throttled, aws, field
from tests.aws.event_source_mapping import Context, Table, event_of
from tests.aws.lambda_invoices import NOTHING, Faulty, broken, invoices, unapplied
from tests.maintenance.models import MODELS, Customer, Placed
from tests.maintenance.test_crashes import happen
from tests.shares import examples

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


@settings(max_examples=examples(100), deadline=None)
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
