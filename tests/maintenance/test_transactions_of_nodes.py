"""How node transactions become requests, which queries find the edges of a node, and what one edge may add."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Copy, Count, Edge, Graph, InvalidItem, Keys, Max, Node, Sum, Top
from adjoin.expressions import Add, Compare, Not, Path, Remove, Value, attribute
from adjoin.layouts.interface import REVISION
from adjoin.layouts.own_items import COUNTED
from adjoin.plans.counting.arrivals import lookups
from adjoin.plans.counting.contributions import RANK, VALUE
from adjoin.plans.counting.edge_state import EdgeState, contributions
from adjoin.plans.counting.ledger import (
    LENGTH,
    Ledger,
    LedgerWrite,
    edge_of,
    ledger_held,
    ledger_in,
    ledger_touched,
    ledger_write,
    ref_beside,
    ref_to,
)
from adjoin.plans.counting.node_transaction import TURN, Near, NodeTransaction, arranged, first_values, is_structural
from adjoin.plans.counting.rank_items import Rank, first_moves, moves
from adjoin.plans.maintenance.ranks import values_of_an_edge
from adjoin.plans.maintenance.reconciling import first_actions
from adjoin.plans.steps.batches import place_of
from adjoin.requests import Check, Delete, Put
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item
from tests.maintenance.ledgers import is_ledger
from tests.maintenance.models import MODELS, Follows, Part, Person, Uses
from tests.maintenance.simulation import stored


def item(name: str) -> Any:
    return {"PK": {"S": name}, "SK": {"S": "x"}}


# --- transactions of several nodes as requests -------------------------------------------------


def writing(g: Graph, held: Iterable[str], checked: Iterable[str] = ()) -> NodeTransaction:
    """A node transaction that puts some items and checks others. The node is not there, so it writes nothing else."""
    near = Near(g._layout.schema.node(Person), "PERSON#a", item("PERSON#a"), None)
    puts = {place_of(item(name)): Put("adjoin", item(name)) for name in held}
    checks = {place_of(item(name)): Check("adjoin", item(name), Not(g._layout.present)) for name in checked}
    return NodeTransaction(near, writes={**puts, **checks})


FULL = [str(number) for number in range(MAX_TRANSACTION)]
ARRANGED: list[tuple[str, list[tuple[list[str], list[str]]], bool, list[list[list[int]]]]] = [
    ("nothing in common", [(["a"], []), (["b"], []), (["c"], [])], False, [[[0, 1, 2]]]),
    ("each by itself", [(["a"], []), (["b"], []), (["c"], [])], True, [[[0], [1], [2]]]),
    ("one item, by itself", [(["a"], []), (["a"], []), (["b"], [])], True, [[[0], [2]], [[1]]]),
    ("one item of two, together", [(["a", "b"], []), (["c"], []), (["b"], [])], False, [[[0, 2, 1]]]),
    ("a check of what another writes", [(["a"], []), (["b"], ["a"])], False, [[[0], [1]]]),
    ("a write of what another checks", [(["a", "c"], ["b"]), (["b"], [])], False, [[[0], [1]]]),
    ("the same check twice", [(["a"], ["c"]), (["b"], ["c"])], False, [[[0, 1]]]),
    ("only checks", [([], ["a"]), (["b"], []), ([], ["c"])], False, [[[1, 0, 2]]]),
    ("only checks, each by itself", [([], ["a"]), ([], ["a"])], True, [[[0], [1]]]),
    ("full", [(FULL, []), (["a"], [])], False, [[[0], [1]]]),
    ("just full", [(FULL[1:], []), (["a"], [])], False, [[[0, 1]]]),
    ("full with checks", [(FULL[2:], ["x"]), (["a"], ["y"])], False, [[[0], [1]]]),
    ("full, and one item of it", [(FULL, []), (["1", "a"], [])], False, [[[0]], [[1]]]),
    (
        "between two full ones",
        [(FULL, []), ([f"b{name}" for name in FULL], []), (["1", "b1"], [])],
        False,
        [[[0], [1]], [[2]]],
    ),
]


@pytest.mark.parametrize(("what", "writes", "is_apart", "rounds"), ARRANGED)
def test_which_transactions_are_written_together(
    what: str, writes: list[tuple[list[str], list[str]]], is_apart: bool, rounds: list[list[list[int]]]
) -> None:
    with Graph(":memory:", MODELS) as g:
        transactions = [writing(g, *each) for each in writes]
        found = arranged(g._layout, transactions, is_apart)
        numbers = {id(each): number for number, each in enumerate(transactions)}
        assert [[[numbers[id(each)] for each in request] for request in one] for one in found] == rounds


def test_only_edges_that_join_or_leave_a_recursive_rule_need_an_order() -> None:
    with Graph(":memory:", MODELS) as g:
        layout = g._layout
        for model, edge, is_recursive in (
            (Part, Uses(source="a", target="b"), True),
            (Person, Follows(source="a", target="b"), False),
        ):
            kind = layout.schema.node(model)
            (stored_edge,) = layout.items(edge)
            (node,) = layout.items(model(id="a"))
            group = next(each for each in layout.rules.groups if each.hop.near is kind and each.hop.direction == "out")
            ref = ref_to(layout, group, stored_edge)
            for there in (node, None):
                near = Near(kind, ref.near, layout.key_of(node), there)
                state = EdgeState(ref, stored_edge, None, there, None, near.generation)
                state.work_out(layout)
                assert is_structural(NodeTransaction(near, [state])) is (is_recursive and there is not None)
                assert is_structural(NodeTransaction(near, [])) is False


# --- ledgers -----------------------------------------------------------------------------------


def test_a_ledger_of_a_long_key_names_its_edge() -> None:
    """The key of the ledger has no room for that of the edge, so an attribute holds it."""
    with Graph(":memory:", MODELS) as g:
        ids = ["a" * 900, "b" * 900]
        g.put_many([Person(id=id) for id in ids])
        g.put(Follows(source=ids[0], target=ids[1]))
        g.maintain(once=True)
        layout = g._layout
        key = layout.edge_key(layout.schema.edge(Follows), ids[0], ids[1], {})
        ledgers = [item for item in stored(g) if is_ledger(item) and "applied" not in item]
        assert ledgers
        for each in ledgers:
            assert edge_of(layout, each) == key
            for group in layout.rules.groups:
                if not group.reads_far and group.edge.label == "FOLLOWS" and ledger_in(group, each) is not None:
                    ref = ref_beside(layout, group, each)
                    texts = [f"PERSON#{id}" for id in ids]
                    assert [ref.near, ref.far] == (texts if group.hop.direction == "out" else texts[::-1])
        # The edge is found again by its ledger.
        g.delete(Person, ids[1])
        g.put(Follows(source=ids[0], target=ids[1]))
        g.maintain(once=True)
        g.put(Person(id=ids[1]))
        g.maintain(once=True)
        assert [each and each.followers for each in g.get_many(Person, ids)] == [0, 1]


def test_a_part_without_a_revision_is_compared_as_a_whole() -> None:
    key = item("a")
    part = {"M": {"l": {"S": "now"}, "x": {"N": "1"}}}
    with_revision = {"M": {**part["M"], "r": {"S": "abc"}}}
    for there, condition in (
        ({**key, "o": part}, Compare("=", attribute("o"), Value(part))),
        ({**key, "o": with_revision}, Compare("=", Path(("o", "r")), Value({"S": "abc"}))),
    ):
        assert LedgerWrite("adjoin", key, there, {"o": None}).condition == condition


# --- which ranks are put and deleted ------------------------------------------------------------


def entry(value: int) -> dict[str, AttributeValue]:
    return {RANK: {"S": f"rank {value}"}, VALUE: {"N": str(value)}}


def rank(value: int, number: int, token: str | None, generation: str = "now") -> Rank:
    return Rank(generation, "k", number, entry(value), token)


def ledger(*values: int, generation: str = "now") -> Ledger:
    return Ledger(generation, {"RULE": {"L": [{"M": entry(value)} for value in values]}, "SUM": {"N": "1"}}, {})


def test_a_value_that_stays_keeps_its_rank() -> None:
    """Whatever its place among the values of the edge is now; but a rank of an earlier version keeps its place."""
    made = moves(ledger(7, 5), None, {"RULE": "k"}, [rank(5, 0, "t5"), rank(3, 1, "t3")], [])
    (put,) = made.puts
    assert (put.generation, put.rule, put.number, put.entry) == ("now", "k", 0, entry(7))
    assert (made.spare, made.deletes, made.together) == ((), (rank(3, 1, "t3"),), ())
    assert made.tokens == {"RULE": ((put.token, None), ("t5", None))}
    # Without a token, the number is part of its key.
    made = moves(ledger(7, 5), None, {"RULE": "k"}, [rank(5, 0, None), rank(3, 1, None)], [])
    assert [(put.number, put.entry) for put in made.puts] == [(0, entry(7)), (1, entry(5))]
    assert (made.deletes, made.together) == ((), (rank(5, 0, None), rank(3, 1, None)))
    made = moves(ledger(5, 3), None, {"RULE": "k"}, [rank(5, 0, None), rank(3, 1, None)], [])
    assert (made.puts, made.deletes, made.together) == ((), (), ())
    assert made.tokens == {"RULE": ((None, None), (None, None))}


def test_what_an_earlier_attempt_put_is_used_again() -> None:
    spare = [rank(7, 0, "s7"), rank(9, 1, "s9"), rank(5, 0, "s5")]
    made = moves(ledger(7, 5), None, {"RULE": "k"}, [rank(5, 0, "t5")], spare)
    assert (made.puts, made.spare, made.deletes) == ((), (rank(7, 0, "s7"),), ())
    assert made.tokens == {"RULE": (("s7", None), ("t5", None))}


def test_a_node_that_is_recounted_has_ranks_in_both_generations() -> None:
    there = [rank(5, 0, "t5")]
    made = moves(ledger(5, generation="next"), "now", {"RULE": "k"}, there, [])
    (put,) = made.puts
    assert (put.generation, put.entry) == ("next", entry(5))
    assert (made.deletes, made.tokens) == ((), {"RULE": ((put.token, "t5"),)})
    first = first_moves(ledger(5, generation="next"), "now", {"RULE": "k"})
    assert [(put.generation, put.rule, put.number, put.entry) for put in first.puts] == [
        ("next", "k", 0, entry(5)),
        ("now", "k", 0, entry(5)),
    ]
    assert first.tokens == {"RULE": (tuple(put.token for put in first.puts),)}
    assert [put.generation for put in first_moves(ledger(5), None, {}).puts] == ["now"]


# --- which queries find the edges of a node ----------------------------------------------------


class User(Node):
    id: str
    name: str = ""
    friends: Annotated[int, Count("Friendship")] = 0
    rivals: Annotated[int, Count("Rivalry")] = 0
    posts: Annotated[int, Count("Wrote")] = 0
    likes: Annotated[int, Count("Likes")] = 0
    fans: Annotated[int, Count("Friendship", direction="into")] = 0


class Post(Node):
    id: str
    size: int = 0
    readers: Annotated[int, Count("Likes", direction="into")] = 0
    loved: Annotated[int, Sum("Likes", direction="into", field="weight")] = 0


class Friendship(Edge[User, User]):
    pass


class Rivalry(Edge[User, User]):
    pass


class Wrote(Edge[User, Post]):
    pass


class Likes(Edge[User, Post]):
    weight: int = 1
    by: Annotated[str, Copy("source.name")] = ""


SOCIAL: list[Any] = [User, Post, Friendship, Rivalry, Wrote, Likes]
APART = AdjacencyList(
    keys={Friendship: Keys("F#{source.id}", "f#{target.id}"), Rivalry: Keys("R#{source.id}", "r#{target.id}")}
)


def test_each_class_in_partitions_of_its_own_has_a_query() -> None:
    with Graph(":memory:", SOCIAL, APART) as g:
        layout = g._layout
        kind = layout.schema.node(User)
        groups = [group for group in layout.rules.groups if group.hop.near is kind]
        found = [
            (
                each.query.index,
                each.query.partition[1]["S"],
                {group.edge.label for group in each.groups},
                each.leaves,
                each.repeats,
            )
            for each in lookups(layout, kind, "USER#a", groups)
        ]
        # What leaves the node is found once. What arrives may be found by its ledger and by the index.
        assert found == [
            (None, "F#a", {"FRIENDSHIP"}, True, False),
            (None, "R#a", {"RIVALRY"}, True, False),
            (None, "USER#a", {"WROTE", "LIKES"}, True, False),
            (None, "USER#a#=", {"FRIENDSHIP"}, False, True),
            (None, "USER#a#=", {"FRIENDSHIP"}, False, True),
            ("GSI1", "USER#a", {"FRIENDSHIP"}, False, True),
        ]


# --- which edges have arrivals -----------------------------------------------------------------


class Fan(Node):
    id: str
    age: int = 0


class Band(Node):
    id: str
    name: str = ""
    ages: Annotated[int, Sum("Hears", field="age", direction="into")] = 0
    fans: Annotated[int, Count("Sees", direction="into")] = 0
    plays: Annotated[int, Sum("Plays", field="seats")] = 0


class Hall(Node):
    id: str
    seats: int = 0


class Hears(Edge[Fan, Band]):
    """Counted at its target by a field of its source."""


class Sees(Edge[Fan, Band]):
    """Counted at its target by itself."""


class Plays(Edge[Band, Hall]):
    """Counted at its source by a field of its target."""


class Owns(Edge[Fan, Hall]):
    seats: Annotated[int, Copy("target.seats")] = 0


class Rents(Edge[Band, Hall]):
    band: Annotated[str, Copy("source.name")] = ""


def test_which_edges_have_arrivals() -> None:
    models: list[Any] = [Fan, Band, Hall, Hears, Sees, Plays, Owns, Rents]
    for some in (models, [*models[:3], *models[:2:-1]]):
        with Graph(":memory:", some) as g:
            kinds = g._layout.schema.edges.values()
            assert {kind.label for kind in kinds if kind.model in g._layout.rules.arriving} == {"HEARS", "OWNS"}


# --- how many ranks an edge has ----------------------------------------------------------------


class Step(Node):
    id: str
    cost: int = 0
    names: list[str] = []
    steps: Annotated[int, Count("Next")] = 0
    most: Annotated[int | None, Max("Next", field="cost")] = None
    dearest: Annotated[list[int], Top("Next", field="cost", k=3)] = []
    below: Annotated[list[int], Top("Next", field="cost", k=4, recursive=True)] = []
    second: Annotated[list[int], Top("Next", "Next", field="cost", k=5)] = []


class Next(Edge[Step, Step]):
    pass


def test_how_many_values_one_edge_may_add() -> None:
    """One, unless it adds a list: what is below a node, or two hops away."""
    with Graph(":memory:", [Step, Next]) as g:
        found = {rule.field: values_of_an_edge(rule) for rule in g._layout.rules.rules if rule.field}
        assert found == {"steps": 0, "most": 1, "dearest": 1, "below": 4, "second": 5}


def test_a_ledger_says_nothing_of_a_part_that_it_has_not() -> None:
    with Graph(":memory:", MODELS) as g:
        group = next(each for each in g._layout.rules.groups if each.edge.label == "FOLLOWS" and not each.reads_far)
        assert ledger_in(group, None) is None
        assert ledger_in(group, item("a")) is None
        assert ledger_in(group, {**item("a"), group.part: {"M": {"r": {"S": "abc"}}}}) is None
        told = {"l": {"S": "now"}, "r": {"S": "abc"}, group.rules[0].key: {"N": "1"}, "a": {"M": {"x": {"S": "why"}}}}
        found = ledger_in(group, {**item("a"), group.part: {"M": told}})
        assert found == Ledger("now", {group.rules[0].name: {"N": "1"}}, {"x": "why"})


@pytest.mark.parametrize("length", [{"S": "x"}, {"N": "x"}, {"BOOL": True}])
def test_a_ledger_whose_length_another_program_changed_is_refused(length: AttributeValue) -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many([Person(id="a"), Person(id="b"), Follows(source="a", target="b")])
        g.maintain(once=True)
        (ledger,) = (each for each in stored(g) if LENGTH in each)
        assert edge_of(g._layout, ledger)["PK"] == {"S": "PERSON#a"}
        with pytest.raises(InvalidItem, match=r"the ledger \(PK='PERSON#b#=', .*was changed by another program"):
            edge_of(g._layout, {**ledger, LENGTH: length})


def test_what_is_written_down_again_has_nothing_of_edges_that_left_the_transaction() -> None:
    """One of two edges was set aside; its ledger may not say that it was counted."""
    with Graph(":memory:", MODELS) as g:
        layout = g._layout
        kind = layout.schema.node(Person)
        (node,) = layout.items(Person(id="a"))
        group = next(each for each in layout.rules.groups if each.hop.near is kind and each.name == "FOLLOWS.out")
        states = []
        near = Near(kind, "PERSON#a", layout.key_of(node), node)
        for target in "bc":
            (edge,) = layout.items(Follows(source="a", target=target))
            state = EdgeState(ref_to(layout, group, edge), edge, None, node, None, near.generation)
            state.work_out(layout)
            states.append(state)
        transaction = NodeTransaction(near, states)
        transaction.write_down(layout)
        places = [place_of(state.ref.ledger_key(layout)) for state in states]
        assert set(places) <= transaction.writes.keys()
        transaction.states = states[1:]
        transaction.write_down(layout)
        assert places[0] not in transaction.writes
        assert places[1] in transaction.writes


class Game(Node):
    id: str
    name: str = ""


class Round(Node):
    id: str
    best: Annotated[list[int], Top("Played", field="points", k=2)] = []
    top: Annotated[int | None, Max("Played", field="points")] = None
    games: Annotated[int, Count("Played")] = 0


class Played(Edge[Round, Game]):
    points: int = 0


TOLD: list[tuple[int | None, int | None, list[int] | None, int | None]] = [
    # What an edge had and has, and the values that follow from 9 and 7 on the node.
    (None, 8, [9, 8], 9),
    (None, 3, [9, 7], 9),
    (None, 12, [12, 9], 12),
    (3, 8, [9, 8], 9),
    (3, None, [9, 7], 9),
    (9, 12, None, None),
    (9, None, None, None),
    (7, 8, None, 9),
    (7, None, None, 9),
]


@pytest.mark.parametrize(("before", "after", "best", "top"), TOLD)
def test_which_values_follow_from_those_on_the_node(
    before: int | None, after: int | None, best: list[int] | None, top: int | None
) -> None:
    """An edge that takes back one of the values on the node leaves it to the ranks which one comes next."""
    with Graph(":memory:", [Round, Game, Played]) as g:
        layout = g._layout
        kind, (group,) = layout.schema.node(Round), layout.rules.groups
        node: Any = {**layout.node_key(kind, "r"), "adjoin:life": {"S": "life"}}
        node |= {"best": {"L": [{"N": "9"}, {"N": "7"}]}, "top": {"N": "9"}}
        near = Near(kind, "ROUND#r", layout.node_key(kind, "r"), node)
        (edge,) = layout.items(Played(source="r", target="g"))
        state = EdgeState(ref_to(layout, group, edge), edge, None, node, None, near.generation)
        for points, contributed in ((before, "applied"), (after, "wanted")):
            if points is not None:
                (edge,) = layout.items(Played(source="r", target="g", points=points))
                setattr(state, contributed, contributions(layout, group, edge)[0])
            else:
                setattr(state, contributed, {})
        found = {rule.attribute: first_values(rule, near, [state]) for rule in group.ranked}
        assert found["best"] == (None if best is None else {"L": [{"N": str(value)} for value in best]})
        assert found["top"] == (None if top is None else {"N": str(top)})


def test_an_edge_from_a_node_to_itself_counts_at_both_of_its_ends() -> None:
    """Two rule groups of one node count one edge, in one transaction."""
    with Graph(":memory:", MODELS) as g:
        layout = g._layout
        kind = layout.schema.node(Person)
        (node,) = layout.items(Person(id="a"))
        near = Near(kind, "PERSON#a", layout.key_of(node), node)
        states = []
        for group in layout.rules.groups:
            if group.edge is layout.schema.edge(Follows) and not group.reads_far:
                (edge,) = layout.items(Follows(source="a", target="a"))
                state = EdgeState(ref_to(layout, group, edge), edge, None, node, None, near.generation)
                state.work_out(layout)
                states.append(state)
        assert len(states) == 2
        assert NodeTransaction(near, states).changes() == {
            "following": 1,
            "followers": 1,
            # The first hop of those that count what the followed ones follow.
            "adjoin:PERSON.reach:1": 1,
        }


def test_a_node_that_begins_to_count_loses_what_another_program_says_of_its_declarations() -> None:
    with Graph(":memory:", MODELS) as g:
        kind = g._layout.schema.node(Person)
        key = g._layout.node_key(kind, "a")
        for there in (key, {**key, COUNTED: {"M": {}}}):
            actions = first_actions(g._layout, Near(kind, "PERSON#a", key, there))
            assert (Remove(attribute(COUNTED)) in actions) is (COUNTED in there)
            assert Remove(attribute("followers")) in actions


def test_a_ledger_beside_a_far_node_is_written_only_as_it_was_read() -> None:
    """So that what others have counted since is not counted twice."""
    with Graph(":memory:", MODELS) as g:
        layout = g._layout
        group = next(each for each in layout.rules.groups if each.reads_far and each.edge.name == "Follows")
        ref = ref_to(layout, group, layout.items(Follows(source="a", target="b"))[0])
        key = ref.ledger_key(layout)
        there = {**key, REVISION: {"S": "r"}}
        unchanged, absent = Compare("=", attribute(REVISION), Value({"S": "r"})), Not(layout.present)
        ledger = Ledger("life", {}, {})
        for item, condition in ((there, unchanged), (None, absent)):
            put, delete = ledger_write(layout, ref, key, item, ledger), ledger_write(layout, ref, key, item, None)
            assert isinstance(put, Put)
            assert put.item[REVISION] != there[REVISION]
            assert isinstance(delete, Delete)
            assert (put.condition, delete.condition) == (condition, condition)
            assert ledger_held(layout, ref, key, item) == Check(layout.table, key, condition)
        assert ledger_touched(layout, ref, key, there).condition == unchanged


def test_a_node_counts_how_often_its_ranks_moved() -> None:
    """A process that has read ranks writes their values only if none moved; what only counts is no reason to fail."""
    with Graph(":memory:", [Round, Game, Played]) as g:
        layout = g._layout
        kind, (group,) = layout.schema.node(Round), layout.rules.groups
        node: Item = {**layout.node_key(kind, "r"), "adjoin:life": {"S": "life"}}
        near = Near(kind, "ROUND#r", layout.node_key(kind, "r"), node)
        (edge,) = layout.items(Played(source="r", target="g", points=3))
        for has_ranks in (True, False):
            state = EdgeState(ref_to(layout, group, edge), edge, None, node, None, near.generation)
            state.work_out(layout)
            state.wanted = {name: value for name, value in state.wanted.items() if ("L" in value) is has_ranks}
            transaction = NodeTransaction(near, [state])
            transaction.write_down(layout)
            transaction.all_writes(layout)
            assert (Add(attribute(TURN), {"N": "1"}) in transaction.actions) is has_ranks
            assert len(transaction.actions) == (3 if has_ranks else 1)
