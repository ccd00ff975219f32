"""What follows when an edge is written: what `maintain` will do to count it, told before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from adjoin.errors import AdjoinError
from adjoin.layouts.interface import BoundLayout
from adjoin.plans.batches import Place, place_of
from adjoin.plans.maintenance.arrivals import is_taken_down
from adjoin.plans.maintenance.entries import contributions
from adjoin.plans.maintenance.ledger import Ledger, LedgerWrite, ledger_write, new_token
from adjoin.plans.maintenance.references import counted_by, ref_to
from adjoin.requests import BatchWrite, Put, Request, TransactWrite
from adjoin.rules import Account
from adjoin.schema import EdgeType
from adjoin.values import Item, item_size


@dataclass(frozen=True)
class Expected:
    """What one edge makes `maintain` write."""

    edge: EdgeType
    fields: tuple[str, ...]
    """The aggregates that it counts for."""
    ledgers: int
    """Items that say what it has added."""
    ledger_bytes: int
    checks: int
    """Items that are checked with it: it and its far end, where a rule reads that."""
    ranks: int
    """Values that are kept in order."""
    nodes: int
    """Nodes that count it."""
    arrivals: int
    above: tuple[EdgeType, ...]
    """Classes of edges that read what changes by it at their far ends."""


def expected(layout: BoundLayout, requests: Iterable[Request]) -> Iterator[Expected]:
    """For each edge that requests put; an edge that is put twice, as a symmetric one, is told as often."""
    for item in _put_in(requests):
        kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        if isinstance(kind, EdgeType) and (accounts := list(counted_by(layout, kind))):
            yield _expected(layout, kind, accounts, item)


def _put_in(requests: Iterable[Request]) -> Iterator[Item]:
    for request in requests:
        writes = request.writes if isinstance(request, TransactWrite | BatchWrite) else (request,)
        yield from (write.item for write in writes if isinstance(write, Put))


def _expected(layout: BoundLayout, kind: EdgeType, accounts: Sequence[Account], item: Item) -> Expected:
    ledgers: dict[Place, LedgerWrite | Put] = {}
    ranks = 0
    for account in accounts:
        try:
            ref = ref_to(layout, account, item)
            wanted, aside = contributions(layout, account, item)
        except AdjoinError:
            continue
        tokens = {name: [(new_token(), None)] * len(value["L"]) for name, value in wanted.items() if "L" in value}
        ranks += sum(map(len, tokens.values()))
        key = ref.ledger_key(layout)
        if wanted or aside or account.reads_far:
            write = ledger_write(layout, ref, key, None, Ledger(new_token(), wanted, aside, tokens=tokens))
            there = ledgers.get(place_of(key))
            if isinstance(there, LedgerWrite) and isinstance(write, LedgerWrite):
                write = there.joined(write)
            if isinstance(write, LedgerWrite | Put):
                ledgers[place_of(key)] = write
    stored = [each.whole if isinstance(each, LedgerWrite) else each.item for each in ledgers.values()]
    rules = [rule for account in accounts for rule in account.rules]
    changed = {(rule.node.model, rule.attribute) for rule in rules}
    above = [
        account.edge
        for account in layout.rules.accounts
        if account.reads_far and any((account.hop.far.model, name) in changed for name in account.far_attributes)
    ]
    return Expected(
        kind,
        tuple(f"{rule.node.name}.{rule.field}" for rule in rules if rule.field is not None),
        len(stored),
        sum(map(item_size, stored)),
        sum(1 + account.reads_far for account in accounts if account.is_checked),
        ranks,
        len({account.hop.direction for account in accounts}),
        int(is_taken_down(layout, kind)),
        tuple({edge.label: edge for edge in above}.values()),
    )
