"""Stamps: an attribute of an edge that says what was counted for it, so that a new edge needs no ledger.

In: the item of an edge, or what an edge contributes. Out: a `Stamp`, or the attribute. `edge_state` counts a stamp in
with what the ledger says, and `plans/in_transaction` puts stamps on edges, in rule groups with
`is_stamped`.

    adjoin:stamp    what it holds
    l               the generation of the node in which the edge is counted
    t               the token of the stamp, and a digest of the edge's key
    a rule          what was contributed: a number

Other programs write and remove edges as whole items, and stamps with them. They may also put an edge as they read it
long ago, with a stamp of that time. So that an edge has a stamp does not mean that it is counted, and that it has none
does not mean that it is not. This decides:

    A stamp counts from the transaction that puts it on its edge until a ledger of the edge names it as spent.

What an edge has contributed is what its ledger says, and all its stamps that count. This sum is always what the node
has got, because each transaction changes both by the same amount:

- A transaction that puts a stamp adds to the node what the stamp says. The token is new, so no ledger names it.
- A transaction that takes back what a stamp says names it as spent, on the condition that the ledger is as it was read.
  So a stamp is taken back once, however often and late its edge's changes are delivered.

A ledger that names spent stamps stays when its edge is removed, as long as the generation lasts: a program may put the
edge again as it once read it. An edge that has a ledger gets no stamp any more, so a ledger names few of them.

A maintainer learns from the image before a change which stamp the change removed. This is the one case in which
something is taken from a change itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from adjoin.dataclass import dataclass
from adjoin.layouts.interface import STAMP
from adjoin.layouts.own_items import digest_of
from adjoin.plans.counting.ledger import new_token
from adjoin.rules import Rule, RuleGroup
from adjoin.values import AttributeValue, Item

_GENERATION, _TOKEN = "l", "t"
TOKEN_WANT, GENERATION_WANT = (STAMP, "M", _TOKEN, "S"), (STAMP, "M", _GENERATION, "S")
"""The paths to the token, which a digest follows, and to the generation of a stamp in the item of an edge."""
TOKEN_LENGTH = 8
_DIGEST_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Stamp:
    """What was counted for an edge when it was put."""

    token: str
    generation: str
    """The generation of the near node in which this counts."""
    applied: Mapping[str, AttributeValue]
    """Rule to what was contributed."""

    @property
    def name(self) -> str:
        """The name by which a ledger says that the stamp is spent. It contains the generation."""
        return self.token + self.generation


def generation_of(name: str) -> str:
    """The generation in the name of a stamp."""
    return name[TOKEN_LENGTH:]


def stamp_of(group: RuleGroup, key: Item, stored: AttributeValue | None) -> Stamp | None:
    """A stamp from the attribute of an edge with this key; None if there is none, or it is not a stamp of this edge.

    A program that copies an edge to another key copies the stamp too. It counts for the edge that has its digest.
    """
    part = stored.get("M") if stored is not None and group.has_stamps else None
    if part is None:
        return None
    generation, token = (part.get(name, {}).get("S") for name in (_GENERATION, _TOKEN))
    if generation is None or token is None or token[TOKEN_LENGTH:] != _digest(key):
        return None
    names = group.by_key
    applied = {names.get(name, name): value for name, value in part.items() if name not in (_GENERATION, _TOKEN)}
    if not all("N" in value for value in applied.values()):
        return None
    return Stamp(token[:TOKEN_LENGTH], generation, applied)


def new_stamp(group: RuleGroup, key: Item, generation: str, wanted: Mapping[str, AttributeValue]) -> AttributeValue:
    """The attribute with a new stamp for an edge with this key."""
    keys = group.keys
    named: AttributeValue = {_GENERATION: {"S": generation}, _TOKEN: {"S": new_token() + _digest(key)}}
    return {"M": named | {keys[name]: value for name, value in wanted.items()}}


def stamp_want(rule: Rule) -> tuple[str, ...]:
    """The path to what was contributed by a rule."""
    return STAMP, "M", rule.key, "N"


def _digest(key: Item) -> str:
    # The order of names in a stored key may be any.
    return digest_of({name: key[name] for name in sorted(key)})[:_DIGEST_LENGTH]
