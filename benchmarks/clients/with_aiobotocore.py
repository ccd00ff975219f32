"""aiobotocore: its client. boto3's deserializer turns attributes into values, from which models are made."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from aiobotocore.session import get_session
from boto3.dynamodb.types import TypeDeserializer

from benchmarks.clients.plain import (
    FOLLOWS_PREFIX,
    NODE_SORT_KEY,
    PERSON_PREFIX,
    REGION,
    TABLE,
    FollowsModel,
    PersonModel,
    follows_of,
    person_of,
)

_value = TypeDeserializer().deserialize


class WithAiobotocore:
    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._open = AsyncExitStack()
        self._client: Any = None

    async def _ready(self) -> Any:
        made = get_session().create_client("dynamodb", region_name=REGION, endpoint_url=self._endpoint)
        self._client = await self._open.enter_async_context(made)
        return self._client

    async def get(self, id: str) -> PersonModel:
        client = self._client or await self._ready()
        key = {"PK": {"S": PERSON_PREFIX + id}, "SK": {"S": NODE_SORT_KEY}}
        answer = await client.get_item(TableName=TABLE, Key=key)
        return person_of(_plain(answer["Item"]))

    async def out(self, id: str) -> list[FollowsModel]:
        return [follows_of(_plain(item)) for item in await self.items(id)]

    async def items(self, id: str) -> list[dict[str, Any]]:
        """The edges as the client returns them."""
        client = self._client or await self._ready()
        answer = await client.query(
            TableName=TABLE,
            KeyConditionExpression="PK = :here AND begins_with(SK, :edges)",
            ExpressionAttributeValues={":here": {"S": PERSON_PREFIX + id}, ":edges": {"S": FOLLOWS_PREFIX}},
        )
        items: list[dict[str, Any]] = answer["Items"]
        return items

    async def close(self) -> None:
        await self._open.aclose()


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(stored) for name, stored in item.items()}
