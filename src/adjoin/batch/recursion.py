"""The order in which recursive rules are worked out: the level of each node, from the leaves on.

A node stands a level above the highest of those that its edges lead to. Whatever has no level is on a circle
of edges, or above one. Rules that go over the same edges share their levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import ibis
import ibis.expr.types as ir

from adjoin.batch.engines import Engine

_COMPACT = 16
"""Passes after which what they found is put together into one table."""


@dataclass(frozen=True)
class Levels:
    """The level of each node that has one, as `id` and `level`; how many there are; and who has none."""

    of: ir.Table
    count: int
    circular: ir.Table | None


def levels(engine: Engine, pairs: ir.Table) -> Levels:
    """The levels of near nodes, from pairs of `near` and `far` ends.

    Each pass leaves the pairs whose near node has a far one that is still there; the number of passes that a
    node is there for is its level.
    """
    left = engine.stage(pairs.select("near", "far").distinct())
    seen: list[ir.Table] = []
    passes, size = 0, engine.size(left)
    while size:
        seen.append(left.select(id=left.near, level=ibis.literal(passes, "int64")))
        nodes = left.select(id=left.near).distinct()
        blocked = left.semi_join(nodes, left.far == nodes.id).select(id="near").distinct()
        fewer = engine.stage(left.semi_join(blocked, left.near == blocked.id))
        passes, before, size, left = passes + 1, size, engine.size(fewer), fewer
        if size == before:
            break
        if len(seen) == _COMPACT:
            seen = [engine.stage(_highest(seen))]
    if not seen:
        return Levels(left.select(id=left.near, level=ibis.literal(0, "int64")), 0, None)
    found = _highest(seen)
    if not size:
        return Levels(engine.stage(found), passes, None)
    circular = engine.stage(left.select(id=left.near).distinct())
    return Levels(engine.stage(found.anti_join(circular, "id")), passes - 1, circular)


def _highest(seen: list[ir.Table]) -> ir.Table:
    every = seen[0] if len(seen) == 1 else ibis.union(*seen)
    return every.group_by("id").agg(level=every.level.max())
