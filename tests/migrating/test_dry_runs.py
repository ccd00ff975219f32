"""What a dry run of migrate says, and what a service in place of a file adds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, Field

from adjoin import (
    AdjacencyList,
    Edge,
    Expires,
    Graph,
    Indexed,
    MaterializedGraph,
    MigrationDue,
    Node,
    TableMismatch,
    Unique,
)
from adjoin.requests import DescribeTable, TableResponse
from adjoin.stores.sqlite import SQLiteStore
from tests.migrating.gained import SECOND, Found, Remote, filled, items

# --- a service ---------------------------------------------------------------------------------


def test_a_graph_on_a_service_opens_without_an_index_so_that_it_can_be_added() -> None:
    inner = filled()
    g = Graph(Remote(inner), SECOND)
    with pytest.raises(TableMismatch, match=r"no index 'GSI3'; add it with create_table\(\)"):
        list(g.find(Found, order="name"))
    (described,) = inner.execute([DescribeTable("adjoin")])
    assert isinstance(described, TableResponse)
    assert described.definition.index("GSI3") is None
    assert [step.what for step in g.migrate(dry_run=True).steps][:2] == [
        "add the index 'GSI2' with create_table() or migrate()",
        "add the index 'GSI3' with create_table() or migrate()",
    ]
    g.create_table()
    with pytest.raises(MigrationDue):
        list(g.find(Found, order="name"))


def test_a_first_time_to_live_is_turned_on(caplog: pytest.LogCaptureFixture) -> None:
    class Expiring(Node, label="STUDENT"):
        id: str
        name: str
        until: Annotated[datetime | None, Expires()] = None

    inner = filled()
    g = Graph(Remote(inner), [Expiring])
    assert "the table 'adjoin' has no time to live, so items do not expire; turn it on" in caplog.text
    wanted = "expand: turn on time to live by 'until' with create_table() or migrate()"
    assert str(g.migrate(dry_run=True)) == wanted
    g.migrate(finish=True)
    assert not g.migrate(dry_run=True)
    (described,) = inner.execute([DescribeTable("adjoin")])
    assert isinstance(described, TableResponse)
    assert described.definition.ttl == "until"


# --- what a dry run says, beside what the run takes ----------------------------------------------


class Former(Node, label="BOOK"):
    id: str
    name: str
    isbn: str | None = None
    shelf: str = "s"


class FormerLink(Edge[Former, Former], label="LINK"):
    at: int
    why: str = "w"


class Present(Node, label="BOOK"):
    id: str
    title: Annotated[str, Indexed(), Field(validation_alias=AliasChoices("title", "name"))]
    isbn: Annotated[str | None, Unique()] = None
    pages: Annotated[int, Indexed()]


class PresentLink(Edge[Present, Present], label="LINK", order="at"):
    at: int


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()])
@pytest.mark.parametrize("is_renamed", [True, False])
def test_a_dry_run_costs_what_the_run_takes(layout: Any, *, is_renamed: bool) -> None:
    store = SQLiteStore(":memory:")
    old = Graph(store, [Former, FormerLink], layout)
    old.put_many(Former(id=f"B{at}", name=f"n{at}", isbn=f"i{at}" if at % 2 else None) for at in range(60))
    old.put_many(FormerLink(source=f"B{at}", target=f"B{at + 1}", at=-at) for at in range(40))
    g = Graph(store, [Present if is_renamed else Former, PresentLink if is_renamed else Sorted], layout)
    changes: Any = {}
    if is_renamed:
        changes = {"fill": {"Present.pages": lambda _: 3}, "drop": ["Present.shelf", "PresentLink.why"]}
    planned = g.migrate(dry_run=True, **changes)
    first = g.migrate(**changes)
    last = g.migrate(finish=True, **changes)
    assert last.ended
    steps = {phase: [step for step in planned.steps if step.phase == phase] for phase in ("migrate", "contract")}
    # Each run also reads and writes its own records.
    for phase, rcu, wcu in (
        ("migrate", first.rcu, first.wcu),
        ("contract", last.rcu - first.rcu, last.wcu - first.wcu),
    ):
        assert sum(step.rcu for step in steps[phase]) == pytest.approx(rcu, abs=15), phase
        assert sum(step.wcu for step in steps[phase]) == pytest.approx(wcu, abs=6), phase


class Sorted(Edge[Former, Former], label="LINK", order="at"):
    at: int
    why: str = "w"


def test_what_is_dropped_goes_from_index_copies_too() -> None:
    class Kept(Node, label="HOUSE"):
        id: str
        street: Annotated[str, Indexed()] = "a"
        number: Annotated[int, Indexed()] = 1

    class Owned(Kept, label="HOUSE"):
        owner: str = "somebody"

    store = SQLiteStore(":memory:")
    Graph(store, [Owned]).put_many(Owned(id=f"H{at}") for at in range(3))
    g = Graph(store, [Kept])
    assert sum("owner" in each for each in items(store)) == 6
    assert g.migrate(finish=True, drop=["Kept.owner"]).ended
    assert not any("owner" in each for each in items(store))
    assert [each.id for each in g.find(Kept, order="number")] == ["H0", "H1", "H2"]
