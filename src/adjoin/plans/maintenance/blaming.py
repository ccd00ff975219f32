"""Which rules have to be set aside so that an edge can be written.

In: a node transaction with one edge that can never be written, from `reconciling`. Out: one try after another, each
with other rules left out, until one of them can be written.
"""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.plans.counting.node_transaction import NodeTransaction, is_number, prepared_sum
from adjoin.rules import COUNTING
from adjoin.values import MAX_DIGITS, exact_sum

RuleNames: TypeAlias = tuple[str, ...]
_TOO_LONG = "{} cannot be stored with it: it has more than {} digits then, or is out of range; round what is added up"


@dataclass
class Blame:
    """The search for the rules that have to be set aside so that one edge can be written.

    DynamoDB refuses the whole transaction and does not say which rule is the cause. So the edge is tried with one rule
    after another left out.
    """

    sums: dict[str, str]
    """Rules whose sums or reached sets cannot be stored, with the reason. They are set aside in every try."""
    left: list[RuleNames]
    """The rules to set aside in addition, one tuple per try that is left."""
    aside: dict[str, str] = field(default_factory=dict)
    """The rules that are set aside in the present try, with the reasons."""

    def goes_on(self, reason: str) -> bool:
        """Moves on to the next try, after one that failed with this reason. Returns False if no try is left."""
        if not self.left:
            return False
        self.aside = self.sums | dict.fromkeys(self.left.pop(0), reason)
        return True


def blame(node_transaction: NodeTransaction) -> Blame:
    """Begins the search for a transaction that contains one edge.

    Unstorable sums and reached sets are set aside in every try. The tries are: nothing else (if there are such), then
    each other rule alone, then all of them. A rule to which the edge contributes nothing is never the cause.
    """
    (state,) = node_transaction.states
    sums = {name: _TOO_LONG.format(name, MAX_DIGITS) for name in unstorable_sums(node_transaction)}
    sets = node_transaction.unstorable_sets(node_transaction.sets())
    sums |= {name: f"{name} cannot be stored with it: {sets[name]}" for name in sets if name in state.wanted}
    others = tuple(name for name in state.wanted if name not in sums)
    tries: list[RuleNames] = [(), *((name,) for name in others), others]
    return Blame(sums, [each for each in dict.fromkeys(tries) if each or sums])


def unstorable_sums(node_transaction: NodeTransaction) -> list[str]:
    """The rules whose sums after this transaction could not be stored exactly as a number of DynamoDB."""
    near, changes = node_transaction.near, node_transaction.changes()
    item = near.item or {}

    def is_storable(name: str) -> bool:
        before = Decimal(0 if near.is_new else item.get(name, {}).get("N", 0))
        return name not in changes or is_number(exact_sum((before, changes[name])))

    rules = {
        rule.name: rule
        for state in node_transaction.states
        for rule in state.ref.group.rules
        if rule.name in state.wanted
    }
    unstorable = [
        name
        for name, rule in rules.items()
        if rule.operation == "sum" and not (is_storable(rule.attribute) and is_storable(prepared_sum(rule)))
    ]
    # An edge that is not in the sum of a mean must not be in its number of values either.
    numbers = (name.replace(field, field + COUNTING) for name in unstorable for field in [name.partition(":")[0]])
    return [*unstorable, *(name for name in numbers if name in rules and name not in unstorable)]
