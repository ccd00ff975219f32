"""Everything that is counted for some nodes, or read from them, looked at: without waiting for the stream to say so.

`settle_near` looks at all edges that count for nodes, `settle_above` at those that read nodes at their far ends,
and what that changes in turn, until nothing does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, chunks, place_of
from adjoin.plans.maintenance.arrivals import Arrival, arriving_at, found_in, is_taken_down, strike_out, take_down
from adjoin.plans.maintenance.entries import Entry
from adjoin.plans.maintenance.references import EdgeRef, counted_by, edges_in, query_at, ref_in, refs_to
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.settling import settle
from adjoin.requests import PageResponse, Query
from adjoin.rules import Account
from adjoin.schema import EdgeType, NodeType
from adjoin.values import Item

TOGETHER = 2000
"""Edges that are settled at a time."""
_NODES = 100
"""Nodes whose edges are looked up at a time."""


def counting(layout: BoundLayout, kind: NodeType) -> list[Account]:
    """The accounts that count for nodes of a class."""
    return [account for account in layout.rules.accounts if account.hop.near is kind]


def settle_near(
    layout: BoundLayout,
    kind: NodeType,
    texts: Iterable[str],
    tally: Tally,
    note: Callable[[Entry], None] | None = None,
    accounts: Sequence[Account] | None = None,
) -> Plan[None]:
    """Looks at all edges that count for nodes of a class, given by their partition keys; or only in some accounts."""
    refs: list[EdgeRef] = []
    looked_at = counting(layout, kind) if accounts is None else accounts
    for some in chunks(texts, _NODES):
        open_lookups = [lookup for text in some for lookup in lookups(layout, kind, text, looked_at)]
        # What arrives may be found twice, far apart.
        seen: set[tuple[str, Place]] = set()
        while open_lookups:
            pages: list[PageResponse] = yield tuple(lookup.query for lookup in open_lookups)
            for lookup, page in zip(open_lookups, pages, strict=True):
                found = [ref for ref in lookup.refs(layout, page) if ref.place not in seen]
                if lookup.repeats:
                    seen.update(ref.place for ref in found)
                refs += found
            open_lookups = [
                lookup.behind(page.last)
                for lookup, page in zip(open_lookups, pages, strict=True)
                if page.last is not None
            ]
            if len(refs) >= TOGETHER:
                yield from _settled(layout, refs, tally, note)
                refs = []
    yield from _settled(layout, refs, tally, note)


def settle_found(layout: BoundLayout, refs: Sequence[EdgeRef], tally: Tally) -> Plan[None]:
    """Looks at edges that arrive at nodes, found without the stream, and takes them down; they may be gone by now."""
    for some in chunks(refs, TOGETHER):
        arriving = {
            place_of(ref.key): Arrival(ref.account.edge, ref.key, ref.far, ref.near)
            for ref in some
            if is_taken_down(layout, ref.account.edge)
        }
        yield from take_down(layout, arriving.values())
        yield from _settle_and_strike_out(layout, some, arriving, tally)


def _settle_and_strike_out(
    layout: BoundLayout, refs: Iterable[EdgeRef], arriving: Mapping[Place, Arrival], tally: Tally
) -> Plan[None]:
    """Looks at edges, and removes what was taken down about those that are gone."""
    gone: set[Place] = set()

    def note(entry: Entry) -> None:
        if entry.edge is None:
            gone.add(place_of(entry.ref.key))

    yield from settle(layout, refs, tally, note)
    yield from strike_out(layout, [edge for place, edge in arriving.items() if place in gone])


def settle_again(
    layout: BoundLayout, kind: EdgeType, edges: Iterable[tuple[Sequence[Item], str, str]], tally: Tally
) -> Plan[None]:
    """Looks at edges in all accounts, and at what is made of them.

    An edge is given by the keys of its items, of which a second one leads back, and the partition keys of its ends.
    """
    refs = []
    arriving: dict[Place, Arrival] = {}
    for keys, source, target in edges:
        if is_taken_down(layout, kind):
            arriving[place_of(keys[0])] = Arrival(kind, keys[0], source, target)
        for account in counted_by(layout, kind):
            for key, (start, end) in zip(keys, ((source, target), (target, source)), strict=False):
                near, far = (start, end) if account.hop.direction == "out" else (end, start)
                refs.append(EdgeRef(account, key, near, far))
    own = Tally()
    yield from _settle_and_strike_out(layout, refs, arriving, own)
    tally.include(own)
    nears = {ref.near: ref.account.hop.near for ref in refs}
    yield from settle_above(layout, {text: nears[text] for text in own.nodes}, tally)


def _settled(
    layout: BoundLayout, refs: list[EdgeRef], tally: Tally, note: Callable[[Entry], None] | None
) -> Plan[None]:
    for some in chunks(refs, TOGETHER):
        yield from settle(layout, some, tally, note)


@dataclass(frozen=True)
class Lookup:
    """A query for edges that count for a node, in some accounts, all of edges that leave it or of one class."""

    query: Query
    accounts: list[Account]
    text: str
    leaves: bool
    repeats: bool
    """Whether another query may find the same."""

    def behind(self, last: Item) -> Lookup:
        """What goes on behind a page."""
        return replace(self, query=replace(self.query, start=last))

    def refs(self, layout: BoundLayout, page: PageResponse) -> Iterator[EdgeRef]:
        for account in self.accounts:
            if self.leaves:
                yield from refs_to(layout, account, edges_in(layout, account.edge, page))
            else:
                for edge in found_in(layout, account.edge, self.text, page):
                    yield EdgeRef(account, edge.key, edge.target, edge.source)


def lookups(layout: BoundLayout, kind: NodeType, text: str, accounts: Iterable[Account]) -> Iterator[Lookup]:
    """The queries for all edges that count for a node; those that leave it are found by one."""
    accounts = list(accounts)
    leaving = [account for account in accounts if account.hop.direction == "out"]
    if leaving:
        yield Lookup(query_at(layout, leaving[0].edge, kind, text, True), leaving, text, leaves=True, repeats=False)
    arriving: dict[str, list[Account]] = {}
    for account in accounts:
        if account.hop.direction != "out":
            arriving.setdefault(account.edge.label, []).append(account)
    for some in arriving.values():
        for query in arriving_at(layout, some[0].edge, text):
            yield Lookup(query, some, text, leaves=False, repeats=True)


# --- what is made of nodes ---------------------------------------------------------------------


def settle_above(layout: BoundLayout, nodes: Mapping[str, NodeType], tally: Tally) -> Plan[None]:
    """Looks at everything that is made of these nodes, hop by hop; circles are set aside, so that this ends."""
    changed = dict(nodes)
    while changed:
        found: dict[str, NodeType] = {}
        for some in chunks(changed.items(), _NODES):
            yield from _settle_readers(layout, dict(some), found, tally)
        changed = found


def _settle_readers(
    layout: BoundLayout, nodes: Mapping[str, NodeType], changed: dict[str, NodeType], tally: Tally
) -> Plan[None]:
    """Looks at the edges that read these nodes; takes down which nodes that changed."""
    queries = [
        (Query(layout.table, *layout.ledgers.ledgers(account.name, text), consistent=True), account)
        for text, kind in nodes.items()
        for account in layout.rules.accounts
        if account.reads_far and account.hop.far is kind
    ]
    while queries:
        responses: list[PageResponse] = yield tuple(query for query, _ in queries)
        refs = [
            ref_in(layout, account, item)
            for (_, account), response in zip(queries, responses, strict=True)
            for item in response.items
        ]
        for some in chunks(refs, TOGETHER):
            own = Tally()
            yield from settle(layout, some, own)
            kinds = {ref.near: ref.account.hop.near for ref in some}
            changed |= {text: kinds[text] for text in own.nodes}
            tally.include(own)
        queries = [
            (replace(query, start=response.last), account)
            for (query, account), response in zip(queries, responses, strict=True)
            if response.last is not None
        ]
