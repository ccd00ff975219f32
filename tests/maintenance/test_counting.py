"""What counting is made of, each part by itself: edge states, writes of one item, references, and full transactions."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Count, Edge, Graph, InvalidModel, Node, Sum, Top, field
from adjoin.expressions import Compare, Condition, Value, attribute
from adjoin.layouts.interface import GENERATION
from adjoin.layouts.own_items import COUNTED
from adjoin.plans.counting.edge_state import EdgeState
from adjoin.plans.counting.ledger import EdgeRef, Ledger, ledger_write, ref_beside, ref_to
from adjoin.plans.counting.node_transaction import Near, NodeTransaction, merged
from adjoin.plans.maintenance.blaming import blame
from adjoin.plans.steps.batches import parts_of
from adjoin.requests import Check, Put, Request, TransactWrite
from adjoin.rules import RuleGroup
from adjoin.stores.sqlite import SQLiteStore
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue
from tests.maintenance.ledgers import is_ledger
from tests.maintenance.models import MODELS, Customer, Follows, Invoice, Part, Person, Placed, Uses
from tests.maintenance.simulation import stored


def group_of(g: Graph, label: str, direction: str) -> RuleGroup:
    return next(
        group
        for group in g._layout.rules.groups
        if (group.edge.label, group.hop.direction, group.reads_far) == (label, direction, False)
    )


ONE: AttributeValue = {"N": "1"}
TWO: AttributeValue = {"N": "2"}


@pytest.mark.parametrize(
    ("before", "now", "joins", "leaves"),
    [(None, None, False, False), (None, ONE, True, False), (ONE, None, False, True), (ONE, TWO, False, False)],
)
def test_an_edge_joins_a_rule_or_leaves_it(
    before: AttributeValue | None, now: AttributeValue | None, joins: bool, leaves: bool
) -> None:
    with Graph(":memory:", MODELS) as g:
        layout, group = g._layout, group_of(g, "FOLLOWS", "out")
        rule = group.rules[0]
        (edge,) = layout.items(Follows(source="a", target="b"))
        ref = ref_to(layout, group, edge)
        ledger = None
        if before is not None:
            write: Any = ledger_write(layout, ref, ref.ledger_key(layout), None, Ledger("now", {rule.name: before}, {}))
            ledger = write.whole
        state = EdgeState(ref, edge, ledger, {}, None, "now")
        state.wanted = {} if now is None else {rule.name: now}
        assert (state.joined(rule), state.left(rule)) == (joins, leaves)
        # In another generation of the node, the ledger is void.
        void = EdgeState(ref, edge, ledger, {}, None, "later")
        void.wanted = state.wanted
        assert (void.joined(rule), void.left(rule)) == (now is not None, False)
        # If the node has the value of another declaration, nothing is added to it.
        state.foreign = frozenset({rule.name})
        assert (state.joined(rule), state.left(rule), state.delta(rule)) == (False, False, Decimal(0))


def test_what_a_ledger_keeps_of_rules_that_are_not_declared_here() -> None:
    """Another program may maintain them, unless the node names the declarations that it is counted by."""
    with Graph(":memory:", MODELS) as g:
        layout, group = g._layout, group_of(g, "FOLLOWS", "out")
        rule = group.rules[0].name
        (edge,) = layout.items(Follows(source="a", target="b"))
        ref = ref_to(layout, group, edge)
        applied = {rule: ONE, "other": TWO}
        write: Any = ledger_write(layout, ref, ref.ledger_key(layout), None, Ledger("now", applied, {}))
        named = {COUNTED: {"M": {"X.y": {"S": "other"}}}}
        unnamed = {COUNTED: {"M": {"X.y": {"S": "another"}}}}
        three: AttributeValue = {"N": "3"}

        def after(near: Any, generation: str = "now", foreign: bool = False, forgets: bool = False) -> Any:
            state = EdgeState(ref, edge, write.whole, near, None, generation)
            state.wanted, state.forgets = {rule: three}, forgets
            state.foreign = frozenset({rule} if foreign else ())
            return state.after and state.after.applied

        assert after({}) == after(named) == {rule: three, "other": TWO}
        assert after(unnamed) == after({}, forgets=True) == after({}, "later") == {rule: three}
        # Nothing is added to a value of another declaration, and what was added to it stays in the ledger.
        assert after({}, foreign=True) == {rule: ONE, "other": TWO}
        assert after(unnamed, foreign=True) == {rule: ONE}
        assert after({}, "later", foreign=True) == {}


def same(name: str) -> Condition:
    return Compare("=", attribute(name), Value(ONE))


def test_checks_of_one_item_are_one_that_requires_both() -> None:
    key = {"PK": {"S": "a"}, "SK": {"S": "b"}}
    one, other = Check("adjoin", key, same("x")), Check("adjoin", key, same("y"))
    both = merged(one, other)
    assert isinstance(both, Check)
    assert parts_of(both.condition) == [same("x"), same("y")]
    assert merged(one, Check("adjoin", key, same("x"))) == one
    put = Put("adjoin", key)
    assert merged(None, one) is one
    assert merged(one, put) is put


class Owner(Node):
    id: str
    things: Annotated[int, Count("Owns")] = 0


class Thing(Node):
    id: str


class Owns(Edge[Owner, Thing]):
    pass


def test_a_ledger_tells_its_edge_and_both_ends() -> None:
    """Whether it is stored beside the edge or beside its target."""
    with Graph(":memory:", [*MODELS, Owner, Thing, Owns]) as g:
        g.put_many([Customer(id="C1"), Invoice(id="I1"), Person(id="a"), Person(id="b"), Owner(id="o")])
        edges: list[Any] = [
            Placed(source="C1", target="I1", balance=Decimal(1)),
            Follows(source="a", target="b"),
            Owns(source="o", target="t"),
        ]
        g.put_many(edges)
        g.maintain(once=True)
        layout = g._layout
        wanted: list[tuple[str, str, str]] = []
        for edge in edges:
            (item,) = layout.items(edge)
            kind = layout.schema.edge(type(edge))
            wanted += [
                _named(ref_to(layout, group, item))
                for group in layout.rules.groups
                if group.edge is kind and not group.reads_far
            ]
        found = [
            _named(ref_beside(layout, group, ledger))
            for ledger in filter(is_ledger, stored(g))
            for group in layout.rules.groups
            if not group.reads_far and group.part in ledger and _is_of(g, group, ledger)
        ]
        assert sorted(found) == sorted(wanted)
        assert len({name for name, _, _ in wanted}) == len(wanted) > 2


def _named(ref: EdgeRef) -> tuple[str, str, str]:
    return repr(ref.place), ref.near, ref.far


def _is_of(g: Graph, group: RuleGroup, ledger: Any) -> bool:
    layout = g._layout
    key = layout.ledgers.edge_key(ledger, int(ledger["s"]["N"]) if "s" in ledger else None)
    return layout.kind_of(key) is group.edge


def test_edges_of_recursive_rules_leave_room_for_what_sets_them_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each such edge has its ledger and checks of both ends, and may get a record, for each rule."""
    with Graph(":memory:", MODELS) as g:
        parts = 60
        g.put_many(Part(id=f"P{number}", cost=1) for number in range(parts + 1))
        g.maintain(once=True)
        g.put_many(Uses(source="P0", target=f"P{number}") for number in range(1, parts + 1))
        sizes: list[int] = []
        execute = g._store.execute

        def spied(batch: Sequence[Request]) -> Any:
            sizes.extend(len(request.writes) for request in batch if isinstance(request, TransactWrite))
            return execute(batch)

        monkeypatch.setattr(g._store, "execute", spied)
        g.maintain(once=True)
        assert sizes
        assert max(sizes) <= MAX_TRANSACTION
        found = g.get(Part, "P0")
        assert found is not None
        assert found.below == parts


def shelves(aggregate: Any) -> list[Any]:
    class Shelf(Node):
        id: str
        held: Annotated[int, aggregate] = 0

    class Item(Node):
        id: str

    class Holds(Edge[Shelf, Item]):
        weight: int = 1

    return [Shelf, Item, Holds]


def test_a_node_that_is_created_after_a_declaration_changed_shows_what_is_counted_with_it() -> None:
    """It says by which declaration it was counted. Otherwise it would read as not yet counted."""
    store = SQLiteStore(":memory:")
    shelf, _, holds = old = shelves(Count("Holds", consistency="transaction"))
    with Graph(store, old) as g:
        g.put_many([shelf(id="a"), holds(source="a", target="x", weight=5)])
        g.maintain(once=True)
        shelf, _, holds = new = shelves(Sum("Holds", field="weight", consistency="transaction"))
        Graph(store, new).rebuild()
        later = Graph(store, new)
        with later.transaction() as t:
            t.put(shelf(id="b"))
            t.put(holds(source="b", target="x", weight=7))
        later.put(holds(source="c", target="x", weight=3))
        later.put(shelf(id="c"))
        assert [found.held for found in later.get_many(shelf, "abc") if found] == [5, 7, 3]


def test_too_many_values_of_one_edge_are_refused_with_the_aggregates_that_have_most() -> None:
    class Shop(Node):
        id: str
        few: Annotated[list[int], Top("Sells", "Comes", field="price", k=2)] = []
        most: Annotated[list[int], Top("Sells", "Comes", field="price", k=60)] = []
        many: Annotated[list[int], Top("Sells", "Comes", field="price", k=50)] = []
        some: Annotated[list[int], Top("Sells", "Comes", field="price", k=20)] = []

    class Good(Node):
        id: str

    class Size(Node):
        id: str

    class Sells(Edge[Shop, Good]):
        pass

    class Comes(Edge[Good, Size]):
        price: int

    with pytest.raises(InvalidModel) as refused:
        Graph(":memory:", [Shop, Good, Size, Sells, Comes])
    assert "one Sells may add 132 values to SHOP.most, SHOP.many, SHOP.some, but" in str(refused.value)


def test_a_condition_that_can_never_hold_is_refused() -> None:
    class Shop(Node):
        id: str
        large: Annotated[int, Count("Sold", where=field("size") > "large")] = 0

    class Good(Node):
        id: str

    class Sold(Edge[Shop, Good]):
        size: int = 0

    with pytest.raises(InvalidModel, match=r"^where= of SHOP.large: .*'large'"):
        Graph(":memory:", [Shop, Good, Sold])


def test_which_rules_are_tried_one_after_another() -> None:
    """A rule to which the edge contributes nothing is not the cause; without a sum, something has to be left out."""
    with Graph(":memory:", MODELS) as g:
        layout, group = g._layout, group_of(g, "PLACED", "out")
        (edge,) = layout.items(Placed(source="C1", target="I1", balance=Decimal(5), status="paid"))
        (node,) = layout.items(Customer(id="C1"))
        for owed, sums in (({"N": "1"}, []), ({"N": "1E+45"}, ["CUSTOMER.owed"])):
            item = node | {GENERATION: {"S": "now"}, "owed": owed}
            ref = ref_to(layout, group, edge)
            near = Near(group.hop.near, ref.near, layout.key_of(node), item)
            state = EdgeState(ref, edge, None, item, None, "now")
            state.work_out(layout)
            names = tuple(name for name in state.wanted if name not in sums)
            assert {"CUSTOMER.open", "CUSTOMER.largest"}.isdisjoint(names)
            found = blame(NodeTransaction(near, [state]))
            assert [*found.sums] == sums
            assert found.left == [*([()] if sums else []), *((name,) for name in names), names]
