"""Which index answers a `find`: the choice between access patterns and indexed fields.

An access pattern fits if every part of its partition key is compared with ==. One that holds everything is preferred to
a sparse index, which leaves out items without a sort key. The one that narrows most is chosen: with the most
comparisons that fix a part of a key, then one with a range, then one with fewer partitions to query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from adjoin.entity_types import EntityType
from adjoin.errors import InvalidKey, InvalidValue, shown
from adjoin.fields import AllOf, Comparison, Predicate, SizeComparison, TypeTest
from adjoin.layouts.access_patterns import AccessPattern, PatternConditions
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import unindexed
from adjoin.plans.indexed_search import IndexedSearch, indexed_search
from adjoin.plans.key_search import KeySearch, key_search

Search: TypeAlias = IndexedSearch | KeySearch


def search(
    layout: BoundLayout, kind: EntityType, predicate: Predicate | None, order: str | None, index: str | None
) -> Search:
    """The search for a predicate, in the index that answers it with the least reading.

    `order` names the field to sort by, and `index` the index to use. Comparisons that no key answers become a filter.
    """
    parts = _parts(predicate)
    for part in parts:
        _check_fields(kind, part)
    if order is not None and order not in kind.fields:
        # Raises, with the closest name.
        kind.attribute(order)
    patterns = [pattern for pattern in layout.patterns(kind) if index is None or pattern.index == index]
    indexed = layout.overloaded
    is_indexed = indexed is not None and index in (None, indexed.name)
    if index is not None and not patterns and not (is_indexed and kind.indexed):
        raise InvalidKey(_no_such_index(layout, kind, index))
    found = indexed_search(layout, kind, parts, order) if is_indexed else None
    compared = [part for part in parts if isinstance(part, Comparison)]
    candidates = [one for pattern in patterns if (one := pattern.conditions(compared)) is not None]
    candidates = [each for each in candidates if _fits(each, parts, order, is_forced=index is not None)]
    best = max(candidates, key=_rank, default=None)
    if found is not None and (best is None or _indexed_rank(found, compared) >= _rank(best)[1:3]):
        return found
    if best is None:
        raise InvalidKey(_nothing_fits(layout, kind, parts, order, patterns))
    return key_search(layout, best, parts)


def _fits(found: PatternConditions, parts: Sequence[Predicate], order: str | None, *, is_forced: bool) -> bool:
    """Whether a search may use these conditions: if they narrow nothing, only if it is asked to read everything."""
    if order is not None:
        return found.order == order
    return found.is_narrow or not parts or is_forced


def _rank(found: PatternConditions) -> tuple[bool, int, bool, bool, int, bool]:
    pattern = found.pattern
    narrow = found.equalities, found.has_range
    return found.is_complete, *narrow, not pattern.is_partial, -len(found.partitions), pattern.index is None


def _indexed_rank(found: IndexedSearch, compared: Sequence[Comparison]) -> tuple[int, bool]:
    own = [each.operator for each in compared if each.field == found.field.name]
    return int("=" in own or "in" in own), any(each not in ("=", "in", "exists") for each in own)


def _parts(predicate: Predicate | None) -> list[Predicate]:
    if predicate is None:
        return []
    if not isinstance(predicate, Predicate):
        raise InvalidValue(f'{shown(predicate)} is not a comparison; build one with field("name") == value')
    return list(predicate.predicates) if isinstance(predicate, AllOf) else [predicate]


def _check_fields(kind: EntityType, part: Predicate) -> None:
    """Raises for an unknown field, before any request is made."""
    if not isinstance(part, Comparison | SizeComparison | TypeTest):
        return
    if part.field not in kind.fields and kind.part(part.field) is None:
        kind.attribute(part.field.partition(".")[0])


# --- messages ----------------------------------------------------------------------------------


def _no_such_index(layout: BoundLayout, kind: EntityType, index: str) -> str:
    known = [pattern.index for pattern in layout.patterns(kind) if pattern.index is not None]
    if layout.overloaded is not None and kind.indexed:
        known.append(layout.overloaded.name)
    return f"{kind.name} is not in an index {shown(index)}; it is in {', '.join(map(repr, known)) or 'none'}"


def _nothing_fits(
    layout: BoundLayout,
    kind: EntityType,
    parts: Sequence[Predicate],
    order: str | None,
    patterns: Sequence[AccessPattern],
) -> str:
    needs = [pattern.needs() for pattern in patterns if pattern.index is not None or _is_shared(pattern)]
    if not needs:
        return _nothing_indexed(kind, parts, order)
    if kind.indexed:
        needs.append(f"its indexed fields are {', '.join(map(repr, kind.indexed))}")
    asked = " and ".join(part.field for part in parts if isinstance(part, Comparison)) or "nothing"
    sorted_by = "" if order is None else f" in the order of {order!r}"
    remedy = "compare what one of them needs, or name a field to sort by with order=, which then filters by the rest"
    if order is not None:
        remedy = f"compare all that comes before {order!r} in one of them with ==, or leave order= out"
    return f"no index finds {kind.name} by {asked}{sorted_by}: {'; '.join(needs)}; {remedy}"


def _is_shared(pattern: AccessPattern) -> bool:
    """Whether several entities of a class are in one partition, so that a find can read some of them together."""
    names = {name for source in pattern.partition for name in source.names}
    return pattern.has_dates or any({*source.names} - names for source in pattern.sort)


def _nothing_indexed(kind: EntityType, parts: Sequence[Predicate], order: str | None) -> str:
    if not kind.indexed:
        return f"{kind.name} has no indexed field to find by; mark one with Indexed()"
    if order is not None:
        return unindexed(kind, order)
    plain = [part for part in parts if isinstance(part, Comparison)]
    if not plain or plain[0].field in kind.indexed:
        return (
            f"an index finds {kind.name} by ==, <, <=, >, >=, between, begins_with, is_in or exists of one of "
            f"{', '.join(map(repr, kind.indexed))}, joined with & to anything else"
        )
    return f'{unindexed(kind, plain[0].field)}, or filter in the order of an indexed field with order="…"'
