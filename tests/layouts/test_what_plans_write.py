"""What plans write with a layout: items changed in place, keys that are too long, and fields made from others."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import computed_field

from adjoin import AdjacencyList, Copy, Edge, Index, InvalidKey, InvalidModel, Keys, Node, Stored
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema
from adjoin.values import Item
from tests.layouts.described import line
from tests.layouts.designs import AGGREGATES, DESIGNS, Author, Club, Met, Person, Talk, Wrote


def changed(layout: BoundLayout, before: Any, after: Any) -> list[Any]:
    """The items of an entity after a change of it, each as it differs: None for an attribute that is gone."""
    kind = layout.schema.edge(type(before)) if isinstance(before, Edge) else layout.schema.node(type(before))
    found = []
    for item in layout.items(before):
        stored: Item = {**layout.with_managed_keys(kind, item), "more": {"S": "of another program"}}
        made = layout.changed(kind, stored, after)
        names = sorted(stored.keys() | made.keys())
        differing = {name: made.get(name) for name in names if made.get(name) != stored.get(name)}
        found.append({name: None if value is None else line({name: value}) for name, value in differing.items()})
    return found


def test_a_changed_node_keeps_what_others_wrote() -> None:
    layout = AGGREGATES.bound()
    before = Author(id="a", name="Ann", best=4, works=2)
    assert changed(layout, before, before) == [{}]
    assert changed(layout, before, Author(id="a", name="Bob", best=5, works=3)) == [
        {
            "name": "name=Bob",
            "best": "best=N:5",
            "works": "works=N:3",
            # The keys are those of the values.
            "GSI3SK": "GSI3SK=p501.5#AUTHOR#a",
            "WorksSK": "WorksSK=00000003",
        }
    ]
    without = Author(id="a", name="Ann", works=2)
    assert changed(layout, before, without) == [{"best": None, "GSI3PK": None, "GSI3SK": None}]


def test_a_changed_edge_keeps_what_adjoin_fills_in() -> None:
    """At each end it may be another value, and the instance has that of one end."""
    layout = AGGREGATES.bound()
    war, peace = (
        Wrote(source="a", target="w", title="War", stars=4),
        Wrote(source="a", target="w", title="Peace", stars=5),
    )
    assert changed(layout, war, peace) == [{"stars": "stars=N:5"}]
    assert changed(layout, Met(source="b", target="a", name="Ann"), Met(source="b", target="a", name="Bob")) == [{}, {}]


def test_an_entry_that_a_change_takes_out_of_the_index_is_gone() -> None:
    layout = DESIGNS["an adjacency list"].bound()
    talk = Talk(source="a", target="b", at=1, topic="t", mood="good")
    assert changed(layout, talk, talk.model_copy(update={"mood": None})) == [
        {"mood": None, "GSI3PK": None, "GSI3SK": None}
    ]
    assert changed(layout, Person(id="a", name="A"), Person(id="a", name="B")) == [
        {"name": "name=B", "GSI3SK": "GSI3SK=B#PERSON#a"}
    ]
    assert changed(layout, Club(id=1), Club(id=1)) == [{}]


# --- keys of indexes that are too long ---------------------------------------------------------


class Page(Node):
    id: str
    title: str = ""
    number: int = 0


BY_TITLE = AdjacencyList(
    reverse=None,
    indexes=[Index("ByTitle", "TPK", "TSK"), Index("ByNumber", "NPK", types={"NPK": "N"})],
    keys={Page: Keys(indexes={"ByTitle": ("{title}", "{title}"), "ByNumber": "{number}"})},
)


@pytest.mark.parametrize(
    ("templates", "most", "key"),
    [
        (("t{title}", "t"), 2047, "TPK"),
        (("t", "t{title}"), 1023, "TSK"),
        (("{title}", "t"), 2048, "TPK"),
    ],
)
@pytest.mark.parametrize("letter", ["x", "é"])
def test_a_key_of_an_index_has_as_many_bytes_as_dynamodb_takes(
    templates: tuple[str, str], most: int, key: str, letter: str
) -> None:
    index = Index("ByTitle", "TPK", "TSK")
    layout = AdjacencyList(indexes=[index], keys={Page: Keys(indexes={"ByTitle": templates})}).bind(Schema([Page]))
    size, limit = len(letter.encode()), "2,049" if key == "TPK" else "1,025"
    longest = letter * (most // size) + "x" * (most % size)
    (item,) = layout.items(Page(id="a", title=longest))
    assert item[key]["S"].removeprefix("t") == longest
    with pytest.raises(InvalidKey, match=f"^the key '{key}' of a Page would have {limit} bytes .*; DynamoDB takes"):
        layout.items(Page(id="a", title=longest + "x"))


def test_a_whole_key_is_never_empty() -> None:
    layout = BY_TITLE.bind(Schema([Page]))
    with pytest.raises(InvalidKey, match=r"^Page\.title is empty, but it is the whole key 'TPK' of an index"):
        layout.items(Page(id="a"))
    (item,) = layout.items(Page(id="a", title="t", number=10**30))
    assert (item["NPK"], item["TPK"]) == ({"N": "1" + "0" * 30}, {"S": "t"})


# --- fields that are computed ------------------------------------------------------------------


class User(Node):
    id: str
    name: str = ""


class Follows(Edge[User, User]):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def pair(self) -> Annotated[str, Stored()]:
        return f"{self.source}-{self.target}"


class Friend(Edge[User, User], symmetric=True):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def pair(self) -> Annotated[str, Stored()]:
        return f"{self.source}-{self.target}"


def test_ends_may_make_a_field_unless_they_change_places() -> None:
    layout = AdjacencyList().bind(Schema([User, Follows, Friend]))
    (item,) = layout.items(Follows(source="a", target="b"))
    assert item["pair"] == {"S": "a-b"}
    with pytest.raises(InvalidModel, match=r"^Friend\.pair is stored, and computed from one of source, target: "):
        layout.items(Friend(source="a", target="b"))


class FromSource(Edge[User, User]):
    name: Annotated[str, Copy("source.name")] = ""


class FromTarget(Edge[User, User]):
    name: Annotated[str, Copy("target.name")] = ""


def test_what_is_copied_from_targets_needs_a_way_to_find_edges_there() -> None:
    without = AdjacencyList(reverse=None)
    assert without.bind(Schema([User, FromSource]))
    with pytest.raises(InvalidModel, match=r"^something is counted or copied at the target of FromTarget, but the "):
        without.bind(Schema([User, FromTarget]))
    index = Index("Back", "BPK", "BSK")
    keys: dict[type[Any], Keys] = {FromTarget: Keys(indexes={"Back": ("{target}", "{source}")})}
    assert AdjacencyList(reverse=None, indexes=[index], keys=keys).bind(Schema([User, FromTarget]))
