"""The sample application: every route, and how its errors become statuses."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from examples import library_service
from examples.library_service import MODELS, ROUTES, answer, open_graph

SINCE = {"since": "2024-05-01", "due": "2024-06-01"}
REQUESTS: list[tuple[str, str, dict[str, str], int, str]] = [
    ("POST", "/members", {"id": "m1", "name": "Ann", "email": "ann@x", "city": "Oslo"}, 200, "MemberShown(id='m1'"),
    ("POST", "/members", {"id": "m2", "name": "Bob", "email": "bob@x", "city": "Oslo"}, 200, "MemberShown(id='m2'"),
    ("POST", "/members", {"id": "m3", "name": "Eve", "email": "bob@x"}, 409, "already_exists"),
    ("GET", "/members/m1", {}, 200, "name='Ann', loans=0"),
    ("GET", "/members/m9", {}, 404, "not_found"),
    ("GET", "/members/by-email/bob@x", {}, 200, "name='Bob'"),
    ("GET", "/members/by-email/no@x", {}, 404, "not_found"),
    ("GET", "/members?city=Oslo", {}, 200, "[MemberShown(id='m1', name='Ann', loans=0), MemberShown(id='m2'"),
    ("PATCH", "/members/m2", {"name": "Rob"}, 200, "name='Rob'"),
    ("PATCH", "/members/m9", {"name": "Rob"}, 404, "not_found"),
    ("POST", "/members/m1/follows/m2", {"since": "2024-05-01"}, 200, "Done(done=True)"),
    ("POST", "/members/m1/follows/m2", {"since": "2024-05-01"}, 409, "already_exists"),
    ("GET", "/members/m1/follows", {}, 200, "name='Rob'"),
    ("PUT", "/books/b1", {"title": "Dune", "year": "1965"}, 200, "BookShown(id='b1', title='Dune', year=1965)"),
    ("PUT", "/books/b2", {"title": "Duns", "year": "1970"}, 200, "title='Duns'"),
    ("PUT", "/books/b1", {"title": "Dune", "year": "1966"}, 200, "year=1966"),
    ("GET", "/books?begins=Dun", {}, 200, "[BookShown(id='b1', title='Dune', year=1966), BookShown(id='b2'"),
    ("PUT", "/authors/a1", {"name": "Frank"}, 200, "Done(done=True)"),
    ("POST", "/books/b1/authors/a1", {}, 200, "Done(done=True)"),
    ("POST", "/books/b1/authors/a2", {}, 404, "not_found"),
    ("POST", "/books/b1/tags/sand", {}, 200, "['sand']"),
    ("POST", "/books/b1/notes", {"at": "2024-05-02", "text": "long", "by": "m1"}, 200, "Done(done=True)"),
    ("POST", "/branches/n1/books/b1", {"city": "Oslo", "copies": "3"}, 200, "Done(done=True)"),
    ("GET", "/books/b1", {}, 200, "authors=['Frank'], notes=['long'], branches=['Oslo'])"),
    ("GET", "/books/b9", {}, 404, "not_found"),
    ("POST", "/members/m2/loans/b1", SINCE, 200, "Done(done=True)"),
    ("POST", "/members/m2/loans/b1", SINCE, 409, "transaction_canceled"),
    ("POST", "/members/m2/loans/b2", {**SINCE, "since": "2024-05-03"}, 200, "Done(done=True)"),
    ("POST", "/members/m2/loans/b1/rating", {"rating": "5"}, 200, "Done(done=True)"),
    ("GET", "/books/b1/readers", {}, 200, "name='Rob', loans=2), rating=5)]"),
    ("GET", "/members/m2/loans?limit=1", {}, 200, "title='Duns', year=1970), due='2024-06-01')], next='"),
    ("GET", "/members/m2/loans?after=nonsense", {}, 400, "invalid_cursor"),
    ("GET", "/members/m1/suggestions", {}, 200, "title='Duns', year=1970), readers=1)"),
    ("GET", "/changes", {}, 200, "Changed(kind='insert', title='Dune'), Changed(kind='insert', title='Duns'), "),
    ("DELETE", "/members/m1", {}, 200, "Done(done=True)"),
    ("GET", "/nowhere", {}, 404, "no_route"),
]


def test_every_route_answers() -> None:
    with open_graph() as g:
        for method, path, body, status, shown in REQUESTS:
            path, _, query = path.partition("?")
            asked = dict(part.split("=") for part in query.split("&")) if query else {}
            got, answered = answer(g, method, path, asked, body)
            assert (got, shown in repr(answered)) == (status, True), f"{method} {path}: {got} {answered!r}"
    used = {(method, path) for method, path, *_ in REQUESTS}
    for method, pattern, function in ROUTES:
        assert any(method == one and pattern.fullmatch(path.partition("?")[0]) for one, path in used), function


def test_it_has_the_size_of_a_service() -> None:
    tree = ast.parse(Path(library_service.__file__).read_text())
    routes = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.decorator_list]
    assert len(routes) == len(ROUTES) >= 17
    assert len(MODELS) >= 7


def test_the_guide_has_its_numbers() -> None:
    """What type checkers find in it is counted in `tests/types/test_types.py`."""
    text = Path(library_service.__file__).read_text()
    names = [each.id for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name)]
    counted = {"lines": len(text.splitlines()), "casts": names.count("cast"), "`Any`": names.count("Any")}
    guide = (Path(library_service.__file__).parent.parent / "docs" / "guide.md").read_text()
    rows = re.findall(r"^\| (lines|casts|`Any`) \| \d+ \| (\d+) \|$", guide, re.MULTILINE)
    assert {name: int(now) for name, now in rows} == counted
