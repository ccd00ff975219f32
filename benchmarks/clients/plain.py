"""The requests and their results: the fields, their values, and plain models of them.

Clients that have no models of their own use these. Nothing here imports adjoin, so that a contestant's
process loads only what its users would load.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

TABLE = "Bench"
SOURCE = "P1"
REGION = "us-east-1"
ACCESS_KEY, SECRET_KEY = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
PERSON_PREFIX, FOLLOWS_PREFIX, NODE_SORT_KEY = "PERSON#", "FOLLOWS#PERSON#", "#META"

_JOINED = datetime(2021, 3, 14, 15, 9, 26, 535897, UTC)


class PersonModel(BaseModel):
    id: str
    name: str
    email: str
    country: str
    city: str
    about: str
    visits: int
    score: int
    active: bool
    joined_at: datetime


class FollowsModel(BaseModel):
    source: str
    target: str
    since: datetime
    kind: str
    note: str
    weight: int
    seen: int
    muted: bool


def person(id: str) -> dict[str, Any]:
    """The fields of the node."""
    return {
        "id": id,
        "name": "Ada Lovelace",
        "email": "ada.lovelace@example.org",
        "country": "United Kingdom",
        "city": "London",
        "about": "Wrote the first program for a machine that was never finished.",
        "visits": 1842,
        "score": 987654,
        "active": True,
        "joined_at": _JOINED,
    }


def follows(source: str, number: int) -> dict[str, Any]:
    """The fields of the edge with this number among those that leave the node."""
    return {
        "source": source,
        "target": f"P{100_000 + number}",
        "since": _JOINED + timedelta(hours=number),
        "kind": ("friend", "colleague", "family")[number % 3],
        "note": f"met at conference {number}",
        "weight": number,
        "seen": 7 * number,
        "muted": number % 5 == 0,
    }


def person_of(item: dict[str, Any]) -> PersonModel:
    """The model of an item whose attributes are already plain values."""
    return PersonModel.model_validate({"id": item["PK"][len(PERSON_PREFIX) :], **item})


def follows_of(item: dict[str, Any]) -> FollowsModel:
    ends = {"source": item["PK"][len(PERSON_PREFIX) :], "target": item["SK"][len(FOLLOWS_PREFIX) :]}
    return FollowsModel.model_validate({**ends, **item})
