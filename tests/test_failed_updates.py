"""An update that fails has changed nothing: a stored item that does not fit its class is told before it is written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, create_model, field_validator, model_validator

from adjoin import (
    AdjacencyList,
    AdjoinError,
    ConditionFailed,
    Copy,
    Edge,
    Graph,
    InvalidItem,
    InvalidValue,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    field,
)
from adjoin.requests import Put
from adjoin.stores.dynamodb.protocol import Placeholders
from adjoin.stores.sqlite import SQLiteStore

Open = Callable[..., Any]


def opened(store: Any, *models: type[Any]) -> Any:
    return Graph(store, models)


class Old(Node, label="PAGE"):
    """What was written: any attributes besides a number of visits."""

    id: str
    visits: int = 0
    model_config = {"extra": "allow"}


class Size(StrEnum):
    SMALL = "s"
    LARGE = "l"


class Part(BaseModel):
    number: int


class _Page(Node):
    id: str
    visits: int = 0


class Required(_Page, label="PAGE"):
    title: str


class Typed(_Page, label="PAGE"):
    title: int = 0


class Chosen(_Page, label="PAGE"):
    title: Size | None = None


class Literally(_Page, label="PAGE"):
    title: Literal["a", "b"] = "a"


class Bounded(_Page, label="PAGE"):
    title: Annotated[Decimal, Field(ge=3, lt=5)] = Decimal(3)


class Patterned(_Page, label="PAGE"):
    title: Annotated[str, Field(pattern="^[a-z]+$")] = "a"


class Nested(_Page, label="PAGE"):
    title: Part | None = None


class Listed(_Page, label="PAGE"):
    title: list[Part] = []


class Validated(_Page, label="PAGE"):
    title: str = ""

    @field_validator("title")
    @classmethod
    def _is_short(cls, title: str) -> str:
        if len(title) > 3:
            raise ValueError("too long")
        return title


class Whole(_Page, label="PAGE"):
    title: str = ""

    @model_validator(mode="after")
    def _is_visited(self) -> Whole:
        if self.title == "secret" and self.visits >= 0:
            raise ValueError("nobody may visit a secret")
        return self


class Posted(_Page, label="PAGE"):
    title: str = ""

    def model_post_init(self, context: Any) -> None:
        if self.title == "secret":
            raise ValueError("a secret")


_MANY: dict[str, Any] = {f"field_{number}": (str, "") for number in range(60)}


class Many(create_model("_Many", __base__=_Page, **_MANY), label="PAGE"):  # type: ignore[misc, call-arg]
    """More fields than a condition has room for."""

    title: int = 0


class Claimed(_Page, label="PAGE"):
    title: int = 0
    email: Annotated[str | None, Unique()] = None


MISFITS: list[tuple[type[Any], dict[str, Any]]] = [
    (Required, {}),
    (Required, {"title": 1}),
    (Required, {"title": None}),
    (Typed, {"title": "nine"}),
    (Typed, {"title": [1]}),
    (Chosen, {"title": "m"}),
    (Chosen, {"title": 1}),
    (Literally, {"title": "c"}),
    (Bounded, {"title": 2}),
    (Bounded, {"title": 5}),
    (Bounded, {"title": "four"}),
    (Patterned, {"title": "A"}),
    (Nested, {"title": {}}),
    (Listed, {"title": [{"number": "x"}]}),
    (Validated, {"title": "long"}),
    (Whole, {"title": "secret"}),
    (Posted, {"title": "secret"}),
    (Many, {"title": "nine"}),
    (Claimed, {"title": "nine"}),
]


@pytest.fixture(params=[{}, {"type_attribute": "Kind"}], ids=["keys tell", "an attribute tells"])
def pages(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    def over(model: type[Any]) -> Graph:
        return Graph(tmp_path / "pages.db", [model], AdjacencyList(**request.param))

    return over


@pytest.mark.parametrize(("model", "stored"), MISFITS)
def test_what_does_not_fit_its_class_is_not_changed(pages: Open, model: type[Any], stored: dict[str, Any]) -> None:
    old, new = pages(Old), pages(model)
    old.put(Old(id="a", visits=5, **stored))
    before = old.get(Old, "a")
    for _ in range(3):
        with pytest.raises(InvalidItem, match="PAGE#a"):
            new.update(model, "a", visits=field("visits") + 1)
        with pytest.raises(InvalidItem, match="PAGE#a"):
            new.update(model, "a", visits=9)
    with pytest.raises((InvalidItem, TransactionCanceled)), new.transaction() as t:
        t.update(model, "a", visits=field("visits") + 1)
    assert old.get(Old, "a") == before
    assert len(list(old.changes())) == 1


FITS: list[tuple[type[Any], dict[str, Any], Any]] = [
    (Required, {"title": "x"}, "x"),
    (Typed, {}, 0),
    (Typed, {"title": 4}, 4),
    (Typed, {"title": "4"}, 4),
    (Chosen, {}, None),
    (Chosen, {"title": None}, None),
    (Chosen, {"title": "s"}, Size.SMALL),
    (Literally, {"title": "b"}, "b"),
    (Bounded, {"title": Decimal("4.9")}, Decimal("4.9")),
    (Bounded, {"title": "4.5"}, Decimal("4.5")),
    (Patterned, {"title": "abc"}, "abc"),
    (Nested, {"title": {"number": 1}}, Part(number=1)),
    (Listed, {"title": [{"number": 1}]}, [Part(number=1)]),
    (Validated, {"title": "abc"}, "abc"),
    (Whole, {"title": "open"}, "open"),
    (Posted, {"title": "open"}, "open"),
    (Many, {"title": 1}, 1),
    (Claimed, {"title": 1}, 1),
]


@pytest.mark.parametrize(("model", "stored", "read"), FITS)
def test_what_a_class_can_read_it_can_change(pages: Open, model: type[Any], stored: dict[str, Any], read: Any) -> None:
    old, new = pages(Old), pages(model)
    old.put(Old(id="a", visits=5, **stored))
    changed = new.update(model, "a", visits=field("visits") + 1)
    assert (changed.visits, changed.title) == (6, read)
    with new.transaction() as t:
        t.update(model, "a", visits=field("visits") + 1)
    assert new.get(model, "a").visits == 7


class Plain(Node):
    id: str
    name: str
    at: dt.datetime
    price: Decimal
    level: int = 0
    size: Size = Size.SMALL
    day: dt.date | None = None
    code: UUID | None = None
    tags: set[str] = set()
    notes: list[str] = []
    limit: Annotated[int, Field(ge=0)] = 0


def test_a_plain_class_is_changed_in_one_request_without_a_look() -> None:
    g = Graph(":memory:", [Plain])
    g.put(Plain(id="a", name="x", at=dt.datetime(2024, 1, 1), price=Decimal(1), tags={"t"}, notes=["n"]))
    for changes in (
        {"name": "y"},
        {"level": field("level") + 1},
        {"limit": field("limit") + 1},
        {"tags": field("tags").add({"u"})},
        {"notes": field("notes").append("m")},
    ):
        with g.meter() as m:
            g.update(Plain, "a", **changes)
        assert (m.requests, m.rcu, m.wcu) == (1, 0, 1)


def test_a_change_that_must_not_be_is_told_by_one_request() -> None:
    """What was met tells that its fields fit, so that nothing has to be read to say why."""
    g = Graph(":memory:", [Plain])
    g.put(Plain(id="a", name="x", at=dt.datetime(2024, 1, 1), price=Decimal(1)))
    for id, error in (("a", ConditionFailed), ("b", NotFound)):
        with g.meter() as m, pytest.raises(error):
            g.update(Plain, id, only_if=field("name") == "z", level=field("level") + 1)
        assert m.requests == 1


@pytest.mark.parametrize(("change", "is_made"), [(3, True), (field("level") + 1, False)])
def test_a_value_that_does_not_fit_can_be_replaced_and_not_added_to(change: Any, is_made: bool) -> None:
    g = Graph(":memory:", [Plain])
    g.put(Plain(id="a", name="x", at=dt.datetime(2024, 1, 1), price=Decimal(1)))
    (item,) = (change.new_item or {} for change in g.changes())
    g._store.execute((Put("adjoin", {**item, "level": {"S": "high"}}),))
    with g.meter() as m:
        if is_made:
            assert g.update(Plain, "a", level=change).level == 3
            assert m.requests == 1
        else:
            with pytest.raises(InvalidItem, match="level"):
                g.update(Plain, "a", level=change)


@pytest.mark.parametrize("count", [10, 39, 40, 41, 60, 200])
def test_conditions_have_the_room_that_dynamodb_gives_them(count: int) -> None:
    fields: dict[str, Any] = {f"field_{number}": (str, "") for number in range(count)}
    model: Any = create_model("Wide", __base__=_Page, **fields)
    g = opened(":memory:", model)
    requests = g.explain(g.update, model, "a", visits=1).requests
    assert (len(requests) == 1) is (count < 40)
    written = Placeholders()
    assert len(written.condition(requests[-1].condition)) <= 4096
    assert len(written.condition(requests[-1].condition).split()) <= 300 * 2


def test_what_conditions_cannot_tell_is_read_first_unless_it_is_set() -> None:
    g = opened(":memory:", Patterned, Plain)
    g.put(Patterned(id="a"))
    with g.meter() as m:
        g.update(Patterned, "a", visits=field("visits") + 1)
    assert (m.requests, m.rcu, m.wcu) == (2, 1, 1)
    with g.meter() as m:
        g.update(Patterned, "a", title="b")
    assert m.requests == 1
    assert [type(request).__name__ for request in g.explain(g.update, Patterned, "a", visits=1).requests] == [
        "Get",
        "Update",
    ]


def test_a_change_that_the_class_would_refuse_is_refused_before_it_is_written() -> None:
    g = opened(":memory:", Whole, Plain)
    g.put(Whole(id="a", title="open"))
    for changes in ({"title": "secret"}, {"title": "secret", "visits": 1}):
        with pytest.raises(InvalidValue, match="nobody may visit"):
            g.update(Whole, "a", **changes)
    assert g.get(Whole, "a").title == "open"


class Both(Node):
    id: str
    whole: int = 0
    limited: Annotated[int, Field(le=10)] = 0
    share: Decimal = Decimal("0.5")
    size: Literal[1, 2] = 1


@pytest.mark.parametrize(
    "changes",
    [
        {"whole": field("share") + 1},
        {"limited": field("whole") + 11},
        {"size": field("size") + 2},
    ],
)
def test_a_value_made_of_another_field_must_fit(changes: dict[str, Any]) -> None:
    g = Graph(":memory:", [Both])
    g.put(Both(id="a"))
    with pytest.raises(AdjoinError):
        g.update(Both, "a", **changes)
    assert g.get(Both, "a") == Both(id="a")
    assert g.update(Both, "a", limited=field("whole") + 10).limited == 10


def test_somebody_who_changes_what_was_read_first_is_not_overrun() -> None:
    store = SQLiteStore(":memory:")
    other = opened(store, Old)
    g = Graph(Between(store, lambda: other.put(Old(id="a", visits=5, title="LOUD"))), [Patterned])
    other.put(Old(id="a", title="ok"))
    with pytest.raises(InvalidItem):
        g.update(Patterned, "a", visits=field("visits") + 1)
    assert other.get(Old, "a").visits == 5


class Between:
    """A store in which something happens after the first read."""

    creates_tables = True

    def __init__(self, store: SQLiteStore, happens: Callable[[], None]) -> None:
        self._store, self._happens, self._is_over = store, happens, False

    def execute(self, requests: Any) -> Any:
        responses = self._store.execute(requests)
        # The first read of an item, and not of what is declared, which opening a graph reads.
        if not self._is_over and type(requests[0]).__name__ == "Get" and "#=RECORDS" not in repr(requests[0]):
            self._is_over = True
            self._happens()
        return responses

    def close(self) -> None:
        self._store.close()


# --- edges ---------------------------------------------------------------------------------------


class Loose(Edge[Old, Old], label="LINK", symmetric=True):
    clicks: int = 0
    model_config = {"extra": "allow"}


class Tight(Edge[Old, Old], label="LINK", symmetric=True):
    clicks: int = 0
    since: int


def test_a_symmetric_edge_that_does_not_fit_is_not_changed() -> None:
    store = SQLiteStore(":memory:")
    old, new = opened(store, Old, Loose), opened(store, Old, Tight)
    old.put(Loose(source="a", target="b"))
    for ends in (("a", "b"), ("b", "a")):
        with pytest.raises(InvalidItem):
            new.update(Tight, *ends, clicks=field("clicks") + 1)
    assert old.edge(Loose, "b", "a").clicks == 0
    old.put(Loose(source="a", target="b", since=7))
    with new.meter() as m:
        changed = new.update(Tight, "b", "a", clicks=field("clicks") + 1)
    assert changed == Tight(source="b", target="a", clicks=1, since=7)
    assert (m.requests, m.rcu, m.wcu) == (2, 1, 4)
    assert new.edge(Tight, "a", "b").clicks == new.edge(Tight, "b", "a").clicks == 1


class Shop(Node):
    id: str
    name: str


class Sold(Edge[Shop, Shop]):
    name: Annotated[str, Field(max_length=3), Copy("target.name")] = ""


def test_an_edge_whose_copies_do_not_fit_is_not_connected() -> None:
    g = Graph(":memory:", [Shop, Sold])
    g.put_many([Shop(id="a", name="x"), Shop(id="b", name="long")])
    for write in (lambda: g.connect(Sold, "a", "b"), lambda: g.put(Sold(source="a", target="b"))):
        with pytest.raises(InvalidValue, match="at most 3"):
            write()
    with pytest.raises(InvalidValue, match="at most 3"):
        g.put_many([Sold(source="a", target="b")])
    with pytest.raises(InvalidValue, match="at most 3"), g.transaction() as t:
        t.connect(Sold, "a", "b")
    assert list(g.out("a", Sold)) == []


# --- what no condition tells ---------------------------------------------------------------------


class Count(_Page, label="PAGE"):
    title: int = 0
    at: dt.date | None = None


@pytest.mark.parametrize(("stored", "shown"), [({"title": Decimal("1.5")}, Decimal("1.5")), ({"at": "soon"}, 0)])
def test_a_change_that_was_made_does_not_fail(stored: dict[str, Any], shown: Any) -> None:
    store = SQLiteStore(":memory:")
    old, new = Graph(store, [Old]), Graph(store, [Count])
    old.put(Old(id="a", **stored))
    changed = new.update(Count, "a", visits=field("visits") + 1)
    assert isinstance(changed, Count)
    assert (changed.visits, changed.title, changed.at) == (1, shown, stored.get("at"))
    with pytest.raises(InvalidItem):
        new.get(Count, "a")


def test_an_item_of_another_type_is_not_changed() -> None:
    store = SQLiteStore(":memory:")
    layout = AdjacencyList(type_attribute="Kind")
    g = Graph(store, [Shop], layout)
    g.put(Shop(id="a", name="x"))
    (item,) = (change.new_item or {} for change in g.changes())
    store.execute((Put("adjoin", {**item, "Kind": {"S": "OTHER"}}),))
    with pytest.raises(NotFound, match="another type"):
        g.update(Shop, "a", name="y")
    assert len(list(g.changes())) == 2
