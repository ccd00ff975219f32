"""The contract for the life of tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adjoin.errors import InvalidRequest, TableExists, TableNotFound
from adjoin.requests import (
    CreateTable,
    DescribeTable,
    DropTable,
    ListTables,
    SetTimeToLive,
    TableResponse,
    TablesResponse,
)
from adjoin.stores.interface import Store
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput
from tests.stores.examples import EDGES, PLAIN, everything, item, n, one, put, s

FULL = TableDefinition(
    "Full.Table-1_x",
    KeyAttribute("p", "B"),
    KeyAttribute("s", "N"),
    (
        IndexDefinition("By.x", KeyAttribute("x", "N"), None, Projection("KEYS_ONLY"), False, Throughput(1, 2)),
        IndexDefinition("By.y", KeyAttribute("p", "B"), KeyAttribute("y"), Projection("INCLUDE", ("a", "b")), True),
    ),
    stream=False,
    throughput=Throughput(5, 6),
)


def described(store: Store, name: str) -> TableDefinition:
    return one(store, DescribeTable(name), TableResponse).definition


def test_a_table_is_described_as_it_was_created(store: Store) -> None:
    assert one(store, CreateTable(FULL), TableResponse) == TableResponse(FULL)
    assert described(store, "Full.Table-1_x") == FULL


def test_a_stream_is_described(store: Store) -> None:
    assert described(store, "Plain") == PLAIN
    assert PLAIN.stream


def test_the_attribute_of_expiry_is_described(store: Store) -> None:
    expiring = replace(PLAIN, name="Expiring", ttl="until")
    store.execute([CreateTable(expiring)])
    assert described(store, "Expiring") == expiring


def test_expiry_can_be_set_later(store: Store) -> None:
    assert one(store, SetTimeToLive("Plain", "until"), TableResponse).definition == replace(PLAIN, ttl="until")
    assert described(store, "Plain").ttl == "until"


def test_a_table_with_recovery_and_tags_can_be_created(store: Store) -> None:
    # Neither is part of what the service says of a table.
    tags = (("cost center", "a/b:c@d"), ("équipe", ""))
    store.execute([CreateTable(replace(PLAIN, name="Tagged", point_in_time_recovery=True, tags=tags))])
    put(store, "Tagged", item("A", "1"))
    assert everything(store, "Tagged") == [item("A", "1")]


def test_a_name_is_taken_once(store: Store) -> None:
    assert described(store, "Edges") == EDGES
    with pytest.raises(TableExists):
        store.execute([CreateTable(replace(PLAIN, name="Edges"))])
    assert described(store, "Edges") == EDGES


def test_tables_are_listed_by_name(store: Store) -> None:
    assert one(store, ListTables(), TablesResponse) == TablesResponse(("Edges", "Plain", "Single"))


def test_dropping_a_table(store: Store) -> None:
    put(store, "Plain", item("A", "1"))
    assert one(store, DropTable("Plain"), TableResponse).definition == PLAIN
    assert one(store, ListTables(), TablesResponse).names == ("Edges", "Single")
    for request in (DropTable("Plain"), DescribeTable("Plain")):
        with pytest.raises(TableNotFound):
            store.execute([request])
    store.execute([CreateTable(PLAIN)])
    assert everything(store, "Plain") == []


def test_a_protected_table_is_not_dropped(store: Store) -> None:
    protected = replace(PLAIN, name="Protected", deletion_protection=True)
    store.execute([CreateTable(protected)])
    put(store, "Protected", item("A", "1"))
    with pytest.raises(InvalidRequest, match="protected against deletion"):
        store.execute([DropTable("Protected")])
    assert described(store, "Protected") == protected
    assert everything(store, "Protected") == [item("A", "1")]


def test_tables_do_not_mix(store: Store) -> None:
    store.execute([CreateTable(replace(PLAIN, name="Other"))])
    put(store, "Plain", item("A", "1", x=n(1)))
    put(store, "Other", item("A", "1", x=n(2)))
    assert everything(store, "Plain") == [item("A", "1", x=n(1))]
    assert everything(store, "Other") == [item("A", "1", x=n(2))]


def indexes(count: int, **changes: Any) -> tuple[IndexDefinition, ...]:
    index = IndexDefinition("Idx", KeyAttribute("x"))
    return tuple(replace(index, name=f"Idx{each}", **changes) for each in range(count))


UNITS = Throughput(5, 5)
LOCAL = {"local": True, "partition": KeyAttribute("PK"), "sort": KeyAttribute("x")}

REJECTED: list[tuple[TableDefinition, str]] = [
    (replace(PLAIN, name="ab"), "'ab' is not a name of 3 to 255 letters"),
    (replace(PLAIN, name="a" * 256), "is not a name of 3 to 255 letters"),
    (replace(PLAIN, name="a b c"), "'a b c' is not a name"),
    (replace(PLAIN, name="tablé"), "'tablé' is not a name"),
    (replace(PLAIN, indexes=(IndexDefinition("i!x", KeyAttribute("x")),)), "'i!x' is not a name"),
    (replace(PLAIN, sort=KeyAttribute("PK")), "has PK as partition key and as sort key"),
    (replace(PLAIN, sort=KeyAttribute("SK", "BOOL")), "the key attribute SK has type 'BOOL'"),  # type: ignore[arg-type]
    (replace(PLAIN, sort=KeyAttribute("")), "'' is not a name of 1 to 255 characters"),
    (replace(PLAIN, indexes=indexes(1) * 2), "two indexes have the same name"),
    (replace(PLAIN, indexes=indexes(21)), "it has 21 global indexes, and 20 is the limit"),
    (replace(PLAIN, indexes=indexes(6, **LOCAL)), "it has 6 local indexes, and 5 is the limit"),
    (replace(PLAIN, indexes=indexes(1, partition=KeyAttribute("SK", "N"))), "SK has type S and type N"),
    (
        replace(PLAIN, indexes=indexes(1, local=True)),
        "the local index Idx0 must have the table's partition key and a sort key of its own",
    ),
    (replace(PLAIN, sort=None, indexes=indexes(1, **LOCAL)), "the local index Idx0 needs a table with a sort key"),
    (
        replace(PLAIN, indexes=indexes(1, projection=Projection("INCLUDE"))),
        "the index Idx0 must name attributes if it projects INCLUDE, and only then",
    ),
    (
        replace(PLAIN, indexes=indexes(1, projection=Projection("ALL", ("a",)))),
        "the index Idx0 must name attributes if it projects INCLUDE, and only then",
    ),
    (
        replace(PLAIN, indexes=indexes(1, projection=Projection("INCLUDE", tuple(map(str, range(101)))))),
        "its indexes project 101 attributes, and 100 is the limit",
    ),
    (
        replace(PLAIN, indexes=(IndexDefinition.over("Idx", [KeyAttribute(each) for each in "abcde"]),)),
        "the index Idx has 5 attributes in its partition key, and 4 is the limit",
    ),
    (
        replace(PLAIN, indexes=(IndexDefinition.over("Idx", [KeyAttribute("a")], [KeyAttribute(k) for k in "bcdef"]),)),
        "the index Idx has 5 attributes in its sort key, and 4 is the limit",
    ),
    (
        replace(PLAIN, indexes=indexes(1, further_partitions=(KeyAttribute("x"),))),
        "Idx0 has x as partition key and as partition key",
    ),
    (
        replace(PLAIN, indexes=indexes(1, further_partitions=(KeyAttribute("y"),), sort=KeyAttribute("y"))),
        "Idx0 has y as partition key and as sort key",
    ),
    (
        replace(PLAIN, indexes=indexes(1, further_sorts=(KeyAttribute("y"),))),
        "the index Idx0 has further attributes of a sort key, but no first one",
    ),
    (
        replace(PLAIN, indexes=indexes(1, **LOCAL, further_sorts=(KeyAttribute("y"),))),
        "the local index Idx0 has a key of several attributes, which only global indexes can have",
    ),
    (replace(PLAIN, throughput=Throughput(0, 1)), "Plain has a throughput of 0 and 1 units; the minimum is 1"),
    (
        replace(PLAIN, throughput=UNITS, indexes=indexes(1, throughput=Throughput(1, 0))),
        "Idx0 has a throughput of 1 and 0 units; the minimum is 1",
    ),
    (
        replace(PLAIN, indexes=indexes(1, throughput=UNITS)),
        "the index Idx0 has a throughput, but the table is on demand",
    ),
    (
        replace(PLAIN, throughput=UNITS, indexes=indexes(1, throughput=UNITS, **LOCAL)),
        "the local index Idx0 takes from the table's throughput",
    ),
    (replace(PLAIN, tags=tuple((str(each), "") for each in range(51))), "it has 51 tags, and 50 is the limit"),
    (replace(PLAIN, tags=(("a", "1"), ("a", "2"))), "two tags have the same key"),
    (replace(PLAIN, tags=(("", "1"),)), "the key '' of a tag must have 1 to 128 characters"),
    (replace(PLAIN, tags=(("a" * 129, "1"),)), "of a tag must have 1 to 128 characters"),
    (replace(PLAIN, tags=(("a", "1" * 257),)), "the value of the tag 'a' has 257 characters, and 256 is the limit"),
    (replace(PLAIN, tags=(("AWS:a", "1"),)), "the tag 'AWS:a' begins with 'aws:', which only AWS may use"),
    (replace(PLAIN, tags=(("a", "1*"),)), "the tag 'a' has characters other than letters"),
    (replace(PLAIN, tags=(("a", 1),)), "the tag 'a' is 1; both must be text"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("definition", "message"), REJECTED)
def test_rejected_definitions(store: Store, definition: TableDefinition, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        store.execute([CreateTable(definition)])


def test_the_largest_definition(store: Store) -> None:
    largest = replace(
        PLAIN,
        name="Largest",
        tags=tuple(sorted((f"{each:0128}", "v" * 256) for each in range(50))),
        indexes=(*indexes(20), *(replace(each, name=f"Local{each.name}") for each in indexes(5, **LOCAL))),
    )
    store.execute([CreateTable(largest)])
    put(store, "Largest", item("A", "1", x=s("x")))
    assert everything(store, "Largest") == [item("A", "1", x=s("x"))]
