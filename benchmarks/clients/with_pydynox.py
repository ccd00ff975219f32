"""pydynox: its own models over its core in Rust, blocking and async."""

from __future__ import annotations

from pydynox import DynamoDBClient, Model, ModelConfig, set_default_client
from pydynox.attributes import BooleanAttribute, DatetimeAttribute, NumberAttribute, StringAttribute

from benchmarks.clients.plain import FOLLOWS_PREFIX, NODE_SORT_KEY, PERSON_PREFIX, REGION, TABLE


class _Person(Model):
    model_config = ModelConfig(table=TABLE)
    PK = StringAttribute(partition_key=True)
    SK = StringAttribute(sort_key=True)
    name = StringAttribute()
    email = StringAttribute()
    country = StringAttribute()
    city = StringAttribute()
    about = StringAttribute()
    visits = NumberAttribute()
    score = NumberAttribute()
    active = BooleanAttribute()
    joined_at = DatetimeAttribute()

    @property
    def id(self) -> str:
        return str(self.PK)[len(PERSON_PREFIX) :]


class _Follows(Model):
    model_config = ModelConfig(table=TABLE)
    PK = StringAttribute(partition_key=True)
    SK = StringAttribute(sort_key=True)
    GSI1PK = StringAttribute()
    GSI1SK = StringAttribute()
    since = DatetimeAttribute()
    kind = StringAttribute()
    note = StringAttribute()
    weight = NumberAttribute()
    seen = NumberAttribute()
    muted = BooleanAttribute()

    @property
    def source(self) -> str:
        return str(self.PK)[len(PERSON_PREFIX) :]

    @property
    def target(self) -> str:
        return str(self.SK)[len(FOLLOWS_PREFIX) :]


def _use(endpoint: str) -> None:
    set_default_client(DynamoDBClient(region=REGION, endpoint_url=endpoint))


class WithPydynox:
    def __init__(self, endpoint: str) -> None:
        _use(endpoint)

    def get(self, id: str) -> _Person:
        return _Person.sync_get(PK=PERSON_PREFIX + id, SK=NODE_SORT_KEY)

    def out(self, id: str) -> list[_Follows]:
        condition = _Follows.SK.begins_with(FOLLOWS_PREFIX)
        return list(_Follows.sync_query(PERSON_PREFIX + id, sort_key_condition=condition))

    def close(self) -> None:
        pass


class WithPydynoxAwaited:
    def __init__(self, endpoint: str) -> None:
        _use(endpoint)

    async def get(self, id: str) -> _Person:
        return await _Person.get(PK=PERSON_PREFIX + id, SK=NODE_SORT_KEY)

    async def out(self, id: str) -> list[_Follows]:
        condition = _Follows.SK.begins_with(FOLLOWS_PREFIX)
        return [edge async for edge in _Follows.query(PERSON_PREFIX + id, sort_key_condition=condition)]

    async def close(self) -> None:
        pass
