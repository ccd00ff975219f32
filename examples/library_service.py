"""A library as a web service: 9 classes and 22 routes, without a web framework.

A route is a function of a graph and a request. `answer` finds the route for a method and a path, and maps errors of
adjoin to statuses. The results of routes are dataclasses with types, so type checkers follow a value from the table to
the answer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from adjoin import (
    AdjoinError,
    AlreadyExists,
    Child,
    ConditionFailed,
    Count,
    Edge,
    Graph,
    Indexed,
    InvalidCursor,
    InvalidKey,
    InvalidValue,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    Version,
    field,
)

# --- classes -----------------------------------------------------------------------------------


class Member(Node):
    id: str
    name: str
    email: Annotated[str, Unique()]
    city: Annotated[str, Indexed()] = ""
    loans: int = 0


class Author(Node):
    id: str
    name: Annotated[str, Indexed()]


class Book(Node):
    id: str
    title: Annotated[str, Indexed()]
    year: int
    tags: set[str] = set()
    readers: Annotated[int, Count("Borrowed")] = 0
    version: Annotated[int, Version()] = 0


class Branch(Node):
    id: str
    city: Annotated[str, Indexed()]


class Wrote(Edge[Author, Book]):
    role: str = "author"


class Borrowed(Edge[Member, Book], order="since"):
    since: date
    due: date
    rating: int | None = None


class Stocks(Edge[Branch, Book]):
    copies: int = 1


class Follows(Edge[Member, Member]):
    since: date


class Note(Child[Book], key=("at",)):
    at: date
    text: str
    by: str


MODELS = (Member, Author, Book, Branch, Wrote, Borrowed, Stocks, Follows, Note)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    return Graph(location, MODELS)


# --- requests and answers ----------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, str]


@dataclass(frozen=True)
class MemberShown:
    id: str
    name: str
    loans: int


@dataclass(frozen=True)
class BookShown:
    id: str
    title: str
    year: int


@dataclass(frozen=True)
class LoanShown:
    book: BookShown
    due: str


@dataclass(frozen=True)
class ReaderShown:
    member: MemberShown
    rating: int | None


@dataclass(frozen=True)
class LoanPage:
    loans: list[LoanShown]
    next: str | None


@dataclass(frozen=True)
class BookWithAuthors:
    book: BookShown
    authors: list[str]
    notes: list[str]
    branches: list[str]


@dataclass(frozen=True)
class Suggestion:
    book: BookShown
    readers: int


@dataclass(frozen=True)
class Done:
    done: bool


@dataclass(frozen=True)
class Changed:
    kind: str
    title: str


def member_shown(member: Member) -> MemberShown:
    return MemberShown(member.id, member.name, member.loans)


def book_shown(book: Book) -> BookShown:
    return BookShown(book.id, book.title, book.year)


Route = Callable[[Graph, Request], object]
ROUTES: list[tuple[str, re.Pattern[str], Route]] = []


def route(method: str, path: str) -> Callable[[Route], Route]:
    """Enters a function as the route of a method and a path; `{name}` in the path is a part of the request."""
    pattern = re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path))

    def entered(function: Route) -> Route:
        ROUTES.append((method, pattern, function))
        return function

    return entered


_STATUSES: tuple[tuple[type[AdjoinError], int], ...] = (
    (NotFound, 404),
    (AlreadyExists, 409),
    (ConditionFailed, 409),
    (TransactionCanceled, 409),
    (InvalidCursor, 400),
    (InvalidKey, 400),
    (InvalidValue, 400),
)


def answer(
    g: Graph,
    method: str,
    path: str,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, str] | None = None,
) -> tuple[int, object]:
    """Returns the status and the body of the answer to a request."""
    for known, pattern, function in ROUTES:
        found = pattern.fullmatch(path)
        if known == method and found is not None:
            try:
                return 200, function(g, Request(found.groupdict(), query or {}, body or {}))
            except AdjoinError as error:
                status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
                return status, error.code
    return 404, "no_route"


# --- members -----------------------------------------------------------------------------------


@route("POST", "/members")
def register(g: Graph, request: Request) -> MemberShown:
    body = request.body
    member = Member(id=body["id"], name=body["name"], email=body["email"], city=body.get("city", ""))
    g.add(member)
    return member_shown(member)


@route("GET", "/members/{id}")
def member(g: Graph, request: Request) -> MemberShown:
    found = g.get(Member, request.path["id"])
    if found is None:
        raise NotFound(f"there is no member {request.path['id']}")
    return member_shown(found)


@route("GET", "/members/by-email/{email}")
def member_by_email(g: Graph, request: Request) -> MemberShown:
    found = g.get(Member, email=request.path["email"])
    if found is None:
        raise NotFound(f"there is no member with the address {request.path['email']}")
    return member_shown(found)


@route("GET", "/members")
def members_of_city(g: Graph, request: Request) -> list[MemberShown]:
    return [member_shown(each) for each in g.find(Member, field(Member.city) == request.query["city"])]


@route("PATCH", "/members/{id}")
def rename_member(g: Graph, request: Request) -> MemberShown:
    return member_shown(g.update(Member, request.path["id"], name=request.body["name"]))


@route("DELETE", "/members/{id}")
def remove_member(g: Graph, request: Request) -> Done:
    return Done(g.delete(Member, request.path["id"]))


@route("POST", "/members/{id}/follows/{other}")
def follow(g: Graph, request: Request) -> Done:
    g.connect(Follows, request.path["id"], request.path["other"], since=date.fromisoformat(request.body["since"]))
    return Done(True)


@route("GET", "/members/{id}/follows")
def followed(g: Graph, request: Request) -> list[MemberShown]:
    return [member_shown(other) for _, other in g.out(request.path["id"], Follows).nodes()]


@route("GET", "/members/{id}/suggestions")
def suggestions(g: Graph, request: Request) -> list[Suggestion]:
    read = g.walk(Member.ref(request.path["id"])).out(Follows).out(Borrowed)
    counts = read.group_count()
    found = [Suggestion(book_shown(each), counts[Book.ref(each.id)]) for each in read.distinct().nodes()]
    return sorted(found, key=lambda each: -each.readers)


# --- books -------------------------------------------------------------------------------------


@route("PUT", "/books/{id}")
def put_book(g: Graph, request: Request) -> BookShown:
    book = g.upsert(Book, request.path["id"], title=request.body["title"], year=int(request.body["year"]))
    return book_shown(book)


@route("GET", "/books")
def books_by_title(g: Graph, request: Request) -> list[BookShown]:
    found = g.find(Book, field(Book.title).begins_with(request.query["begins"]), order=field(Book.title)).limit(20)
    return [book_shown(each) for each in found]


@route("GET", "/books/{id}")
def book_page(g: Graph, request: Request) -> BookWithAuthors:
    ref = Book.ref(request.path["id"])
    collection = g.collection(ref)
    book = collection.node
    if book is None:
        raise NotFound(f"there is no book {ref.id}")
    authors = [author.name for _, author in g.into(ref, Wrote).nodes()]
    branches = [branch.city for _, branch in g.into(ref, Stocks).where(field(Stocks.copies) > 0).nodes()]
    notes = [each.text for each in collection.children if isinstance(each, Note)]
    return BookWithAuthors(book_shown(book), authors, notes, branches)


@route("POST", "/books/{id}/tags/{tag}")
def tag_book(g: Graph, request: Request) -> list[str]:
    book = g.update(Book, request.path["id"], tags=field(Book.tags).add([request.path["tag"]]))
    return sorted(book.tags)


@route("POST", "/books/{id}/authors/{author}")
def credit(g: Graph, request: Request) -> Done:
    g.connect(Wrote, request.path["author"], request.path["id"], role=request.body.get("role", "author"))
    return Done(True)


@route("POST", "/books/{id}/notes")
def note(g: Graph, request: Request) -> Done:
    day = date.fromisoformat(request.body["at"])
    g.put(Note(parent=request.path["id"], at=day, text=request.body["text"], by=request.body["by"]))
    return Done(True)


@route("GET", "/books/{id}/readers")
def readers(g: Graph, request: Request) -> list[ReaderShown]:
    rated = g.into(Book.ref(request.path["id"]), Borrowed).where(field(Borrowed.rating).exists())
    return [ReaderShown(member_shown(reader), loan.rating) for loan, reader in rated.nodes()]


@route("PUT", "/authors/{id}")
def put_author(g: Graph, request: Request) -> Done:
    g.put(Author(id=request.path["id"], name=request.body["name"]))
    return Done(True)


@route("POST", "/branches/{id}/books/{book}")
def stock(g: Graph, request: Request) -> Done:
    branch = Branch(id=request.path["id"], city=request.body["city"])
    with g.transaction() as t:
        t.put(branch)
        t.connect(Stocks, branch, request.path["book"], copies=int(request.body["copies"]))
    return Done(True)


# --- loans -------------------------------------------------------------------------------------


@route("POST", "/members/{id}/loans/{book}")
def lend(g: Graph, request: Request) -> Done:
    member, book = request.path["id"], request.path["book"]
    since, due = date.fromisoformat(request.body["since"]), date.fromisoformat(request.body["due"])
    with g.transaction() as t:
        t.connect(Borrowed, member, book, since=since, due=due)
        t.update(Member, member, loans=field(Member.loans) + 1, only_if=field(Member.loans) < 5)
    return Done(True)


@route("GET", "/members/{id}/loans")
def loans(g: Graph, request: Request) -> LoanPage:
    query = g.out(request.path["id"], Borrowed).reverse().nodes()
    page = query.page(limit=int(request.query.get("limit", "10")), after=request.query.get("after"))
    shown = [LoanShown(book_shown(book), loan.due.isoformat()) for loan, book in page]
    return LoanPage(shown, page.next)


@route("POST", "/members/{id}/loans/{book}/rating")
def rate(g: Graph, request: Request) -> Done:
    loan = g.update(Borrowed, request.path["id"], request.path["book"], rating=int(request.body["rating"]))
    return Done(loan.rating is not None)


@route("GET", "/changes")
def titles_changed(g: Graph, request: Request) -> list[Changed]:
    changes = g.changes(after=request.query.get("after"))
    return [Changed(each.kind, each.new.title) for each in changes if isinstance(each.new, Book)]
