"""What must still hold for items with satellites when they are written: their revision, and who has a claim."""

from __future__ import annotations

from adjoin.expressions import And, Compare, Condition, Exists, Not, Or, Value, attribute
from adjoin.layouts.interface import OWNER, REVISION, BoundLayout, Satellite
from adjoin.values import Item


def unchanged(layout: BoundLayout, item: Item | None) -> Condition:
    """Holds as long as an item with satellites is what was read."""
    if item is None:
        return Not(layout.present)
    if REVISION in item:
        return Compare("=", attribute(REVISION), Value(item[REVISION]))
    return And((layout.present, Not(Exists(attribute(REVISION)))))


def claimable(satellite: Satellite, *stale: str) -> Condition | None:
    """Holds if a claim is nobody's, or its owner's, or of one of those who do not have its value any more."""
    if satellite.owner is None:
        return None
    owners = [Compare("=", attribute(OWNER), Value({"S": owner})) for owner in (satellite.owner, *stale)]
    return Or((Not(Exists(attribute(OWNER))), *owners))
