"""The switch of a recount, request by request: the next generation becomes the present one, once and whole."""

from __future__ import annotations

from random import Random
from typing import Annotated, Any

import pytest

from adjoin import Avg, ConditionFailed, Count, Edge, Graph, Max, Node, Sum
from adjoin.entity_types import NodeType
from adjoin.expressions import Remove, Set, Value, attribute
from adjoin.layouts.interface import GENERATION, NEXT_GENERATION
from adjoin.plans.counting.node_transaction import FULL, PREPARED
from adjoin.plans.maintenance.recounting import begin, finish, reconcile_and_compare, remove_void_ranks
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.steps.again import ATTEMPTS
from adjoin.requests import BatchGet, Delete, Get, Put, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import AttributeValue
from tests.faults import FaultyStore
from tests.maintenance.ledgers import is_rank
from tests.maintenance.simulation import Process, stored


class Author(Node):
    id: str
    works: Annotated[int, Count("Wrote")] = 0
    pages: Annotated[int, Sum("Wrote", field="pages")] = 0


class Work(Node):
    id: str


class Wrote(Edge[Author, Work]):
    pages: int = 0


@pytest.fixture
def g() -> Any:
    with Graph(FaultyStore(SQLiteStore(":memory:")), [Author, Work, Wrote]) as graph:
        graph.put(Author(id="a"))
        yield graph


def author(g: Graph) -> NodeType:
    return g._layout.schema.node(Author)


def counted(g: Graph) -> tuple[int, int]:
    found = g.get(Author, "a")
    assert found is not None
    return found.works, found.pages


def item_of(g: Graph) -> Any:
    (response,) = g._store.execute((Get("adjoin", g._layout.node_key(author(g), "a"), consistent=True),))
    return response.item  # type: ignore[union-attr]


def is_off(g: Graph) -> bool:
    return bool(run(reconcile_and_compare(g._layout, author(g), ["AUTHOR#a"], Tally()), g._store).off)


def before_the_switch(g: Graph) -> Process:
    """A recount of the author that has read everything, and that is about to write the switch."""
    g.maintain(once=True)
    begun = run(begin(g._layout, author(g), ["AUTHOR#a"]), g._store)
    recount = Process(g, finish(g._layout, author(g), begun, Tally()), "recount")
    while not (recount.is_about(Update) and _switches(recount.waits_for)):
        recount.step(Random(0))
    return recount


def _switches(request: Any) -> bool:
    return Remove(attribute(NEXT_GENERATION)) in request.actions


def test_the_first_edge_that_is_counted_just_before_a_switch_stays_counted(g: Graph) -> None:
    """The sum of the next generation did not exist when the node was read, so the switch would take the value away."""
    g.put(Wrote(source="a", target="w", pages=3))
    g.maintain(once=True)
    g.disconnect(Wrote, "a", "w")
    recount = before_the_switch(g)
    g.put(Wrote(source="a", target="x", pages=5))
    g.maintain(once=True)
    recount.finish()
    assert counted(g) == (1, 5)
    assert not is_off(g)


def test_an_edge_that_is_counted_just_before_a_switch_stays_counted(g: Graph) -> None:
    """What is added to the sum of the next generation meanwhile is part of what the switch takes over."""
    g.put(Wrote(source="a", target="w", pages=3))
    recount = before_the_switch(g)
    g.put(Wrote(source="a", target="x", pages=5))
    g.maintain(once=True)
    recount.finish()
    assert counted(g) == (2, 8)
    assert not is_off(g)


def test_a_switch_takes_a_value_away_that_no_edge_accounts_for(g: Graph) -> None:
    g.maintain(once=True)
    g.put(Wrote(source="a", target="w"))
    g.maintain(once=True)
    g.disconnect(Wrote, "a", "w")
    g.maintain(once=True)
    g._store.execute(
        (Update("adjoin", g._layout.node_key(author(g), "a"), (Set(attribute("works"), Value({"N": "7"})),)),)
    )
    recount = before_the_switch(g)
    recount.finish()
    assert counted(g) == (0, 0)
    assert "works" not in item_of(g)


def test_a_switch_removes_the_hidden_attribute_that_a_rule_had_before(g: Graph) -> None:
    """A count of different nodes has one, which may be large, and the same count without `distinct=` has none."""
    former: AttributeValue = {"M": {}}
    others: AttributeValue = {"S": "another program's"}
    key = g._layout.node_key(author(g), "a")
    actions = tuple(
        Set(attribute(name), Value(value)) for name, value in (("adjoin:AUTHOR.works", former), ("mine", others))
    )
    g._store.execute((Update("adjoin", key, actions),))
    before_the_switch(g).finish()
    assert item_of(g).keys() & {"adjoin:AUTHOR.works", "mine"} == {"mine"}


def test_a_switch_that_was_done_is_not_done_again(g: Graph) -> None:
    """Two processes finish the same recount. The second one finds no next generation, or the one of another recount."""
    g.put(Wrote(source="a", target="w", pages=3))
    g.maintain(once=True)
    begun = run(begin(g._layout, author(g), ["AUTHOR#a"]), g._store)
    run(finish(g._layout, author(g), begun, Tally()), g._store)
    after = item_of(g)
    assert after[GENERATION]["S"] == begun["AUTHOR#a"]
    run(finish(g._layout, author(g), begun, Tally()), g._store)
    assert item_of(g) == after
    other = run(begin(g._layout, author(g), ["AUTHOR#a"]), g._store)
    run(finish(g._layout, author(g), begun, Tally()), g._store)
    assert {name: item_of(g)[name] for name in (GENERATION, NEXT_GENERATION)} == {
        GENERATION: {"S": begun["AUTHOR#a"]},
        NEXT_GENERATION: {"S": other["AUTHOR#a"]},
    }
    assert counted(g) == (1, 3)
    run(finish(g._layout, author(g), other, Tally()), g._store)
    assert counted(g) == (1, 3)
    assert [name for name in item_of(g) if name.startswith(PREPARED)] == []


def test_a_node_that_was_never_counted_begins_its_first_generation_and_needs_no_switch(g: Graph) -> None:
    begun = run(begin(g._layout, author(g), ["AUTHOR#a"]), g._store)
    assert begun == {"AUTHOR#a": None}
    first = item_of(g)
    g.put(Wrote(source="a", target="w", pages=3))
    run(finish(g._layout, author(g), begun, Tally()), g._store)
    assert item_of(g)[GENERATION] == first[GENERATION]
    assert counted(g) == (1, 3)


def test_two_recounts_that_begin_at_once_prepare_one_generation(g: Graph) -> None:
    """The second one finds what the first one stored, and both finish the same."""
    g.put(Wrote(source="a", target="w", pages=3))
    g.maintain(once=True)
    late = Process(g, begin(g._layout, author(g), ["AUTHOR#a"]), "recount")
    while not late.is_about(Update):
        late.step(Random(0))
    begun = run(begin(g._layout, author(g), ["AUTHOR#a"]), g._store)
    late.finish()
    assert item_of(g)[NEXT_GENERATION] == {"S": begun["AUTHOR#a"]}
    run(finish(g._layout, author(g), begun, Tally()), g._store)
    assert counted(g) == (1, 3)
    assert not [item for item in stored(g) if NEXT_GENERATION in item]


# --- nodes that others change meanwhile --------------------------------------------------------


class Batches:
    """What a plan asks for, batch by batch; somebody else comes before each write of some nodes, so many times."""

    def __init__(self, g: Graph, outruns: dict[str, int]) -> None:
        self.reads: list[int] = []
        self.writes: list[list[str]] = []
        self._inner, self._left = g._store, dict(outruns)

    def execute(self, requests: Any) -> Any:
        for request in requests:
            if isinstance(request, BatchGet):
                self.reads.append(len(request.gets))
        updates = [
            request.key["PK"]["S"].removeprefix("AUTHOR#") for request in requests if isinstance(request, Update)
        ]
        if updates:
            self.writes.append(updates)
        for id in updates:
            if self._left.get(id, 0) > 0:
                self._left[id] -= 1
                raise ConditionFailed("somebody else was faster")
        return self._inner.execute(requests)


def test_only_nodes_that_were_outrun_are_read_again_and_then_each_is_written_alone(g: Graph) -> None:
    g.put_many(Author(id=id) for id in "bcd")
    g.put_many(Wrote(source=id, target="w") for id in "abcd")
    g.maintain(once=True)
    texts = [f"AUTHOR#{id}" for id in "abcd"]
    store: Any = Batches(g, {"b": 2, "d": 1})
    begun = run(begin(g._layout, author(g), texts), store)
    assert store.writes == [["a", "b", "c", "d"], ["a"], ["b"], ["c"], ["d"], ["b"], ["d"]]
    assert store.reads == [4, 4, 2]
    assert sorted(begun) == texts
    items = g._store.execute([Get("adjoin", g._layout.node_key(author(g), id)) for id in "abcd"])
    found: list[Any] = [response.item for response in items]  # type: ignore[union-attr]
    assert [item[NEXT_GENERATION]["S"] for item in found] == [begun[text] for text in texts]
    # Those that prepare one already are not written again, and are told as well.
    store = Batches(g, {})
    assert run(begin(g._layout, author(g), texts), store) == begun
    assert store.writes == []


def test_a_node_that_others_outrun_at_every_attempt_is_given_up(g: Graph) -> None:
    store: Any = Batches(g, {"a": 10_000})
    with pytest.raises(ConditionFailed, match="somebody else"):
        run(begin(g._layout, author(g), ["AUTHOR#a"]), store)
    assert len(store.writes) == ATTEMPTS


def test_a_node_that_goes_before_its_recount_begins_is_not_recounted(g: Graph) -> None:
    g.put(Wrote(source="a", target="w", pages=3))
    g.maintain(once=True)
    store: Any = g._store

    def come_first(_: int, request: Any) -> None:
        if isinstance(request, Update):
            store.recover()
            store.inner.execute((Delete("adjoin", request.key),))

    store.fault = come_first
    assert run(begin(g._layout, author(g), ["AUTHOR#a"]), store) == {}
    assert g.get(Author, "a") is None


# --- what is compared --------------------------------------------------------------------------


class Critic(Node):
    id: str
    best: Annotated[int | None, Max("Rates", field="stars")] = None
    ratings: Annotated[int, Count("Rates")] = 0
    mean: Annotated[float | None, Avg("Rates", field="stars")] = None


class Rates(Edge[Critic, Work]):
    stars: int = 0


def test_a_value_for_which_a_node_has_no_room_is_not_compared() -> None:
    """It is left out, and a record says so. The others are compared all the same."""
    with Graph(":memory:", [Critic, Work, Rates]) as g:
        g.put_many([Critic(id="c"), Rates(source="c", target="w", stars=5)])
        g.maintain(once=True)
        layout = g._layout
        kind = layout.schema.node(Critic)
        (item,) = (each for each in stored(g) if "ratings" in each)

        def is_off(spoilt: Any) -> bool:
            g._store.execute((Put("adjoin", spoilt),))
            return bool(run(reconcile_and_compare(layout, kind, ["CRITIC#c"], Tally()), g._store).off)

        without = {name: value for name, value in item.items() if name != "best"}
        full = {FULL: {"SS": ["CRITIC.best"]}}
        assert [is_off(each) for each in (item, without, without | full, item | full)] == [False, True, False, False]
        assert is_off({**without, **full, "ratings": {"N": "7"}})
        assert is_off({**item, "mean": {"N": "7"}})


def test_ranks_of_generations_that_are_over_are_removed_and_told() -> None:
    with Graph(":memory:", [Critic, Work, Rates]) as g:
        g.put_many([Critic(id="c"), Rates(source="c", target="w", stars=5), Rates(source="c", target="x", stars=2)])
        g.maintain(once=True)
        layout = g._layout
        kind = layout.schema.node(Critic)
        ranks = [item for item in stored(g) if is_rank(layout, item)]
        assert len(ranks) == 2
        for rank in ranks:
            over = rank["SK"]["S"].replace(layout.ledgers.generation_of_rank(rank), "over")
            g._store.execute((Put("adjoin", {**rank, "SK": {"S": over}}),))
        assert run(remove_void_ranks(layout, kind, ["CRITIC#c"]), g._store) == 2
        assert run(remove_void_ranks(layout, kind, ["CRITIC#c"]), g._store) == 0
        assert [item for item in stored(g) if is_rank(layout, item)] == ranks
