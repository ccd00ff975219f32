"""Small parts of counting and maintenance, each by itself: what they return, write and refuse."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Annotated, Any

import pytest

from adjoin import (
    AccessDenied,
    AdjacencyList,
    AdjoinError,
    ConditionFailed,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidItem,
    Keys,
    Max,
    Node,
    Ref,
    Sum,
    Throttled,
    Top,
)
from adjoin.errors import InvalidRequest
from adjoin.expressions import Add, And, Exists, Not, Remove, Set, Value, all_of, attribute
from adjoin.layouts.interface import GENERATION, REVISION
from adjoin.plans.counting.edge_state import EdgeState, contributions
from adjoin.plans.counting.ledger import EdgeRef, Ledger, LedgerWrite, edge_in, ref_in, ref_to, refs_in, refs_to
from adjoin.plans.counting.node_transaction import MARKED, STALE, Near, NodeTransaction
from adjoin.plans.counting.rank_items import first_moves
from adjoin.plans.maintenance import neighbours
from adjoin.plans.maintenance.affected import apply_changes
from adjoin.plans.maintenance.blaming import unstorable_sums
from adjoin.plans.maintenance.copies import copy_ref, freshen
from adjoin.plans.maintenance.expected import expected
from adjoin.plans.maintenance.isolating import TOGETHER, Outcome, apply_each
from adjoin.plans.maintenance.neighbours import reconcile_near
from adjoin.plans.maintenance.ranks import refresh
from adjoin.plans.maintenance.reconciling import changing, reconcile, touched_node
from adjoin.plans.maintenance.report import Tally, Unapplied, set_aside, take_back
from adjoin.plans.maintenance.standing import AT, POSITION, keep, key_of, number
from adjoin.plans.maintenance.stream import Reading, maintain_step
from adjoin.plans.steps.again import ATTEMPTS
from adjoin.plans.steps.batches import place_of
from adjoin.requests import (
    BatchGet,
    ChangesResponse,
    Check,
    Delete,
    DescribeTable,
    Get,
    ItemChange,
    ItemResponse,
    Put,
    Query,
    ReadChanges,
    Request,
    TableResponse,
    TransactWrite,
    Update,
)
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.faults import FaultyStore
from tests.maintenance.models import MODELS, Customer, Part, Person, Placed, Uses
from tests.maintenance.simulation import Process, stored
from tests.maintenance.test_simulation import check


def changes_of(g: Graph) -> list[ItemChange]:
    (response,) = g._store.execute((ReadChanges("adjoin", None),))
    assert isinstance(response, ChangesResponse)
    return response.changes


# --- ledgers -----------------------------------------------------------------------------------


KEY: Item = {"PK": {"S": "a#="}, "SK": {"S": "=E#b"}}
ONE, OTHER = ({"M": {"l": {"S": "life"}, "r": {"S": token}}} for token in ("r1", "r2"))


def test_a_part_goes_only_while_the_other_one_stays(g: Graph) -> None:
    """Otherwise a ledger without any part could be left behind; so the other part is asked for."""
    write = LedgerWrite("adjoin", KEY, {**KEY, "o": ONE, "i": OTHER}, {"o": None}, is_shared=True)
    request = write.request(g._layout)
    assert isinstance(request, Update)
    assert request.actions == (Remove(attribute("o")),)
    assert request.condition == all_of(write.condition, Exists(attribute("i")))


def test_the_last_part_goes_only_while_there_is_no_other(g: Graph) -> None:
    write = LedgerWrite("adjoin", KEY, {**KEY, "o": ONE}, {"o": None}, is_shared=True)
    request = write.request(g._layout)
    assert request == Delete("adjoin", KEY, all_of(write.condition, Not(Exists(attribute("i")))))


def test_a_part_that_changes_leaves_the_other_one_alone(g: Graph) -> None:
    write = LedgerWrite("adjoin", KEY, {**KEY, "o": ONE, "i": OTHER}, {"o": OTHER}, is_shared=True)
    request = write.request(g._layout)
    assert isinstance(request, Update)
    assert request.condition == write.condition


# --- references --------------------------------------------------------------------------------


EDGE: Item = {"PK": {"S": "CUSTOMER#C1"}, "SK": {"S": "PLACED#INVOICE#I1"}}
ENDS: Item = {"near": {"S": "CUSTOMER#C1"}, "far": {"S": "INVOICE#I1"}}
RECORD: Item = {"PK": {"S": "#=ASIDE"}, "SK": {"S": "=x"}, "edge": {"M": EDGE}, **ENDS}


def test_a_record_names_its_edge(g: Graph) -> None:
    group = g._layout.rules.groups[0]
    ref = ref_in(g._layout, group, RECORD)
    assert (ref.key, ref.near, ref.far) == (EDGE, "CUSTOMER#C1", "INVOICE#I1")


SPOILT: list[Item] = [
    {name: value for name, value in RECORD.items() if name != "near"},
    {name: value for name, value in RECORD.items() if name != "far"},
    {**RECORD, "near": {"N": "1"}},
    {**RECORD, "edge": {"M": {**EDGE, "more": {"S": "x"}}}},
    {**RECORD, "edge": {"M": {"PK": EDGE["PK"]}}},
    {**RECORD, "edge": {"M": {**EDGE, "SK": {"N": "1"}}}},
    {**RECORD, "edge": {"S": "x"}},
]


@pytest.mark.parametrize("record", SPOILT, ids=range(len(SPOILT)))
def test_a_record_that_another_program_changed_is_refused_and_left_out(g: Graph, record: Item) -> None:
    group = g._layout.rules.groups[0]
    with pytest.raises(InvalidItem, match="was changed by another program"):
        ref_in(g._layout, group, record)
    assert [ref.key for ref in refs_in(g._layout, group, [record, RECORD])] == [EDGE]


def test_the_key_of_an_edge_is_two_texts(g: Graph) -> None:
    assert edge_in(g._layout, RECORD, "edge") == EDGE
    with pytest.raises(InvalidItem):
        edge_in(g._layout, RECORD, "near")


def test_edges_whose_ends_cannot_be_read_are_left_out() -> None:
    class Numbered(Node):
        id: int

    class Shelf(Node):
        id: str
        things: Annotated[int, Count("Holds")] = 0

    class Holds(Edge[Shelf, Numbered]):
        pass

    with Graph(":memory:", [Numbered, Shelf, Holds]) as g:
        (group,) = g._layout.rules.groups
        (item,) = g._layout.items(Holds(source="s", target=1))
        broken: Item = {"PK": item["PK"], "SK": {"S": item["SK"]["S"].removesuffix("1")}}
        assert [ref.key for ref in refs_to(g._layout, group, [broken, item, broken])] == [g._layout.key_of(item)]


# --- what one edge contributes -----------------------------------------------------------------


class Round(Node):
    id: str
    best: Annotated[list[int], Top("Played", field="points", k=2)] = []


class Game(Node):
    id: str


class Played(Edge[Round, Game]):
    points: list[int] = []


def test_an_edge_contributes_no_more_values_than_are_kept() -> None:
    with Graph(":memory:", [Round, Game, Played]) as g:
        (group,) = g._layout.rules.groups
        (item,) = g._layout.items(Played(source="r", target="g", points=[3, 9, 1, 7]))
        wanted, aside = contributions(g._layout, group, item)
        assert ([each["M"]["value"] for each in wanted["ROUND.best"]["L"]], aside) == ([{"N": "9"}, {"N": "7"}], {})


def test_first_ranks_are_of_one_generation_or_of_two() -> None:
    entry: Item = {"rank": {"S": "x"}, "value": {"N": "1"}}
    after = Ledger("new", {"ROUND.best": {"L": [{"M": entry}]}, "ROUND.sum": {"N": "1"}}, {})
    alone, both = (first_moves(after, before, {"ROUND.best": "key"}) for before in (None, "old"))
    assert [(rank.generation, rank.rule) for rank in alone.puts] == [("new", "key")]
    assert [*alone.tokens] == ["ROUND.best"]
    assert [former for _, former in alone.tokens["ROUND.best"]] == [None]
    assert [(rank.generation, rank.rule) for rank in both.puts] == [("new", "key"), ("old", "key")]
    assert [(rank.token,) for rank in both.puts] == [(token,) for token in both.tokens["ROUND.best"][0]]


class Scale(Node):
    id: str
    weight: Annotated[Decimal, Sum("Weighed", field="weight")] = Decimal(0)


class Weighed(Edge[Scale, Game]):
    weight: Decimal = Decimal(0)


@pytest.mark.parametrize(
    ("there", "is_new", "told"), [("1", True, []), ("0", False, []), ("1", False, ["SCALE.weight"])]
)
def test_a_sum_that_no_number_can_hold_is_told(there: str, is_new: bool, told: list[str]) -> None:
    """A number has 38 digits. A node that begins to count begins at 0, whatever another program wrote there."""
    with Graph(":memory:", [Scale, Game, Weighed]) as g:
        layout = g._layout
        (group,) = layout.rules.groups
        (item,) = layout.items(Weighed(source="s", target="g", weight=Decimal("1E-38")))
        key = layout.node_key(layout.schema.node(Scale), "s")
        node: Item = {**key, "weight": {"N": there}, **({} if is_new else {"adjoin:life": {"S": "life"}})}
        near = Near(layout.schema.node(Scale), "SCALE#s", key, node)
        state = EdgeState(ref_to(layout, group, item), item, None, node, None, near.generation)
        state.work_out(layout)
        assert unstorable_sums(NodeTransaction(near, [state])) == told


def test_an_edge_gets_its_first_ledger_once() -> None:
    with Graph(":memory:", [Round, Game, Played]) as g:
        layout = g._layout
        (group,) = layout.rules.groups
        (item,) = layout.items(Played(source="r", target="g", points=[3]))
        ref = ref_to(layout, group, item)
        ledger: Item = {**ref.ledger_key(layout), "o": {"M": {"l": {"S": "life"}, "r": {"S": "r"}}}}
        node = {**layout.node_key(layout.schema.node(Round), "r"), "adjoin:life": {"S": "life"}}

        def comes(edge: Item | None, there: Item | None) -> bool:
            state = EdgeState(ref, edge, there, node, None, "life")
            state.work_out(layout)
            return state.comes

        assert [comes(item, None), comes(item, ledger), comes(None, None), comes(None, ledger)] == [True, *[False] * 3]


# --- revisions of nodes ------------------------------------------------------------------------


class Author(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    city: Annotated[str, Indexed()] = ""
    newest: int | None = None
    works: Annotated[int, Count("Wrote")] = 0
    pages: Annotated[int, Sum("Wrote", field="pages")] = 0


class Work(Node):
    id: str


class Wrote(Edge[Author, Work]):
    pages: int = 0


def test_only_nodes_that_programs_write_as_a_whole_have_revisions(g: Graph) -> None:
    """These are nodes with index copies; another one gets no attribute that nobody asks for."""
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
    g.maintain(once=True)
    assert [item for item in stored(g) if item["PK"]["S"] == "CUSTOMER#C1" and REVISION in item] == []
    with Graph(":memory:", [Author, Work, Wrote]) as other:
        other.put_many([Author(id="a", city="Oslo"), Wrote(source="a", target="w")])
        other.maintain(once=True)
        (node,) = (item for item in stored(other) if item["PK"]["S"] == "AUTHOR#a" and item["SK"]["S"] == "#META")
        assert (node["works"], REVISION in node) == ({"N": "1"}, True)
        other.put(Wrote(source="a", target="x"))
        other.maintain(once=True)
        (after,) = (item for item in stored(other) if item["PK"]["S"] == "AUTHOR#a" and item["SK"]["S"] == "#META")
        assert (after["works"], after[REVISION] == node[REVISION]) == ({"N": "2"}, False)


def test_every_write_of_such_a_node_has_another_revision() -> None:
    """A program that writes the node as a whole, as it read it, must fail after any of them."""
    with Graph(":memory:", [Author, Work, Wrote]) as g:
        kind = g._layout.schema.node(Author)
        (item, *_) = g._layout.items(Author(id="a", city="Oslo"))
        item |= {REVISION: {"S": "old"}, GENERATION: {"S": "life"}}
        near = Near(kind, "AUTHOR#a", g._layout.key_of(item), item)
        for request in (touched_node(g._layout, near), changing(g._layout, near, [Remove(attribute("works"))])):
            update = request.writes[0] if isinstance(request, TransactWrite) else request
            assert isinstance(update, Update)
            (revised,) = (each for each in update.actions if isinstance(each, Set) and each.path == attribute(REVISION))
            assert revised.value != Value({"S": "old"})
            assert isinstance(update.condition, And)
            assert near.same(REVISION) in update.condition.conditions


# --- nodes that go -----------------------------------------------------------------------------


class Volume(Node):
    id: str
    year: int = 0


class Library(Node):
    id: str
    newest: Annotated[int | None, Max("Keeps", field="year")] = None


class Keeps(Edge[Library, Volume]):
    pass


def test_a_node_for_which_nothing_was_ever_counted_leaves_no_marker() -> None:
    """Authors count edges only; that libraries read what their edges lead to says nothing of authors."""
    with Graph(":memory:", [Author, Work, Wrote, Library, Volume, Keeps]) as g:
        assert [group.hop.near.label for group in g._layout.rules.groups if group.reads_far] == ["LIBRARY"]
        # The field of an author has the name of what a library keeps.
        g.put_many([Author(id="a", newest=1), Author(id="b"), Library(id="l"), Wrote(source="b", target="w", pages=3)])
        g.maintain(once=True)
        for model, id in ((Author, "a"), (Author, "b"), (Library, "l")):
            g._store.execute((Delete("adjoin", g._layout.node_key(g._layout.schema.node(model), id)),))
        g.maintain(once=True)
        markers = [item for item in stored(g) if MARKED in item and "edge" not in item]
        assert sorted(item["PK"]["S"] for item in markers) == ["AUTHOR#b#=", "LIBRARY#l#="]


def test_a_node_that_came_and_went_is_not_written() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, [Author, Work, Wrote]) as g:
        g.put_many([Author(id="a"), Author(id="b")])
        g.delete(Author, "a")
        written: list[Item] = []

        def note(_: int, request: Request) -> None:
            writes = request.writes if isinstance(request, TransactWrite) else (request,)
            written.extend(write.key for write in writes if isinstance(write, Update))

        store.fault = note
        g.maintain(once=True)
        kind = g._layout.schema.node(Author)
        assert g._layout.node_key(kind, "b") in written
        assert g._layout.node_key(kind, "a") not in written


def test_a_node_that_may_have_come_meanwhile_is_checked() -> None:
    """It was not found, but a ledger says that an edge was counted for it: the reads may be of two instants."""
    with Graph(":memory:", [Author, Work, Wrote]) as g:
        layout = g._layout
        (group,) = layout.rules.groups
        (edge,) = layout.items(Wrote(source="a", target="w", pages=3))
        ref = ref_to(layout, group, edge)
        ledger: Item = {**ref.ledger_key(layout), "o": {"M": {"l": {"S": "life"}, "r": {"S": "r"}}}}
        key = layout.node_key(layout.schema.node(Author), "a")

        def of(item: Item | None, *, is_gone: bool) -> NodeTransaction:
            near = Near(layout.schema.node(Author), "AUTHOR#a", key, None, is_gone=is_gone)
            state = EdgeState(ref, None, item, None, None, "other")
            state.work_out(layout)
            transaction = NodeTransaction(near, [state])
            transaction.write_down(layout)
            return transaction

        place = place_of(ref.ledger_key(layout))
        assert of(ledger, is_gone=False).places(layout) == ({place}, {place_of(key)})
        assert of(ledger, is_gone=True).places(layout) == ({place}, set())
        assert Check("adjoin", key, Not(layout.present)) in of(ledger, is_gone=False).all_writes(layout)
        assert len(of(ledger, is_gone=True).all_writes(layout)) == 1


# --- many edges of one node --------------------------------------------------------------------


def test_edges_of_a_node_are_reconciled_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "TOGETHER", 2)
    with Graph(":memory:", MODELS) as g:
        g.put_many([Customer(id="C1"), *(Placed(source="C1", target=f"I{number}") for number in range(5))])
        tally, seen = Tally(), []
        kind = g._layout.schema.node(Customer)
        run(reconcile_near(g._layout, kind, ["CUSTOMER#C1"], tally, lambda state: seen.append(state.ref.key)), g._store)
        assert g.get(Customer, "C1").invoices == 5  # type: ignore[union-attr]
        # Once per rule group: one reads only the edge, one also its far node, and one counts what it leads to.
        assert len(seen) == len({repr(key) for key in seen}) * (len(seen) // 5)
        assert tally.nodes == {"CUSTOMER#C1"}


# --- time that is over -------------------------------------------------------------------------


def test_what_was_written_before_the_time_was_over_is_counted(g: Graph) -> None:
    """The changes themselves are not: they come again."""
    g.put_many([Customer(id=f"C{number}") for number in range(3)])
    g.maintain(once=True)
    before = len(changes_of(g))
    g.put_many([Placed(source=f"C{number}", target="I1", balance=Decimal(1)) for number in range(3)])
    changes = [each for each in changes_of(g)[before:] if not g._layout.is_bookkeeping(each.key)]
    rounds: list[int] = []

    def has_time() -> bool:
        rounds.append(len([item for item in stored(g) if item.get("invoices") == {"N": "1"}]))
        return rounds[-1] < 3

    tally = Tally()
    outcome = run(apply_each(g._layout, changes, tally, has_time), g._store)
    assert (outcome.done, outcome.error) == (0, None)
    assert (tally.changes, tally.edges > 0) == (0, True)
    assert tally.nodes >= {"CUSTOMER#C0", "CUSTOMER#C1", "CUSTOMER#C2"}


def test_nothing_is_done_of_changes_for_which_there_is_no_time(g: Graph) -> None:
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
    outcome = run(apply_each(g._layout, changes_of(g), Tally(), lambda: False), g._store)
    assert outcome == Outcome(0, False, None)


def test_a_change_that_is_given_up_is_work(g: Graph) -> None:
    """So that the position after it is stored, and it is not given up again and again."""
    g.put(Customer(id="C1"))
    (change,) = (each for each in changes_of(g) if not g._layout.is_bookkeeping(each.key))
    store = FaultyStore(g._store)

    def refuse(_: int, request: Request) -> None:
        if isinstance(request, Update) and request.key == change.key:
            raise InvalidRequest("the store does not take it")

    store.fault = refuse
    tally = Tally()
    outcome = run(apply_each(g._layout, [change], tally), store)
    assert outcome == Outcome(1, True, None)
    assert (tally.changes, [each.reason for each in tally.records]) == (1, ["the store does not take it"])


@pytest.mark.parametrize("error", [Throttled("slow down"), AccessDenied("not you")], ids=["passes", "never passes"])
def test_a_change_that_cannot_be_given_up_either_comes_again_or_is_told(g: Graph, error: AdjoinError) -> None:
    """The record of it cannot be written. If that passes, nothing after this change counts as done."""
    g.put_many([Customer(id="C1"), Customer(id="C2")])
    changes = [each for each in changes_of(g) if not g._layout.is_bookkeeping(each.key)]
    store = FaultyStore(g._store)

    def refuse(_: int, request: Request) -> None:
        if isinstance(request, Update) and request.key == changes[0].key:
            raise InvalidRequest("the store does not take it")
        if isinstance(request, Put) and "reason" in request.item:
            raise error

    store.fault = refuse
    if isinstance(error, AccessDenied):
        with pytest.raises(AccessDenied):
            run(apply_each(g._layout, changes, Tally()), store)
    else:
        assert run(apply_each(g._layout, changes, Tally()), store) == Outcome(0, True, error)


def test_batches_are_of_the_first_changes_first(g: Graph) -> None:
    """The first of all is part of the first batch, whatever the size of batches."""
    g.put_many([Customer(id=f"C{number}") for number in range(3)])
    changes = [each for each in changes_of(g) if not g._layout.is_bookkeeping(each.key)]
    tally = Tally()
    outcome = run(apply_each(g._layout, changes, tally, together=1), g._store)
    assert (outcome.done, tally.changes) == (3, 3)
    assert TOGETHER >= 1000
    assert all("adjoin:life" in item for item in stored(g) if item["PK"]["S"].startswith("CUSTOMER#"))


# --- what is read and written once -------------------------------------------------------------


def test_an_edge_that_is_as_it_was_is_touched_and_not_read_again() -> None:
    """It changed and changed back. Its ledger gets another revision, which stops whoever read the edge in between."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, [Author, Work, Wrote]) as g:
        g.put_many([Author(id="a"), Wrote(source="a", target="w", pages=5)])
        g.maintain(once=True)
        key = g._layout.edge_key(g._layout.schema.edge(Wrote), "a", "w", {})
        for pages in (6, 5):
            g.update(Wrote, "a", "w", pages=pages)
        seen: list[Request] = []
        store.fault = lambda _, request: seen.append(request)
        g.maintain(once=True)
        reads = [get for request in seen if isinstance(request, BatchGet) for get in request.gets if get.key == key]
        touches = [request for request in seen if isinstance(request, Update) and "=E#" in repr(request.key)]
        assert (len(reads), len(touches)) == (1, 1)


def test_a_touch_that_others_outrun_at_every_attempt_is_given_up() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, [Author, Work, Wrote]) as g:
        g.put_many([Author(id="a"), Wrote(source="a", target="w", pages=5)])
        g.maintain(once=True)
        layout, tried = g._layout, list[Request]()
        (group,) = layout.rules.groups
        ref = ref_to(layout, group, layout.items(Wrote(source="a", target="w"))[0])

        def come_first(_: int, request: Request) -> None:
            if isinstance(request, Update):
                tried.append(request)
                raise ConditionFailed("somebody else was faster")

        store.fault = come_first
        with pytest.raises(ConditionFailed, match="somebody else"):
            run(reconcile(layout, [ref], Tally(), moved=lambda _: True), store)
        assert len(tried) == ATTEMPTS


def test_many_records_are_read_one_by_one_and_only_as_they_are_now(g: Graph) -> None:
    """Of some items there is a record, and of others there is none."""
    keys: list[Item] = [{"PK": {"S": f"a{number}"}, "SK": {"S": "x"}} for number in range(60)]
    for key in keys[::2]:
        run(set_aside(g._layout, Unapplied(key, "no"), Tally()), g._store)
    store = FaultyStore(g._store)
    gets: list[Get] = []
    store.fault = lambda _, request: gets.extend(request.gets if isinstance(request, BatchGet) else ())
    run(take_back(g._layout, keys[:3], Tally()), store)
    assert len(gets) == 3
    left = {item["item"]["M"]["PK"]["S"] for item in stored(g) if "reason" in item}
    assert left == {key["PK"]["S"] for key in keys[4::2]}
    assert all(get.consistent for get in gets)


def test_a_node_that_has_no_room_and_no_room_to_say_so_is_told() -> None:
    """The second refusal cannot be for lack of room, so it is raised."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        g.put_many([Customer(id="C1"), *(Placed(source="C1", target=f"I{n}", balance=Decimal(n)) for n in range(3))])
        g.maintain(once=True)
        key = g._layout.node_key(g._layout.schema.node(Customer), "C1")
        stale = Add(attribute(STALE), {"SS": ["CUSTOMER.largest"]})
        store.execute((Update("adjoin", key, (stale,)),))
        tried: list[Request] = []

        def refuse(_: int, request: Request) -> None:
            if isinstance(request, Update | TransactWrite):
                tried.append(request)
                raise InvalidRequest("no room")

        store.fault = refuse
        kind = g._layout.schema.node(Customer)
        with pytest.raises(InvalidRequest, match="no room"):
            run(refresh(g._layout, {"CUSTOMER#C1": kind}, Tally()), store)
        assert [type(request) for request in tried] == [Update, TransactWrite]


# --- the stream --------------------------------------------------------------------------------


def test_who_finds_that_another_began_again_goes_on_from_there() -> None:
    """The position is trimmed. Before this maintainer can say so, another one has moved it."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        g.put(Customer(id="C1"))
        place = key_of(g._layout, POSITION)
        store.execute((Put("adjoin", {**place, POSITION: {"S": "nowhere"}, AT: number(1.0), REVISION: {"S": "a"}}),))
        moved: Item = {**place, AT: number(2.0), REVISION: {"S": "b"}}

        def come_first(_: int, request: Request) -> None:
            if isinstance(request, TransactWrite):
                store.fault = lambda _number, _request: None
                store.inner.execute((Put("adjoin", moved),))

        store.fault = come_first
        reading = Reading()
        assert run(maintain_step(g._layout, reading, Tally(), clock=lambda: 3.0), store) is True
        assert (reading.is_begun, reading.due) == (False, None)
        assert g.health().rebuild_due is None
        run(maintain_step(g._layout, reading, Tally(), clock=lambda: 3.0), store)
        assert reading.is_begun


@pytest.mark.parametrize("has_all_changes", [True, False])
def test_what_the_stream_does_not_have_needs_a_rebuild(has_all_changes: bool) -> None:
    """Of a table that was filled before anything was declared, the stream has only the end."""
    with Graph(":memory:", MODELS) as g:
        plan = keep(g._layout)
        answers: dict[type[Any], Any] = {Get: ItemResponse(None)}
        (described,) = g._store.execute((DescribeTable("adjoin"),))
        assert isinstance(described, TableResponse)
        answers[DescribeTable] = replace(described, has_all_changes=has_all_changes)
        requests = next(plan)
        while not isinstance(requests[0], Put):
            requests = plan.send([answers[type(request)] for request in requests])
        rules = requests[0].item["rules"]["M"]
        assert {each["M"]["c"]["BOOL"] for each in rules.values()} == {has_all_changes}


# --- recursive rules ---------------------------------------------------------------------------


def order_of(g: Graph) -> list[int]:
    """How often the edges of each recursive rule changed."""
    return [int(item["changes"]["N"]) for item in stored(g) if "changes" in item and "ORDER" in item["PK"]["S"]]


def test_the_order_changes_with_some_edges_of_a_transaction() -> None:
    """One edge begins to contribute, and another of the same node is set aside: still the order has changed."""
    with Graph(":memory:", MODELS) as g:
        g.put_many([Part(id=id, cost=1) for id in "abc"])
        g.put(Uses(source="a", target="b"))
        g.maintain(once=True)
        before = order_of(g)
        assert len(before) == 3
        g.put_many([Uses(source="b", target="a"), Uses(source="b", target="c")])
        run(reconcile(g._layout, [uses_of(g, "b", target) for target in "ac"], Tally()), g._store)
        assert [after - each for after, each in zip(order_of(g), before, strict=True)] == [1, 1, 1]
        g.maintain(once=True)
        check(g)


def test_the_order_changes_with_a_node_that_goes() -> None:
    """Its edges stop to contribute with it, and no ledger says so."""
    with Graph(":memory:", MODELS) as g:
        g.put_many([Part(id="a"), Part(id="b"), Uses(source="a", target="b")])
        g.maintain(once=True)
        before, known = order_of(g), len(changes_of(g))
        g._store.execute((Delete("adjoin", {"PK": {"S": "PART#a"}, "SK": {"S": "#META"}}),))
        (change,) = changes_of(g)[known:]
        run(apply_changes(g._layout, [change], Tally()), g._store)
        assert [after - each for after, each in zip(order_of(g), before, strict=True)] == [1, 1, 1]


def uses_of(g: Graph, source: str, target: str) -> EdgeRef:
    layout = g._layout
    (group,) = (each for each in layout.rules.groups if each.edge is layout.schema.edge(Uses))
    return ref_to(layout, group, layout.items(Uses(source=source, target=target))[0])


def test_an_edge_is_not_set_aside_for_a_cycle_that_opened_meanwhile() -> None:
    """The cycle was found, and before it is recorded, another maintainer applies that one of its edges is gone."""
    with Graph(":memory:", MODELS) as g:
        g.put_many([Part(id=id, cost=1) for id in "abc"])
        g.put_many([Uses(source="a", target="c"), Uses(source="c", target="b")])
        g.maintain(once=True)
        g.put(Uses(source="b", target="a"))
        tally = Tally()
        late = Process(g, reconcile(g._layout, [uses_of(g, "b", "a")], tally), "maintainer")
        while not late.is_about(TransactWrite):
            late.step(Random(0))
        # Neither of the nodes of the new edge changes with it.
        g.disconnect(Uses, "c", "b")
        run(reconcile(g._layout, [uses_of(g, "c", "b")], Tally()), g._store)
        late.finish()
        assert tally.aside == []
        g.maintain(once=True)
        check(g)
        assert g.get(Part, "b").below == 2  # type: ignore[union-attr]


def test_a_node_to_which_two_ways_lead_is_looked_up_once() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        g.put_many([Part(id=id, cost=1) for id in "abcd"])
        g.put_many([Uses(source=source, target=target) for source, target in ("ab", "bc", "ac")])
        g.maintain(once=True)
        g.put(Uses(source="c", target="d"))
        asked: list[str] = []

        def note(_: int, request: Request) -> None:
            if isinstance(request, Query):
                asked.append(request.partition[1]["S"])

        store.fault = note
        run(reconcile(g._layout, [uses_of(g, "c", "d")], Tally()), store)
        # For each of the three rules.
        assert sorted(asked) == sorted(["PART#a#=", "PART#b#=", "PART#c#="] * 3)


def test_what_was_counted_for_a_node_that_is_another_now_closes_no_cycle() -> None:
    """The node was deleted and put again, so its ledgers are void; no edge leads from it until it is counted again."""
    with Graph(":memory:", MODELS) as g:
        g.put_many([Part(id="a", cost=1), Part(id="b", cost=2), Uses(source="a", target="b")])
        g.maintain(once=True)
        key = g._layout.node_key(g._layout.schema.node(Part), "a")
        g._store.execute((Delete("adjoin", key),))
        g.put_many([Part(id="a", cost=1), Uses(source="b", target="a")])
        tally = Tally()
        run(reconcile(g._layout, [uses_of(g, "b", "a")], tally), g._store)
        assert (tally.aside, g.get(Part, "b").total) == ([], 1)  # type: ignore[union-attr]
        # Now it is the other edge that would close the cycle.
        report = g.maintain(once=True)
        assert {each.edge["PK"]["S"] for each in report.set_aside} == {"PART#a"}
        check(g)


def test_edges_that_were_set_aside_are_looked_at_only_if_something_of_their_rules_changed() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        g.put_many([Part(id="a"), Person(id="p"), Customer(id="C1")])
        g.maintain(once=True)
        asked: list[Request] = []
        store.fault = lambda _, request: asked.append(request)
        g.put(Placed(source="C1", target="I1"))
        g.maintain(once=True)
        assert not [request for request in asked if "ASIDE" in repr(request)]
        g.put(Uses(source="a", target="b"))
        g.maintain(once=True)
        assert len([request for request in asked if "ASIDE" in repr(request)]) == 3


# --- copies ------------------------------------------------------------------------------------


class Club(Node):
    id: str
    name: str = ""
    town: str = ""


class Fan(Node):
    id: str


class Supports(Edge[Fan, Club]):
    since: int = 0
    club: Annotated[str, Copy("target.name")] = ""
    town: Annotated[str, Copy("target.town")] = ""


BY_CLUB = AdjacencyList(
    indexes=[Index("ByClub", "Club", "ClubSort")], keys={Supports: Keys(indexes={"ByClub": ("{club}", "{since}")})}
)


def test_a_copy_writes_only_what_differs() -> None:
    """The key of an index holds one of the copied fields: it is written only if this one changes."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, [Club, Fan, Supports], BY_CLUB) as g:
        g.put_many([Club(id="c", name="A", town="x"), Supports(source="f", target="c", since=3)])
        g.maintain(once=True)
        written: list[list[str]] = []

        def note(_: int, request: Request) -> None:
            writes = request.writes if isinstance(request, TransactWrite) else ()
            updates = [each for each in writes if isinstance(each, Update) and each.key["PK"]["S"] == "FAN#f"]
            written.extend(sorted(str(action.path.steps[0]) for action in each.actions) for each in updates)

        store.fault = note
        g.update(Club, "c", town="y")
        g.maintain(once=True)
        assert written == [["town"]]
        g.update(Club, "c", name="B")
        g.maintain(once=True)
        # The sort key of the index is what it was.
        assert written[1] == ["Club", "club"]
        assert g.edge(Supports, "f", "c") == Supports(source="f", target="c", since=3, club="B", town="y")


def test_a_copy_is_of_the_node_as_it_is_when_it_is_written() -> None:
    """Another program changes the node after it was read, and before the edge is written."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, [Club, Fan, Supports]) as g, Graph(store.inner, [Club, Fan, Supports]) as other:
        g.put_many([Club(id="c", name="A", town="x"), Supports(source="f", target="c", since=3)])
        (item,) = g._layout.items(Supports(source="f", target="c", since=3))
        g.update(Club, "c", name="between")

        def come_between(_: int, request: Request) -> None:
            if isinstance(request, TransactWrite):
                store.recover()
                other.update(Club, "c", name="B")

        store.fault = come_between
        run(freshen(g._layout, [copy_ref(g._layout, g._layout.schema.edge(Supports), item)], Tally()), store)
        assert g.edge(Supports, "f", "c") == Supports(source="f", target="c", since=3, club="B", town="x")


# --- what explain predicts ---------------------------------------------------------------------


class Shop(Node):
    id: str
    sales: Annotated[int, Count("Sold", consistency="transaction")] = 0
    largest: Annotated[int | None, Max("Sold", field="price")] = None


class Good(Node):
    id: str


class Sold(Edge[Shop, Good]):
    price: int = 0


def test_what_counts_in_the_transaction_counts_all_of_its_group_there() -> None:
    """A group of which one rule counts at once is written with the edge, the other rules too."""
    with Graph(":memory:", [Shop, Good, Sold]) as g:
        (group,) = g._layout.rules.groups
        assert {rule.in_transaction for rule in group.rules} == {True, False}
        (item,) = g._layout.items(Sold(source="s", target="g", price=3))
        assert list(expected(g._layout, [Put("adjoin", item)])) == []


class Critic(Node):
    id: str


class Film(Node):
    id: str
    genre: str = "noir"
    reviews: Annotated[int, Count("Reviews", direction="into")] = 0
    stars: Annotated[int, Sum("Reviews", field="stars", direction="into")] = 0


class Play(Node):
    id: str


class Reviews(Edge[Critic, Film | Play]):
    stars: int = 0


CHARTS = AdjacencyList(
    indexes=[Index("Charts", "Genre", "Chart")],
    keys={Film: Keys(indexes={"Charts": ("{genre}", "{reviews:sortable}")})},
)


@pytest.mark.parametrize(("layout", "entries"), [(AdjacencyList(), 0), (CHARTS, 1)], ids=["plain", "charts"])
def test_what_is_expected_of_an_edge_to_one_of_two_classes(layout: AdjacencyList, entries: int) -> None:
    """Films count their reviews, and plays do not. An index is for one of the two values that change."""
    with Graph(":memory:", [Critic, Film, Play, Reviews], layout) as g:
        film, play = (
            [*expected(g._layout, [Put("adjoin", g._layout.items(Reviews(source="a", target=target))[0])])]
            for target in (Ref(Film, "f"), Ref(Play, "p"))
        )
        assert play == []
        assert [(each.fields, each.nodes, each.ledgers, each.entries) for each in film] == [
            (("Film.reviews", "Film.stars"), 1, 1, entries)
        ]
