"""Computed fields that are stored: found, filtered, sorted and counted by, and true after every change."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import ConfigDict, Field, computed_field

from adjoin import (
    AdjacencyList,
    Count,
    Edge,
    Graph,
    Indexed,
    InvalidItem,
    InvalidModel,
    InvalidValue,
    MaterializedGraph,
    MigrationDue,
    Node,
    NotRead,
    Stored,
    Sum,
    Unique,
    Version,
    field,
)
from tests.verbs.conftest import Everywhere


class Person(Node):
    model_config = ConfigDict(extra="allow")
    id: str
    first: str
    last: str = ""
    visits: int = 0

    @computed_field(alias="FullName")  # type: ignore[prop-decorator]
    @property
    def full_name(self) -> Annotated[str, Indexed()]:
        return f"{self.first} {self.last}".strip()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def handle(self) -> Annotated[str, Unique()]:
        return self.first.lower()

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def length(self) -> Annotated[int | None, Stored()]:
        return len(self.last) or None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def shown(self) -> str:
        return f"<{self.first}>"


class Shop(Node):
    id: str
    sold: Annotated[Decimal, Sum("Sells", field="worth")] = Decimal(0)


class Sells(Edge[Shop, Person], order="worth"):
    price: Decimal
    pieces: int = 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def worth(self) -> Annotated[Decimal, Stored()]:
        return self.price * self.pieces


MODELS: list[Any] = [Person, Shop, Sells]


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    return everywhere(MODELS)


def test_they_are_stored_and_found(g: Any) -> None:
    ann = Person(id="a", first="Ann", last="Lee")
    g.put(ann)
    g.put_many([Person(id="b", first="Ben"), Person(id="c", first="Cleo", last="Abt")])
    assert g.get(Person, "a") == ann
    assert g.get(Person, "a").model_extra == {}
    assert [each.id for each in g.find(Person, field("full_name").begins_with("Ann"))] == ["a"]
    assert [each.id for each in g.find(Person, field("full_name") >= "B")] == ["b", "c"]
    assert [each.id for each in g.scan(Person).where(field("length") == 3)] in (["a", "c"], ["c", "a"])
    assert [each.id for each in g.scan(Person).where(~field("length").exists())] == ["b"]
    assert g.get(Person, handle="cleo").id == "c"


def test_they_stay_true_when_fields_change(g: Any) -> None:
    g.put(Person(id="a", first="Ann", last="Lee"))
    changed = g.update(Person, "a", last="Zoe")
    assert (changed.full_name, changed.length) == ("Ann Zoe", 3)
    assert [each.id for each in g.find(Person, field("full_name") == "Ann Zoe")] == ["a"]
    assert list(g.find(Person, field("full_name") == "Ann Lee")) == []
    assert g.update(Person, "a", first="Amy", last="").length is None
    assert [each.id for each in g.scan(Person).where(~field("length").exists())] == ["a"]
    assert (g.get(Person, handle="ann"), g.get(Person, handle="amy").id) == (None, "a")
    assert g.upsert(Person, "a", first="Amy", last="Xu", visits=field("visits") + 2).full_name == "Amy Xu"
    assert g.upsert(Person, "b", first="Bo").full_name == "Bo"
    with g.transaction() as t:
        t.update(Person, "a", last="Yu")
        t.upsert(Person, "b", first="Bo", last="Li")
    assert [each.full_name for each in g.find(Person, field("full_name") >= "A")] == ["Amy Yu", "Bo Li"]


class Parcel(Node):
    id: str
    width: int
    depth: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def area(self) -> Annotated[int, Stored()]:
        return self.width * self.depth


def test_what_they_cost(everywhere: Everywhere) -> None:
    """A change reads first, and writes on condition that what it read is still there."""
    g = everywhere([Parcel])
    calls: list[tuple[Any, int]] = [
        (lambda: g.put(Parcel(id="a", width=2, depth=3)), 1),
        (lambda: g.get(Parcel, "a").area == 6, 1),
        (lambda: g.update(Parcel, "a", width=5).area == 15, 2),
        (lambda: g.update(Parcel, "a", field("depth") + 1, only_if=field("area") == 15).area == 20, 2),
        (lambda: g.upsert(Parcel, "a", width=1, depth=7).area == 7, 2),
        (lambda: g.upsert(Parcel, "b", width=2, depth=2).area == 4, 2),
        (lambda: [each.id for each in g.scan(Parcel, segments=1).where(field("area") < 5)] == ["b"], 1),
    ]
    for call, requests in calls:
        with g.meter() as meter:
            assert call() is not False
        assert meter.requests == requests


def test_an_assigned_field_counts_when_it_is_put(g: Any) -> None:
    ann = Person(id="a", first="Ann", last="Lee")
    assert ann.length == 3
    ann.last = "Zhao"
    g.put(ann)
    assert [each.id for each in g.scan(Person).where(field("length") == 4)] == ["a"]
    assert g.get(Person, "a").length == 4


def test_edges_are_sorted_and_added_up_by_them(g: Any) -> None:
    g.put_many([Shop(id="s"), *(Person(id=each, first=each) for each in "abc")])
    g.maintain(once=True)
    g.connect(Sells, "s", "a", price=Decimal("1.5"), pieces=4)
    g.connect(Sells, "s", "b", price=Decimal(2))
    g.connect(Sells, "s", "c", price=Decimal(1), pieces=3)
    assert [edge.target for edge in g.out(Shop.ref("s"), Sells)] == ["b", "c", "a"]
    assert [edge.target for edge in g.out(Shop.ref("s"), Sells).between(3, None)] == ["c", "a"]
    g.maintain(once=True)
    assert g.get(Shop, "s").sold == 11
    assert g.update(Sells, "s", "b", pieces=5).worth == 10
    assert [edge.target for edge in g.out(Shop.ref("s"), Sells)] == ["c", "a", "b"]
    g.maintain(once=True)
    assert g.get(Shop, "s").sold == 19


def test_nobody_else_sets_them(g: Any) -> None:
    g.put(Person(id="a", first="Ann"))
    with pytest.raises(InvalidValue, match=r"is computed by its class; change the fields that it is computed from"):
        g.update(Person, "a", full_name="x")
    with pytest.raises(InvalidValue, match=r"is computed by its class"):
        g.upsert(Person, "a", first="x", length=3)
    with pytest.raises(InvalidValue, match=r"is computed by its class"), g.transaction() as t:
        t.update(Person, "a", handle="x")


class Plain(Node):
    id: str
    first: str = ""
    last: str = ""


class AsStored(Node, label="PLAIN"):
    """What is stored of it: nothing is computed."""

    id: str
    initial: str | None = None


def with_initial() -> Any:
    class Plain(Node):
        id: str
        first: str = ""
        last: str = ""

        @computed_field  # type: ignore[prop-decorator]
        @property
        def initial(self) -> Annotated[str, Stored()]:
            return self.first[0]

    return Plain


def found(g: Graph, model: Any) -> Any:
    return g.get(model, "a")


def test_items_from_before_the_field_get_it_with_their_next_change(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Plain]) as g:
        g.put_many([Plain(id="a", first="Ann"), Plain(id="e")])
    later = with_initial()
    with Graph(tmp_path / "g.db", [later]) as g:
        assert found(g, later).initial == "A"
        g.update(later, "a", last="Lee")
        # The other item still lacks it, and a filter does not see what is computed.
        with pytest.raises(MigrationDue, match="may lack their 'initial'"):
            list(g.scan(later).where(field("initial") == "A"))
        with pytest.raises(InvalidItem, match=r"Plain\.initial cannot be computed: it raised IndexError"):
            g.get(later, "e")
        with pytest.raises(InvalidValue, match=r"Plain\.initial cannot be computed"):
            g.put(later(id="f"))
        with pytest.raises(InvalidValue, match=r"Plain\.initial cannot be computed"):
            g.update(later, "a", first="")
        assert found(g, later).first == "Ann"
    with Graph(tmp_path / "g.db", [AsStored]) as g:
        assert {each.id: each.initial for each in g.scan(AsStored)} == {"a": "A", "e": None}


def test_some_fields_are_read_without_them(g: Any) -> None:
    g.put(Person(id="a", first="Ann", last="Lee"))
    assert g.get(Person, "a", only=["first", "last"]).full_name == "Ann Lee"
    with pytest.raises(InvalidValue, match=r"Person\.full_name is computed; name the fields that it is computed from"):
        g.get(Person, "a", only=["full_name"])


def test_what_cannot_be_computed_is_refused() -> None:
    class Counted(Node):
        id: str

        @computed_field  # type: ignore[prop-decorator]
        @property
        def version(self) -> Annotated[int, Version(), Stored()]:
            return 1

    class Ruled(Node):
        id: str

        @computed_field  # type: ignore[prop-decorator]
        @property
        def sold(self) -> Annotated[int, Count("Sells"), Stored()]:
            return 1

    class Keyed(Edge[Plain, Plain], key=("both",)):
        @computed_field  # type: ignore[prop-decorator]
        @property
        def both(self) -> Annotated[str, Stored()]:
            return "x"

    class Twice(Node):
        id: str
        name: str = Field(alias="Name")

        @computed_field(alias="Name")  # type: ignore[prop-decorator]
        @property
        def other(self) -> Annotated[str, Stored()]:
            return self.name

    for model, message in (
        (Counted, r"Counted\.version is computed by its class, so it cannot be marked Version"),
        (Ruled, r"Ruled\.sold is computed by its class, so it cannot be marked Count"),
        (Keyed, "key= of Keyed names 'both', which the class computes"),
        (Twice, r"Twice\.name and Twice\.other are both stored as 'Name'"),
    ):
        with pytest.raises(InvalidModel, match=message):
            Graph(":memory:", [Plain, model])


class Follower(Node):
    id: str
    first: str = "x"
    followed: Annotated[int, Count("Follow")] = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def level(self) -> Annotated[int, Indexed()]:
        return self.followed // 10


class Follow(Edge[Follower, Follower]):
    pass


class Friend(Edge[Plain, Plain], symmetric=True):
    since: int = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def both(self) -> Annotated[str, Stored()]:
        return f"{self.source}-{self.target}"


class Steady(Node):
    id: str
    first: str = "x"
    followed: Annotated[int, Count("Follows")] = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def initial(self) -> Annotated[str, Indexed()]:
        return self.first[0]


class Follows(Edge[Steady, Steady]):
    pass


def test_what_changes_without_the_class_is_no_base_for_them() -> None:
    with (
        Graph(":memory:", [Follower, Follow]) as g,
        pytest.raises(InvalidModel, match="level is stored, and computed from one of followed: adjoin sets managed"),
    ):
        g.put(Follower(id="a"))
    of_ends = pytest.raises(InvalidModel, match="both is stored, and computed from one of source, target")
    with Graph(":memory:", [Plain, Friend]) as g, of_ends:
        g.put(Friend(source="a", target="b"))
    with Graph(":memory:", [Steady, Follows]) as g:
        g.put_many([Steady(id="a", first="Ann"), Steady(id="b"), Follows(source="a", target="b")])
        g.maintain(once=True)
        assert repr(g.get(Steady, "a")) == "Steady(id='a', first='Ann', followed=1, initial='A')"
        assert [each.id for each in g.find(Steady, field("initial") == "A")] == ["a"]


def test_an_instance_that_was_read_in_part_can_be_shown(g: Any) -> None:
    g.put(Person(id="a", first="Ann"))
    some = g.get(Person, "a", only=["visits"])
    assert repr(some) == "Person(id='a', visits=0)"
    with pytest.raises(NotRead):
        some.model_dump()


class Bare(Node, label="P"):
    id: str
    name: str


class Coloured(Node, label="P"):
    id: str
    name: Annotated[str, Indexed()]
    color: Annotated[str, Indexed()] = "red"
    tags: Annotated[list[str], Indexed(elements=True)] = ["t"]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def shout(self) -> Annotated[str, Unique()]:
        return self.name.upper()


@pytest.mark.parametrize("layout", [AdjacencyList, MaterializedGraph])
def test_a_migration_writes_what_indexes_are_made_from(tmp_path: Path, layout: Any) -> None:
    """Otherwise a delete leaves index copies and claims, and a filter misses what an index finds."""
    with Graph(tmp_path / "g.db", [Bare], layout=layout()) as g:
        g.put_many(Bare(id=each, name="n" + each) for each in "12")
    with Graph(tmp_path / "g.db", [Coloured], layout=layout()) as g:
        g.migrate(finish=True)
        assert [each.id for each in g.find(Coloured, (field("name") == "n2") & (field("color") == "red"))] == ["2"]
        assert [each.id for each in g.find(Coloured, (field("name") == "n2") & (field("shout") == "N2"))] == ["2"]
        g.delete(Coloured, "2")
        for wanted in (field("color") == "red", field("tags").contains("t")):
            assert [each.id for each in g.find(Coloured, wanted)] == ["1"]
        g.add(Coloured(id="3", name="n2"))
        assert list(g.verify().findings) == []
