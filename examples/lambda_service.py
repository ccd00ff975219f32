"""A Lambda function behind a function URL or an HTTP API: the graph is opened once for each environment.

The handler is `examples.lambda_service.handler`. What is at the top of the module runs at a cold start, and the graph
and its connections stay for all later events.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from adjoin import AdjoinError, Edge, Graph, InvalidCursor, Node, NotFound


class Student(Node):
    id: str
    name: str


class Course(Node):
    id: str
    title: str


class Enrollment(Edge[Student, Course]):
    grade: str | None = None


STATUSES: dict[type[AdjoinError], int] = {NotFound: 404, InvalidCursor: 400}


@cache
def graph() -> Graph:
    # The function has 10 seconds for a call. What it cannot do by then raises an error instead of a timeout.
    location = os.environ.get("GRAPH", "dynamodb://School?deadline=8")
    return Graph(location, [Student, Course, Enrollment], cursor_secret=os.environ.get("CURSOR_SECRET", "change me"))


def courses_of(student: str, after: str | None) -> dict[str, Any]:
    """A student with a page of courses."""
    g = graph()
    found = g.get(Student, student)
    if found is None:
        raise NotFound(f"there is no student {student}")
    page = g.out(found, Enrollment).page(limit=20, after=after)
    return {"name": found.name, "courses": [edge.target for edge in page.items], "next": page.next}


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Answers GET /students/ID?after=TOKEN."""
    student = event["rawPath"].removeprefix("/students/")
    after = (event.get("queryStringParameters") or {}).get("after")
    try:
        return _answer(200, courses_of(student, after))
    except AdjoinError as error:
        status = STATUSES.get(type(error), 503 if error.retryable else 500)
        return _answer(status, {"code": error.code})


def _answer(status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"statusCode": status, "headers": {"Content-Type": "application/json"}, "body": json.dumps(body)}
