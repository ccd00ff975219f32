"""boto3: its table resource, which turns attributes into Python values, from which models are made."""

from __future__ import annotations

import boto3
from boto3.dynamodb.conditions import Key

from benchmarks.clients.plain import (
    FOLLOWS_PREFIX,
    NODE_SORT_KEY,
    PERSON_PREFIX,
    TABLE,
    FollowsModel,
    PersonModel,
    follows_of,
    person_of,
)


class WithBoto3:
    def __init__(self, endpoint: str) -> None:
        self._table = boto3.resource("dynamodb", endpoint_url=endpoint).Table(TABLE)

    def get(self, id: str) -> PersonModel:
        answer = self._table.get_item(Key={"PK": PERSON_PREFIX + id, "SK": NODE_SORT_KEY})
        return person_of(answer["Item"])

    def out(self, id: str) -> list[FollowsModel]:
        here = Key("PK").eq(PERSON_PREFIX + id) & Key("SK").begins_with(FOLLOWS_PREFIX)
        return [follows_of(item) for item in self._table.query(KeyConditionExpression=here)["Items"]]

    def close(self) -> None:
        self._table.meta.client.close()
