"""Sparse indexes: after any update an item is in the indexes in which a put would have placed it, with those keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjacencyList, Graph, Index, Keys, Node, field
from adjoin.entity_types import EntityType
from adjoin.expressions import Remove, Set, Value
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.entity_keys import Membership
from adjoin.requests import Get, ItemResponse
from adjoin.schema import Schema
from tests.layouts.designs import DESIGNS, Club, Friend, Member, Person, Talk
from tests.shares import examples

INDEXES = [
    Index("One", "APK", "ASK"),
    Index("Two", "APK", "BSK"),
    Index("Three", "CPK", "due"),
    Index("Four", "size", "DSK"),
    Index("Five", "EPK", "ESK"),
    Index("Six", "FPK"),
    Index("Seven", "GPK", "GSK", shards=3),
]


class Task(Node):
    id: str
    state: str
    who: str | None = None
    due: str | None = None
    size: int | None = None
    note: str | None = None


TEMPLATES: dict[str, str | tuple[str | None, str]] = {
    "One": ("{who}", "{state}"),
    "Two": ("{who}", "{note}#{state}"),
    "Three": "all",
    "Four": (None, "{state}#{who}"),
    "Five": ("open", "{note}"),
    "Six": "n#{note}",
    "Seven": ("{shard}", "{due}"),
}


def layout(*only_in_keys: str) -> AdjacencyList:
    keys = Keys("t#{id}", "t", indexes=TEMPLATES, only_in_keys=only_in_keys)
    return AdjacencyList(reverse=None, indexes=INDEXES, keys={Task: keys})


TEXTS = st.none() | st.sampled_from("xy")
CHANGES = st.fixed_dictionaries(
    {},
    optional={"state": st.sampled_from("ab"), "who": TEXTS, "due": TEXTS, "size": st.none() | st.integers(1, 3)}
    | {"note": TEXTS},
).filter(bool)


def item_of(g: Graph) -> dict[str, Any]:
    kind = g._schema.node(Task)
    (response,) = g._store.execute([Get(g._layout.table, g._layout.node_key(kind, "1"))])
    assert isinstance(response, ItemResponse)
    assert response.item is not None
    return dict(response.item)


@pytest.mark.simulation
@settings(max_examples=examples(60), deadline=None)
@given(
    first=CHANGES,
    updates=st.lists(CHANGES, max_size=4),
    only_in_keys=st.sampled_from([(), ("who", "note")]),
    in_transaction=st.booleans(),
)
def test_updates_keep_what_a_put_would_write(
    first: dict[str, Any], updates: list[dict[str, Any]], only_in_keys: tuple[str, ...], in_transaction: bool
) -> None:
    with Graph(":memory:", [Task], layout(*only_in_keys)) as g:
        task = Task(**{"id": "1", "state": "a", **first})
        g.put(task)
        for changes in updates:
            if in_transaction:
                with g.transaction() as t:
                    t.update(Task, "1", **changes)
            else:
                g.update(Task, "1", **changes)
            task = task.model_copy(update=changes)
            assert g.get(Task, "1") == task
            stored, (wanted,) = item_of(g), g._layout.items(task)
            for index in INDEXES:
                keys = {name: stored.get(name) for name in index.keys}
                is_in = all(name in wanted for name in index.keys)
                assert is_in == (None not in keys.values())
                assert not is_in or keys == {name: wanted[name] for name in index.keys}
            assert {name: stored[name] for name in wanted} == wanted


def test_a_lone_key_is_left_out() -> None:
    with Graph(":memory:", [Task], layout()) as g:
        g.put(Task(id="1", state="a"))
        assert item_of(g).keys() == {"PK", "SK", "state"}
        g.update(Task, "1", size=2)
        assert item_of(g).keys() == {"PK", "SK", "state", "size"}
        g.update(Task, "1", who="x", size=field("size") + 1)
        assert item_of(g).keys() == {"PK", "SK", "state", "size", "who", "APK", "ASK", "DSK"}
        g.update(Task, "1", who=None)
        assert item_of(g).keys() == {"PK", "SK", "state", "size"}


def members(model: type[Any], *indexes: Index, **templates: str | tuple[str | None, str]) -> Membership:
    bound = AdjacencyList(reverse=None, indexes=list(indexes), keys={model: Keys(indexes=templates)}).bind(
        Schema([model])
    )
    return bound._members[model]


def test_which_classes_are_in_some_indexes_and_not_in_others() -> None:
    """Only these are read before an update of other fields."""
    both = Index("Both", "PK1", "SK1")
    assert members(Task, both, Both=("{state}", "{who}")).is_sparse
    assert not members(Task, both, Both=("{state}", "{state}#{id}")).is_sparse
    # The one key is there or not, whatever else the item has.
    assert not members(Task, Index("One", "PK1"), One="{who}").is_sparse
    # Every item has the keys of the table.
    assert not members(Task, Index("Inverted", "SK", "SK1"), Inverted=(None, "{who}")).is_sparse
    assert members(Task, Index("Plain", "size", "SK1"), Plain=(None, "{who}")).is_sparse


def test_which_fields_decide_about_a_key() -> None:
    found = layout().bind(Schema([Task]))._members[Task]
    assert found.fields(["CPK"]) == ["due"]
    assert found.fields(["DSK"]) == ["size", "state", "who"]
    assert found.fields(["APK"]) == ["who", "state", "who", "note", "state"]
    assert found.fields(["FPK"]) == []


def test_which_keys_are_removed_after_a_change() -> None:
    """Those of indexes that the item is certainly not in, if the change is about them; a key may be of two indexes."""
    found = layout().bind(Schema([Task]))._members[Task]
    for values, changes, keys in (
        ({"who": None}, {"who": None}, ["APK", "ASK", "BSK", "DSK"]),
        # One and Two share a key, so what takes the item out of both takes all keys of both.
        ({"who": None, "note": None}, {"note": None}, ["APK", "ASK", "BSK", "EPK", "ESK"]),
        ({"who": "x", "note": None}, {"note": None}, ["BSK", "EPK", "ESK"]),
        ({"who": None, "due": None}, {"due": None}, ["CPK", "GPK", "GSK"]),
        ({"who": None, "due": None}, {"state": "b"}, ["APK", "ASK", "BSK", "DSK"]),
        ({"who": "x"}, {"who": "x"}, []),
        ({}, {"note": "x"}, []),
    ):
        assert found.left(values, changes) == keys, (values, changes)


def written(bound: BoundLayout, kind: EntityType, identity: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The index keys that follow from a change, None for those that are removed."""
    found: dict[str, Any] = {}
    for action in bound.index_actions(kind, identity, changes):
        assert isinstance(action, Set | Remove)
        assert str(action.path) not in found
        value = action.value if isinstance(action, Set) else None
        found[str(action.path)] = value.attribute["S"] if isinstance(value, Value) else None
    return found


REMOVED = dict.fromkeys(["APK", "ASK", "BSK"])


@pytest.mark.parametrize(
    ("changes", "needed", "keys"),
    [
        ({}, [], {}),
        # Whether the item is in One and Two depends on `who`, which is None.
        ({"note": "n"}, ["state", "who"], REMOVED | {"EPK": "open", "ESK": "n", "FPK": "n#n"}),
        ({"note": None}, ["state", "who"], REMOVED | dict.fromkeys(["EPK", "ESK", "FPK"])),
        ({"who": "w"}, ["state", "note", "size"], {"APK": "w", "ASK": "a", "DSK": "a#w", "BSK": None}),
        ({"who": None}, ["state", "note", "size"], REMOVED | {"DSK": None}),
        ({"state": "b"}, ["note", "who", "size"], REMOVED | {"DSK": None}),
        # The size is the partition key itself, so the other key is written with it; a change of it finds a size.
        ({"size": 3}, ["state", "who"], {"DSK": None}),
        ({"size": 3, "who": "w"}, ["state", "note"], {"APK": "w", "ASK": "a", "DSK": "a#w", "BSK": None}),
        ({"size": field("size") + 1}, [], None),
        ({"size": field("size") + 1, "who": None}, ["state", "note"], REMOVED | {"DSK": None}),
        ({"due": "d"}, [], {"CPK": "all", "GPK": "2", "GSK": "d"}),
        ({"due": None}, [], {"CPK": None, "GPK": None, "GSK": None}),
    ],
)
def test_what_a_change_needs_and_writes(
    changes: dict[str, Any], needed: list[str], keys: dict[str, Any] | None
) -> None:
    bound = layout().bind(Schema([Task]))
    kind = bound.schema.node(Task)
    assert bound.needed_for_index(kind, {"id": "1"}, changes) == needed
    if keys is not None:
        stored = {"state": "a", "who": None, "note": None, "size": 2}
        assert written(bound, kind, {"id": "1", **{name: stored[name] for name in needed}}, changes) == keys


TALK = {"source.id": "a", "target.id": "b", "at": 1, "topic": "t"}


@pytest.mark.parametrize(
    ("model", "identity", "changes", "keys"),
    [
        (Person, {"id": "a"}, {"name": "B"}, {"GSI3PK": "PERSON#name#0", "GSI3SK": "B#PERSON#a"}),
        # Copies of the item are the entries of further fields.
        (Person, {"id": "a"}, {"born": None}, {}),
        (Club, {"id": 1}, {}, {}),
        (
            Member,
            {"source.id": "a", "target.id": 3},
            {"since": 5},
            {"GSI1SK": "MEMBER#p501.5#PERSON#a", "GSI2SK": "MEMBER#p501.5#CLUB#3"},
        ),
        (Talk, TALK, {"mood": None}, {"GSI3PK": None, "GSI3SK": None}),
        (
            Talk,
            TALK,
            {"mood": "m"},
            {"GSI3PK": "TALK#mood#0", "GSI3SK": "m#PERSON#a#TALK#p501.1#PERSON#b#t"},
        ),
        (Talk, TALK, {"place": "m"}, {}),
        # Of the two items of a symmetric edge, one is in the index.
        (
            Friend,
            {"source.id": "a", "target.id": "b"},
            {"since": 4},
            {"GSI3PK": "FRIEND#since#0", "GSI3SK": "p501.4#PERSON#a#FRIEND#PERSON#b"},
        ),
        (Friend, {"source.id": "b", "target.id": "a"}, {"since": 4}, {}),
    ],
)
def test_what_a_change_of_an_indexed_field_writes(
    model: Any, identity: Any, changes: Any, keys: dict[str, Any]
) -> None:
    bound = DESIGNS["an adjacency list"].bound()
    (kind,) = (each for each in bound.schema.types if each.model is model)
    assert bound.needed_for_index(kind, identity, changes) == []
    assert written(bound, kind, identity, changes) == keys
