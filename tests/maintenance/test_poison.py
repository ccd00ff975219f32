"""What can never be applied is set aside with its reason, and what cannot be applied now comes again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import field_validator
from pydantic_core import core_schema

from adjoin import AccessDenied, Edge, Graph, Node, ServiceUnreachable, Throttled
from adjoin.aggregates import Copy, Count, Latest, Max, Sum, Top
from adjoin.plans.maintenance import stream
from adjoin.plans.maintenance.report import MaintenanceReport
from adjoin.requests import BatchGet, Delete, Put, Query, Request, TransactWrite, Update
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore
from tests.maintenance.simulation import stored


class Shelf(Node):
    id: int
    books: Annotated[int, Count("Holds")] = 0
    pages: Annotated[int, Sum("Holds", field="pages")] = 0
    longest: Annotated[int | None, Max("Holds", field="pages")] = None
    titles: Annotated[list[str], Top("Holds", field="title", k=900)] = []


class Book(Node):
    id: int
    author: str = ""
    shelves: Annotated[int, Count("Holds")] = 0


class Holds(Edge[Shelf, Book]):
    title: str = ""
    pages: int = 0
    author: Annotated[str, Copy("target.author")] = ""

    @field_validator("pages")
    @classmethod
    def _strange(cls, value: int) -> int:
        if value == 1313:
            raise ZeroDivisionError("nobody expects this")
        return value


MODELS: list[type[Any]] = [Shelf, Book, Holds]


class Faulty(FaultyStore):
    """Refuses some requests with an error of one's choice."""

    error: Exception | None = None
    where = ""
    seen: list[Request]

    def _one(self, request: Request) -> Any:
        self.seen.append(request)
        if self.error is not None and self.where in repr(request) and isinstance(request, TransactWrite | Update):
            raise self.error
        return super()._one(request)


@pytest.fixture
def store() -> Iterator[Faulty]:
    faulty = Faulty(SQLiteStore(":memory:"))
    faulty.seen = []
    yield faulty
    faulty.close()


@pytest.fixture
def g(store: Faulty) -> Graph:
    return Graph(store, MODELS)


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many changes are read and applied together: one page, so that few make several readings."""
    page = 1000
    monkeypatch.setattr(stream, "TOGETHER", page)
    return page


def records(g: Graph) -> list[dict[str, Any]]:
    return [item for item in stored(g) if item["PK"]["S"] == "#=UNAPPLIED"]


def write(g: Graph, item: dict[str, Any]) -> None:
    """As another program would, that knows nothing of the classes."""
    g._store.execute((Put("adjoin", item),))


def item(partition: str, sort: str, **attributes: Any) -> dict[str, Any]:
    return {"PK": {"S": partition}, "SK": {"S": sort}, **attributes}


def stuck(g: Graph) -> None:
    """An edge that has no room for what it is to copy, as the next change says."""
    g.put_many([Shelf(id=1), Book(id=1), Holds(source=1, target=1, title="x" * 409_000)])
    g.maintain(once=True)
    g.update(Book, 1, author="Ann" * 400)


def shelf(g: Graph, id: int) -> Shelf:
    found = g.get(Shelf, id)
    assert found is not None
    return found


@pytest.mark.parametrize(("partition", "sort"), [("SHELF#1", "HOLDS#BOOK#seven"), ("SHELF#first", "HOLDS#BOOK#7")])
def test_an_item_whose_key_spells_no_id_is_nobodys(g: Graph, partition: str, sort: str) -> None:
    g.put(Shelf(id=1))
    write(g, item(partition, sort))
    g.put_many(Holds(source=1, target=number, pages=1) for number in range(20))
    assert g.maintain(once=True).set_aside == ()
    assert records(g) == []
    assert (shelf(g, 1).books, shelf(g, 1).pages) == (20, 20)
    write(g, item(partition, sort, pages={"N": "5"}))
    assert g.maintain(once=True).set_aside == ()
    assert shelf(g, 1).books == 20


def test_what_cannot_be_applied_is_recorded_and_told(g: Graph, caplog: pytest.LogCaptureFixture) -> None:
    stuck(g)
    with caplog.at_level(logging.WARNING, "adjoin.maintain"):
        (aside,) = g.maintain(once=True).set_aside
    assert (aside.rule, aside.edge) == ("", {"PK": {"S": "SHELF#1"}, "SK": {"S": "HOLDS#BOOK#1"}})
    (record,) = records(g)
    assert record["item"] == {"M": aside.edge}
    assert record["reason"] == {"S": aside.reason}
    assert "HOLDS#BOOK#1" in caplog.text
    assert aside.reason in caplog.text
    g.disconnect(Holds, 1, 1)
    assert g.maintain(once=True).set_aside == ()
    assert records(g) == []


def test_what_the_classes_themselves_raise(g: Graph) -> None:
    g.put(Shelf(id=1))
    write(g, item("SHELF#1", "HOLDS#BOOK#7", pages={"N": "1313"}))
    g.put(Holds(source=1, target=2, pages=5))
    report = g.maintain(once=True)
    assert {each.reason for each in report.set_aside} == {
        "the stored item (PK='SHELF#1', SK='HOLDS#BOOK#7') is not a valid Holds: its validators raised "
        "ZeroDivisionError: nobody expects this; correct the item or the class"
    }
    assert shelf(g, 1).pages == 5
    write(g, item("SHELF#1", "HOLDS#BOOK#7", pages={"N": "14"}))
    assert g.maintain(once=True).set_aside == ()
    assert (shelf(g, 1).pages, shelf(g, 1).books) == (19, 2)
    assert not [each for each in stored(g) if "reason" in each]


class Odd(str):
    """An id of a type of its own, whose validator is as odd as it likes."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        def checked(value: str) -> str:
            if value == "13":
                raise LookupError("no such number")
            return value

        return core_schema.no_info_after_validator_function(checked, core_schema.str_schema())


class Hook(Node):
    id: Odd
    hats: Annotated[int, Count("Hangs")] = 0


class Hat(Node):
    id: Odd


class Hangs(Edge[Hook, Hat]):
    pass


def test_what_the_types_of_ids_raise() -> None:
    with Graph(":memory:", [Hook, Hat, Hangs]) as g:
        g.put_many([Hook(id="1"), Hangs(source="1", target="2")])
        write(g, item("HOOK#1", "HANGS#HAT#13"))
        (aside,) = g.maintain(once=True).set_aside
        assert aside.reason == "'13' does not fit Hat.id: its validators raised LookupError: no such number"
        assert g.get(Hook, "1") == Hook(id="1", hats=1)


def test_a_fault_of_our_own_is_raised_and_nothing_is_set_aside(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could tell what it means for the change, so that it is no reason to give one up."""
    ends = g._layout.ends

    def odd(kind: Any, edge: Any) -> Any:
        if edge["SK"]["S"].endswith("#7"):
            raise KeyError("what is this?")
        return ends(kind, edge)

    g.put(Shelf(id=1))
    g.put_many(Holds(source=1, target=number, pages=1) for number in range(20))
    with monkeypatch.context() as patch:
        patch.setattr(g._layout, "ends", odd)
        with pytest.raises(KeyError, match="what is this"):
            g.maintain(once=True)
    assert records(g) == []
    assert g.maintain(once=True).set_aside == ()
    assert shelf(g, 1).books == 20


def test_what_is_set_aside_and_corrected_is_taken_back_by_the_same_maintainer(g: Graph) -> None:
    stuck(g)
    looks = 0

    def look(report: MaintenanceReport) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            assert len(records(g)) == 1
            g.disconnect(Holds, 1, 1)

    g.maintain(once=True, progress=look)
    assert looks > 1
    assert records(g) == []


def test_what_is_set_aside_and_goes_in_the_same_reading_is_taken_back(g: Graph, together: int) -> None:
    stuck(g)
    g.put_many(Holds(source=1, target=2 + number) for number in range(together))
    g.disconnect(Holds, 1, 1)
    g.maintain(once=True)
    assert records(g) == []


def test_a_node_without_room_for_its_values(g: Graph) -> None:
    g.put(Shelf(id=1))
    titles = [f"{number:03}" + "x" * 580 for number in range(800)]
    g.put_many(Holds(source=1, target=number, title=title, pages=number) for number, title in enumerate(titles))
    report = g.maintain(once=True)
    aside = report.set_aside[-1]
    assert "no room for" in aside.reason
    assert "SHELF.titles" in aside.reason
    assert aside.edge == {"PK": {"S": "SHELF#1"}, "SK": {"S": "#META"}}
    (record,) = records(g)
    assert record["item"] == {"M": aside.edge}
    found = shelf(g, 1)
    assert (found.books, found.titles) == (800, [])
    # Its own change by this does not take it back, and less makes room for all of it.
    g.maintain(once=True)
    assert len(records(g)) == 1
    for number in range(400, 800):
        g.disconnect(Holds, 1, number)
    # It may have no room yet where a part of the changes ends.
    g.maintain(once=True)
    assert g.maintain(once=True).set_aside == ()
    found = shelf(g, 1)
    # A page of ranks ends before so many.
    assert (found.books, found.longest, found.titles) == (400, 399, titles[399::-1])
    assert records(g) == []


class Case(Node):
    id: int
    note: str = ""
    label: Annotated[str | None, Latest("Bears", field="text", by="day")] = None


class Bears(Edge[Case, Book]):
    text: str = ""
    day: int = 0


def test_a_node_that_gets_room_again_has_its_values() -> None:
    """Beside one that has always had it; the record and what the node says about it go together."""
    with Graph(":memory:", [Case, Book, Bears, Holds, Shelf]) as g:
        g.put_many([Case(id=1, note="x" * 409_300), Case(id=2)])
        g.maintain(once=True)
        g.put_many(Bears(source=number, target=1, text="y" * 500) for number in (1, 2))
        (aside,) = g.maintain(once=True).set_aside
        assert "no room for CASE.label, which are left out" in aside.reason
        assert [record["item"]["M"]["PK"]["S"] for record in records(g)] == ["CASE#1"]
        assert [case and case.label for case in g.get_many(Case, [1, 2])] == [None, "y" * 500]
        (full,) = (item for item in stored(g) if "adjoin:full" in item)
        assert full["adjoin:full"] == {"SS": ["CASE.label"]}
        assert "adjoin:stale" not in full
        g.update(Case, 1, note="")
        g.put(Bears(source=1, target=2, day=1, text="z"))
        assert g.maintain(once=True).set_aside == ()
        assert g.get(Case, 1) == Case(id=1, label="z")
        assert [item for item in stored(g) if {"adjoin:full", "adjoin:stale"} & item.keys()] == records(g) == []


def test_an_edge_without_room_for_its_copy_is_recorded(g: Graph) -> None:
    g.put_many([Book(id=1), Shelf(id=1), Holds(source=1, target=1, title="x" * 409_000)])
    g.maintain(once=True)
    g.update(Book, 1, author="Ann" * 400)
    (aside,) = g.maintain(once=True).set_aside
    why = "Item size to update has exceeded the maximum allowed size: 410271 bytes of 409600 at key "
    assert aside.reason.startswith(f"the copied fields of this Holds are not up to date: {why}")
    assert [record["item"]["M"]["SK"]["S"] for record in records(g)] == ["HOLDS#BOOK#1"]
    g.put(Holds(source=1, target=1, title="short"))
    g.maintain(once=True)
    assert records(g) == []


def test_what_is_nobodys_keeps_no_copy_from_the_others(g: Graph) -> None:
    g.put_many([Book(id=1, author="Ann"), Shelf(id=1), Holds(source=1, target=1)])
    write(g, item("SHELF#1", "HOLDS#BOOK#x", GSI1PK={"S": "BOOK#1"}, GSI1SK={"S": "HOLDS#SHELF#0"}))
    assert g.maintain(once=True).set_aside == ()
    g.update(Book, 1, author="Bea")
    assert g.maintain(once=True).set_aside == ()
    edge = g.edge(Holds, 1, 1)
    assert edge is not None
    assert edge.author == "Bea"


@pytest.mark.parametrize("error", [Throttled("slow down"), ServiceUnreachable("nobody there")])
def test_what_fails_now_comes_again(g: Graph, store: Faulty, error: Exception, together: int) -> None:
    count = together + 10
    g.put_many(Shelf(id=number) for number in range(count))
    g.maintain(once=True)
    for number in range(count):
        g.put(Holds(source=number, target=1))
    store.error, store.where = error, f"SHELF#{count - 1}'"
    with pytest.raises(type(error)):
        g.maintain(once=True)
    assert shelf(g, 0).books == 1
    store.error = None
    report = g.maintain(once=True)
    assert report.set_aside == ()
    # What was done before it failed did not come again, except for what it changed itself.
    assert report.changes < 4 * count
    assert [shelf(g, number).books for number in range(count)] == [1] * count


def test_what_is_about_the_table_is_raised_at_once(g: Graph, store: Faulty) -> None:
    g.put(Shelf(id=1))
    g.put_many(Holds(source=1, target=number) for number in range(50))
    store.error = AccessDenied("not you")
    with pytest.raises(AccessDenied):
        g.maintain(once=True)
    assert records(g) == []


def test_many_records_are_not_read_for_a_change_of_something_else(g: Graph, store: Faulty) -> None:
    """Neither for what was never set aside, nor for the few that were."""
    count = 25
    g.put_many([Shelf(id=1), Book(id=1000), *(Book(id=number) for number in range(count))])
    g.put_many(Holds(source=1, target=number, title="x" * 409_000) for number in range(count))
    g.put(Holds(source=1, target=1000, pages=5))
    g.maintain(once=True)
    for number in range(count):
        g.update(Book, number, author="Ann" * 400)
    g.maintain(once=True)
    assert len(records(g)) == count

    store.seen.clear()
    for pages in (6, 7):
        g.update(Holds, 1, 1000, pages=pages)
    for number in (3, 17):
        g.disconnect(Holds, 1, number)
    g.maintain(once=True)
    left = {record["item"]["M"]["SK"]["S"] for record in records(g)}
    assert left == {f"HOLDS#BOOK#{number}" for number in range(count) if number not in (3, 17)}
    assert shelf(g, 1).pages == 7
    looks = [each for each in store.seen if "#=UNAPPLIED" in repr(each) and not isinstance(each, Put | Delete)]
    query, batch = looks
    assert isinstance(query, Query)
    assert isinstance(batch, BatchGet)
    assert (query.limit, len(batch.gets)) == (20, 3)
