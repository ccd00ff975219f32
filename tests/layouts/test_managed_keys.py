"""Index keys that hold fields which adjoin itself changes: which they are, and what they are for a stored item."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Copy, Edge, Index, InvalidModel, InvalidValue, Keys, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema
from adjoin.values import Item
from tests.layouts.designs import AGGREGATES, Author, Met, Reads, Work, Wrote


def kind_of(layout: BoundLayout, model: Any) -> Any:
    (found,) = (kind for kind in layout.schema.types if kind.model is model)
    return found


@pytest.mark.parametrize(
    ("model", "fields", "attributes", "exact", "late"),
    [
        (
            Author,
            {"best", "works", "stars"},
            {"WorksSK", "GSI3PK", "GSI3SK"},
            ("best", "works"),
            ["WorksSK"],
        ),
        (Work, set(), set(), (), []),
        (Wrote, {"title"}, {"GSI1SK", "GSI2SK"}, ("title",), ["GSI1SK", "GSI2SK"]),
        (Reads, set(), set(), (), []),
        (Met, {"name"}, {"GSI2SK"}, ("name",), ["GSI2SK"]),
    ],
)
def test_what_holds_managed_fields(
    model: Any, fields: set[str], attributes: set[str], exact: tuple[str, ...], late: list[str]
) -> None:
    managed = AGGREGATES.bound().managed
    assert managed.fields[model] == fields
    assert managed.attributes[model] == attributes
    assert managed.exact[model] == exact
    assert sorted(managed.late[model]) == late


def test_which_keys_hold_one_field() -> None:
    layout = AGGREGATES.bound()
    author, wrote = kind_of(layout, Author), kind_of(layout, Wrote)
    for kind, name, keys in (
        (author, "works", {"WorksSK"}),
        # The first indexed field is indexed by the item itself.
        (author, "best", {"GSI3PK", "GSI3SK"}),
        (author, "stars", set()),
        (wrote, "title", {"GSI1SK", "GSI2SK"}),
    ):
        assert layout.managed.holding(kind, name) == keys, name
    assert [layout.managed.is_first(kind) for kind in (author, wrote)] == [True, False]


@pytest.mark.parametrize(
    ("stored", "values", "defaults"),
    [
        ({"best": {"N": "4"}, "works": {"N": "2"}, "stars": {"N": "7"}}, {"best": 4, "works": 2, "stars": 7}, {}),
        # What was never counted is its default, and a sum that is a key as it is has to be there.
        ({}, {"best": None, "works": 0, "stars": 0}, {"stars": {"N": "0"}}),
        ({"best": {"S": "x"}, "stars": {"N": "1"}}, {"best": None, "works": 0, "stars": 1}, {}),
    ],
)
def test_values_as_they_are_read(stored: Item, values: dict[str, Any], defaults: Item) -> None:
    layout = AGGREGATES.bound()
    author = kind_of(layout, Author)
    item: Item = {"PK": {"S": "AUTHOR#a"}, "SK": {"S": "#META"}, **stored}
    assert layout.managed.values(author, item) == values
    assert layout.managed.defaults(author, item) == defaults


def test_an_edge_whose_managed_field_has_no_value() -> None:
    """It is always found from its ends; without a value, it is sorted as if it were empty."""
    layout = AGGREGATES.bound()
    wrote = kind_of(layout, Wrote)
    (item,) = layout.items(Wrote(source="a", target="w"))
    filled = layout.with_managed_keys(wrote, item)
    assert (filled["GSI1SK"], filled["GSI2SK"]) == ({"S": "WROTE##AUTHOR#a"}, {"S": "WROTE##WORK#w"})
    # An item that is no edge of the class stays as it is.
    other: Item = {"PK": {"S": "AUTHOR#a"}, "SK": {"S": "OTHER#x"}, "title": {"S": "x"}}
    assert layout.with_managed_keys(wrote, other) == other
    reads, (plain,) = kind_of(layout, Reads), layout.items(Reads(source="a", target="w"))
    assert layout.with_managed_keys(reads, plain) is plain


class Page(Node):
    id: str
    title: str = ""


class Links(Edge[Page, Page]):
    title: Annotated[str, Copy("target.title")] = ""
    note: str = ""
    tag: str | None = None


@pytest.mark.parametrize(
    ("indexes", "lost"),
    [
        ({"One": ("all", "{title}#{note}")}, "ISK"),
        # All keys of an index are written together.
        ({"One": ("n#{note}", "{title}")}, "IPK"),
        ({"One": ("n#{note}", "{tag}")}, None),
        ({"One": ("all", "{title}#{note}"), "Two": ("n#{note}", "x")}, None),
        # This key is not there if there is no tag.
        ({"One": ("all", "{title}#{note}"), "Two": ("{note}#{tag}", "x")}, "ISK"),
    ],
)
def test_a_value_that_only_a_key_of_managed_fields_holds_would_be_lost(
    indexes: dict[str, Any], lost: str | None
) -> None:
    layout = AdjacencyList(
        indexes=[Index("One", "IPK", "ISK"), Index("Two", "JPK", "JSK")][: len(indexes)],
        keys={Links: Keys(indexes=indexes, only_in_keys=["note"])},
    )
    if lost is not None:
        with pytest.raises(
            InvalidModel, match=f"^Links.note is stored in the key '{lost}' only, which is written when a"
        ):
            layout.bind(Schema([Page, Links]))
        return
    bound = layout.bind(Schema([Page, Links]))
    link = Links(source="a", target="b", note="n", tag="t")
    (item,) = bound.items(link)
    assert "note" not in item
    assert bound.read(item) == link


def test_a_value_that_no_key_would_hold_is_refused_beside_managed_fields_too() -> None:
    layout = AdjacencyList(
        indexes=[Index("One", "IPK", "ISK"), Index("Two", "JPK", "JSK")],
        keys={Links: Keys(indexes={"One": ("all", "{title}"), "Two": ("x", "{note}#{tag}")}, only_in_keys=["note"])},
    ).bind(Schema([Page, Links]))
    assert layout.items(Links(source="a", target="b", note="n", tag="t"))
    assert layout.items(Links(source="a", target="b"))
    with pytest.raises(
        InvalidValue, match=r"^Links\.note is stored in the key '\w+' only, .*, which the item does not have"
    ):
        layout.items(Links(source="a", target="b", note="n"))


def test_a_copy_of_a_value_that_was_never_counted_goes_too() -> None:
    """The item has no such attribute, and is in the index with the default, 0."""
    layout = AGGREGATES.bound()
    author, wrote = kind_of(layout, Author), kind_of(layout, Wrote)
    item: Item = {"PK": {"S": "AUTHOR#a"}, "SK": {"S": "#META"}}
    assert [layout.key_texts(each.key) for each in layout.satellites_beside(author, item)] == [
        ("AUTHOR#a#=", "works##META")
    ]
    (edge,) = layout.items(Wrote(source="a", target="w"))
    assert layout.satellites_beside(wrote, edge) == []
