"""A web service with FastAPI: one graph for the process, tokens in pages, and errors as statuses.

    GRAPH=school.db uvicorn examples.fastapi_school:app

`GRAPH` may also be a table, such as `dynamodb://School?region=eu-west-1`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Annotated, TypeVar

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from adjoin import (
    AdjoinError,
    AlreadyExists,
    AsyncGraph,
    ConditionFailed,
    Edge,
    Indexed,
    InvalidCursor,
    InvalidKey,
    InvalidValue,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    field,
)

T = TypeVar("T")

# --- classes -----------------------------------------------------------------------------------


class Student(Node):
    id: str
    name: Annotated[str, Indexed()]
    email: Annotated[str, Unique()]


class Course(Node):
    id: str
    title: str
    seats: int = 30


class Enrollment(Edge[Student, Course], order="since"):
    since: date
    grade: str | None = None


MODELS = [Student, Course, Enrollment]


class Enrolled(BaseModel):
    since: date


class Place(BaseModel):
    """A student in a course."""

    student: Student
    since: date
    grade: str | None


class Listed(BaseModel):
    """A page of places; `next` is the token for the next page, and None on the last one."""

    places: list[Place]
    next: str | None


# --- the graph ---------------------------------------------------------------------------------


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Opens the graph when the service starts, and closes it when the service stops."""
    # Tokens go through the hands of clients, so they are signed.
    secret = os.environ.get("CURSOR_SECRET", "change me")
    async with AsyncGraph(os.environ.get("GRAPH", "school.db"), MODELS, cursor_secret=secret) as graph:
        app.state.graph = graph
        yield


def opened(request: Request) -> AsyncGraph:
    graph: AsyncGraph = request.app.state.graph
    return graph


SchoolGraph = Annotated[AsyncGraph, Depends(opened)]
app = FastAPI(lifespan=lifespan)

# --- errors ------------------------------------------------------------------------------------

STATUSES: dict[type[AdjoinError], int] = {
    NotFound: 404,
    AlreadyExists: 409,
    ConditionFailed: 409,
    InvalidCursor: 400,
    InvalidKey: 422,
    InvalidValue: 422,
}


def status_of(error: AdjoinError) -> int:
    """The status for an error: that of its class, or of the first reason of a transaction; 503 if it may be retried."""
    if isinstance(error, TransactionCanceled):
        causes = [reason.error for reason in error.reasons if reason.error is not None]
        found = [STATUSES[cause] for cause in causes if cause in STATUSES]
        if found:
            return found[0]
    return STATUSES.get(type(error), 503 if error.retryable else 500)


@app.exception_handler(AdjoinError)
async def refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AdjoinError)
    status = status_of(error)
    # What went wrong inside is for the log, not for clients.
    detail = str(error) if status < 500 else "try again later" if status == 503 else "an error in the service"
    return JSONResponse({"code": error.code, "detail": detail}, status, {"Retry-After": "1"} if status == 503 else None)


# --- routes ------------------------------------------------------------------------------------


def there(found: T | None, what: str) -> T:
    if found is None:
        raise NotFound(f"there is no {what}")
    return found


@app.put("/students/{id}")
async def put_student(g: SchoolGraph, id: str, name: str, email: str) -> Student:
    student = Student(id=id, name=name, email=email)
    await g.put(student)
    return student


@app.get("/students/{id}")
async def student(g: SchoolGraph, id: str) -> Student:
    return there(await g.get(Student, id), f"student {id}")


@app.get("/students")
async def students(g: SchoolGraph, begins: str) -> list[Student]:
    return [each async for each in g.find(Student, field("name").begins_with(begins)).limit(20)]


@app.put("/courses/{id}")
async def put_course(g: SchoolGraph, id: str, title: str, seats: int = 30) -> Course:
    course = Course(id=id, title=title, seats=seats)
    await g.put(course)
    return course


@app.post("/courses/{id}/students/{student}", status_code=201)
async def enroll(g: SchoolGraph, id: str, student: str, enrolled: Enrolled) -> Place:
    """Takes a seat and enrolls the student, both or neither."""
    async with g.transaction() as t:
        t.connect(Enrollment, student, id, since=enrolled.since)
        t.update(Course, id, seats=field("seats") - 1, only_if=field("seats") > 0)
    found = there(await g.get(Student, student), f"student {student}")
    return Place(student=found, since=enrolled.since, grade=None)


@app.get("/courses/{id}/students")
async def places(
    g: SchoolGraph, id: str, after: str | None = None, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> Listed:
    page = await g.into(Course.ref(id), Enrollment).nodes().page(limit=limit, after=after)
    shown = [Place(student=student, since=edge.since, grade=edge.grade) for edge, student in page.items]
    return Listed(places=shown, next=page.next)


@app.delete("/students/{id}", status_code=204)
async def delete_student(g: SchoolGraph, id: str) -> None:
    """Deletes the student with all enrollments."""
    if not await g.delete(Student, id):
        raise NotFound(f"there is no student {id}")
