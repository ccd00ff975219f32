"""Reconciles edges: computes what each contributes now, compares it with its ledger, and writes the difference.

In: references to edges, from `affected`, `neighbours` or a rebuild. Out: every ledger says what its edge contributes,
and every near node has the sum of these contributions. `plans/counting/edge_state` computes what an edge contributes,
and `plans/counting/node_transaction` makes the transactions.

`reconcile` is a loop over the edges that are still waiting:

1. Read ledgers and near nodes, and after them edges and far nodes. The order matters, see below.
2. Give near nodes that have no generation their first one, and read again.
3. Touch the ledgers or nodes of edges for which there is nothing to write but whose change must be noticed.
4. Put the new ranks, write one transaction per near node, and delete the old ranks. Different nodes are written side by
   side, and edges of one node share its transaction.
5. If another process was faster, a condition fails. The edges that are left are read again.

**Why a transaction does not check the edge** (unless its rule group asks for it, `is_checked`). A maintainer that
applies a change of an edge reads the ledger after that change, and always changes the ledger. So a transaction that was
computed from an older state of the edge finds another ledger than it read, and fails, however late it arrives. If there
is nothing to write, the maintainer touches the ledger for this reason alone. If there is no ledger, it touches the
near node: it counts up the node's departures, on which every transaction that creates a ledger is conditioned.

**Ranks** are put before the transaction whose ledger names them, and deleted after a transaction whose ledger no longer
names them. They are not part of the transaction (see `plans/counting/rank_items`). `RankAttempts` remembers which ranks
were put for transactions that failed.

**An edge that cannot be written** for a reason of its own, for example because a sum would have too many digits, must
not block others. `_Pace` then tries one edge at a time, and `blaming` tries which of its rules to set aside.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import NodeType
from adjoin.errors import ConditionFailed, InvalidKey, InvalidRequest, InvalidValue, TransactionCanceled
from adjoin.expressions import Action, Add, And, Condition, Remove, Set, Value, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, REVISION, STAMP
from adjoin.layouts.own_items import COUNTED, at_birth
from adjoin.plans.counting.edge_state import EdgeState, reason_of
from adjoin.plans.counting.entries import with_entries
from adjoin.plans.counting.ledger import LEFT, EdgeRef, key_of_node, ledger_touched
from adjoin.plans.counting.node_transaction import (
    STALE,
    Near,
    NodeTransaction,
    arranged,
    copies_of,
    is_hopeless,
    is_structural,
    packed,
    revises,
    transaction,
    waits,
)
from adjoin.plans.counting.rank_items import NO_MOVES, Rank, RankStanding, standing
from adjoin.plans.maintenance.blaming import Blame, blame
from adjoin.plans.maintenance.cycles import order
from adjoin.plans.maintenance.ranks import refresh
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.steps.again import Pace, new_revision
from adjoin.plans.steps.batches import Place, get_all, place_of, write_in_rounds
from adjoin.requests import Delete, Get, Plan, Put, TransactWrite, Update
from adjoin.units import MAX_PARTITION_KEY_SIZE, MAX_SORT_KEY_SIZE, MAX_TRANSACTION
from adjoin.values import AttributeValue, Item, text_size

# --- generations of nodes ----------------------------------------------------------------------


def begin_generations(layout: BoundLayout, nodes: Iterable[Near]) -> Plan[ConditionFailed | TransactionCanceled | None]:
    """Gives a first generation to those nodes that have none.

    Returns the error if another process was faster for one of them. In any case the nodes have changed, so a caller
    that needs them reads them again.
    """
    requests = [changing(layout, node, first_actions(layout, node)) for node in nodes if node.is_new]
    try:
        if requests:
            yield tuple(requests)
    except (ConditionFailed, TransactionCanceled) as error:
        return error
    return None


def first_actions(layout: BoundLayout, node: Near) -> list[Action]:
    """The actions that begin the first generation of a node.

    Nothing was counted before it. So if an attribute of an aggregate exists already, another program wrote it, and it
    is removed.
    """
    rules = [rule for rule in layout.rules.declared if rule.node is node.kind]
    names = dict.fromkeys(name for rule in rules for name in (rule.attribute, rule.pair) if name is not None)
    named = at_birth(layout.rules, node.kind)
    counted = Remove(attribute(COUNTED)) if named is None else Set(attribute(COUNTED), Value(named))
    left = [*(Remove(attribute(name)) for name in names), *([counted] if named or COUNTED in (node.item or {}) else [])]
    return [Set(attribute(GENERATION), Value({"S": node.generation})), *left]


def touched_node(layout: BoundLayout, node: Near) -> Update | TransactWrite:
    """The update that touches a node: it counts up the departures.

    Every transaction that creates a ledger requires the departures that it read. So this makes those transactions fail
    that were computed before it.
    """
    return changing(layout, node, [Add(attribute(LEFT), {"N": "1"})])


def changing(
    layout: BoundLayout, node: Near, actions: Sequence[Action], further: Iterable[Condition] = ()
) -> Update | TransactWrite:
    """The request that applies actions to a node and its index copies, if the node still has the generation read."""
    actions = list(actions)
    conditions: list[Condition] = [layout.present, node.alive, *further]
    if revises(layout, node.kind):
        actions.append(Set(attribute(REVISION), Value(new_revision())))
        conditions.append(node.same(REVISION))
    entries = with_entries(layout, node.kind, node.key, node.item or {}, copies_of(layout, node), actions)
    conditions += (each for each in entries.conditions if each not in conditions)
    update = Update(layout.table, node.key, entries.actions, And(tuple(conditions)))
    return TransactWrite((update, *entries.copies)) if entries.copies else update


# --- ranks around a transaction ----------------------------------------------------------------


@dataclass(slots=True)
class _Own:
    """A rank that an attempt put, or was about to put."""

    rank: Rank
    base: AttributeValue | None
    """The state of the ledger that its transaction requires, see `base_of`."""
    is_put: bool = False
    """Whether the put is known to have succeeded."""


class RankAttempts:
    """The ranks that earlier attempts left behind, per edge.

    Ranks are put before the transaction that names them. If the transaction fails, the ranks exist but no ledger names
    them. The next attempt uses them again if it can; otherwise they are deleted. And if the answer to a transaction was
    lost, only the ledger says, when it is read again, which ranks are named.
    """

    def __init__(self, layout: BoundLayout) -> None:
        self._layout = layout
        self._own: dict[tuple[str, Place], list[_Own]] = {}
        self._old: dict[tuple[str, Place], Sequence[Rank]] = {}
        """The ranks that the ledger named before, and that go if the transaction succeeds."""

    def begin(self, node_transactions: Iterable[NodeTransaction]) -> Iterator[Put]:
        """Remembers the ranks of these transactions, and yields the puts that have to be done before them.

        They are yielded one by one, so that a large batch does not hold all of them in memory.
        """
        for node_transaction in node_transactions:
            near = node_transaction.near.item
            if renewed := [state for state in node_transaction.states if self._is_outdated(state, near)]:
                for state in renewed:
                    state.renew()
                node_transaction.write_down(self._layout)
            for state in node_transaction.states:
                yield from self._begin(state, near)

    def _is_outdated(self, state: EdgeState, near: Item | None) -> bool:
        """Whether ranks from an earlier attempt name another required state than this transaction has.

        A transaction of the same node that was written in between may have changed its departures. Other processes
        would take such a rank for dead and delete it. So new ranks have to be put.
        """
        if not state.ranks.spare:
            return False
        base, tokens = state.base(near), {rank.token for rank in state.ranks.spare}
        return any(own.base != base for own in self._own[state.ref.place] if own.rank.token in tokens)

    def _begin(self, state: EdgeState, near: Item | None) -> Iterator[Put]:
        """Remembers the ranks of one edge before they are put: if putting them fails halfway, none is forgotten."""
        place, made = state.ref.place, state.ranks
        if not (made.puts or made.deletes):
            return
        own = self._own.setdefault(place, [])
        self._old[place] = made.deletes
        base = state.base(near) if made.puts else None
        for rank in made.puts:
            item = rank.item(self._layout, state.ref, base)
            # If the key is too long, the store refuses the put. Such a rank need not be deleted, and a delete would
            # be refused as well.
            if self._is_key(item):
                own.append(_Own(rank, base))
            yield Put(self._layout.table, item)

    def _is_key(self, item: Item) -> bool:
        partition, sort = place_of(self._layout.key_of(item))
        return text_size(partition) <= MAX_PARTITION_KEY_SIZE and text_size(sort) <= MAX_SORT_KEY_SIZE

    def have_put(self, node_transactions: Iterable[NodeTransaction]) -> None:
        """Remembers that the ranks of these transactions were put."""
        for state in (state for node_transaction in node_transactions for state in node_transaction.states):
            if puts := state.ranks.puts:
                # The newest ones come last.
                for own in self._own[state.ref.place][-len(puts) :]:
                    own.is_put = True

    def end(self, states: Iterable[EdgeState]) -> list[Delete]:
        """Forgets edges whose transaction succeeded. Returns the deletes of all ranks that are no longer named."""
        deletes: list[Delete] = []
        for state in states:
            place, made = state.ref.place, state.ranks
            if made is NO_MOVES and place not in self._own:
                continue
            own = self._own.pop(place, [])
            # As a rule, nothing is left of earlier attempts.
            if len(own) > len(made.puts):
                named = {rank.token for rank in (*made.puts, *made.spare)}
                deletes += [self._delete(state, each.rank) for each in own if each.rank.token not in named]
            deletes += [self._delete(state, rank) for rank in made.deletes]
            self._old.pop(place, None)
        return deletes

    def look_again(self, states: Iterable[EdgeState]) -> list[Delete]:
        """Compares remembered ranks with the ledgers as they were read again.

        Returns the deletes of ranks that can no longer be named, and gives the others to the edge states for reuse.
        """
        deletes: list[Delete] = []
        for state in states:
            place = state.ref.place
            if place not in self._own:
                continue
            names: set[str] = set() if state.ledger is None else state.ledger.names
            deletes += [self._delete(state, rank) for rank in self._old[place] if rank.token not in names]
            self._old[place] = [rank for rank in self._old[place] if rank.token in names]
            found = {id(own): self._standing(state, own) for own in self._own[place]}
            deletes += [self._delete(state, own.rank) for own in self._own[place] if found[id(own)] == "dead"]
            self._own[place] = [own for own in self._own[place] if found[id(own)] == "pending"]
            state.spare = [own.rank for own in self._own[place] if own.is_put]
        return deletes

    def linger(self, state: EdgeState) -> bool:
        """Whether ranks are left that a late transaction could still name.

        If this edge does not need them any more, the state that they require has to change (by a touch), so that they
        are dead and can be deleted.
        """
        return any(own.base is not None for own in self._own.get(state.ref.place, ()))

    def _standing(self, state: EdgeState, own: _Own) -> RankStanding:
        """The standing of a remembered rank, by the ledger and node that were just read."""
        if state.near is None or own.rank.generation not in (state.generation, state.next):
            # The node was deleted, or the generation is over. Nothing is counted in it any more.
            return "dead"
        item = own.rank.item(self._layout, state.ref, own.base)
        return standing(self._layout, state.ref.group, item, state.item, state.near)

    def _delete(self, state: EdgeState, rank: Rank) -> Delete:
        return Delete(self._layout.table, rank.key(self._layout, state.ref))


# --- reconciling -------------------------------------------------------------------------------


_WIDTH, _SEPARATE = 256, 16
"""The most nodes that are written in one round; and up to how many nodes each has a transaction of its own.

With more, small transactions are combined, to save requests. With few, separate ones conflict less often.
"""
_Refused: TypeAlias = TransactionCanceled | InvalidRequest | InvalidKey | InvalidValue
_log = logging.getLogger("adjoin.maintain")


@dataclass
class _Pace(Pace):
    """How much is tried at a time: less after each failure, until it is clear which rule causes it."""

    width: int = _WIDTH
    """Nodes per round."""
    states: int = MAX_TRANSACTION
    """Edges per transaction."""
    blamed: dict[tuple[str, Place], Blame] = field(default_factory=dict)
    """Edges that cannot be applied by all of their rules, each with the search for the rules to set aside."""

    def tell_apart(self, error: _Refused, node_transactions: Sequence[NodeTransaction]) -> None:
        """Counts a failure, and decides what to try next.

        If another process caused it, the same is tried again, with half the width. Otherwise the transaction itself
        cannot be written: try one edge at a time, and then, for the first one, set rules aside.
        """
        self.slow_down(error)
        if isinstance(error, TransactionCanceled) and not is_hopeless(error):
            return
        if self.width > 1 or self.states > 1 or len(node_transactions[0].states) > 1:
            self.width = self.states = 1
            return
        place = node_transactions[0].states[0].ref.place
        blamed = self.blamed.setdefault(place, blame(node_transactions[0]))
        if not blamed.goes_on(reason_of(error)):
            raise error
        # No other process was in the way, so this does not count towards the limit of rank_attempts. The search ends by
        # itself, because the number of rules is limited.
        self.failures = 1

    def refused(self, ref: EdgeRef) -> dict[str, str]:
        """The rules that are set aside for an edge in the present try, with the reasons."""
        return self.blamed[ref.place].aside if ref.place in self.blamed else {}


def reconcile(
    layout: BoundLayout,
    refs: Iterable[EdgeRef],
    tally: Tally,
    note: Callable[[EdgeState], None] | None = None,
    moved: Callable[[EdgeRef], bool] = lambda _: False,
    removed: Callable[[EdgeRef], Sequence[AttributeValue]] = lambda _: (),
) -> Plan[None]:
    """Reconciles these edges. An edge may be given several times.

    `note` is called with each edge once it is reconciled. `moved` says whether one of the changes that are being
    applied may have changed what an edge contributes; such an edge needs a touch if there is nothing to write.
    `removed` has the stamps that these changes removed from an edge.
    """
    waiting = {ref.place: ref for ref in refs}
    pace, rank_attempts = _Pace(), RankAttempts(layout)
    stale: dict[str, NodeType] = {}
    # Edges without a ledger whose near nodes were touched: a transaction that would count such an edge, and that was
    # computed before the touch, fails from then on.
    touched: set[tuple[str, Place]] = set()

    def write(transactions: Sequence[Sequence[NodeTransaction]]) -> Plan[list[Delete] | None]:
        """Writes one round of transactions. Returns the deletes of ranks to do after it, or None.

        None means that no round is left or that this one failed. In both cases the loop reads again what is left.
        """
        node_transactions = [node_transaction for some in transactions for node_transaction in some]
        reconciled = [state for node_transaction in node_transactions for state in node_transaction.states]
        if not node_transactions:
            return None
        if is_structural(node_transactions[0]):
            # `_rounds` puts such a transaction alone into its round.
            yield from order(layout, node_transactions[0])
        try:
            # `order` may have set aside all edges of the transaction whose ledgers say so already.
            if node_transactions[0].states:
                # A rank has a few KB at most, so 25 of them always fit into one request.
                yield from write_in_rounds(rank_attempts.begin(node_transactions))
                rank_attempts.have_put(node_transactions)
                yield tuple(transaction(layout, some) for some in transactions)
        except (TransactionCanceled, InvalidRequest, InvalidKey, InvalidValue) as error:
            pace.tell_apart(error, node_transactions)
            return None
        pace.go_on()
        gone: list[Delete] = []
        for node_transaction in node_transactions:
            gone += rank_attempts.end(node_transaction.states)
            _note(node_transaction, tally, stale)
        _tell(note, reconciled)
        for state in reconciled:
            del waiting[state.ref.place]
        return gone

    while waiting:
        states, nears = yield from _read(layout, list(waiting.values()), pace, removed)
        yield from write_in_rounds(rank_attempts.look_again(states))
        stale |= {near.node_key: near.kind for near in nears.values() if near.item and STALE in near.item}
        new = {node_key for node_key, near in nears.items() if near.is_new and near.item is not None}
        if new and (born := {state.ref.near for state in states if state.ref.near in new and not state.is_reconciled}):
            # Ledgers and ranks name the generation, so it must be stored before them.
            if (error := (yield from begin_generations(layout, [nears[node_key] for node_key in born]))) is not None:
                pace.slow_down(error)
            continue
        # Three kinds of edges: those to write (by node), those to touch, and those with nothing to do, which are done.
        unwritten = _unwritten(states, nears)
        written = {state.ref.place for _, some in unwritten for state in some}
        idle = [state for state in states if state.ref.place not in written]
        touching = [
            state
            for state in idle
            if rank_attempts.linger(state) or (state.ref.place not in touched and _is_touched(state, moved))
        ]
        waiting = {ref.place: ref for ref in (state.ref for state in states) if ref.place in written}
        waiting |= {state.ref.place: state.ref for state in touching}
        _tell(note, (state for state in states if state.ref.place not in waiting))
        if touching:
            try:
                if requests := tuple(_touches(layout, touching, nears)):
                    yield requests
            except (ConditionFailed, TransactionCanceled) as error:
                pace.slow_down(error)
                continue
            # If there was no ledger, another process may have counted an older state of the edge between the reading
            # and the touch. After the touch this is not possible. So one more reading shows whether it happened.
            again = {state.ref.place for state in touching if state.ledger is None or rank_attempts.linger(state)}
            touched |= again
            done = [state for state in touching if state.ref.place not in again]
            _tell(note, done)
            for state in done:
                del waiting[state.ref.place]
        # Free what is written, round by round. The garbage collector of Python scans all live objects again and
        # again, and a large batch would become slow.
        del states, idle, touching
        rounds = _rounds(layout, unwritten, pace)
        # Ranks that are no longer named are deleted after all rounds: deletes are never urgent, and larger batches of
        # them need fewer requests.
        superseded: list[Delete] = []
        while (gone := (yield from write(next(rounds, ())))) is not None:
            superseded += gone
        yield from write_in_rounds(superseded)
    # At the end, once per node: several transactions may have changed the ranks of the same node.
    if stale:
        yield from refresh(layout, stale, tally)


def _is_touched(state: EdgeState, moved: Callable[[EdgeRef], bool]) -> bool:
    """Whether an edge needs a touch: nothing has to be written, but its contribution changed.

    A process that read the edge before that change may still be about to write the old contribution. It must fail.
    """
    return state.near is not None and not state.ref.group.is_checked and state.is_reconciled and moved(state.ref)


def _touches(
    layout: BoundLayout, states: Iterable[EdgeState], nears: Mapping[str, Near]
) -> Iterator[Update | TransactWrite]:
    """The touches of the ledgers of edges, or of the near nodes of edges without a ledger (each node once)."""
    without: dict[str, Near] = {}
    for state in states:
        if state.ledger is None or state.item is None:
            without[state.ref.near] = nears[state.ref.near]
        else:
            yield ledger_touched(layout, state.ref, state.ref.ledger_key(layout), state.item)
    for near in without.values():
        # No process counts an edge for a node that has no generation yet, so there is nothing to stop.
        if not near.is_new:
            yield touched_node(layout, near)


def _tell(note: Callable[[EdgeState], None] | None, states: Iterable[EdgeState]) -> None:
    if note is not None:
        for state in states:
            note(state)


def _note(node_transaction: NodeTransaction, tally: Tally, stale: dict[str, NodeType]) -> None:
    """Counts a transaction that was written, and remembers its node if it is stale."""
    near = node_transaction.near
    tally.edges += len(node_transaction.states)
    if node_transaction.took_place():
        tally.nodes.add(near.node_key)
    if STALE in (near.item or {}):
        stale[near.node_key] = near.kind
    for state in node_transaction.states:
        for rule, reason in state.aside.items():
            tally.aside.append((rule, state.ref.key, reason))
            _log.warning("set aside for %s: the edge %s: %s", rule, " ".join(place_of(state.ref.key)), reason)


_Unwritten: TypeAlias = tuple[Near, Sequence[EdgeState]]
"""A near node and those of its edges that have to be written. The transactions of one node follow each other."""


def _unwritten(states: Iterable[EdgeState], nears: Mapping[str, Near]) -> deque[_Unwritten]:
    """The edges that have to be written, by near node. An edge that waits for its node needs a waiting marker."""
    by_near: dict[str, list[EdgeState]] = {}
    for state in states:
        if not state.is_reconciled or waits(state):
            by_near.setdefault(state.ref.near, []).append(state)
    return deque((nears[node_key], some) for node_key, some in by_near.items())


def _rounds(layout: BoundLayout, unwritten: deque[_Unwritten], pace: _Pace) -> Iterator[list[list[NodeTransaction]]]:
    """The rounds of transactions to write. In one round, no node occurs twice.

    A round is made only when it is needed, because it depends on what the rounds before it did to the node. Its edges
    are then removed.
    """
    width, most, is_direct = pace.width, pace.states, pace.failures == 0
    while unwritten:
        heads: list[NodeTransaction] = []
        # A node with more edges than fit into one transaction gets its next one after all other nodes had a turn.
        for _ in range(len(unwritten)):
            near, states = unwritten.popleft()
            node_transaction, left = packed(layout, near, states, most)
            if left:
                unwritten.append((near, left))
            # Under contention, condition on fewer attributes: the transaction is cancelled less often.
            node_transaction.is_direct = is_direct
            if is_structural(node_transaction):
                yield [[node_transaction]]
                continue
            heads.append(node_transaction)
            if len(heads) == width:
                yield from arranged(layout, heads, is_apart=width <= _SEPARATE)
                heads = []
        if heads:
            yield from arranged(layout, heads, is_apart=width <= _SEPARATE)


def _read(
    layout: BoundLayout, refs: Sequence[EdgeRef], pace: _Pace, removed: Callable[[EdgeRef], Sequence[AttributeValue]]
) -> Plan[tuple[list[EdgeState], dict[str, Near]]]:
    """Reads the edge states of some edges, and their near nodes by node key."""
    kinds = {ref.near: ref.group.hop.near for ref in refs}
    nodes = {node_key: key_of_node(layout, kind, node_key) for node_key, kind in kinds.items()}
    ledgers = [ref.ledger_key(layout) for ref in refs]
    places = [place_of(key) for key in ledgers]
    first = {place_of(key): key for key in nodes.values()}
    items = yield from _items(layout, first | dict(zip(places, ledgers, strict=True)))
    there = {node_key: items[place_of(key)] for node_key, key in nodes.items()}
    fars = {ref.far: ref.far_key(layout) for ref in refs if ref.group.reads_far}
    # Edges are read after ledgers. A maintainer that applies a change of an edge changes the ledger after the edge
    # changed. So if this read sees the edge before that change, it has seen the ledger before it too, and the
    # transaction fails. In the other order it could combine an old edge with the new ledger, and succeed.
    # A node that was not found, but for which an edge was counted, is read once more, because a batch is not of one
    # instant: if it exists now, it was created between the reads of the node and the ledger, which is not void then.
    again = {
        ref.near: nodes[ref.near]
        for ref, ledger in zip(refs, places, strict=True)
        if there[ref.near] is None and items[ledger] is not None
    }
    others = {place_of(key): key for key in (*fars.values(), *again.values())}
    later = yield from _items(layout, {ref.place[1]: ref.key for ref in refs} | others)
    if any(later[place_of(key)] is not None for key in again.values()):
        return (yield from _read(layout, refs, pace, removed))
    nears = {
        node_key: Near(kind, node_key, nodes[node_key], there[node_key], is_gone=node_key in again)
        for node_key, kind in kinds.items()
    }
    states = []
    for ref, ledger in zip(refs, places, strict=True):
        near = nears[ref.near]
        far = later[place_of(fars[ref.far])] if ref.group.reads_far else None
        edge = later[ref.place[1]]
        state = EdgeState(
            ref,
            edge,
            items[ledger],
            near.item,
            far,
            near.generation,
            near.next,
            stamp=None if edge is None else edge.get(STAMP),
            removed=removed(ref),
        )
        state.work_out(layout, pace.refused(ref))
        states.append(state)
    return states, nears


def _items(layout: BoundLayout, keys: Mapping[Place, Item]) -> Plan[dict[Place, Item | None]]:
    found = yield from get_all(Get(layout.table, key, consistent=True) for key in keys.values())
    return dict(zip(keys, found, strict=True))
