"""The contract for changes of a table that is there: indexes, throughput, stream, protection and tags."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adjoin.errors import ChangesTrimmed, InvalidRequest, TableNotFound
from adjoin.expressions import Set, Value, attribute
from adjoin.requests import (
    ChangesResponse,
    CreateTable,
    Delete,
    DescribeTable,
    DropTable,
    ListStreams,
    ListTags,
    Put,
    Query,
    ReadChanges,
    Request,
    SetTimeToLive,
    StreamsResponse,
    TableResponse,
    TagsResponse,
    TagTable,
    Update,
    UpdateTable,
)
from adjoin.stores.interface import Store
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput
from adjoin.values import Item
from tests.stores.examples import EDGES, PLAIN, everything, item, key, n, one, page, put, s, sort_keys, stored

BY_KIND = IndexDefinition("ByKind", KeyAttribute("kind"), KeyAttribute("at", "N"))
BY_AT = IndexDefinition("ByAt", KeyAttribute("at", "N"), None, Projection("KEYS_ONLY"))

ITEMS: list[Item] = [
    item("A", "1", kind=s("k"), at=n(3), more=s("x")),
    item("A", "2", kind=s("k"), at=n(1)),
    item("A", "3", kind=s("j"), at=n(2)),
    item("A", "4", kind=s("k")),
    item("A", "5", kind=n(1), at=n(4)),
    item("A", "6"),
]


def described(store: Store, name: str = "Plain") -> TableDefinition:
    return one(store, DescribeTable(name), TableResponse).definition


def of_kind(store: Store, kind: str) -> list[Item]:
    return list(page(store, Query("Plain", ("kind", s(kind)), index="ByKind")).items)


def test_a_new_index_has_the_items_that_are_there(store: Store) -> None:
    put(store, "Plain", *ITEMS)
    response = one(store, UpdateTable("Plain", add_indexes=(BY_KIND,)), TableResponse)
    assert response.definition == described(store) == replace(PLAIN, indexes=(BY_KIND,))
    assert of_kind(store, "k") == [ITEMS[1], ITEMS[0]]
    assert everything(store, "Plain") == ITEMS


def test_a_new_index_has_what_is_written_later(store: Store) -> None:
    put(store, "Plain", *ITEMS)
    store.execute([UpdateTable("Plain", add_indexes=(BY_KIND,))])
    put(store, "Plain", item("B", "1", kind=s("k"), at=n(0)))
    store.execute(
        [
            Update("Plain", key("A", "2"), (Set(attribute("kind"), Value(s("j"))),)),
            Delete("Plain", key("A", "1")),
        ]
    )
    assert sort_keys(of_kind(store, "k")) == ["1"]
    assert sort_keys(of_kind(store, "j")) == ["2", "3"]
    with pytest.raises(InvalidRequest, match="Type mismatch for Index Key kind"):
        store.execute([Put("Plain", item("B", "2", kind=n(1)))])


def test_an_index_over_the_keys_of_others(store: Store) -> None:
    put(store, "Plain", *ITEMS)
    store.execute([UpdateTable("Plain", add_indexes=(BY_KIND,))])
    store.execute([UpdateTable("Plain", add_indexes=(BY_AT,))])
    assert described(store).index("ByAt") == BY_AT
    assert page(store, Query("Plain", ("at", n(2)), index="ByAt")).items == [{**key("A", "3"), "at": n(2)}]


def test_items_stay_whole_when_an_index_goes(store: Store) -> None:
    edges = [item("A", "1", RPK=s("X"), RSK=s("b"), kind=s("k"), at=n(1)), item("A", "2", RPK=s("X"))]
    put(store, "Edges", *edges)
    store.execute([UpdateTable("Edges", remove_indexes=("Reverse",))])
    assert described(store, "Edges") == replace(EDGES, indexes=EDGES.indexes[1:])
    assert everything(store, "Edges") == edges
    with pytest.raises(InvalidRequest):
        store.execute([Query("Edges", ("RPK", s("X")), index="Reverse")])
    assert page(store, Query("Edges", ("kind", s("k")), index="Kind")).count == 1
    # What is no key any more may be anything.
    put(store, "Edges", item("A", "2", RPK=n(1), kind=s("k")))
    assert stored(store, "Edges", key("A", "2")) == item("A", "2", RPK=n(1), kind=s("k"))
    assert stored(store, "Edges", key("A", "1")) == edges[0]


def test_an_index_that_went_can_come_back(store: Store) -> None:
    put(store, "Plain", *ITEMS)
    store.execute([UpdateTable("Plain", add_indexes=(BY_KIND,))])
    store.execute([UpdateTable("Plain", remove_indexes=("ByKind",))])
    put(store, "Plain", item("A", "4", kind=s("k"), at=n(2)))
    store.execute([UpdateTable("Plain", add_indexes=(BY_KIND,))])
    assert sort_keys(of_kind(store, "k")) == ["2", "4", "1"]


def test_throughput_and_protection_change(store: Store) -> None:
    indexed = replace(PLAIN, name="Units", indexes=(BY_AT,))
    store.execute([CreateTable(indexed)])
    units = Throughput(5, 6)
    change = UpdateTable("Units", throughput=units, index_throughput=(("ByAt", Throughput(1, 2)),))
    provisioned = replace(indexed, throughput=units, indexes=(replace(BY_AT, throughput=Throughput(1, 2)),))
    assert one(store, change, TableResponse).definition == described(store, "Units") == provisioned
    store.execute([UpdateTable("Units", throughput="on demand")])
    assert described(store, "Units") == indexed
    store.execute([UpdateTable("Units", deletion_protection=True)])
    with pytest.raises(InvalidRequest, match="protected against deletion"):
        store.execute([DropTable("Units")])
    store.execute([UpdateTable("Units", deletion_protection=False)])
    store.execute([DropTable("Units")])


def test_a_stream_that_is_switched_on_begins_anew(store: Store) -> None:
    def read(after: str | None = None) -> ChangesResponse:
        return one(store, ReadChanges("Plain", after), ChangesResponse)

    put(store, "Plain", item("A", "1"))
    position = read().next
    store.execute([UpdateTable("Plain", stream="off")])
    assert not described(store).stream
    with pytest.raises(InvalidRequest, match="keeps no changes"):
        read()
    put(store, "Plain", item("A", "2"), item("A", "3"))
    store.execute([UpdateTable("Plain", stream="NEW_AND_OLD_IMAGES")])
    assert described(store) == PLAIN
    put(store, "Plain", item("A", "4"))
    assert [change.new for change in read().changes] == [item("A", "4")]
    with pytest.raises(ChangesTrimmed):
        read(position)
    assert one(store, DescribeTable("Plain"), TableResponse).item_count in (0, 4)


def test_streams_are_listed(store: Store) -> None:
    assert [each.table for each in one(store, ListStreams(), StreamsResponse).streams] == ["Edges", "Plain", "Single"]


def test_tags_change(store: Store) -> None:
    assert one(store, ListTags("Plain"), TagsResponse).tags == ()
    given = TagTable("Plain", (("b", "2"), ("a", "1")))
    assert one(store, given, TagsResponse).tags == (("a", "1"), ("b", "2"))
    assert one(store, TagTable("Plain", (("c", ""), ("a", "3")), ("b", "x")), TagsResponse).tags == (
        ("a", "3"),
        ("c", ""),
    )
    assert one(store, ListTags("Plain"), TagsResponse).tags == (("a", "3"), ("c", ""))


def test_expiry_can_be_switched_off(store: Store) -> None:
    store.execute([SetTimeToLive("Plain", "until")])
    assert one(store, SetTimeToLive("Plain", None), TableResponse).definition == PLAIN
    assert described(store).ttl is None
    assert one(store, SetTimeToLive("Plain", None), TableResponse).definition == PLAIN


REFUSED: list[tuple[UpdateTable, str]] = [
    (UpdateTable("Edges", add_indexes=(EDGES.indexes[0],)), "it already has an index Reverse"),
    (UpdateTable("Edges", remove_indexes=("Other",)), "it has no global index Other"),
    (UpdateTable("Edges", remove_indexes=("ByTime",)), "it has no global index ByTime"),
    (
        UpdateTable("Plain", add_indexes=(replace(EDGES.indexes[3], name="L.1"),)),
        "L.1 can only be created together with the table",
    ),
    (UpdateTable("Plain", stream="KEYS_ONLY"), "its stream is switched on already"),
    (UpdateTable("Plain", add_indexes=(IndexDefinition("Idx", KeyAttribute("PK", "N")),)), "has type S and type N"),
    (UpdateTable("Plain", throughput=Throughput(0, 1)), "the minimum is 1"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_refused_changes(store: Store, change: UpdateTable, message: str) -> None:
    before = described(store, change.table)
    with pytest.raises(InvalidRequest, match=message):
        store.execute([change])
    assert described(store, change.table) == before


def test_changes_of_no_table(store: Store) -> None:
    nothing: list[Request] = [UpdateTable("Nowhere", stream="off"), TagTable("Nowhere"), ListTags("Nowhere")]
    for request in nothing:
        with pytest.raises(TableNotFound):
            store.execute([request])
