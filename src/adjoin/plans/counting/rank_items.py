"""Ranks: items beside a node that hold one value each, sorted by value. A rank counts if a ledger names it.

In: the ledger of an edge before and after a change (`moves`), or a rank that was found (`standing`). Out: which ranks
to put and delete, or whether the rank counts. `edge_state` plans the ranks of its edge with `moves`, `reconciling`
writes them, and `maintenance/ranks` reads the first ranks of a node and asks for their standing.

A rank is put with a plain write before the transaction that counts its value. Its key ends in a new random token. The
transaction writes a ledger that names the token. After a transaction whose ledger no longer names the token, the rank
is deleted, again with a plain write. So every rank that a ledger names exists. A rank that exists has one of three
standings:

named      a ledger names it, so it counts
pending    its ledger still has the state that the transaction of its writer requires, so it may be named in a moment
dead       its ledger has another state, and will never have that state again; no ledger will ever name it, and any
           process that finds it may delete it

attribute     what it holds
value, by     what the node shows
ledger        the sort key of the ledger
beside        the partition key of the ledger, if it differs from that of the rank
based         the state of the ledger that the transaction requires: its revision; or, if there must be no ledger, the
              departures of the node, because no ledger is deleted without counting them up

Earlier versions of adjoin put and deleted ranks within the transaction, without a token. Such a rank exists exactly as
long as its ledger has its value, and is deleted within a transaction too. Programs that count in their own transaction
also put and delete their ranks within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counting.contributions import BY, RANK, VALUE
from adjoin.plans.counting.ledger import LEFT, EdgeRef, Ledger, Tokens, has_part, ledger_in, new_token, revision_of
from adjoin.rules import RuleGroup
from adjoin.values import AttributeValue, Item

HOME, PARTITION, BASE = "ledger", "beside", "based"
RankStanding: TypeAlias = Literal["named", "pending", "dead"]


@dataclass(slots=True)
class Rank:
    """The rank of one value of an edge, in one generation of the near node."""

    generation: str
    rule: str
    """The key of the rule."""
    number: int
    """The position of the value in the edge's list of values."""
    entry: Mapping[str, AttributeValue]
    """The value with its rank text, see `contributions`."""
    token: str | None
    """None for a rank of an earlier version of adjoin."""

    def key(self, layout: BoundLayout, ref: EdgeRef) -> Item:
        """The key of the rank's item. It begins with node, generation and rule, then the rank text, for the order."""
        about = ref.near, self.generation, self.rule, self.entry[RANK]["S"], ref.key
        if self.token is None:
            return layout.ledgers.untold_rank_key(*about, self.number)
        return layout.ledgers.rank_key(*about, self.token)

    def item(self, layout: BoundLayout, ref: EdgeRef, base: AttributeValue | None) -> Item:
        """The rank's item. It says where its ledger is, and which state of it (`base`) its transaction requires."""
        key, (partition, sort) = self.key(layout, ref), ref.ledger_key(layout).values()
        item: Item = {**key, VALUE: self.entry[VALUE]}
        if BY in self.entry:
            item[BY] = self.entry[BY]
        item[HOME] = sort
        if partition != next(iter(key.values())):
            item[PARTITION] = partition
        if base is not None:
            item[BASE] = base
        return item


def ranks_of(ledger: Ledger, before: str | None, keys: Mapping[str, str]) -> Iterator[Rank]:
    """The ranks that a ledger names: in its generation, and in `before`, the present one, if its own is the next."""
    for name, value in ledger.applied.items():
        for number, (entry, tokens) in enumerate(zip(value.get("L", ()), ledger.tokens.get(name, ()), strict=True)):
            for generation, token in zip((ledger.generation, before), tokens, strict=True):
                if generation is not None:
                    yield Rank(generation, keys.get(name, name), number, entry["M"], token)


# --- which ranks to put and delete -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moves:
    """What has to be done with the ranks of an edge when its ledger changes."""

    puts: Sequence[Rank] = ()
    """New ranks, to put before the transaction."""
    spare: Sequence[Rank] = ()
    """Ranks that an earlier attempt put, and that the new ledger names."""
    deletes: Sequence[Rank] = ()
    """Ranks to delete after the transaction."""
    together: Sequence[Rank] = ()
    """Ranks without a token, to delete within the transaction."""
    tokens: Mapping[str, Sequence[Tokens]] = field(default_factory=dict)
    """The tokens that the new ledger names, per rule."""


NO_MOVES = Moves()


def moves(
    after: Ledger, before: str | None, keys: Mapping[str, str], there: Iterable[Rank], spare: Iterable[Rank]
) -> Moves:
    """What has to be done so that exactly the ranks of the ledger `after` exist.

    `there` are the ranks that the ledger names now, and `spare` those that an earlier attempt put. A value that stays
    the same keeps its rank and its token. `before` is the present generation, if `after` is of the next one.
    """
    puts: list[Rank] = []
    used: list[Rank] = []
    kept, again = _Pool(there), _Pool(spare)

    def token(generation: str | None, rule: str, number: int, entry: Mapping[str, AttributeValue]) -> str | None:
        """The token of an existing rank with this value, or else of a spare one, or else of a new one."""
        if generation is None:
            return None
        if (found := kept.take(generation, rule, number, entry)) is not None:
            return found.token
        if (found := again.take(generation, rule, number, entry)) is not None:
            used.append(found)
            return found.token
        puts.append(Rank(generation, rule, number, entry, new_token()))
        return puts[-1].token

    named: dict[str, Sequence[Tokens]] = {}
    for name, value in after.applied.items():
        if "L" in value:
            rule = keys.get(name, name)
            named[name] = tuple(
                [
                    (token(after.generation, rule, number, entry["M"]), token(before, rule, number, entry["M"]))
                    for number, entry in enumerate(value["L"])
                ]
            )
    left = kept.left
    if not left:
        return Moves(tuple(puts), tuple(used), tokens=named)
    deletes = tuple(rank for rank in left if rank.token is not None)
    return Moves(tuple(puts), tuple(used), deletes, tuple(rank for rank in left if rank.token is None), named)


def first_moves(after: Ledger, before: str | None, keys: Mapping[str, str]) -> Moves:
    """The same for an edge that has no ranks yet: all ranks of the ledger `after` are new."""
    puts: list[Rank] = []
    named: dict[str, Sequence[Tokens]] = {}
    for name, value in after.applied.items():
        if "L" not in value:
            continue
        rule, pairs = keys.get(name, name), []
        for number, entry in enumerate(value["L"]):
            token, former = new_token(), None if before is None else new_token()
            puts.append(Rank(after.generation, rule, number, entry["M"], token))
            if before is not None:
                puts.append(Rank(before, rule, number, entry["M"], former))
            pairs.append((token, former))
        named[name] = tuple(pairs)
    return Moves(tuple(puts), tokens=named)


class _Pool:
    """Existing ranks, to choose from for the values of the new ledger."""

    def __init__(self, ranks: Iterable[Rank]) -> None:
        self._ranks: dict[tuple[str, str, str], list[Rank]] = {}
        for rank in ranks:
            self._ranks.setdefault((rank.generation, rank.rule, rank.entry[RANK]["S"]), []).append(rank)

    def take(self, generation: str, rule: str, number: int, entry: Mapping[str, AttributeValue]) -> Rank | None:
        """Takes a rank with this value out of the pool; None if there is none."""
        if not self._ranks:
            return None
        some = self._ranks.get((generation, rule, entry[RANK]["S"]), [])
        for place, rank in enumerate(some):
            # The key of a rank without a token contains its number. So it serves only a value with the same number.
            if rank.entry == entry and (rank.token is not None or rank.number == number):
                return some.pop(place)
        return None

    @property
    def left(self) -> list[Rank]:
        """The ranks that were not taken: no value needs them."""
        return [rank for some in self._ranks.values() for rank in some]


# --- which ranks count -------------------------------------------------------------------------


def base_of(group: RuleGroup, ledger: Item | None, near: Item | None) -> AttributeValue | None:
    """The state that a transaction requires which was computed from this ledger and node.

    It is the revision of the ledger, or the departures of the node if there is no ledger. Neither ever returns to a
    former value. None if the ledger has no revision: then the same state may return, and the rank is never dead.
    """
    if has_part(group, ledger):
        return revision_of(group, ledger)
    return {"N": str(_left(near))}


def _left(near: Item | None) -> int:
    return int((near or {}).get(LEFT, {"N": "0"})["N"])


def ledger_key(layout: BoundLayout, rank: Item) -> Item | None:
    """The key of the ledger that may name a rank; None for a rank without a token, which always counts."""
    if HOME not in rank:
        return None
    partition, sort = layout.key_of(rank)
    return {partition: rank.get(PARTITION, rank[partition]), sort: rank[HOME]}


def standing(layout: BoundLayout, group: RuleGroup, rank: Item, ledger: Item | None, near: Item | None) -> RankStanding:
    """Whether a rank counts in its generation.

    The ledger must have been read after the rank: otherwise a rank that was named in between would seem dead. The node
    may have been read at any time, because its departures only grow.
    """
    found = ledger_in(group, ledger)
    if HOME not in rank or (found is not None and layout.ledgers.token_of_rank(rank) in found.names):
        return "named"
    base = rank.get(BASE)
    if base is None:
        return "pending"
    if base.get("N", "").isdigit():
        return "dead" if has_part(group, ledger) or _left(near) > int(base["N"]) else "pending"
    return "pending" if revision_of(group, ledger) == base else "dead"
