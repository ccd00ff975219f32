"""PynamoDB: its own models, which hold the attributes as they are stored."""

from __future__ import annotations

from datetime import datetime

from pynamodb.attributes import Attribute, BooleanAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.constants import STRING
from pynamodb.models import Model

from benchmarks.clients.plain import FOLLOWS_PREFIX, NODE_SORT_KEY, PERSON_PREFIX, REGION, TABLE


class _TimeAttribute(Attribute):
    """A time with its zone in Python's ISO format. PynamoDB's own attribute reads another format."""

    attr_type = STRING

    def serialize(self, value: datetime) -> str:
        return value.isoformat()

    def deserialize(self, value: str) -> datetime:
        return datetime.fromisoformat(value)


class _Person(Model):
    class Meta:
        table_name = TABLE
        region = REGION
        host: str | None = None

    PK = UnicodeAttribute(hash_key=True)
    SK = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    email = UnicodeAttribute()
    country = UnicodeAttribute()
    city = UnicodeAttribute()
    about = UnicodeAttribute()
    visits = NumberAttribute()
    score = NumberAttribute()
    active = BooleanAttribute()
    joined_at = _TimeAttribute()

    @property
    def id(self) -> str:
        return str(self.PK)[len(PERSON_PREFIX) :]


class _Follows(Model):
    class Meta:
        table_name = TABLE
        region = REGION
        host: str | None = None

    PK = UnicodeAttribute(hash_key=True)
    SK = UnicodeAttribute(range_key=True)
    GSI1PK = UnicodeAttribute()
    GSI1SK = UnicodeAttribute()
    since = _TimeAttribute()
    kind = UnicodeAttribute()
    note = UnicodeAttribute()
    weight = NumberAttribute()
    seen = NumberAttribute()
    muted = BooleanAttribute()

    @property
    def source(self) -> str:
        return str(self.PK)[len(PERSON_PREFIX) :]

    @property
    def target(self) -> str:
        return str(self.SK)[len(FOLLOWS_PREFIX) :]


class WithPynamoDB:
    def __init__(self, endpoint: str) -> None:
        for model in (_Person, _Follows):
            model.Meta.host = endpoint

    def get(self, id: str) -> _Person:
        return _Person.get(PERSON_PREFIX + id, NODE_SORT_KEY)

    def out(self, id: str) -> list[_Follows]:
        return list(_Follows.query(PERSON_PREFIX + id, _Follows.SK.startswith(FOLLOWS_PREFIX)))

    def close(self) -> None:
        pass
