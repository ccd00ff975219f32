"""aiodynamo over aiohttp, the faster of its two transports; it has no models, so plain ones are made from its dicts."""

from __future__ import annotations

from aiodynamo.client import Client
from aiodynamo.credentials import Credentials
from aiodynamo.expressions import HashKey, RangeKey
from aiodynamo.http.aiohttp import AIOHTTP
from aiohttp import ClientSession
from yarl import URL

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


class WithAiodynamo:
    def __init__(self, endpoint: str) -> None:
        self._session = ClientSession()
        client = Client(AIOHTTP(self._session), Credentials.auto(), REGION, URL(endpoint))
        self._table = client.table(TABLE)

    async def get(self, id: str) -> PersonModel:
        return person_of(await self._table.get_item({"PK": PERSON_PREFIX + id, "SK": NODE_SORT_KEY}))

    async def out(self, id: str) -> list[FollowsModel]:
        here = HashKey("PK", PERSON_PREFIX + id) & RangeKey("SK").begins_with(FOLLOWS_PREFIX)
        page = await self._table.query_single_page(here)
        return [follows_of(item) for item in page.items]

    async def close(self) -> None:
        await self._session.close()
