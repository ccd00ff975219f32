"""Everything that is counted for some nodes, or read from them, looked at: without waiting for the stream to say so.

`settle_near` looks at all edges that count for nodes, `settle_above` at those that read nodes at their far ends,
and what that changes in turn, until nothing does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import chunks
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
        queries = [query for text in some for query in _edges(layout, kind, text, looked_at)]
        while queries:
            responses: list[PageResponse] = yield tuple(query for query, _ in queries)
            for (_, some_accounts), response in zip(queries, responses, strict=True):
                for account in some_accounts:
                    refs += refs_to(layout, account, edges_in(layout, account.edge, response))
            queries = [
                (replace(query, start=response.last), some_accounts)
                for (query, some_accounts), response in zip(queries, responses, strict=True)
                if response.last is not None
            ]
            if len(refs) >= TOGETHER:
                yield from _settled(layout, refs, tally, note)
                refs = []
    yield from _settled(layout, refs, tally, note)


def settle_again(
    layout: BoundLayout, kind: EdgeType, edges: Iterable[tuple[Sequence[Item], str, str]], tally: Tally
) -> Plan[None]:
    """Looks at edges in all accounts, and at what is made of them.

    An edge is given by the keys of its items, of which a second one leads back, and the partition keys of its ends.
    """
    refs = []
    for keys, source, target in edges:
        for account in counted_by(layout, kind):
            for key, (start, end) in zip(keys, ((source, target), (target, source)), strict=False):
                near, far = (start, end) if account.hop.direction == "out" else (end, start)
                refs.append(EdgeRef(account, key, near, far))
    own = Tally()
    yield from settle(layout, refs, own)
    tally.include(own)
    nears = {ref.near: ref.account.hop.near for ref in refs}
    yield from settle_above(layout, {text: nears[text] for text in own.nodes}, tally)


def _settled(
    layout: BoundLayout, refs: list[EdgeRef], tally: Tally, note: Callable[[Entry], None] | None
) -> Plan[None]:
    for some in chunks(refs, TOGETHER):
        yield from settle(layout, some, tally, note)


def _edges(
    layout: BoundLayout, kind: NodeType, text: str, accounts: Iterable[Account]
) -> Iterator[tuple[Query, list[Account]]]:
    """The queries for all edges that count for a node; those that leave it are found by one."""
    accounts = list(accounts)
    leaving = [account for account in accounts if account.hop.direction == "out"]
    if leaving:
        yield query_at(layout, leaving[0].edge, kind, text, True), leaving
    arriving: dict[str, list[Account]] = {}
    for account in accounts:
        if account.hop.direction != "out":
            arriving.setdefault(account.edge.label, []).append(account)
    for some in arriving.values():
        yield query_at(layout, some[0].edge, kind, text, False), some


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
