"""Invoices with aggregates that a Lambda function keeps up to date, and a store that may fail."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

from adjoin import Graph
from adjoin.requests import Request, TransactWrite
from tests.faults import FaultyStore
from tests.maintenance.models import Customer
from tests.maintenance.simulation import stored

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


def invoices(g: Graph, id: str) -> int:
    found = g.get(Customer, id)
    assert found is not None
    return found.invoices


def unapplied(g: Graph) -> list[dict[str, Any]]:
    return [item for item in stored(g) if item["PK"]["S"] == "#=UNAPPLIED"]


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
