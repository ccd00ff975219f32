"""Mistakes in declarations: each fails when the graph opens, and names the class and the field."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, create_model

from adjoin import (
    AdjacencyList,
    AdjoinError,
    Edge,
    Expires,
    Graph,
    Index,
    Indexed,
    InvalidModel,
    Keys,
    Node,
    Unique,
    Version,
)
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.model import Ref
from adjoin.schema import Schema


class Person(Node):
    id: str
    name: str = ""


class Place(Node):
    id: str


def two_classes_with_one_label() -> list[Any]:
    class One(Node, label="X"):
        id: str

    class Two(Node, label="X"):
        id: str

    return [One, Two]


def an_end_that_is_no_node() -> list[Any]:
    class Likes(Edge[Person, str]):  # type: ignore[type-var]
        pass

    return [Likes]


def no_ends() -> list[Any]:
    class Likes(Edge):  # type: ignore[type-arg]
        pass

    return [Likes]


def an_unknown_end_by_name() -> list[Any]:
    class Likes(Edge["Person", "Nobody"]):  # type: ignore[name-defined]
        pass

    return [Person, Likes]


def an_order_that_does_not_exist() -> list[Any]:
    class Likes(Edge[Person, Place], order="sinse"):
        since: int = 0

    return [Likes]


def a_key_that_does_not_exist() -> list[Any]:
    class Likes(Edge[Person, Place], key=("term",)):
        since: int = 0

    return [Likes]


def an_order_that_cannot_be_ordered() -> list[Any]:
    class Likes(Edge[Person, Place], order="how"):
        how: list[str] = []

    return [Likes]


def no_id() -> list[Any]:
    class Thing(Node):
        name: str

    return [Thing]


def an_id_that_is_no_key() -> list[Any]:
    class Thing(Node):
        id: float

    return [Thing]


def a_symmetric_edge_between_two_classes() -> list[Any]:
    class Knows(Edge[Person, Place], symmetric=True):
        pass

    return [Knows]


def a_label_with_a_separator() -> list[Any]:
    class Thing(Node, label="A#B"):
        id: str

    return [Thing]


def two_fields_stored_alike() -> list[Any]:
    class Thing(Node):
        id: str
        a: Annotated[str, Field(alias="X")]
        b: Annotated[str, Field(alias="X")]

    return [Thing]


def a_field_stored_as_a_key() -> list[Any]:
    class Thing(Node):
        id: str
        pk: Annotated[str, Field(alias="PK")]

    return [Thing]


def a_version_that_is_no_int() -> list[Any]:
    class Thing(Node):
        id: str
        revision: Annotated[str, Version()]

    return [Thing]


def an_expiry_that_is_no_time() -> list[Any]:
    class Thing(Node):
        id: str
        until: Annotated[str, Expires()]

    return [Thing]


def two_expiry_attributes() -> list[Any]:
    class One(Node):
        id: str
        until: Annotated[dt.datetime, Expires()]

    class Two(Node):
        id: str
        till: Annotated[dt.datetime, Expires()]

    return [One, Two]


def two_expiries() -> list[Any]:
    class Thing(Node):
        id: str
        one: Annotated[dt.datetime, Expires()]
        two: Annotated[dt.datetime, Expires()]

    return [Thing]


def an_id_that_may_be_none() -> list[Any]:
    class Thing(Node):
        id: str | None

    return [Thing]


def a_label_that_is_no_text() -> list[Any]:
    class Thing(Node, label=5):
        id: str

    return [Thing]


def an_order_that_is_no_name() -> list[Any]:
    class Likes(Edge[Person, Place], order=["since"]):
        since: int = 0

    return [Likes]


def symmetric_neither_true_nor_false() -> list[Any]:
    class Likes(Edge[Person, Person], symmetric="no"):
        pass

    return [Likes]


def a_class_keyword_that_means_nothing() -> list[Any]:
    class Likes(Edge[Person, Place], ordr="since"):
        since: int = 0

    return [Likes]


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (two_classes_with_one_label, ["One", "Two", "'X'"]),
        (an_end_that_is_no_node, ["target", "Likes", "str"]),
        (no_ends, ["Likes"]),
        (an_unknown_end_by_name, ["target", "Likes", "Nobody"]),
        (an_order_that_does_not_exist, ["Likes", "'sinse'", "'since'"]),
        (a_key_that_does_not_exist, ["Likes", "'term'"]),
        (an_order_that_cannot_be_ordered, ["Likes.how"]),
        (no_id, ["Thing", "'id'"]),
        (an_id_that_is_no_key, ["Thing.id"]),
        (a_symmetric_edge_between_two_classes, ["Knows", "Person", "Place"]),
        (a_label_with_a_separator, ["Thing", "'A#B'"]),
        (two_fields_stored_alike, ["Thing.a", "Thing.b", "'X'"]),
        (a_field_stored_as_a_key, ["Thing.pk", "'PK'"]),
        (a_version_that_is_no_int, ["Thing.revision"]),
        (an_expiry_that_is_no_time, ["Thing.until"]),
        (two_expiry_attributes, ["One", "Two", "until", "till"]),
        (two_expiries, ["Thing", "one", "two"]),
        (an_id_that_may_be_none, ["Thing.id"]),
        (a_label_that_is_no_text, ["Thing", "5"]),
        (an_order_that_is_no_name, ["Likes", "order"]),
        (symmetric_neither_true_nor_false, ["Likes", "symmetric"]),
        (a_class_keyword_that_means_nothing, ["ordr", "order"]),
        (lambda: ["Person"], ["'Person'"]),
        (list, ["Node"]),
    ],
)
def test_a_mistake_fails_when_the_graph_opens(
    declare: Callable[[], list[Any]], words: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "graph.db"
    with pytest.raises(InvalidModel) as error:
        Graph(file, declare())
    for word in words:
        assert word in str(error.value)
    assert not file.exists()


class Likes(Edge[Person, Place]):
    since: int = 0


class Hates(Edge[Person, Place]):
    pass


class Ranks(Edge[Place, Place], order="rank"):
    rank: int = 0


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (AdjacencyList(edge="{target}"), ["Likes", "Hates", "{label}"]),
        (AdjacencyList(edge="{label}#{traget}"), ["'traget'", "'target'"]),
        (AdjacencyList(edge="{label}{target}{since}"), ["since"]),
        (AdjacencyList(edge="{label}#{since:loud}#{target}"), ["'loud'"]),
        (AdjacencyList(edge="{label}#{target"), ["{label}#{target"]),
        (AdjacencyList(node="{label}#{name}"), ["Place", "'name'"]),
        (AdjacencyList(keys={Likes: Keys(reverse_partition="X#{since}")}), ["Likes", "Place"]),
        (AdjacencyList(keys={Person: Keys(partition="PERSON")}), ["Person", "id"]),
        (AdjacencyList(keys={Person: Keys(partition="PLACE#{id}")}), ["Person", "Place"]),
        (AdjacencyList(reverse=Index("R", "SK"), edge="{label}#{target}"), ["Likes", "Place"]),
        (AdjacencyList(keys={Ref: Keys()}), ["Ref"]),
        (AdjacencyList(node="X#{id}", edge="{label}#{source.id}"), ["target"]),
        (AdjacencyList(node="E#a", keys={Likes: Keys(sort="E#{target.id}")}), ["Likes", "E#a", "Person itself"]),
        (AdjacencyList(edge="{label:upper}#{target}"), ["{label} cannot be changed by 'upper'"]),
        (AdjacencyList(edge="{label}#{target:upper}"), ["{target} cannot be changed by 'upper'"]),
        (AdjacencyList(node="{node:upper}"), ["{node} cannot be changed by 'upper'"]),
        (AdjacencyList(ordered=Index("O", "GSI1PK", "O")), ["'O'", "for order needs key attributes of its own"]),
    ],
)
def test_a_layout_that_cannot_work_fails_when_the_graph_opens(layout: AdjacencyList, words: list[str]) -> None:
    with pytest.raises(AdjoinError) as error:
        Graph(":memory:", [Likes, Hates, Ranks], layout)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("table", [5, b"adjoin", "a\nb", "\0"])
def test_a_table_has_a_name_that_can_be_printed(table: Any) -> None:
    with pytest.raises(InvalidModel, match="is not a table name"):
        bound_layout([Likes], AdjacencyList(table=table))
    with pytest.raises(InvalidModel, match="is not a table name"):
        bound_layout([Likes], None, table)


def test_labels_come_from_names_in_upper_snake_case() -> None:
    class HTTPRequestLog(Node):
        id: str

    assert HTTPRequestLog.__declaration__.label == "HTTP_REQUEST_LOG"
    assert Person.__declaration__.label == "PERSON"


def test_ends_may_be_declared_later() -> None:
    graph = Graph(":memory:", [Follows, Member])
    graph.put(Member(id="a"))
    graph.put(Member(id="b"))
    graph.connect(Follows, "a", Member.ref("b"))
    assert [edge.target for edge in graph.out("a", Follows)] == ["b"]


class Follows(Edge["Member", "Member"]):
    pass


class Member(Node):
    id: str


def test_an_edge_is_built_from_ids_refs_or_nodes() -> None:
    for source in ("p", Person.ref("p"), Person(id="p")):
        assert Likes(source=source, target=Place.ref("x")) == Likes(source="p", target="x")
    with pytest.raises(AdjoinError, match="a Person is needed here, got Place 'x'"):
        Likes(source=Place.ref("x"), target="x")  # type: ignore[arg-type]


# --- indexed and unique fields -----------------------------------------------------------------


def node_with(annotation: Any, default: Any = None) -> Any:
    return create_model("Marked", __base__=Node, id=(str, ...), value=(annotation, default))


def edge_with(annotation: Any) -> Any:
    return create_model("Marking", __base__=Edge[Person, Person], value=(annotation, None))


MISMARKED: list[tuple[Any, str]] = [
    (lambda: node_with(Annotated[bytes, Indexed()]), "Marked.value is marked Indexed.*cannot sort .*; use one"),
    (lambda: node_with(Annotated[dict[str, int], Indexed()]), "Marked.value is marked Indexed"),
    (lambda: node_with(Annotated[set[str], Indexed()]), "Marked.value is marked Indexed"),
    (lambda: node_with(Annotated[str | int, Indexed()]), "Marked.value is marked Indexed"),
    (lambda: node_with(Annotated[tuple[str, int], Indexed()]), "Marked.value is marked Indexed"),
    (lambda: node_with(Annotated[list[list[str]], Indexed()]), "Marked.value is marked Indexed"),
    (lambda: node_with(Annotated[dt.timedelta, Indexed()]), "Marked.value is marked Indexed"),
    (
        lambda: create_model("Marked", __base__=Node, id=(Annotated[str, Indexed()], ...)),
        "Marked.id is marked Indexed.*already a key",
    ),
    (lambda: create_model("Marked", __base__=Node, id=(Annotated[str, Unique()], ...)), "Marked.id is marked Unique"),
    (lambda: edge_with(Annotated[str, Unique()]), "Marking.value is marked Unique.*for fields of nodes"),
    (lambda: node_with(Annotated[float, Unique()]), "the unique field Marked.value has a type that cannot be part"),
    (lambda: node_with(Annotated[bool, Unique()]), "the unique field Marked.value"),
    (lambda: node_with(Annotated[list[str], Unique()]), "the unique field Marked.value"),
]


@pytest.mark.parametrize(("make", "words"), MISMARKED)
def test_marks_where_they_mean_nothing(make: Any, words: str) -> None:
    with pytest.raises(InvalidModel, match=words):
        Schema([make()])


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, Indexed(), Unique()],
        Annotated[str, Indexed, Unique],
        Annotated[str | None, Indexed(), Unique()],
        Annotated[str, Indexed(), Unique()] | None,
        None | Annotated[Annotated[str, Indexed()], Unique()],
    ],
)
def test_marks_count_wherever_they_stand(annotation: Any) -> None:
    model = node_with(annotation)
    kind = Schema([model]).node(model)
    assert (kind.indexed, kind.unique) == (("value",), ("value",))
