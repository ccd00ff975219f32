"""The example for FastAPI: its routes, pages and errors, over HTTP as a client sees them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from adjoin import AdjoinError, Graph, Throttled
from examples import fastapi_school
from pytest_adjoin import DynamoDB

SINCE = {"since": "2024-05-01"}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("GRAPH", str(tmp_path / "school.db"))
    with TestClient(fastapi_school.app) as client:
        for id, name in (("s1", "Ann"), ("s2", "Amy"), ("s3", "Bob")):
            assert client.put(f"/students/{id}", params={"name": name, "email": f"{name}@x"}).status_code == 200
        assert client.put("/courses/c1", params={"title": "Physics", "seats": 2}).json()["seats"] == 2
        yield client


def test_pages_carry_their_tokens(client: TestClient) -> None:
    for id in ("s1", "s2"):
        enrolled = client.post(f"/courses/c1/students/{id}", json=SINCE)
        assert (enrolled.status_code, enrolled.json()["student"]["id"]) == (201, id)
    first = client.get("/courses/c1/students", params={"limit": 1}).json()
    second = client.get("/courses/c1/students", params={"limit": 1, "after": first["next"]}).json()
    assert [place["student"]["name"] for place in first["places"] + second["places"]] == ["Ann", "Amy"]
    changed = {"limit": 1, "after": first["next"][:-2]}
    refused = client.get("/courses/c1/students", params=changed)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_cursor")
    assert [each["name"] for each in client.get("/students", params={"begins": "A"}).json()] == ["Amy", "Ann"]


def test_errors_have_their_statuses(client: TestClient) -> None:
    assert client.get("/students/s9").json() == {"code": "not_found", "detail": "there is no student s9"}
    assert client.get("/students/s9").status_code == 404
    assert client.put("/students/s4", params={"name": "Eve", "email": "Bob@x"}).status_code == 409
    assert client.post("/courses/c1/students/s1", json=SINCE).status_code == 201
    assert client.post("/courses/c1/students/s1", json=SINCE).status_code == 409, "enrolled already"
    assert client.post("/courses/c1/students/s9", json=SINCE).status_code == 404, "no such student"
    assert client.post("/courses/c1/students/s2", json=SINCE).status_code == 201
    full = client.post("/courses/c1/students/s3", json=SINCE)
    assert (full.status_code, full.json()["code"]) == (409, "transaction_canceled")
    assert client.delete("/students/s1").status_code == 204
    assert client.delete("/students/s1").status_code == 404


def test_what_may_be_retried_is_said_to_be_unavailable() -> None:
    assert fastapi_school.status_of(Throttled("slow down")) == 503
    assert fastapi_school.status_of(AdjoinError("broken")) == 500


def test_it_runs_on_dynamodb(adjoin_dynamodb: DynamoDB, monkeypatch: pytest.MonkeyPatch) -> None:
    location = f"dynamodb://school?endpoint={adjoin_dynamodb.endpoint}&region={adjoin_dynamodb.region}"
    with Graph(location, fastapi_school.MODELS) as g:
        g.create_table()
    monkeypatch.setenv("GRAPH", location)
    with TestClient(fastapi_school.app) as client:
        client.put("/students/s1", params={"name": "Ann", "email": "a@x"})
        assert client.get("/students/s1").json()["name"] == "Ann"
