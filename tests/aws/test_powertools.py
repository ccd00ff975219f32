"""The Lambda function with aws-lambda-powertools around it, or inside of it."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes import DynamoDBStreamEvent, event_source

from adjoin import Graph, Throttled, aws
from tests.aws.event_source_mapping import Context, event_of
from tests.aws.lambda_invoices import NOTHING, Faulty, broken, invoices, unapplied
from tests.aws.test_lambda import failures, number_of
from tests.maintenance.models import MODELS, Customer, Placed


@pytest.fixture
def g(store: Faulty) -> Graph:
    graph = Graph(store, MODELS)
    graph.put(Customer(id="C1"))
    graph.put(Placed(source="C1", target="I1"))
    return graph


def test_its_decorators_around_the_handler(g: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    logger = Logger(service="maintain")
    apply = aws.lambda_handler(g)

    @logger.inject_lambda_context(log_event=True)
    @event_source(data_class=DynamoDBStreamEvent)
    def handler(event: DynamoDBStreamEvent, context: Any) -> dict[str, Any]:
        logger.info("records", extra={"count": len(list(event.records))})
        return apply(event, context)

    assert handler(event_of(g), cast(Any, Context())) == NOTHING
    assert invoices(g, "C1") == 1
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert said[-1]["count"] == 3, "with the record of what is declared"
    assert said[-1]["function_request_id"] == Context.aws_request_id


def test_the_handler_itself_decorated(g: Graph) -> None:
    handler = Logger(service="maintain").inject_lambda_context(aws.lambda_handler(g))
    assert handler(event_of(g), Context()) == NOTHING
    assert invoices(g, "C1") == 1


def test_its_batch_processor(g: Graph, store: Faulty) -> None:
    processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)
    apply = aws.record_handler(g)

    def handler(event: Any, context: Any) -> Any:
        return process_partial_response(event, apply, processor, context)

    event = event_of(g)
    store.error, store.where = Throttled("slow down"), "CUSTOMER#C1'"
    answer = handler(event, Context())
    assert failures(answer) == [number_of(event["Records"][2])]
    store.error = None
    assert handler(event, Context()) == NOTHING
    assert invoices(g, "C1") == 1
    # What can never be applied is set aside here as well, and not reported.
    assert handler({"Records": [broken(event, "no new image")]}, Context()) == NOTHING
    assert len(unapplied(g)) == 1
