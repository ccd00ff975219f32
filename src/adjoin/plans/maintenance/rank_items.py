"""Ranks as items: hints, of which those count that a ledger names.

A rank is put by a plain write before the transaction that adds its value, under a key that ends in a token that nobody
had before. The ledger, which that transaction writes, names the token. After a transaction whose ledger does not name
it any more, it is deleted, by a plain write too. So a rank that is named is there, from before it is named until after;
and one that is there is named, or is one of these:

pending    its ledger is still what the transaction of its writer asks for, and may name it yet
dead       it is not, and never will be again: nobody will ever name it, and whoever meets it may delete it

attribute     what it holds
value, by     what the node shows
ledger        the sort key of the ledger
beside        the partition key of the ledger, where it is not that of the rank
based         what the transaction asks for: the revision of the ledger; or, where it must not be there, how many edges
              have left the node, because no ledger goes without that being counted

Earlier versions put and deleted ranks in the transaction, without a token. Such a rank is there exactly as long as
its ledger has its value, and goes as it came. So do those of writers who count in a transaction of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adjoin.layouts.interface import BoundLayout
from adjoin.plans.maintenance.contributions import BY, RANK, VALUE
from adjoin.plans.maintenance.ledger import LEFT, Ledger, Tokens, has_part, ledger_in, new_token, revision_of
from adjoin.plans.maintenance.references import EdgeRef
from adjoin.rules import Account
from adjoin.values import AttributeValue, Item

HOME, PARTITION, BASE = "ledger", "beside", "based"
Standing: TypeAlias = Literal["named", "pending", "dead"]


@dataclass(frozen=True, slots=True)
class Rank:
    """One value of an edge among the others of a node, in one life of it."""

    life: str
    rule: str
    """The key of the rule."""
    number: int
    """Which of the values of the edge it is."""
    entry: Mapping[str, AttributeValue]
    token: str | None

    def key(self, layout: BoundLayout, ref: EdgeRef) -> Item:
        about = ref.near, self.life, self.rule, self.entry[RANK]["S"], ref.key
        if self.token is None:
            return layout.ledgers.untold_rank_key(*about, self.number)
        return layout.ledgers.rank_key(*about, self.token)

    def item(self, layout: BoundLayout, ref: EdgeRef, base: AttributeValue | None) -> Item:
        key, (partition, sort) = self.key(layout, ref), ref.ledger_key(layout).values()
        item: Item = {**key, **{name: self.entry[name] for name in (VALUE, BY) if name in self.entry}, HOME: sort}
        if partition != next(iter(key.values())):
            item[PARTITION] = partition
        if base is not None:
            item[BASE] = base
        return item


def ranks_of(ledger: Ledger, before: str | None, keys: Mapping[str, str]) -> Iterator[Rank]:
    """The ranks that count by a ledger: in its life, and in the one before if it is one that is prepared."""
    for name, value in ledger.applied.items():
        for number, (entry, tokens) in enumerate(zip(value.get("L", ()), ledger.tokens.get(name, ()), strict=True)):
            for life, token in zip((ledger.life, before), tokens, strict=True):
                if life is not None:
                    yield Rank(life, keys.get(name, name), number, entry["M"], token)


# --- what becomes of them ----------------------------------------------------------------------


@dataclass
class Moves:
    """What becomes of the ranks of an edge when its ledger becomes another."""

    puts: list[Rank] = field(default_factory=list)
    """Those that are put before."""
    spare: list[Rank] = field(default_factory=list)
    """Those that were put by an attempt before, and are named by this one."""
    deletes: list[Rank] = field(default_factory=list)
    """Those that are deleted afterwards."""
    together: list[Rank] = field(default_factory=list)
    """Those without a token, which are deleted in the transaction."""
    tokens: dict[str, Sequence[Tokens]] = field(default_factory=dict)
    """What the ledger names, rule by rule."""


def moves(
    after: Ledger, before: str | None, keys: Mapping[str, str], there: Iterable[Rank], spare: Iterable[Rank]
) -> Moves:
    """What becomes of the ranks that are `there` so that those of a ledger are; what stays the same keeps its token.

    `before` is the present life, where the ledger will be of one that is prepared.
    """
    made = Moves()
    kept, again = _Pool(there), _Pool(spare)

    def token(life: str | None, rule: str, number: int, entry: Mapping[str, AttributeValue]) -> str | None:
        if life is None:
            return None
        if (found := kept.take(life, rule, number, entry)) is not None:
            return found.token
        if (found := again.take(life, rule, number, entry)) is not None:
            made.spare.append(found)
            return found.token
        made.puts.append(Rank(life, rule, number, entry, new_token()))
        return made.puts[-1].token

    for name, value in after.applied.items():
        if "L" in value:
            rule = keys.get(name, name)
            made.tokens[name] = [
                (token(after.life, rule, number, entry["M"]), token(before, rule, number, entry["M"]))
                for number, entry in enumerate(value["L"])
            ]
    for rank in kept.left:
        (made.together if rank.token is None else made.deletes).append(rank)
    return made


class _Pool:
    """Ranks that may stay."""

    def __init__(self, ranks: Iterable[Rank]) -> None:
        self._ranks: dict[tuple[str, str, str], list[Rank]] = {}
        for rank in ranks:
            self._ranks.setdefault((rank.life, rank.rule, rank.entry[RANK]["S"]), []).append(rank)

    def take(self, life: str, rule: str, number: int, entry: Mapping[str, AttributeValue]) -> Rank | None:
        some = self._ranks.get((life, rule, entry[RANK]["S"]), [])
        for place, rank in enumerate(some):
            # The key of one without a token has its number.
            if rank.entry == entry and (rank.token is not None or rank.number == number):
                return some.pop(place)
        return None

    @property
    def left(self) -> list[Rank]:
        return [rank for some in self._ranks.values() for rank in some]


# --- which of them count -----------------------------------------------------------------------


def base_of(account: Account, ledger: Item | None, near: Item | None) -> AttributeValue | None:
    """What the transaction asks for that was made of a ledger and a node; None where that may come back."""
    if has_part(account, ledger):
        return revision_of(account, ledger)
    return {"N": str(_left(near))}


def _left(near: Item | None) -> int:
    return int((near or {}).get(LEFT, {"N": "0"})["N"])


def ledger_key(layout: BoundLayout, rank: Item) -> Item | None:
    """Where the ledger of a rank is; None for a rank without a token, which needs none."""
    if HOME not in rank:
        return None
    partition, sort = layout.key_of(rank)
    return {partition: rank.get(PARTITION, rank[partition]), sort: rank[HOME]}


def standing(layout: BoundLayout, account: Account, rank: Item, ledger: Item | None, near: Item | None) -> Standing:
    """Whether a rank counts in the life that it is of.

    The ledger must have been read after the rank, and the node at any time: what it counts only grows.
    """
    found = ledger_in(account, ledger)
    if HOME not in rank or (found is not None and layout.ledgers.token_of_rank(rank) in found.names):
        return "named"
    base = rank.get(BASE)
    if base is None:
        return "pending"
    if "N" in base:
        return "dead" if has_part(account, ledger) or _left(near) > int(base["N"]) else "pending"
    return "pending" if revision_of(account, ledger) == base else "dead"
