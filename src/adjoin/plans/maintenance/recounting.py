"""Nodes counted anew, while writers and maintainers go on: for values that somebody else has spoilt.

Every transaction changes a node and ledgers alike, so a value that is not the sum of the ledgers was not made
by one, and no difference will ever put it right. Adding the ledgers up would not do either: the ledger of an edge
that went a moment ago still counts, and only the edge tells where it is.

So a node gets another life, which is prepared while the present one goes on. From the moment it is written on
the node, whoever settles an edge counts it in both: in the present life the difference, and in the next all
that the edge adds, once. When every edge was looked at, one update makes the next life the present one.
Ledgers that were not brought along are of edges that are gone, and void. Until then the node has the value
that it had, and differences are applied to it; a recount that stops is finished by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from adjoin.errors import ConditionFailed, TransactionCanceled
from adjoin.expressions import Action, Add, Condition, Exists, Not, Remove, Set, Value, attribute
from adjoin.layouts.counted import COUNTED, is_of, when_counted
from adjoin.layouts.interface import LIFE, NEXT, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import chunks, get_all, write_all
from adjoin.plans.maintenance.contributions import RANK, total
from adjoin.plans.maintenance.entries import Entry
from adjoin.plans.maintenance.ledger import new_token
from adjoin.plans.maintenance.lives import changing, first_actions
from adjoin.plans.maintenance.neighbours import counting, settle_above, settle_near
from adjoin.plans.maintenance.postings import FULL, PREPARED, STALE, TURN, prepared_sum
from adjoin.plans.maintenance.postings import Near as Node
from adjoin.plans.maintenance.ranks import refresh, results
from adjoin.plans.maintenance.references import key_of_node
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import Delete, Get, PageResponse, Query, TransactWrite, Update
from adjoin.rules import Account, Rule
from adjoin.schema import NodeType
from adjoin.values import AttributeValue, Item

ATTEMPTS = 100
_ROUND = 25
"""Nodes that are written side by side."""


# --- what is wrong -----------------------------------------------------------------------------


@dataclass
class _Added:
    """What the edges of one node add up to, by rule."""

    sums: dict[str, Decimal]
    best: dict[str, list[Item]]

    def add(self, rule: Rule, value: AttributeValue) -> None:
        if rule.operation == "sum":
            self.sums[rule.name] = total(iter((self.sums.get(rule.name, Decimal(0)), Decimal(value["N"]))))
            return
        ranks = [*self.best.get(rule.name, ()), *(entry["M"] for entry in value["L"])]
        ranks.sort(key=lambda rank: str(rank[RANK]["S"]), reverse=rule.operation != "min")
        self.best[rule.name] = ranks[: rule.k]

    def agrees(self, rules: Iterable[Rule], node: Item) -> bool:
        """Whether a node has what its edges add up to; what it has no room for is left out."""
        full = node.get(FULL, {"SS": ()})["SS"]
        for rule in rules:
            if rule.name in full:
                continue
            if rule.operation == "sum":
                stored = node.get(rule.attribute, {"N": "0"})
                if "N" not in stored or Decimal(stored["N"]) != self.sums.get(rule.name, Decimal(0)):
                    return False
            elif any(node.get(name) != value for name, value in results(rule, self.best.get(rule.name, ())).items()):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Compared:
    """What was found of some nodes, by their partition keys."""

    off: list[str]
    """Those that have something else than their edges add up to, or whose recount was not finished."""
    gone: set[str]
    """Those that are not there."""
    aside: dict[tuple[str, str], str]
    """Node and rule to why an edge cannot be counted; what is stored is without it, and stays so."""


def settle_and_compare(
    layout: BoundLayout,
    kind: NodeType,
    texts: Sequence[str],
    tally: Tally,
    accounts: Sequence[Account] | None = None,
) -> Plan[Compared]:
    """Settles the edges that count for nodes, and compares what they add up to with what the nodes have."""
    added = {text: _Added({}, {}) for text in texts}
    aside: dict[tuple[str, str], str] = {}

    def note(entry: Entry) -> None:
        if entry.near is not None and entry.ref.near in added:
            aside.update(((entry.ref.near, name), reason) for name, reason in entry.aside.items())
            for rule in entry.ref.account.rules:
                if rule.name in entry.wanted:
                    added[entry.ref.near].add(rule, entry.wanted[rule.name])

    own = Tally()
    looked_at = counting(layout, kind) if accounts is None else accounts
    yield from settle_near(layout, kind, texts, own, note, looked_at)
    tally.include(own)
    yield from settle_above(layout, dict.fromkeys(own.nodes, kind), tally)
    rules = [rule for account in looked_at for rule in account.rules]
    nodes = yield from _read(layout, kind, texts)
    is_off = {node.text: _is_off(layout, node, rules, added[node.text]) for node in nodes}
    gone = {text for text in texts if text not in is_off}
    return Compared([text for text in texts if is_off.get(text)], gone, aside)


def _is_off(layout: BoundLayout, node: Node, rules: Sequence[Rule], added: _Added) -> bool:
    item = node.item or {}
    is_own = LIFE not in item or all(is_of(layout.rules, rule, item) for rule in rules)
    return node.next is not None or not is_own or not added.agrees(rules, item)


def rules_of(layout: BoundLayout, kind: NodeType) -> list[Rule]:
    return [rule for rule in layout.rules.rules if rule.node is kind]


def _read(layout: BoundLayout, kind: NodeType, texts: Iterable[str]) -> Plan[list[Node]]:
    """The nodes that are there."""
    keys = {text: key_of_node(layout, kind, text) for text in texts}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    return [
        Node(kind, text, key, item) for (text, key), item in zip(keys.items(), items, strict=True) if item is not None
    ]


# --- the next life -----------------------------------------------------------------------------


def begun_before(layout: BoundLayout, kind: NodeType, texts: Iterable[str]) -> Plan[dict[str, str | None]]:
    """The nodes that prepare another life already, and which.

    Who prepared it may have stopped long ago, and what was spoilt since is spoilt in that life too. So it is only
    finished, and another one prepared after it.
    """
    nodes = yield from _read(layout, kind, texts)
    return {node.text: node.next for node in nodes if node.next is not None}


def begin(layout: BoundLayout, kind: NodeType, texts: Iterable[str]) -> Plan[dict[str, str | None]]:
    """Lets nodes prepare another life; answers which, None for one that had none and begins with it."""
    begun: dict[str, str | None] = {}
    for some in chunks(texts, _ROUND):
        done = yield from _changed(layout, kind, some, lambda node: _beginning(layout, node))
        for node in done:
            begun[node.text] = node.next
    return begun


def _beginning(layout: BoundLayout, node: Node) -> list[Action]:
    if node.is_new:
        return first_actions(layout, node)
    if node.next is not None:
        return []
    left = (Remove(attribute(name)) for name in node.item or {} if name.startswith(PREPARED))
    node.next = new_token()
    return [Set(attribute(NEXT), Value({"S": node.next})), *left]


def finish(layout: BoundLayout, kind: NodeType, begun: Mapping[str, str | None], tally: Tally) -> Plan[None]:
    """Brings all edges of nodes into the life that each prepares, and makes it the present one."""
    yield from settle_near(layout, kind, begun, tally)
    switched: dict[str, NodeType] = {}
    for some in chunks(begun, _ROUND):
        done = yield from _changed(layout, kind, some, lambda node: _switch(layout, node, begun[node.text]))
        switched |= {node.text: kind for node in done}
    tally.nodes.update(switched)
    if layout.rules.forgotten or any(rule.operation != "sum" for rule in rules_of(layout, kind)):
        yield from refresh(layout, switched, tally)
        yield from remove_void_ranks(layout, kind, switched)
    yield from settle_above(layout, switched, tally)


def _switch(layout: BoundLayout, node: Node, life: str | None) -> list[Action]:
    if life is None or node.next != life:
        return []
    item = node.item or {}
    rules = rules_of(layout, node.kind)
    actions: list[Action] = [Set(attribute(LIFE), Value({"S": life})), Remove(attribute(NEXT))]
    for rule in rules:
        if rule.operation == "sum":
            path, prepared = attribute(rule.attribute), attribute(prepared_sum(rule))
            if prepared_sum(rule) in item:
                actions += [Set(path, prepared), Remove(prepared)]
            else:
                actions.append(Remove(path))
        elif not is_of(layout.rules, rule, item):
            # Until the ranks are read it has none, rather than that of another declaration.
            names = (rule.attribute, rule.pair) if rule.pair else (rule.attribute,)
            actions += (Remove(attribute(name)) for name in names)
    actions += _named(layout, node, rules)
    if ranked := sorted(rule.name for rule in rules if rule.operation != "sum"):
        actions += [Add(attribute(STALE), {"SS": ranked}), Add(attribute(TURN), {"N": "1"})]
    return actions


def _named(layout: BoundLayout, node: Node, rules: Iterable[Rule]) -> Iterator[Action]:
    """What a node says about which declarations it was counted by, and what others left on it."""
    item, named = node.item or {}, when_counted(layout.rules, node.kind)
    if named is not None:
        yield Set(attribute(COUNTED), Value(named))
    elif COUNTED in item:
        yield Remove(attribute(COUNTED))
    own = {prepared_sum(rule) for rule in rules}
    yield from (Remove(attribute(name)) for name in item if name.startswith(PREPARED) and name not in own)
    kept = {rule.attribute for rule in layout.rules.declared if rule.node is node.kind} | {
        *node.kind.attributes.values()
    }
    yield from (Remove(attribute(name)) for name in layout.rules.forgotten.get(node.kind.label, ()) if name not in kept)


def _changed(
    layout: BoundLayout, kind: NodeType, texts: Iterable[str], change: Callable[[Node], list[Action]]
) -> Plan[list[Node]]:
    """Changes nodes as long as they are what was read, and reads again if not; answers those that are there."""
    waiting = list(texts)
    done: list[Node] = []
    for attempt in range(ATTEMPTS):
        nodes = yield from _read(layout, kind, waiting)
        writes = [(node, request) for node in nodes if (request := _request(layout, node, change)) is not None]
        changing = {node.text for node, _ in writes}
        done += [node for node in nodes if node.text not in changing]
        waiting = []
        # Side by side as long as nobody is in the way; then one by one, to tell who was.
        for some in chunks(writes, _ROUND if attempt == 0 else 1):
            try:
                yield tuple(request for _, request in some)
                done += [node for node, _ in some]
            except (ConditionFailed, TransactionCanceled) as error:
                if attempt == ATTEMPTS - 1:
                    raise
                waiting += [node.text for node, _ in some]
                last = error
        if not waiting:
            return done
    raise last


def _request(layout: BoundLayout, node: Node, change: Callable[[Node], list[Action]]) -> Update | TransactWrite | None:
    """What changes a node and its copies, in the life that was read."""
    # The change may prepare another life; what must hold is the one that was read.
    before = replace(node)
    actions = change(node)
    return changing(layout, before, actions, _still_absent(layout, node.item or {}, actions)) if actions else None


def _still_absent(layout: BoundLayout, item: Item, actions: Iterable[Action]) -> Iterator[Condition]:
    """A sum of nothing is known by its absence, which must last."""
    switches = any(isinstance(action, Remove) and action.path == attribute(NEXT) for action in actions)
    if switches:
        sums = (prepared_sum(rule) for rule in layout.rules.rules if rule.operation == "sum")
        yield from (Not(Exists(attribute(name))) for name in sums if name not in item)


# --- ranks -------------------------------------------------------------------------------------


def remove_void_ranks(layout: BoundLayout, kind: NodeType, texts: Iterable[str]) -> Plan[int]:
    """Removes what was ranked for nodes in lives that are over; answers how much that was."""
    removed = 0
    for text in texts:
        start: Item | None = None
        while True:
            query = Query(layout.table, *layout.ledgers.all_ranks(text), start=start, consistent=True)
            response: PageResponse
            (response,) = yield (query,)
            # Whatever was ranked before is of a life that began before; so a life that is not there now is over.
            nodes = yield from _read(layout, kind, [text])
            lives = {life for node in nodes for life in (node.life, node.next)}
            void = [item for item in response.items if layout.ledgers.life_of_rank(item) not in lives]
            yield from _deleted(layout, void)
            removed += len(void)
            start = response.last
            if start is None:
                break
    return removed


def _deleted(layout: BoundLayout, items: Sequence[Item]) -> Plan[None]:
    for some in chunks(items, _ROUND * 16):
        yield from write_all([Delete(layout.table, layout.key_of(item)) for item in some])
