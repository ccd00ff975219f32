"""Ranks that were put for transactions of which it is not known whether they happened.

A round of transactions fails as a whole, though some of it may have happened, and some may yet, of which nobody knows
what became. So nothing is concluded from the error. When the ledgers have been read again, they tell: what they name
stays; what can still be named is named by the next attempt, if it wants the same; and what never can be, is deleted.
Where there is no next attempt, because the edge adds nothing any more, the ledger or the node is touched first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from adjoin.layouts.interface import BoundLayout
from adjoin.plans.batches import Place, place_of
from adjoin.plans.maintenance.entries import Entry
from adjoin.plans.maintenance.postings import Posting
from adjoin.plans.maintenance.rank_items import BASE, Rank, Standing, standing
from adjoin.requests import Delete, Put
from adjoin.units import MAX_PARTITION_KEY_SIZE, MAX_SORT_KEY_SIZE
from adjoin.values import Item


@dataclass(frozen=True, slots=True)
class _Own:
    """A rank that an attempt put, or wanted to."""

    rank: Rank
    item: Item
    is_put: bool


class Attempts:
    """What is left of attempts, edge by edge."""

    def __init__(self, layout: BoundLayout) -> None:
        self._layout = layout
        self._own: dict[tuple[str, Place], list[_Own]] = {}
        self._old: dict[tuple[str, Place], list[Rank]] = {}
        """Those that the ledger named before."""

    def begin(self, postings: Iterable[Posting]) -> list[Put]:
        """Takes down what transactions are about to need; answers the ranks that have to be put before them."""
        puts: list[Put] = []
        for posting in postings:
            near = posting.near.item
            if renewed := [entry for entry in posting.entries if self._is_outdated(entry, near)]:
                for entry in renewed:
                    entry.renew()
                posting.write_down(self._layout)
            for entry in posting.entries:
                puts += self._begin(entry, near)
        return puts

    def _is_outdated(self, entry: Entry, near: Item | None) -> bool:
        """Whether ranks that are there already say that they wait for something else than the transaction does.

        One before it may have changed the node.
        """
        if not entry.ranks.spare:
            return False
        base, tokens = entry.base(near), {rank.token for rank in entry.ranks.spare}
        return any(own.item.get(BASE) != base for own in self._own[entry.ref.place] if own.rank.token in tokens)

    def _begin(self, entry: Entry, near: Item | None) -> list[Put]:
        place, made = entry.ref.place, entry.ranks
        new = [_Own(rank, entry.rank_item(self._layout, rank, near), is_put=False) for rank in made.puts]
        if new or made.deletes:
            # What no key has room for is refused, and cannot be deleted either.
            self._own[place] = self._own.get(place, []) + [own for own in new if self._is_key(own.item)]
            self._old[place] = made.deletes
        return [Put(self._layout.table, own.item) for own in new]

    def _is_key(self, item: Item) -> bool:
        partition, sort = place_of(self._layout.key_of(item))
        return len(partition.encode()) <= MAX_PARTITION_KEY_SIZE and len(sort.encode()) <= MAX_SORT_KEY_SIZE

    def have_put(self, postings: Iterable[Posting]) -> None:
        """Takes down that the ranks of transactions are there."""
        for entry in (entry for posting in postings for entry in posting.entries):
            place, new = entry.ref.place, {rank.token for rank in entry.ranks.puts}
            if new:
                own = self._own[place]
                self._own[place] = [replace(each, is_put=each.is_put or each.rank.token in new) for each in own]

    def end(self, entries: Iterable[Entry]) -> list[Delete]:
        """Takes down that edges were applied; answers what has to go."""
        deletes: list[Delete] = []
        for entry in entries:
            place, made = entry.ref.place, entry.ranks
            named = {rank.token for rank in (*made.puts, *made.spare)}
            unused = [own.rank for own in self._own.pop(place, []) if own.rank.token not in named]
            deletes += [self._delete(entry, rank) for rank in (*made.deletes, *unused)]
            self._old.pop(place, None)
        return deletes

    def look_again(self, entries: Iterable[Entry]) -> list[Delete]:
        """Compares what is left of attempts with edges as they were read since; answers what has to go."""
        deletes: list[Delete] = []
        for entry in entries:
            place = entry.ref.place
            if place not in self._own:
                continue
            names: set[str] = set() if entry.ledger is None else entry.ledger.names
            deletes += [self._delete(entry, rank) for rank in self._old[place] if rank.token not in names]
            self._old[place] = [rank for rank in self._old[place] if rank.token in names]
            found = {id(own): self._standing(entry, own) for own in self._own[place]}
            deletes += [self._delete(entry, own.rank) for own in self._own[place] if found[id(own)] == "dead"]
            self._own[place] = [own for own in self._own[place] if found[id(own)] == "pending"]
            entry.spare = [own.rank for own in self._own[place] if own.is_put]
        return deletes

    def linger(self, entry: Entry) -> bool:
        """Whether ranks could still be named for an edge; if nobody wants that, what they wait for has to change."""
        return any(BASE in own.item for own in self._own.get(entry.ref.place, ()))

    def _standing(self, entry: Entry, own: _Own) -> Standing:
        if entry.near is None or own.rank.life not in (entry.life, entry.next):
            # Nothing is counted any more in a life that is over.
            return "dead"
        return standing(self._layout, entry.ref.account, own.item, entry.item, entry.near)

    def _delete(self, entry: Entry, rank: Rank) -> Delete:
        return Delete(self._layout.table, rank.key(self._layout, entry.ref))
