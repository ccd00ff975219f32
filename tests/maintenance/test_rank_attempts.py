"""What is remembered of ranks that were put for transactions that failed: used again, put anew, or deleted."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Node
from adjoin.aggregates import Count, Top
from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.layouts.interface import GENERATION, NEXT_GENERATION
from adjoin.plans.counting.edge_state import EdgeState
from adjoin.plans.counting.ledger import LEFT, EdgeRef, LedgerWrite, ref_to
from adjoin.plans.counting.node_transaction import STALE, Near, NodeTransaction
from adjoin.plans.counting.rank_items import BASE, standing
from adjoin.plans.maintenance.ranks import refresh, remove_dead
from adjoin.plans.maintenance.reconciling import RankAttempts
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.steps.batches import place_of
from adjoin.requests import Delete, Put, Update
from adjoin.runner import run
from adjoin.values import Item
from tests.maintenance.ledgers import is_rank
from tests.maintenance.simulation import stored


class Round(Node):
    id: str
    best: Annotated[list[int], Top("Played", field="points", k=3)] = []
    games: Annotated[int, Count("Played")] = 0


class Game(Node):
    id: str


class Played(Edge[Round, Game]):
    points: list[int] = []


class Table:
    """A round with one game, as one maintainer reads them at each of its attempts."""

    def __init__(self, g: Graph, id: str = "r") -> None:
        self.layout = g._layout
        self.attempts = RankAttempts(self.layout)
        (self.group,) = self.layout.rules.groups
        self.kind = self.layout.schema.node(Round)
        self.id, self.text = id, f"ROUND#{id}"
        self.key = self.layout.node_key(self.kind, id)
        self.node: Item | None = {**self.key, GENERATION: {"S": "one"}, LEFT: {"N": "4"}}
        self.ledger: Item | None = None

    @property
    def ref(self) -> EdgeRef:
        return ref_to(self.layout, self.group, self.layout.items(Played(source=self.id, target="g"))[0])

    def read(self, points: list[int] | None) -> EdgeState:
        edge = None if points is None else self.layout.items(Played(source=self.id, target="g", points=points))[0]
        near = Near(self.kind, self.text, self.key, self.node)
        state = EdgeState(self.ref, edge, self.ledger, self.node, None, near.generation, near.next)
        state.work_out(self.layout)
        return state

    def transaction(self, state: EdgeState) -> NodeTransaction:
        near = Near(self.kind, self.text, self.key, self.node)
        transaction = NodeTransaction(near, [state])
        transaction.write_down(self.layout)
        return transaction

    def tried(self, state: EdgeState, *, are_put: bool = True) -> list[Put]:
        """The ranks that are put for an attempt."""
        transaction = self.transaction(state)
        puts = list(self.attempts.begin([transaction]))
        if are_put:
            self.attempts.have_put([transaction])
        return puts

    def written(self, state: EdgeState) -> None:
        """The transaction succeeds."""
        (write,) = (each for each in self.transaction(state).all_writes(self.layout) if isinstance(each, LedgerWrite))
        self.ledger = {**(self.ledger or {}), **write.whole}


@pytest.fixture
def table() -> Any:
    with Graph(":memory:", [Round, Game, Played]) as g:
        yield Table(g)


def values(puts: list[Put]) -> list[int]:
    return [int(put.item["value"]["N"]) for put in puts]


def places(puts: list[Put]) -> set[Any]:
    return {(put.item["PK"]["S"], put.item["SK"]["S"]) for put in puts}


def deleted(deletes: list[Delete]) -> set[Any]:
    return {(each.key["PK"]["S"], each.key["SK"]["S"]) for each in deletes}


def test_ranks_of_an_attempt_that_failed_are_used_again(table: Table) -> None:
    first = table.read([9, 7])
    assert table.attempts.look_again([first]) == []
    puts = table.tried(first)
    assert values(puts) == [9, 7]
    assert {put.item[BASE]["N"] for put in puts} == {"4"}
    again = table.read([9, 7])
    assert table.attempts.look_again([again]) == []
    assert table.tried(again) == []
    assert {rank.token for rank in again.ranks.spare} == {rank.token for rank in first.ranks.puts}
    assert table.attempts.linger(again)
    assert table.attempts.end([again]) == []
    assert not table.attempts.linger(again)


def test_ranks_that_the_next_attempt_does_not_need_are_deleted_after_it(table: Table) -> None:
    puts = table.tried(table.read([9, 7]))
    again = table.read([9, 5])
    assert table.attempts.look_again([again]) == []
    assert values(table.tried(again)) == [5]
    assert deleted(table.attempts.end([again])) == places(puts[1:])


def test_ranks_of_which_nobody_knows_that_they_were_put_are_put_anew(table: Table) -> None:
    """Putting them failed halfway. All that may be there are deleted in the end."""
    puts = table.tried(table.read([9, 7]), are_put=False)
    again = table.read([9, 7])
    assert table.attempts.look_again([again]) == []
    anew = table.tried(again)
    assert values(anew) == [9, 7]
    assert not places(anew) & places(puts)
    assert deleted(table.attempts.end([again])) == places(puts)


def test_ranks_are_put_anew_if_another_transaction_changed_the_departures(table: Table) -> None:
    """It is of the same process and the same round, so nothing is read in between."""
    puts = table.tried(table.read([9, 7]))
    again = table.read([9, 7])
    assert table.attempts.look_again([again]) == []
    transaction = table.transaction(again)
    assert transaction.near.item is not None
    transaction.near.item[LEFT] = {"N": "5"}
    anew = list(table.attempts.begin([transaction]))
    assert values(anew) == [9, 7]
    assert {put.item[BASE]["N"] for put in anew} == {"5"}
    # The transaction names the new ones.
    (ledger,) = (write for write in transaction.all_writes(table.layout) if "=E#" in repr(write))
    assert all(put.item["SK"]["S"][-8:] in repr(ledger) for put in anew)
    table.attempts.have_put([transaction])
    assert deleted(table.attempts.end([again])) == places(puts)


def test_ranks_are_dead_when_the_departures_have_changed(table: Table) -> None:
    puts = table.tried(table.read([9, 7]))
    assert table.node is not None
    table.node = {**table.node, LEFT: {"N": "5"}}
    again = table.read([9, 7])
    assert deleted(table.attempts.look_again([again])) == places(puts)
    assert not table.attempts.linger(again)
    anew = table.tried(again)
    assert values(anew) == [9, 7]
    assert not places(anew) & places(puts)


@pytest.mark.parametrize("what", ["it is gone", "it is counted anew"])
def test_ranks_are_dead_when_their_node_is_another_one(table: Table, what: str) -> None:
    puts = table.tried(table.read([9, 7]))
    table.node = None if what == "it is gone" else {**table.key, GENERATION: {"S": "two"}, LEFT: {"N": "4"}}
    assert deleted(table.attempts.look_again([table.read([9, 7])])) == places(puts)


def test_ranks_of_the_next_generation_are_used_again(table: Table) -> None:
    assert table.node is not None
    table.node |= {NEXT_GENERATION: {"S": "two"}}
    puts = table.tried(table.read([9]))
    assert values(puts) == [9, 9]
    again = table.read([9])
    assert table.attempts.look_again([again]) == []
    assert table.tried(again) == []
    assert len(again.ranks.spare) == 2
    # Before the transaction comes, another process finishes the recount: now there is one generation only.
    table.node = {**table.key, GENERATION: {"S": "two"}, LEFT: {"N": "4"}}
    last = table.read([9])
    assert len(table.attempts.look_again([last])) == 1
    assert table.tried(last) == []
    assert [rank.generation for rank in last.ranks.spare] == ["two"]


def test_ranks_stay_if_only_the_answer_was_lost(table: Table) -> None:
    """The ledger names them, so the transaction took place."""
    first = table.read([9, 7])
    table.tried(first)
    table.written(first)
    again = table.read([9, 7])
    assert again.is_reconciled
    assert table.attempts.look_again([again]) == []
    assert not table.attempts.linger(again)
    assert table.attempts.end([again]) == []


def test_ranks_that_a_ledger_named_before_go_if_only_the_answer_was_lost(table: Table) -> None:
    first = table.read([9, 7])
    puts = table.tried(first)
    table.written(first)
    table.attempts.end([first])
    # The transaction of the second attempt fails: its ledger names the old ones still.
    second = table.read([9, 5])
    new = table.tried(second)
    assert values(new) == [5]
    again = table.read([9, 5])
    assert table.attempts.look_again([again]) == []
    # That of the third one does not, and nobody hears of it.
    assert table.tried(again) == []
    table.written(again)
    last = table.read([9, 5])
    assert deleted(table.attempts.look_again([last])) == places(puts[1:])
    assert table.attempts.end([last]) == []


def test_ranks_for_another_revision_of_the_ledger_are_dead(table: Table) -> None:
    first = table.read([9])
    table.tried(first)
    table.written(first)
    table.attempts.end([first])
    new = table.tried(table.read([7]))
    assert {put.item[BASE].keys() == {"S"} for put in new} == {True}
    # Another process wrote the ledger meanwhile.
    other = table.read([8])
    other.renew()
    table.written(other)
    again = table.read([7])
    assert places(new) <= deleted(table.attempts.look_again([again]))


def test_ranks_go_with_an_edge_that_needs_none_any_more(table: Table) -> None:
    """It is counted, but has no points now; so its transaction says nothing of ranks."""
    puts = table.tried(table.read([9, 7]))
    again = table.read([])
    assert table.attempts.look_again([again]) == []
    assert table.tried(again) == []
    assert deleted(table.attempts.end([again])) == places(puts)


def test_old_ranks_are_deleted_once_and_only_when_they_are_not_named(table: Table) -> None:
    """A transaction whose answer was lost comes late, after its edge was read again."""
    first = table.read([9, 7])
    puts = table.tried(first)
    table.written(first)
    table.attempts.end([first])
    second = table.read([9, 5])
    table.tried(second)
    assert table.attempts.look_again([table.read([9, 5])]) == []
    table.written(second)
    assert deleted(table.attempts.look_again([table.read([9, 5])])) == places(puts[1:])
    assert table.attempts.look_again([table.read([9, 5])]) == []


@pytest.mark.parametrize(("length", "is_key"), [(2040, True), (2041, False)])
def test_a_rank_for_which_a_key_is_too_long_is_not_deleted(length: int, is_key: bool) -> None:
    """It was never put. The partition key is that of the node with two more letters, and has 2,048 bytes at most."""
    with Graph(":memory:", [Round, Game, Played], AdjacencyList(reverse=None)) as g:
        table = Table(g, "x" * length)
        puts = table.tried(table.read([9]), are_put=False)
        assert [len(put.item["PK"]["S"]) for put in puts] == [length + 8]
        table.node = None
        assert deleted(table.attempts.look_again([table.read([9])])) == (places(puts) if is_key else set())


def test_what_was_not_tried_is_left_alone(table: Table) -> None:
    """An edge without ranks ends without a trace, and one that others tried is not looked up."""
    state = table.read([])
    assert table.attempts.look_again([state]) == []
    assert table.tried(state) == []
    assert table.attempts.end([state]) == []
    assert not table.attempts.linger(state)


def test_of_ranks_that_an_audit_found_only_dead_ones_are_removed() -> None:
    """One that a ledger names stays, and so does one that is not there any more; how many went is told."""
    with Graph(":memory:", [Round, Game, Played]) as g:
        layout = g._layout
        g.put_many([Round(id="r"), Played(source="r", target="g", points=[9, 7])])
        g.maintain(once=True)
        ranks = [item for item in stored(g) if is_rank(layout, item)]
        assert len(ranks) == 2
        # Of a transaction that required that there is no ledger yet.
        dead = {**ranks[0], "SK": {"S": ranks[0]["SK"]["S"][:-2] + "zz"}, BASE: {"N": "0"}}
        g._store.execute((Put("adjoin", dead),))
        rule = next(each for each in layout.rules.rules if each.operation == "top")
        found = {place_of(layout.key_of(item)): "ROUND#r" for item in (*ranks, dead)}
        assert run(remove_dead(layout, rule, found), g._store) == 1
        assert run(remove_dead(layout, rule, found), g._store) == 0
        assert [item for item in stored(g) if is_rank(layout, item)] == ranks


def test_no_more_values_are_read_than_are_kept() -> None:
    """A dead rank is among the first ones, so that more are read than are missing."""
    with Graph(":memory:", [Round, Game, Played]) as g:
        layout = g._layout
        kind = layout.schema.node(Round)
        g.put_many([Round(id="r"), *(Played(source="r", target=f"g{n}", points=[n]) for n in range(1, 8))])
        g.maintain(once=True)
        first = next(item for item in stored(g) if is_rank(layout, item) and item["value"] == {"N": "7"})
        dead = {**first, "SK": {"S": first["SK"]["S"][:-2] + "zz"}, BASE: {"N": "0"}}
        stale = (Set(attribute(STALE), Value({"SS": ["ROUND.best"]})), Remove(attribute("best")))
        g._store.execute((Put("adjoin", dead), Update("adjoin", layout.node_key(kind, "r"), stale)))
        run(refresh(layout, {"ROUND#r": kind}, Tally()), g._store)
        assert g.get(Round, "r") == Round(id="r", best=[7, 6, 5], games=7)
        assert dead not in stored(g)


def test_a_rank_that_requires_no_state_may_be_named_at_any_time() -> None:
    """Its ledger had no revision when it was put, so that the same state may return."""
    with Graph(":memory:", [Round, Game, Played]) as g:
        table = Table(g)
        state = table.read([9])
        (put,) = table.tried(state)
        without = {name: value for name, value in put.item.items() if name != BASE}
        about = table.layout, table.group
        assert standing(*about, without, None, table.node) == "pending"
        # What requires departures that are over will never be named; nor will one of another revision.
        assert table.node is not None
        later = {**table.node, LEFT: {"N": "5"}}
        assert [standing(*about, rank, None, later) for rank in (put.item, without)] == ["dead", "pending"]
        ledger: Item = {**table.ref.ledger_key(table.layout), "o": {"M": {"l": {"S": "one"}, "r": {"S": "now"}}}}
        revisions = [{**without, BASE: {"S": revision}} for revision in ("now", "former")]
        assert [standing(*about, rank, ledger, later) for rank in revisions] == ["pending", "dead"]
