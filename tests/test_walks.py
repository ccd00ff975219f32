"""The four walks of docs/architecture.md: the files that a call passes, traced, are those that the document names.

A walk is the second call of its kind, so that what is done once (opening, compiling, caching) is not part of it. Files
are listed in the order in which they are first entered.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from http.client import HTTPConnection
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

import pytest

import adjoin
from adjoin import Edge, Graph, Node, Sum

PACKAGE = Path(adjoin.__file__).parent
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"
Call: TypeAlias = Callable[[str], object]


class Student(Node):
    id: str
    name: str


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course]):
    grade: str


class Customer(Node):
    id: str
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)


class Invoice(Node):
    id: str


class Placed(Edge[Customer, Invoice]):
    balance: Decimal


class Trace:
    """The modules of adjoin that are entered while it is on, by threads that began after it was installed."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.is_on = False
        self._root = str(PACKAGE)

    def enter(self, frame: FrameType, event: str, _: Any) -> None:
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(self._root):
            name = str(Path(frame.f_code.co_filename).relative_to(PACKAGE).with_suffix(""))
            # What compares and hashes the values of all modules is not a place that a reader passes.
            if name != "dataclass":
                self.files.setdefault(name)

    @contextmanager
    def installed(self) -> Iterator[None]:
        before = sys.getprofile()
        threading.setprofile(self.enter)
        sys.setprofile(self.enter)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before)


def a_put(folder: Path, _: str, stack: ExitStack) -> Call:
    g = stack.enter_context(Graph(folder / "walk.db", [Student, Course, Enrollment]))
    return lambda id: g.put(Student(id=id, name="Ann"))


def a_neighbour_query(_: Path, endpoint: str, stack: ExitStack) -> Call:
    options = f"endpoint={endpoint}&region=us-east-1"
    g = stack.enter_context(Graph(f"dynamodb://walk?{options}", [Student, Course, Enrollment]))
    g.create_table()
    g.put_many([Student(id="S1", name="Ann"), Course(id="C1"), Enrollment(source="S1", target="C1", grade="A")])
    return lambda _: list(g.into("C1", Enrollment).nodes())


def a_change(folder: Path, _: str, stack: ExitStack) -> Call:
    g = stack.enter_context(Graph(folder / "walk.db", [Customer, Invoice, Placed]))
    g.put(Customer(id="C1"))
    g.maintain(once=True)
    g.put(Placed(source="C1", target="I0", balance=Decimal(1)))

    def change(id: str) -> None:
        g.maintain(once=True)
        if id == "first":
            g.put(Placed(source="C1", target=id, balance=Decimal(1)))

    return change


def a_request(folder: Path, _: str, stack: ExitStack) -> Call:
    server = stack.enter_context(adjoin.serve(folder / "served.db"))
    address = urlsplit(server.endpoint)
    connection = HTTPConnection(address.hostname or "", address.port)
    stack.callback(connection.close)

    def ask(operation: str, body: dict[str, Any]) -> None:
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=a/20240101/us-east-1/dynamodb/aws4_request, "
            "SignedHeaders=host;x-amz-date, Signature=0",
            "X-Amz-Date": "20240101T000000Z",
        }
        connection.request("POST", "/", json.dumps(body), headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        response.read()

    key = {"AttributeName": "id", "KeyType": "HASH"}
    defined = {"AttributeName": "id", "AttributeType": "S"}
    table = {
        "TableName": "walk",
        "KeySchema": [key],
        "AttributeDefinitions": [defined],
        "BillingMode": "PAY_PER_REQUEST",
    }
    ask("CreateTable", table)
    condition = {"TableName": "walk", "ConditionExpression": "attribute_not_exists(id)"}
    return lambda id: ask("PutItem", condition | {"Item": {"id": {"S": id}}})


WALKS: dict[str, tuple[Callable[[Path, str, ExitStack], Call], int]] = {
    "A put": (a_put, 15),
    "A neighbour query on DynamoDB": (a_neighbour_query, 16),
    "A change through maintenance": (a_change, 35),
    "A conditional PutItem through the server": (a_request, 18),
}
"""What a walk calls, and how many files it may pass: fewer with time, never more."""


def files_of(walk: str, folder: Path) -> list[str]:
    begin, _ = WALKS[walk]
    trace = Trace()
    # What answers a client is no part of the walk, and begins before the trace is installed.
    with adjoin.serve() as other, ExitStack() as stack, trace.installed():
        call = begin(folder, other.endpoint, stack)
        call("first")
        trace.is_on = True
        call("second")
        trace.is_on = False
        stack.close()
    return [*trace.files]


def named(walk: str) -> list[str]:
    """The files that the document names for a walk, in its order."""
    section = re.search(rf"^### {walk}\n(.*?)(?=^##)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/architecture.md has no walk {walk!r}"
    return re.findall(r"^\| \d+ \| `([^`]+)`", section[1], re.MULTILINE)


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_passes_the_files_that_the_document_names(
    walk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    files = files_of(walk, tmp_path)
    # Threads may enter the same files in another order.
    assert sorted(files) == sorted(named(walk))
    assert len(files) <= WALKS[walk][1]
