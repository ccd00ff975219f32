"""Conditions that an item is still as it was read.

A plan reads, decides, and writes with these conditions (see `again`). If an item has a revision, it is enough to
compare that, because each write sets a new one. Otherwise the attributes are compared on which the decision depends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import urandom
from typing import Any

from adjoin.entity_types import EdgeType
from adjoin.expressions import And, Compare, Condition, Exists, Not, Or, Path, Value, all_of, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import OWNER, REVISION, Satellite
from adjoin.reached_sets import VERSION, is_reached_set
from adjoin.requests import Delete
from adjoin.values import AttributeValue, Item


def new_revision() -> AttributeValue:
    """A random value that no item has had before."""
    return {"S": urandom(8).hex()}


def same(item: Mapping[str, Any] | None, name: str) -> Condition:
    """The condition that an attribute has the value that was read, or is still absent if it was.

    Of a reached set, which may be large, the version is compared: it is new whenever the set is written.
    """
    path = attribute(name)
    if item is None or name not in item:
        return Not(Exists(path))
    value = item[name]
    if "M" in value and is_reached_set(value):
        return Compare("=", Path((name, VERSION)), Value(value["M"][VERSION]))
    return Compare("=", path, Value(value))


def as_read(layout: BoundLayout, item: Item | None, names: Iterable[str]) -> Condition:
    """The condition that these attributes are as they were read; if there was no item, that there still is none."""
    if item is None:
        return Not(layout.present)
    return all_of(layout.present, *(same(item, name) for name in names)) or layout.present


def unchanged(layout: BoundLayout, item: Item | None) -> Condition:
    """The condition that an item with satellites has the revision that was read, or still has none."""
    if item is None:
        return Not(layout.present)
    if REVISION in item:
        return same(item, REVISION)
    return And((layout.present, Not(Exists(attribute(REVISION)))))


def claimable(satellite: Satellite, *stale: str) -> Condition | None:
    """The condition under which a claim may be taken; None if the satellite is no claim.

    The claim may be free, it may belong to the node itself, or to one of the `stale` nodes, which do not have the value
    any more.
    """
    if satellite.owner is None:
        return None
    owners = [Compare("=", attribute(OWNER), Value({"S": owner})) for owner in (satellite.owner, *stale)]
    return Or((Not(Exists(attribute(OWNER))), *owners))


def disconnected_satellites(
    layout: BoundLayout, kind: EdgeType, source: Any, target: Any, keys: Sequence[Item]
) -> list[Delete]:
    """The deletes of the index copies of an edge, and of its claims as far as they are its own."""
    copies = [Delete(layout.table, copy) for key in keys for copy in layout.copy_keys(kind, key)]
    nodes = {"source": (kind.source, source), "target": (kind.target, target)}
    texts = {side: layout.node_text(*nodes[side]) for side in kind.claimed}
    claims = layout.claims_of(kind, texts, layout.first_twin(keys)) if texts else []
    return [*copies, *(Delete(layout.table, each.key, claimable(each)) for each in claims)]
