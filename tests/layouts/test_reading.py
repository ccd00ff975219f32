"""What items are read as: whole, in part, as far as they fit, or as nothing because their keys are somebody else's."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import ConfigDict, StringConstraints, field_validator

from adjoin import (
    AdjacencyList,
    Child,
    Edge,
    Graph,
    Index,
    InvalidItem,
    InvalidKey,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    Ranked,
    Ref,
    Top,
    Version,
)
from adjoin.layouts.adjacency_reader import is_same
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.model import AS_READ, UNEXPLAINED, WHOSE
from adjoin.schema import Schema
from adjoin.values import Item
from tests.layouts.designs import (
    DESIGNS,
    Alarm,
    Animal,
    Cat,
    Component,
    Contains,
    Dog,
    Event,
    Has,
    Needs,
    Order,
    Remark,
)


def decoded(layout: BoundLayout, entity: Any, *names: str) -> Any:
    """The entity with only some fields, read from its first item."""
    item, *_ = layout.items(entity)
    return layout.decode_some(kind_of(layout, entity), item, names)


def kind_of(layout: BoundLayout, entity: Any) -> Any:
    return layout.schema.edge(type(entity)) if isinstance(entity, Edge) else layout.schema.node(type(entity))


@pytest.mark.parametrize(
    ("design", "entity", "names", "values"),
    [
        ("an adjacency list", Remark(parent=("b", 3), at=5, text="t"), (), {"parent": ("b", 3), "at": 5}),
        (
            "an adjacency list",
            Remark(parent=("b", 3), at=5, text="t"),
            ("text",),
            {"parent": ("b", 3), "at": 5, "text": "t"},
        ),
        (
            "a shop whose orders share the partitions of customers",
            Contains(source=("C1", 7), target="P1", line=3, amount=4),
            ("line",),
            {"source": ("C1", 7), "target": "P1", "line": 3},
        ),
        (
            "a shop whose orders share the partitions of customers",
            Order(customer="C1", number=7, day=dt.date(2026, 5, 6)),
            ("day", "state"),
            {"customer": "C1", "number": 7, "day": dt.date(2026, 5, 6), "state": None},
        ),
        (
            "ends that only attributes tell",
            Alarm(source="d", target="o", at=dt.datetime(2026, 1, 2), grade="high"),
            ("grade",),
            {"source": "d", "target": "o", "grade": "high"},
        ),
        (
            "days in partition keys, and shards",
            Event(device="d", at=dt.datetime(2026, 1, 2, 3), level=4),
            (),
            {"device": "d", "at": dt.datetime(2026, 1, 2, 3)},
        ),
        ("a family, and ends of several classes", Cat(id="c", lives=3), ("lives",), {"id": "c", "lives": 3}),
        (
            "a family, and ends of several classes",
            Has(source="o", target=Ref(Animal, "c"), since=3),
            ("since",),
            {"source": "o", "target": Ref(Animal, "c"), "since": 3},
        ),
    ],
)
def test_an_entity_with_some_of_its_fields(design: str, entity: Any, names: tuple[str, ...], values: Any) -> None:
    found = decoded(DESIGNS[design].bound(), entity, *names)
    assert type(found) is type(entity)
    assert {name: value for name, value in vars(found).items() if name in type(entity).model_fields} == values


def test_a_class_of_a_family_reads_its_own_items_in_part() -> None:
    layout = DESIGNS["a family, and ends of several classes"].bound()
    (item,) = layout.items(Dog(id="d", barks=2))
    animal, dog, cat = (layout.schema.node(model) for model in (Animal, Dog, Cat))
    assert type(layout.decode_some(animal, item, ())) is type(layout.decode_some(dog, item, ("barks",))) is Dog
    assert layout.decode_some(cat, item, ()) is None
    assert layout.decode(cat, item) is None
    assert type(layout.decode_as_far(animal, item)) is Dog


@pytest.mark.parametrize("design", [name for name in DESIGNS if name != "keys that are numbers"])
def test_no_class_reads_what_is_anothers(design: str) -> None:
    layout = DESIGNS[design].bound()
    for entity in DESIGNS[design].entities:
        try:
            item, *_ = layout.items(entity)
        except InvalidKey:
            continue
        own = kind_of(layout, entity)
        for kind in layout.schema.types:
            if kind.whole is own.whole:
                continue
            assert layout.decode(kind, item) is layout.decode_as_far(kind, item) is None
            assert layout.decode_some(kind, item, ()) is None
        assert vars(layout.decode_as_far(own, item)) == vars(layout.decode(own, item))


def test_a_node_is_no_edge_that_could_have_its_key() -> None:
    """Also if only some fields of edges are read, which no reader of whole edges looks at."""
    design = DESIGNS["edges without labels, whose keys can be those of nodes"]
    with Graph(":memory:", design.models, design.layout) as g:
        edge = Needs(source="x", target="y", pieces=2)
        g.put_many([Component(id="x"), Component(id="y"), edge])
        for needed in (
            g.out("x", Needs),
            g.out("x", Needs).only("pieces"),
            g.scan(Needs),
            g.scan(Needs).only("pieces"),
        ):
            assert list(needed) == [edge]
        assert g.out("x", Needs).count() == 1


# --- ids that validators change ----------------------------------------------------------------


class Lower(Node):
    id: Annotated[str, StringConstraints(to_lower=True)]
    name: str = ""


class Numbered(Node):
    id: int


class Trimmed(Node, key=("left", "right")):
    left: str
    right: str

    @field_validator("right")
    @classmethod
    def _trimmed(cls, text: str) -> str:
        return text.strip()


class Knows(Edge[Lower, Lower]):
    pass


class Holds(Edge[Trimmed, Lower]):
    pass


LAYOUTS: list[Layout] = [AdjacencyList(), MaterializedGraph(), AdjacencyList(type_attribute="type")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_key_that_a_validator_would_change_is_nobodys(layout: Layout) -> None:
    bound = layout.bind(Schema([Lower, Trimmed, Knows, Holds]))
    names = bound.start_names(None)
    for entity, change in (
        (Lower(id="abc"), ("abc", "aBc")),
        (Trimmed(left="abc", right="x"), ("x", "%20x")),
        (Knows(source="abc", target="def"), ("abc", "aBc")),
        (Knows(source="abc", target="def"), ("def", "dEf")),
        (Holds(source=("abc", "x"), target="def"), ("def", "dEf")),
    ):
        (item,) = bound.items(entity)
        assert bound.read(item) == entity
        changed: Item = {
            name: {"S": value["S"].replace(*change)} if name in names else value for name, value in item.items()
        }
        assert changed != item
        assert bound.read(changed) is None, entity


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a", "a", True),
        ("a", "b", False),
        (1, 1, True),
        (1, 2, False),
        ("a", None, True),
        ((1, "a"), (1, "a"), True),
        ((1, "a"), (1, "b"), False),
        ((1, "a"), (1,), False),
        ((1, "a"), None, True),
        (((1, 2), 3), ((1, 2), 3), True),
        (((1, 2), 3), ((1, 4), 3), False),
        (b"a", b"a", True),
        (b"a", b"b", False),
        (UUID(int=1), UUID(int=1), True),
        (UUID(int=1), UUID(int=2), False),
        (Ref(Lower, "a"), Ref(Lower, "a"), True),
        (Ref(Lower, "a"), Ref(Lower, "b"), False),
        (Ref(Lower, "a"), Ref(Trimmed, "a"), False),
        (Ref(Lower, "a"), "a", False),
        (Ref(Lower, "a"), None, True),
    ],
)
def test_whether_an_id_is_that_of_a_key(one: Any, other: Any, same: bool) -> None:
    assert is_same(one, other) is same


# --- what is noted on an instance --------------------------------------------------------------


class Guarded(Node):
    id: str
    name: str = ""
    version: Annotated[int, Version()] = 0


class Open(Node):
    model_config = ConfigDict(extra="allow")
    id: str


class Likes(Edge[Lower, Guarded]):
    grade: int = 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_no_field_explains_stays_with_the_instance(layout: Layout) -> None:
    bound = layout.bind(Schema([Lower, Guarded, Open, Likes]))
    more: Item = {"more": {"N": "7"}, "adjoin:life": {"S": "x"}}
    for entity in (Lower(id="a", name="n"), Guarded(id="a"), Likes(source="a", target="b", grade=3)):
        (item,) = bound.items(entity)
        assert UNEXPLAINED not in vars(bound.read(item))
        found: Any = bound.read({**item, **more})
        assert vars(found)[UNEXPLAINED][1] == {"more": {"N": "7"}}
        (again,) = bound.items(found)
        assert again == {**item, "more": {"N": "7"}}
        assert not bound.lacks_unexplained(found)
        # Another entity is another item, in which there is nothing else.
        other = {"id": "c"} if isinstance(found, Node) else {"source": "c"}
        (fresh,) = bound.items(found.model_copy(update=other))
        assert "more" not in fresh
    opened: Any = bound.read({**bound.items(Open(id="a"))[0], **more})
    assert opened.more == 7
    assert UNEXPLAINED not in vars(opened)


def test_of_a_class_with_versions_it_is_noted_which_item_was_read() -> None:
    bound = AdjacencyList().bind(Schema([Lower, Guarded]))
    (item,) = bound.items(Guarded(id="a", version=4))
    found: Any = bound.read(item)
    assert vars(found)[AS_READ] == {WHOSE: ("a",)}
    assert AS_READ not in vars(bound.read(bound.items(Lower(id="a"))[0]))


# --- items that do not fit ---------------------------------------------------------------------


class Checked(Child[Lower], key=("at",)):
    at: int
    size: int
    tags: set[str] = set()


class Rated(Edge[Lower, Lower], key=("at",)):
    at: int
    stars: int = 0


@pytest.mark.parametrize(
    ("entity", "changes", "words", "shown"),
    [
        (Checked(parent="a", at=1, size=2), {"size": {"S": "big"}}, "size: ", {"size": "big"}),
        (Checked(parent="a", at=1, size=2), {"size": None}, "size: Field required", {"size": None}),
        (Checked(parent="a", at=1, size=2), {"tags": {"N": "1"}}, "tags: ", {"size": 2, "tags": 1}),
        (Rated(source="a", target="b", at=1), {"stars": {"S": "many"}}, "stars: ", {"source": "a", "stars": "many"}),
    ],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_does_not_fit_is_shown_as_it_is(
    layout: Layout, entity: Any, changes: dict[str, Any], words: str, shown: dict[str, Any]
) -> None:
    bound = layout.bind(Schema([Lower, Checked, Rated]))
    kind, (item,) = kind_of(bound, entity), bound.items(entity)
    stored = {name: value for name, value in {**item, **changes}.items() if value is not None}
    with pytest.raises(InvalidItem) as refused:
        bound.decode(kind, stored)
    assert words in str(refused.value)
    found: Any = bound.decode_as_far(kind, stored)
    assert {name: vars(found)[name] for name in shown} == shown
    wanted = next(iter(changes))
    with pytest.raises(InvalidItem, match=f"is not a valid {kind.name}: "):
        bound.decode_some(kind, stored, (wanted,))
    assert bound.decode_some(kind, stored, ()) is not None


# --- who is in a list, and edges at one of several nodes ---------------------------------------


class Buyer(Node):
    id: str
    largest: Annotated[list[int], Top("Bought", field="price", k=2)] = []
    whose: Annotated[list[Ranked[int]], Top("Bought", field="price", k=2)] = []


class Bought(Edge[Buyer, Numbered]):
    price: int = 0


def test_the_nodes_of_a_list_of_values_are_of_the_class_at_the_far_end() -> None:
    bound = AdjacencyList().bind(Schema([Buyer, Numbered, Bought]))
    (item,) = bound.items(Buyer(id="a"))
    values: Any = {"L": [{"L": [{"N": "7"}, {"S": "3"}]}, {"L": [{"N": "5"}, {"S": "4"}]}]}
    found: Any = bound.read({**item, "whose": values, "largest": {"L": [{"N": "7"}]}})
    assert [(each.value, each.id, each.ref) for each in found.whose] == [
        (7, 3, Numbered.ref(3)),
        (5, 4, Numbered.ref(4)),
    ]
    assert found.largest == [7]
    empty: Any = bound.read({name: value for name, value in item.items() if name != "whose"})
    assert empty.whose == []
    assert bound.decode(bound.schema.node(Buyer), {**item, "PK": {"S": "OTHER#a"}}) is None


def test_an_extra_value_has_no_name_that_the_layout_uses() -> None:
    layout = AdjacencyList(indexes=[Index("All", "APK", "ASK")], keys={Lower: Keys(indexes={"All": ("all", "{name}")})})
    bound = layout.bind(Schema([Lower, Open, Knows]))
    for name in ("PK", "GSI1PK", "APK", "ASK", "adjoin:life"):
        with pytest.raises(
            InvalidValue, match=f"^Open has an extra value '{name}', a name that its keys or fields use$"
        ):
            bound.items(Open(id="a", **{name: "x"}))
    assert bound.items(Open(id="a", more="x"))[0]["more"] == {"S": "x"}


class Friend(Edge[Lower | Guarded, Lower | Guarded], symmetric=True):
    since: int = 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_symmetric_edge_at_one_of_several_nodes(layout: Layout) -> None:
    """The key has the node at the other end as its target, whichever way the edge is read."""
    with Graph(":memory:", [Lower, Guarded, Friend], layout) as g:
        ann, bob = Lower.ref("ann"), Guarded.ref("bob")
        g.put_many([Friend(source=ann, target=bob, since=3), Friend(source=ann, target=Lower.ref("bob"))])
        one, turned = Friend(source=ann, target=bob, since=3), Friend(source=bob, target=ann, since=3)
        for found, edge in ((g.out(ann, Friend), one), (g.into(ann, Friend), turned)):
            assert list(found.within(target=bob)) == [edge]
            (some,) = found.within(target=bob).only("since")
            assert (some.source, some.target, some.since) == (edge.source, edge.target, 3)
            assert list(found.within(target=Guarded.ref("bo"))) == []
