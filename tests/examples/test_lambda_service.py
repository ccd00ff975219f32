"""The example for Lambda: events as a function URL sends them, with one graph for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from examples.lambda_service import Course, Enrollment, Student, graph, handler
from pytest_adjoin import DynamoDB


@pytest.fixture(autouse=True)
def _table(adjoin_dynamodb: DynamoDB, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    location = f"dynamodb://school?endpoint={adjoin_dynamodb.endpoint}&region={adjoin_dynamodb.region}"
    monkeypatch.setenv("GRAPH", location)
    graph.cache_clear()
    graph().create_table()
    graph().put(Student(id="s1", name="Ann"))
    for number in range(21):
        graph().put(Course(id=f"c{number:02}", title="x"))
        graph().connect(Enrollment, "s1", f"c{number:02}")
    yield
    graph().close()
    graph.cache_clear()


def asked(path: str, **query: str) -> tuple[int, dict[str, object]]:
    answer = handler({"rawPath": path, "queryStringParameters": query or None}, None)
    return answer["statusCode"], json.loads(answer["body"])


def test_events_are_answered() -> None:
    opened = graph()
    status, first = asked("/students/s1")
    assert (status, first["name"], len(first["courses"])) == (200, "Ann", 20)  # type: ignore[arg-type]
    assert asked("/students/s1", after=str(first["next"])) == (200, {"name": "Ann", "courses": ["c20"], "next": None})
    assert graph() is opened


def test_errors_have_their_statuses() -> None:
    assert asked("/students/s9") == (404, {"code": "not_found"})
    assert asked("/students/s1", after="nonsense") == (400, {"code": "invalid_cursor"})
    graph().drop_table()
    assert asked("/students/s1") == (500, {"code": "table_not_found"})
