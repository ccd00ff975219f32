"""Which index answers a `find`: the choice between access patterns and indexed fields.

An access pattern fits if every part of its partition key is compared with ==. One that holds everything is preferred to
a sparse index, which leaves out items without a sort key. The one that narrows most is chosen: with the most
comparisons that fix a part of a key, then one with a range, then one with fewer partitions to query.

A condition with `|` has branches. If one search finds all of them, that is the search, and the condition is a filter.
Otherwise each branch has a search of its own; also if each branch has the value of a key, and the one search has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.errors import InvalidKey, InvalidValue, shown
from adjoin.field_types import may_be_none
from adjoin.fields import AllOf, AnyOf, Comparison, Negation, Predicate, SizeComparison, TypeTest
from adjoin.layouts.access_patterns import AccessPattern, PatternConditions
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import unindexed
from adjoin.plans.branched_search import BranchedSearch, OneSearch, branched_search
from adjoin.plans.indexed_search import IndexedSearch, fixes_value, indexed_search
from adjoin.plans.key_search import KeySearch, key_search
from adjoin.plans.steps.branches import MAX_BRANCHES, branches_of, parts_of, simplified
from adjoin.plans.steps.predicates import compared_names

Search: TypeAlias = IndexedSearch | KeySearch | BranchedSearch


def search(
    layout: BoundLayout,
    kind: EntityType,
    predicate: Predicate | None,
    order: str | Sequence[str] | None,
    index: str | None,
) -> Search:
    """The search for a predicate, in the index that answers it with the least reading.

    `order` names the field or the fields to sort by, and `index` the index to use. Comparisons that no key answers
    become a filter.
    """
    order = () if order is None else (order,) if isinstance(order, str) else tuple(order)
    parts = _parts(predicate)
    for part in parts:
        _check_fields(kind, part)
    for name in order:
        if name not in kind.fields:
            # Raises, with the closest name.
            kind.attribute(name)
    patterns = [pattern for pattern in layout.patterns(kind) if index is None or pattern.index == index]
    is_indexed = layout.overloaded is not None and index in (None, layout.overloaded.name)
    if index is not None and not patterns and not (is_indexed and (kind.indexed or kind.elements)):
        raise InvalidKey(_no_such_index(layout, kind, index))
    asked = _Asked(layout, kind, order, patterns, is_indexed=is_indexed, is_forced=index is not None)
    one = asked.one(parts)
    if (one is not None and one.fixes_value) or not any(isinstance(part, AnyOf) for part in parts):
        if one is None:
            raise InvalidKey(asked.nothing_fits(parts))
        return one.search
    branches = branches_of(parts)
    found = [] if branches is None else [(branch, asked.one(branch)) for branch in branches]
    whole = [(branch, each) for branch, each in found if each is not None]
    if one is not None and not (found and len(whole) == len(found) and all(each.fixes_value for _, each in whole)):
        return one.search
    if branches is None:
        raise InvalidValue(
            f"the condition has more than {MAX_BRANCHES} branches to search, or more comparisons in them than DynamoDB "
            f"takes; use several finds, or name a field to sort by with order=, which then filters by the rest"
        )
    # Each branch has to be found. With one filtered only, the search would read the whole class for it.
    if len(whole) < len(found):
        raise InvalidKey(asked.no_branch_fits([branch for branch, each in found if each is None], len(found)))
    if len(whole) == 1:
        return whole[0][1].search
    return branched_search(layout, [(each.search, each.matches(branch)) for branch, each in whole], order)


@dataclass(slots=True)
class _Fitting:
    """One search that fits predicates which all have to hold."""

    search: OneSearch
    fixes_value: bool
    """Whether it reads only what has some values of a key, rather than a range or everything."""
    present: tuple[str, ...]
    """The fields that must have a value, so that the index holds an item."""

    def matches(self, branch: Sequence[Predicate]) -> Predicate:
        """What holds for exactly the items that the search finds."""
        return AllOf((*branch, *(Comparison(name, "<>", (None,)) for name in self.present)))


@dataclass(slots=True)
class _Asked:
    """What is asked of all branches of a condition."""

    layout: BoundLayout
    kind: EntityType
    order: tuple[str, ...]
    patterns: Sequence[AccessPattern]
    is_indexed: bool
    """Whether indexed fields may answer it."""
    is_forced: bool
    """Whether the program has named the index."""

    def one(self, parts: Sequence[Predicate]) -> _Fitting | None:
        """The one search that narrows most, of those that fit predicates which all have to hold; None if none fits."""
        layout, kind, order = self.layout, self.kind, self.order
        found = self._by_field(parts) if self.is_indexed else None
        compared = [part for part in parts if isinstance(part, Comparison)]
        candidates = [one for pattern in self.patterns if (one := pattern.conditions(compared)) is not None]
        candidates = [each for each in candidates if _fits(each, parts, order, is_forced=self.is_forced)]
        best = max(candidates, key=lambda each: (not self._may_miss(each), *_rank(each)), default=None)
        if found is not None:
            rank = _indexed_rank(found, parts)
            if best is None or rank >= _rank(best)[1:3]:
                return _Fitting(found, rank[0] > 0, (found.field.name,))
        if best is None:
            return None
        names = dict.fromkeys(name for source in (*best.pattern.partition, *best.pattern.sort) for name in source.names)
        sparse = tuple(name for name in names if name in kind.attributes and may_be_none(kind.fields[name]))
        return _Fitting(key_search(layout, best, parts, order), best.equalities > 0, sparse)

    def _may_miss(self, found: PatternConditions) -> bool:
        """Whether stored items may lack their entries in an index until a migration has written them."""
        return self.layout.due.is_any and self.layout.due.may_miss(self.kind, found.pattern.index)

    def _by_field(self, parts: Sequence[Predicate]) -> IndexedSearch | None:
        """The search by an indexed field, whose entries are in the order of that field only."""
        order = self.order
        if len(order) > 1:
            # All results have the same value of such a field, so it changes nothing about their order.
            fixed = [part.field for part in parts if isinstance(part, Comparison) and part.operator == "="]
            order = tuple(name for name in order if name not in fixed)
        if len(order) > 1:
            return None
        return indexed_search(self.layout, self.kind, parts, order[0] if order else None)

    def nothing_fits(self, parts: Sequence[Predicate]) -> str:
        return _nothing_fits(self.layout, self.kind, parts, self.order, self.patterns)

    def no_branch_fits(self, branches: Sequence[Sequence[Predicate]], number: int) -> str:
        """What each of the branches needs that no index finds."""
        reasons = dict.fromkeys(self.nothing_fits(branch) for branch in branches)
        return (
            f"each side of | is searched by itself, and no index finds {len(branches)} of {number} branches: "
            f"{'; and '.join(reasons)}"
        )


def _fits(found: PatternConditions, parts: Sequence[Predicate], order: tuple[str, ...], *, is_forced: bool) -> bool:
    """Whether a search may use these conditions: if they narrow nothing, only if it is asked to read everything."""
    if order:
        # Results that all have the same value of a field are in its order.
        left = tuple(name for name in order if name not in found.fixed)
        return found.order[: len(left)] == left if left else found.is_narrow
    return found.is_narrow or not parts or is_forced


def _rank(found: PatternConditions) -> tuple[bool, int, bool, bool, int, bool]:
    pattern = found.pattern
    narrow = found.equalities, found.has_range
    holds_all = not pattern.is_partial and not pattern.is_completed
    return found.is_complete, *narrow, holds_all, -len(found.partitions), pattern.index is None


def _indexed_rank(found: IndexedSearch, parts: Sequence[Predicate]) -> tuple[int, bool]:
    name = found.field.name
    own = [part for part in parts if isinstance(part, Comparison | AnyOf) and compared_names(part) == {name}]
    fixing = [part for part in own if fixes_value(part, name)]
    return int(bool(fixing)), any(part not in fixing and not _is_for_all(part) for part in own)


def _is_for_all(part: Predicate) -> bool:
    return isinstance(part, Comparison) and part.operator == "exists"


def _parts(predicate: Predicate | None) -> list[Predicate]:
    if predicate is None:
        return []
    if not isinstance(predicate, Predicate):
        raise InvalidValue(f'{shown(predicate)} is not a comparison; build one with field("name") == value')
    return [predicate] if type(predicate) is Comparison else [*parts_of(simplified(predicate))]


def _check_fields(kind: EntityType, part: Predicate) -> None:
    """Raises for an unknown field, before any request is made."""
    match part:
        case AllOf(predicates) | AnyOf(predicates):
            for each in predicates:
                _check_fields(kind, each)
        case Negation(inner):
            _check_fields(kind, inner)
    if not isinstance(part, Comparison | SizeComparison | TypeTest):
        return
    if part.field not in kind.fields and kind.part(part.field) is None:
        kind.attribute(part.field.partition(".")[0])


# --- messages ----------------------------------------------------------------------------------


def _no_such_index(layout: BoundLayout, kind: EntityType, index: str) -> str:
    known = [pattern.index for pattern in layout.patterns(kind) if pattern.index is not None]
    if layout.overloaded is not None and (kind.indexed or kind.elements):
        known.append(layout.overloaded.name)
    return f"{kind.name} is not in an index {shown(index)}; it is in {', '.join(map(repr, known)) or 'none'}"


def _nothing_fits(
    layout: BoundLayout,
    kind: EntityType,
    parts: Sequence[Predicate],
    order: tuple[str, ...],
    patterns: Sequence[AccessPattern],
) -> str:
    needs = [pattern.needs() for pattern in patterns if pattern.index is not None or _is_shared(pattern)]
    if not needs:
        return _nothing_indexed(kind, parts, order)
    if kind.indexed:
        needs.append(f"its indexed fields are {', '.join(map(repr, kind.indexed))}")
    if kind.elements:
        needs.append(f"elements of {', '.join(map(repr, kind.elements))} are indexed")
    asked = " and ".join(part.field for part in parts if isinstance(part, Comparison)) or "nothing"
    names = " and ".join(map(repr, order))
    sorted_by = f" in the order of {names}" if order else ""
    remedy = "compare what one of them needs, or name a field to sort by with order=, which then filters by the rest"
    if order:
        remedy = f"compare all that comes before {names} in one of them with ==, or leave order= out"
        others = [(pattern, pattern.other_order(order[0])) for pattern in patterns]
        needs += [
            f"{pattern.where} is sorted by {text}, not by the values of {order[0]!r}"
            for pattern, text in others
            if text
        ]
    if len(order) > 1:
        remedy += ", or declare an index whose sort key has these fields in this order"
    return f"no index finds {kind.name} by {asked}{sorted_by}: {'; '.join(needs)}; {remedy}"


def _is_shared(pattern: AccessPattern) -> bool:
    """Whether several entities of a class are in one partition, so that a find can read some of them together."""
    names = {name for source in pattern.partition for name in source.names}
    return pattern.has_dates or any({*source.names} - names for source in pattern.sort)


def _nothing_indexed(kind: EntityType, parts: Sequence[Predicate], order: tuple[str, ...]) -> str:
    if len(order) > 1:
        return (
            f"an indexed field sorts {kind.name} by itself alone, not by {' and then '.join(map(repr, order))}; "
            f"declare an index of the layout whose sort key has these fields in this order"
        )
    if kind.elements and (not kind.indexed or any(getattr(part, "field", "") in kind.elements for part in parts)):
        names = ", ".join(map(repr, kind.elements))
        return f"an index finds {kind.name} by elements of {names}; compare one of them with contains"
    if not kind.indexed:
        return f"{kind.name} has no indexed field to find by; mark one with Indexed()"
    if order:
        return unindexed(kind, order[0])
    plain = [part for part in parts if isinstance(part, Comparison)]
    if not plain or plain[0].field in kind.indexed:
        return (
            f"an index finds {kind.name} by ==, <, <=, >, >=, between, begins_with, is_in or exists of one of "
            f"{', '.join(map(repr, kind.indexed))}, joined with & to anything else"
        )
    return f'{unindexed(kind, plain[0].field)}, or filter in the order of an indexed field with order="…"'
