"""Recounts nodes while all programs keep running: for values that another program has spoilt.

In: node keys, from a rebuild or an audit. Out: nodes whose aggregates are computed anew from all their edges. A caller
first asks `reconcile_and_compare` which nodes are wrong, then calls `begin` and `finish` for them.

Every node transaction changes a node and its ledgers by the same difference. So if a value is not the sum of its
ledgers, another program wrote it, and no later difference will correct it. To add up the ledgers would not be enough:
an edge may have been removed a moment ago while its ledger still exists.

So the node prepares its next generation while the present one stays in use:

1. `begin` stores the name of the next generation on the node. From then on, every process that reconciles one of its
   edges counts it in both generations: the difference in the present one, and the whole contribution in the next one.
   The ledger is then of the next generation, so an edge is counted there once.
2. `finish` reconciles all edges of the node, so that each is counted in the next generation.
3. One update makes the next generation the present one. Ledgers that are not of it belong to edges that do not exist
   any more, and are void.

Until step 3 the node keeps its old value, and differences are still applied to it. If a recount stops halfway, the next
one finishes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal

from adjoin.dataclass import dataclass
from adjoin.entity_types import NodeType
from adjoin.errors import ConditionFailed, InvalidValue, TransactionCanceled
from adjoin.expressions import Action, Add, Condition, Exists, Not, Remove, Set, Value, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, NEXT_GENERATION
from adjoin.layouts.own_items import COUNTED, is_of, when_counted
from adjoin.plans.counting.arrivals import counting
from adjoin.plans.counting.contributions import RANK
from adjoin.plans.counting.edge_state import EdgeState
from adjoin.plans.counting.entries import derived
from adjoin.plans.counting.ledger import key_of_node, new_token
from adjoin.plans.counting.node_transaction import FULL, PREPARED, STALE, TURN, prepared_sum
from adjoin.plans.counting.node_transaction import Near as Node
from adjoin.plans.maintenance.neighbours import reconcile_above, reconcile_near
from adjoin.plans.maintenance.ranks import refresh, results
from adjoin.plans.maintenance.reconciling import changing, first_actions
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.steps.again import Failure, Pace
from adjoin.plans.steps.batches import Pages, chunks, get_all, write_all
from adjoin.reached_sets import edges_by_text
from adjoin.requests import Delete, Get, Plan, Query, TransactWrite, Update
from adjoin.rules import Rule, RuleGroup, hidden
from adjoin.values import AttributeValue, Item, exact_sum

_ROUND = 25
"""How many nodes are written side by side."""


# --- what is wrong -----------------------------------------------------------------------------


@dataclass
class _Added:
    """The result of each rule for one node, computed from what its edges contribute."""

    sums: dict[str, Decimal]
    best: dict[str, list[Item]]
    """Rule to its first values in order."""
    reached: dict[str, Counter[str]] = field(default_factory=dict)
    """Rule to the number of edges by text, for reached sets."""

    def add(self, rule: Rule, value: AttributeValue) -> None:
        """Adds what one edge contributes by a rule."""
        if rule.is_distinct:
            self.reached.setdefault(rule.name, Counter()).update(value["SS"])
            return
        if rule.operation == "sum":
            self.sums[rule.name] = exact_sum((self.sums.get(rule.name, Decimal(0)), Decimal(value["N"])))
            return
        ranks = [*self.best.get(rule.name, ()), *(state["M"] for state in value["L"])]
        ranks.sort(key=lambda rank: str(rank[RANK]["S"]), reverse=rule.operation != "min")
        self.best[rule.name] = ranks[: rule.k]

    def agrees(self, rules: Iterable[Rule], node: Item) -> bool:
        """Whether the values on a node are these results. Values for which the node has no room are not compared."""
        full = node.get(FULL, {"SS": ()})["SS"]
        for rule in rules:
            if rule.name in full:
                continue
            if rule.is_distinct:
                if not _is_set(node.get(rule.attribute), self.reached.get(rule.name, {})):
                    return False
            elif rule.operation == "sum":
                stored = node.get(rule.attribute, {"N": "0"})
                if "N" not in stored or Decimal(stored["N"]) != self.sums.get(rule.name, Decimal(0)):
                    return False
            elif any(node.get(name) != value for name, value in results(rule, self.best.get(rule.name, ())).items()):
                return False
        return True


def _is_set(value: AttributeValue | None, edges: Mapping[str, int]) -> bool:
    """Whether an attribute is the reached set with these numbers of edges."""
    try:
        return edges_by_text(value) == edges
    except InvalidValue:
        return False


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of comparing some nodes with their edges, by node key."""

    off: list[str]
    """Nodes whose values differ from what their edges contribute, or whose recount was not finished."""
    gone: set[str]
    """Nodes that do not exist."""
    aside: dict[tuple[str, str], str]
    """Node and rule to the reason why an edge is set aside. The stored value is without this edge."""


def reconcile_and_compare(
    layout: BoundLayout,
    kind: NodeType,
    node_keys: Sequence[str],
    tally: Tally,
    groups: Sequence[RuleGroup] | None = None,
) -> Plan[Compared]:
    """Reconciles the edges that count for nodes, and compares their contributions with the values on the nodes."""
    added = {node_key: _Added({}, {}) for node_key in node_keys}
    aside: dict[tuple[str, str], str] = {}

    def note(state: EdgeState) -> None:
        if state.near is not None and state.ref.near in added:
            aside.update(((state.ref.near, name), reason) for name, reason in state.aside.items())
            for rule in state.ref.group.rules:
                if rule.name in state.wanted:
                    added[state.ref.near].add(rule, state.wanted[rule.name])

    own = Tally()
    looked_at = counting(layout, kind) if groups is None else groups
    yield from reconcile_near(layout, kind, node_keys, own, note, looked_at)
    tally.include(own)
    yield from reconcile_above(layout, dict.fromkeys(own.nodes, kind), tally)
    rules = [rule for group in looked_at for rule in group.rules]
    nodes = yield from _read(layout, kind, node_keys)
    if stale := {node.node_key: kind for node in nodes if STALE in (node.item or {})}:
        # A node that has edges was refreshed with them. One without edges is stale if a recount stopped after its
        # switch, and no change of an edge would ever refresh it.
        late = Tally()
        yield from refresh(layout, stale, late)
        tally.include(late)
        yield from reconcile_above(layout, dict.fromkeys(late.nodes, kind), tally)
        nodes = yield from _read(layout, kind, node_keys)
    is_off = {node.node_key: _is_off(layout, node, rules, added[node.node_key]) for node in nodes}
    gone = {node_key for node_key in node_keys if node_key not in is_off}
    return Compared([node_key for node_key in node_keys if is_off.get(node_key)], gone, aside)


def _is_off(layout: BoundLayout, node: Node, rules: Sequence[Rule], added: _Added) -> bool:
    item = node.item or {}
    is_own = GENERATION not in item or all(is_of(layout.rules, rule, item) for rule in rules)
    if node.next is not None or not is_own or not added.agrees(rules, item):
        return True
    return any(item.get(name) != value for name, value in derived(layout, node.kind, item).items())


def rules_of(layout: BoundLayout, kind: NodeType) -> list[Rule]:
    return [rule for rule in layout.rules.rules if rule.node is kind]


def _read(layout: BoundLayout, kind: NodeType, node_keys: Iterable[str]) -> Plan[list[Node]]:
    """The nodes that exist."""
    keys = {node_key: key_of_node(layout, kind, node_key) for node_key in node_keys}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    return [
        Node(kind, node_key, key, item)
        for (node_key, key), item in zip(keys.items(), items, strict=True)
        if item is not None
    ]


# --- the next generation -----------------------------------------------------------------------


def begun_before(layout: BoundLayout, kind: NodeType, node_keys: Iterable[str]) -> Plan[dict[str, str | None]]:
    """The nodes that already prepare a next generation, with its name.

    The process that began the recount may have stopped long ago, and another program may have spoilt the values of that
    generation since. So it is only finished, and then another recount begins.
    """
    nodes = yield from _read(layout, kind, node_keys)
    return {node.node_key: node.next for node in nodes if node.next is not None}


def begin(layout: BoundLayout, kind: NodeType, node_keys: Iterable[str]) -> Plan[dict[str, str | None]]:
    """Stores a next generation on nodes. Returns the names of the generations.

    A node that had no generation gets its first one instead, and None in the result.
    """
    begun: dict[str, str | None] = {}
    for some in chunks(node_keys, _ROUND):
        done = yield from _changed(layout, kind, some, lambda node: _beginning(layout, node))
        for node in done:
            begun[node.node_key] = node.next
    return begun


def _beginning(layout: BoundLayout, node: Node) -> list[Action]:
    """The actions by which a node begins to prepare its next generation; none if it already does."""
    if node.is_new:
        return first_actions(layout, node)
    if node.next is not None:
        return []
    # Sums that an earlier recount left behind must not be part of this one.
    left = (Remove(attribute(name)) for name in node.item or {} if name.startswith(PREPARED))
    node.next = new_token()
    return [Set(attribute(NEXT_GENERATION), Value({"S": node.next})), *left]


def finish(layout: BoundLayout, kind: NodeType, begun: Mapping[str, str | None], tally: Tally) -> Plan[None]:
    """Counts all edges of nodes in the next generation, and makes it the present one.

    `begun` is the result of `begin` or `begun_before`.
    """
    yield from reconcile_near(layout, kind, begun, tally)
    switched: dict[str, NodeType] = {}
    for some in chunks(begun, _ROUND):
        done = yield from _changed(layout, kind, some, lambda node: _switch(layout, node, begun[node.node_key]))
        switched |= {node.node_key: kind for node in done}
    tally.nodes.update(switched)
    if layout.rules.forgotten or any(rule.is_ranked for rule in rules_of(layout, kind)):
        yield from refresh(layout, switched, tally)
        yield from remove_void_ranks(layout, kind, switched)
    yield from reconcile_above(layout, switched, tally)


def _switch(layout: BoundLayout, node: Node, generation: str | None) -> list[Action]:
    """The actions that make the next generation of a node the present one; none if it was done already."""
    if generation is None or node.next != generation:
        return []
    item = node.item or {}
    rules = rules_of(layout, node.kind)
    actions: list[Action] = [Set(attribute(GENERATION), Value({"S": generation})), Remove(attribute(NEXT_GENERATION))]
    for rule in rules:
        if not rule.is_ranked:
            path, prepared = attribute(rule.attribute), attribute(prepared_sum(rule))
            if prepared_sum(rule) in item:
                actions += [Set(path, prepared), Remove(prepared)]
            else:
                actions.append(Remove(path))
        elif not is_of(layout.rules, rule, item):
            # Until the ranks are read, the node has no value rather than that of another declaration.
            names = (rule.attribute, rule.pair) if rule.pair else (rule.attribute,)
            actions += (Remove(attribute(name)) for name in names)
    actions += _named(layout, node, rules)
    if ranked := sorted(rule.name for rule in rules if rule.is_ranked):
        actions += [Add(attribute(STALE), {"SS": ranked}), Add(attribute(TURN), {"N": "1"})]
    return actions


def _named(layout: BoundLayout, node: Node, rules: Iterable[Rule]) -> Iterator[Action]:
    """The actions that name the declarations by which a node is counted, and remove what other declarations left."""
    item, named = node.item or {}, when_counted(layout.rules, node.kind)
    if named is not None:
        yield Set(attribute(COUNTED), Value(named))
    elif COUNTED in item:
        yield Remove(attribute(COUNTED))
    own = {prepared_sum(rule) for rule in rules}
    yield from (Remove(attribute(name)) for name in item if name.startswith(PREPARED) and name not in own)
    declared = [rule for rule in layout.rules.declared if rule.node is node.kind]
    kept = {
        *node.kind.attributes.values(),
        *(name for rule in declared for name in (rule.attribute, rule.pair) if name),
    }
    # A rule may have had a hidden attribute that the present declaration does not use, such as a large reached set.
    former = {name for rule in declared if (name := hidden(rule.name)) in item}
    gone = {*layout.rules.forgotten.get(node.kind.label, ()), *former} - kept
    yield from (Remove(attribute(name)) for name in sorted(gone))


def _changed(
    layout: BoundLayout, kind: NodeType, node_keys: Iterable[str], change: Callable[[Node], list[Action]]
) -> Plan[list[Node]]:
    """Changes nodes on the condition that they are as they were read, and reads again if not.

    Returns the nodes that exist.
    """
    waiting = list(node_keys)
    done: list[Node] = []
    pace = Pace(_ROUND)
    while True:
        nodes = yield from _read(layout, kind, waiting)
        writes = [(node, request) for node in nodes if (request := _request(layout, node, change)) is not None]
        changing = {node.node_key for node, _ in writes}
        done += [node for node in nodes if node.node_key not in changing]
        waiting = []
        failure: Failure | None = None
        for some in chunks(writes, pace.width):
            try:
                yield tuple(request for _, request in some)
                done += [node for node, _ in some]
            except (ConditionFailed, TransactionCanceled) as error:
                waiting += [node.node_key for node, _ in some]
                failure = error
        if failure is None:
            return done
        pace.slow_down(failure)
        # The error does not say which node failed. So from now on they are written one by one.
        pace.width = 1


def _request(layout: BoundLayout, node: Node, change: Callable[[Node], list[Action]]) -> Update | TransactWrite | None:
    """The request that changes a node and its index copies, if the node has the generation that was read."""
    # `change` may store a next generation in `node`. The condition must be about the one that was read.
    before = replace(node)
    actions = change(node)
    return changing(layout, before, actions, _still_absent(layout, node.item or {}, actions)) if actions else None


def _still_absent(layout: BoundLayout, item: Item, actions: Iterable[Action]) -> Iterator[Condition]:
    """The conditions, for a switch, that sums which were absent are still absent.

    If no edge was counted in the next generation, its sum does not exist, and the switch removes the value. This must
    not happen if an edge was counted meanwhile.
    """
    switches = any(isinstance(action, Remove) and action.path == attribute(NEXT_GENERATION) for action in actions)
    if switches:
        sums = (prepared_sum(rule) for rule in layout.rules.rules if not rule.is_ranked)
        yield from (Not(Exists(attribute(name))) for name in sums if name not in item)


# --- ranks -------------------------------------------------------------------------------------


def remove_void_ranks(layout: BoundLayout, kind: NodeType, node_keys: Iterable[str]) -> Plan[int]:
    """Removes the ranks of nodes in generations that are over. Returns how many."""
    removed = 0
    for node_key in node_keys:
        pages = Pages([(node_key, Query(layout.table, *layout.ledgers.all_ranks(node_key), consistent=True))])
        while found := (yield from pages.next()):
            # The ranks were read before the node. So if the node does not have the generation of a rank now, that
            # generation is over, and not one that was prepared in between.
            nodes = yield from _read(layout, kind, [node_key])
            generations = {generation for node in nodes for generation in (node.generation, node.next)}
            items = [item for _, page in found for item in page.items]
            void = [item for item in items if layout.ledgers.generation_of_rank(item) not in generations]
            yield from _deleted(layout, void)
            removed += len(void)
    return removed


def _deleted(layout: BoundLayout, items: Sequence[Item]) -> Plan[None]:
    for some in chunks(items, _ROUND * 16):
        yield from write_all([Delete(layout.table, layout.key_of(item)) for item in some])
