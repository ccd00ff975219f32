"""Tables to explore: both layouts, one that adjoin knows no classes of, and data that means harm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Annotated, Any

from orjson import dumps, loads

from adjoin import AdjacencyList, Child, Edge, Graph, Indexed, MaterializedGraph, Node, Unique
from adjoin.explorer import ExplorerServer, open_explored
from adjoin.explorer.api import Api
from adjoin.layouts.interface import Layout
from examples import invoices, people, shop


class User(Node):
    id: str
    name: Annotated[str, Indexed()]
    email: Annotated[str, Unique()]


class Post(Node):
    id: str
    title: str


class Liked(Edge[User, Post]):
    stars: int


class Follows(Edge[User, User], symmetric=True):
    pass


class Note(Child[User], key=("at",)):
    at: int
    text: str


HOSTILE_MODELS = (User, Post, Liked, Follows, Note)
SCRIPT = "<script>window.harmed=1</script>"
IMAGE = "<img src=x onerror=window.harmed=1>"
RIGHT_TO_LEFT = "שלום \u202eעולם"
EMOJI = "👩‍👩‍👧‍👦 🏳️‍🌈"
LONG = "x" * 1000

HOSTILE = (
    User(id=SCRIPT, name=IMAGE, email="a@example.org"),
    User(id=RIGHT_TO_LEFT, name=RIGHT_TO_LEFT, email=EMOJI),
    User(id=EMOJI, name=EMOJI, email="c@example.org"),
    User(id=LONG, name="xxxx", email="d@example.org"),
    Post(id="\"'`;--", title=SCRIPT),
    Liked(source=SCRIPT, target="\"'`;--", stars=5),
    Liked(source=SCRIPT, target="gone", stars=1),
    Follows(source=SCRIPT, target=RIGHT_TO_LEFT),
    Follows(source=SCRIPT, target=EMOJI),
    Follows(source=SCRIPT, target=LONG),
    Note(parent=SCRIPT, at=1, text=SCRIPT),
)

LAYOUTS: dict[str, Layout] = {"adjacency": AdjacencyList(table="Harm"), "materialized": MaterializedGraph(table="Harm")}


def filled(path: Path, models: Any, layout: Layout, entities: Any) -> str:
    """A file with a graph in it."""
    with Graph(path, models, layout) as graph:
        graph.put_many(entities)
    return str(path)


def people_file(folder: Path) -> str:
    return filled(folder / "people.db", people.MODELS, people.LAYOUT, people.SAMPLE)


def shop_file(folder: Path) -> str:
    path = filled(folder / "shop.db", shop.MODELS, shop.LAYOUT, shop.SAMPLE)
    with Graph(path, shop.MODELS, shop.LAYOUT) as graph:
        graph.maintain(once=True)
    return path


def invoices_file(folder: Path) -> str:
    return filled(folder / "invoices.db", invoices.MODELS, invoices.LAYOUT, invoices.SAMPLE)


def hostile_file(folder: Path, layout: str = "adjacency") -> str:
    return filled(folder / f"harm-{layout}.db", HOSTILE_MODELS, LAYOUTS[layout], HOSTILE)


# --- asking ------------------------------------------------------------------------------------


class Asking:
    """The API of an open graph, without a server."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def __call__(self, name: str, /, **asked: Any) -> dict[str, Any]:
        status, answer = self.api.answer(name, asked)
        assert status == 200, answer
        # What is sent is JSON.
        found: dict[str, Any] = loads(dumps(answer))
        return found

    def refused(self, name: str, /, **asked: Any) -> str:
        status, answer = self.api.answer(name, asked)
        assert status == 400, answer
        message: str = answer["error"]["message"]
        return message


@contextmanager
def asking(location: str, models: Any = None, layout: Layout | None = None, **options: Any) -> Iterator[Asking]:
    explored = open_explored(location, models, layout, **options)
    try:
        yield Asking(Api(explored))
    finally:
        explored.close()


@contextmanager
def serving(
    location: str, models: Any = None, layout: Layout | None = None, **options: Any
) -> Iterator[ExplorerServer]:
    with ExplorerServer(open_explored(location, models, layout, **options)) as server:
        yield server


def sent(
    server: ExplorerServer, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[HTTPResponse, bytes]:
    """The answer to a request with these headers and no others."""
    connection = HTTPConnection(server.endpoint.removeprefix("http://"), timeout=60)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(body)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()
