"""A table that is there already: what is added to it, and what makes it another table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adjoin import Graph, Node
from adjoin.errors import TableMismatch
from adjoin.plans.table import open_table, require_shape
from adjoin.requests import CreateTable, DescribeTable, TableResponse
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput

INDEX = IndexDefinition("One", KeyAttribute("A"), KeyAttribute("B"))
PLAIN = TableDefinition("Things", KeyAttribute("PK"), KeyAttribute("SK"))
WHOLE = replace(PLAIN, indexes=(INDEX,), ttl="until", point_in_time_recovery=True)


def opened(there: TableDefinition | None, wanted: TableDefinition, *, create: bool = True) -> TableDefinition | None:
    """What is there after a table was opened over another."""
    store = SQLiteStore(":memory:")
    try:
        if there is not None:
            store.execute((CreateTable(there),))
        run(open_table(wanted, create=create), store)
        if there is None and not create:
            return None
        (response,) = store.execute((DescribeTable("Things"),))
        assert isinstance(response, TableResponse)
        return response.definition
    finally:
        store.close()


def test_what_a_table_lacks_is_added() -> None:
    assert opened(None, WHOLE) == WHOLE
    assert opened(PLAIN, WHOLE) == WHOLE
    for one in (replace(PLAIN, ttl="until"), replace(PLAIN, point_in_time_recovery=True), replace(WHOLE, ttl=None)):
        assert opened(one, WHOLE) == WHOLE
        assert opened(WHOLE, one) == WHOLE, "and nothing is taken from it"


def test_nothing_is_added_unless_it_is_asked_for() -> None:
    assert opened(None, WHOLE, create=False) is None
    there = replace(PLAIN, indexes=(INDEX,))
    assert opened(there, WHOLE, create=False) == there
    assert opened(PLAIN, WHOLE, create=False) == PLAIN, "its index can be added later"


def test_an_index_has_units_only_if_its_table_has() -> None:
    with_units = replace(INDEX, throughput=Throughput(3, 4))
    wanted = replace(PLAIN, indexes=(with_units,), throughput=Throughput(1, 2))
    assert opened(PLAIN, wanted) == replace(PLAIN, indexes=(INDEX,))
    assert opened(replace(PLAIN, throughput=Throughput(1, 2)), wanted) == wanted


def test_where_the_sort_key_begins_is_part_of_an_index() -> None:
    a, b, c = (KeyAttribute(name) for name in "ABC")
    two, one = IndexDefinition.over("Two", [a, b], [c]), IndexDefinition.over("Two", [a], [b, c])
    wanted = replace(PLAIN, indexes=(two,))
    assert opened(PLAIN, wanted) == wanted
    words = (
        r"its index 'Two' is over A \(S\), sorted by B \(S\) and C \(S\), not A \(S\) and B \(S\), sorted by C \(S\)"
    )
    with pytest.raises(TableMismatch, match=words):
        opened(replace(PLAIN, indexes=(one,)), wanted)
    local = replace(INDEX, name="Two", local=True)
    with pytest.raises(TableMismatch, match="it has no index 'Two' over A"):
        opened(PLAIN, replace(PLAIN, indexes=(local,)), create=False)


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (
            replace(PLAIN, sort=KeyAttribute("SK", "N")),
            r"its keys are PK \(S\) and SK \(N\), not PK \(S\) and SK \(S\)",
        ),
        (
            replace(PLAIN, indexes=(replace(INDEX, sort=KeyAttribute("C")),)),
            r"its index 'One' is over A \(S\) and C \(S\), not A \(S\) and B \(S\)",
        ),
        (
            replace(PLAIN, indexes=(replace(INDEX, projection=Projection("KEYS_ONLY")),)),
            "its index 'One' projects .*KEYS_ONLY",
        ),
        (replace(PLAIN, ttl="till"), "its items expire by 'till', not 'until'"),
    ],
)
def test_another_table_is_refused_before_anything_is_changed(there: TableDefinition, words: str) -> None:
    store = SQLiteStore(":memory:")
    store.execute((CreateTable(there),))
    with pytest.raises(TableMismatch, match=f"the table 'Things' exists with another shape: .*{words}"):
        run(open_table(WHOLE, create=True), store)
    (response,) = store.execute((DescribeTable("Things"),))
    assert isinstance(response, TableResponse)
    assert response.definition == there
    store.close()


@pytest.mark.parametrize(
    ("there", "wanted", "is_enough"),
    [
        (Projection("ALL"), Projection("KEYS_ONLY"), True),
        (Projection("ALL"), Projection("INCLUDE", ("a",)), True),
        (Projection("KEYS_ONLY"), Projection("KEYS_ONLY"), True),
        (Projection("KEYS_ONLY"), Projection("ALL"), False),
        (Projection("INCLUDE", ("a", "b")), Projection("INCLUDE", ("a",)), True),
        (Projection("INCLUDE", ("a",)), Projection("INCLUDE", ("a", "b")), False),
        (Projection("INCLUDE", ("a",)), Projection("ALL"), False),
        (Projection("INCLUDE", ("a",)), Projection("KEYS_ONLY"), False),
    ],
)
def test_an_index_may_hold_more_than_is_needed(there: Projection, wanted: Projection, is_enough: bool) -> None:
    found = replace(PLAIN, indexes=(replace(INDEX, projection=there),))
    needed = replace(PLAIN, indexes=(replace(INDEX, projection=wanted),))
    if is_enough:
        require_shape(needed, found, "name another")
    else:
        with pytest.raises(TableMismatch, match="name another"):
            require_shape(needed, found, "name another")


def test_a_change_of_an_item_that_no_class_matches_says_so() -> None:
    class Known(Node):
        id: str

    class Other(Node):
        id: str

    store = SQLiteStore(":memory:")
    with Graph(store, [Known, Other]) as both, Graph(store, [Known]) as narrow:
        both.put_many([Known(id="a"), Other(id="b")])
        (known,) = (change for change in narrow.changes() if change.new is not None)
        (unknown,) = (change for change in narrow.changes() if change.new is None)
    assert (known.new, known.problem) == (Known(id="a"), None)
    assert unknown.problem == "no class of this graph matches the item"
