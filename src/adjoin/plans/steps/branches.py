"""The branches of a condition with `|`: each is comparisons that all have to hold, and can be searched by itself.

    (city == "Porto" | city == "Faro") & (age > 60 | ~(town & rich))
    city in ("Porto", "Faro") & age > 60          the first branch
    city in ("Porto", "Faro") & ~town             the second
    city in ("Porto", "Faro") & ~rich             the third

Only `&`, `|` and `~` are looked at here. Which index finds a branch is decided in `find`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from adjoin.fields import AllOf, AnyOf, Comparison, Negation, Predicate
from adjoin.units import MAX_IN_OPERANDS

MAX_BRANCHES = 20
"""How many branches a condition may have. A later branch is filtered by all that come before it."""
MAX_COMPARED = 100
"""How many comparisons all branches may have together, because DynamoDB takes 300 operators in a filter."""

Branch: TypeAlias = tuple[Predicate, ...]
"""Predicates that all have to hold, none of which is an `&`."""


def parts_of(predicate: Predicate) -> Branch:
    """The predicates of an `&`; of anything else, itself."""
    return predicate.predicates if isinstance(predicate, AllOf) else (predicate,)


def simplified(predicate: Predicate) -> Predicate:
    """The same condition with `~` only before comparisons, and with `==` of one field on both sides of `|` as is_in."""
    match predicate:
        case AllOf(predicates):
            return _all([simplified(each) for each in predicates])
        case AnyOf(predicates):
            return _any([simplified(each) for each in predicates])
        case Negation(AllOf(predicates)):
            return _any([simplified(~each) for each in predicates])
        case Negation(AnyOf(predicates)):
            return _all([simplified(~each) for each in predicates])
        case Negation(Negation(inner)):
            return simplified(inner)
    return predicate


def _all(predicates: Iterable[Predicate]) -> Predicate:
    flat = [part for each in predicates for part in parts_of(each)]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def _any(predicates: Iterable[Predicate]) -> Predicate:
    flat = [side for each in predicates for side in (each.predicates if isinstance(each, AnyOf) else (each,))]
    joined: list[Predicate] = []
    for each in flat:
        at = next((at for at, other in enumerate(joined) if _are_one(other, each)), None)
        if at is None:
            joined.append(each)
            continue
        other = joined[at]
        assert isinstance(other, Comparison)
        assert isinstance(each, Comparison)
        joined[at] = Comparison(each.field, "in", (*other.operands, *each.operands))
    return joined[0] if len(joined) == 1 else AnyOf(tuple(joined))


def _are_one(one: Predicate, other: Predicate) -> bool:
    """Whether two comparisons with values of the same field can be one."""
    if not isinstance(one, Comparison) or not isinstance(other, Comparison) or one.field != other.field:
        return False
    operands = (*one.operands, *other.operands)
    is_value = one.operator in ("=", "in") and other.operator in ("=", "in") and None not in operands
    return is_value and len(operands) <= MAX_IN_OPERANDS


def branches_of(parts: Sequence[Predicate]) -> list[Branch] | None:
    """The branches of predicates that all have to hold, in order; None if there are too many.

    A branch that says what another one says, and more, is left out.
    """
    sides = [[parts_of(side) for side in _sides(part)] for part in parts]
    if math.prod(map(len, sides)) > MAX_BRANCHES:
        return None
    found: list[Branch] = []
    for chosen in itertools.product(*sides):
        whole = list(itertools.chain.from_iterable(chosen))
        if any(isinstance(part, AnyOf) for part in whole):
            inner = branches_of(whole)
            if inner is None:
                return None
            found += inner
        else:
            found.append(tuple(whole))
    kept: list[Branch] = []
    for branch in found:
        if not any(_says(branch, other) and (other in kept or not _says(other, branch)) for other in found):
            kept.append(branch)
    return kept if len(kept) <= MAX_BRANCHES and sum(map(len, kept)) <= MAX_COMPARED else None


def _sides(part: Predicate) -> tuple[Predicate, ...]:
    return part.predicates if isinstance(part, AnyOf) else (part,)


def _says(branch: Branch, other: Branch) -> bool:
    """Whether a branch has all predicates of another one."""
    return all(part in branch for part in other)
