"""Items of a table without a graph, written by boto3 through the server: `item:<id>` is its number.

A counter that all such workers count up is `counts:all`.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from adjoin import InvalidCredentials, ServiceUnreachable
from tests.whole.journal import Operation, Told, Values, owner_of

TABLE = "Plain"
PAIR = "ADJOIN_WHOLE_PAIR"
"""The variable that names a file with the server's key pair."""
_WAIT = 10


def key(name: str) -> dict[str, Any]:
    return {"PK": {"S": name}, "SK": {"S": "item"}}


class Plain:
    remote, pause = True, 0.03

    def __init__(self, name: str, location: str, edges: int) -> None:
        self.name, self._endpoint = name, location
        self._open()

    def _open(self) -> None:
        # Read here: boto3 would ask for credentials that expire so soon before each request.
        access_key, secret_key = json.loads(Path(os.environ[PAIR]).read_text())
        self._client = boto3.session.Session().client(
            "dynamodb",
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            endpoint_url=self._endpoint,
            region_name="us-east-1",
            # Nothing is sent twice, so that a count that was not acknowledged is there once at most.
            config=Config(retries={"total_max_attempts": 1}, read_timeout=_WAIT, connect_timeout=_WAIT),
        )

    def next(self, told: Told, chance: random.Random) -> Operation:
        mine = sorted({owner_of(key) for key in told.values} - told.barred)
        kind = chance.choice(("put", "together", "batch", "count", "remove"))
        if kind == "count":
            return Operation(kind, {}, adds={"counts:all": 1})
        if kind == "remove" and mine:
            return Operation(kind, {f"item:{chance.choice(mine)}": None})
        number = {"together": 3, "batch": 20}.get(kind, 1)
        chosen = [
            chance.choice(mine) if mine and chance.random() < 0.3 else f"{self.name}-{chance.getrandbits(48):x}"
            for _ in range(number)
        ]
        changes = {f"item:{each}": chance.randrange(10**6) for each in chosen}
        return Operation("put" if kind == "remove" else kind, changes, whole=kind != "batch")

    def perform(self, operation: Operation) -> None:
        try:
            self._perform(operation)
        except ClientError as error:
            if error.response["Error"]["Code"] != "UnrecognizedClientException":
                raise
            self._open()
            raise InvalidCredentials("the server has another key pair") from error
        except BotoCoreError as error:
            raise ServiceUnreachable(str(error)) from error

    def _perform(self, operation: Operation) -> None:
        puts = [
            {"TableName": TABLE, "Item": {**key(owner_of(where)), "n": {"N": str(value)}}}
            for where, value in operation.changes.items()
        ]
        match operation.kind:
            case "put":
                self._client.put_item(**puts[0])
            case "together":
                self._client.transact_write_items(TransactItems=[{"Put": put} for put in puts])
            case "batch":
                left: Any = {TABLE: [{"PutRequest": {"Item": put["Item"]}} for put in puts]}
                while left:
                    left = self._client.batch_write_item(RequestItems=left)["UnprocessedItems"]
            case "remove":
                self._client.delete_item(TableName=TABLE, Key=key(owner_of(*operation.changes)))
            case "count":
                one = {":one": {"N": "1"}}
                self._client.update_item(
                    TableName=TABLE, Key=key("all"), UpdateExpression="ADD n :one", ExpressionAttributeValues=one
                )

    def look(self, owners: set[str]) -> Values:
        found = {}
        for owner in owners:
            try:
                item = self._client.get_item(TableName=TABLE, Key=key(owner), ConsistentRead=True).get("Item")
            except (ClientError, BotoCoreError) as error:
                raise ServiceUnreachable(str(error)) from error
            if item is not None:
                found[f"item:{owner}"] = int(item["n"]["N"])
        return found

    def close(self) -> None:
        self._client.close()
