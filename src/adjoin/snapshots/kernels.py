"""Compiled loops over the arrays of a snapshot, for what no library of arrays has at this speed.

A lane is four arrays: where the edges of each node begin, how many there are, the nodes to which they lead, and their
numbers. Loops over several lanes take a tuple of each. A stamp array says which nodes were seen: those that have the
stamp of this call. So nothing has to be cleared until all stamps are used.
"""

from __future__ import annotations

from typing import Any

import numba

LAST_STAMP = 255
"""Stamps are single bytes, so that those of a million nodes stay in the processor's cache."""
MOST_PATHS = 2**62
"""So many paths are counted in 64 bits at most; -1 stands for more."""


@numba.njit(cache=True)
def fill_slots(hashes: Any, slots: Any) -> None:
    """Fills a hash table with open addressing: the number of each hash is its place."""
    mask = len(slots) - 1
    for number in range(len(hashes)):
        at = hashes[number] & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = number


@numba.njit(cache=True)
def reached_within(
    starts: Any, degrees: Any, fars: Any, start: int, hops: int, stamps: Any, stamp: int, queue: Any
) -> int:
    """Fills the queue with the nodes within so many edges, the nearest first, and returns their number.

    The first is the start itself.
    """
    stamps[start] = stamp
    queue[0] = start
    begin, end = 0, 1
    for _ in range(hops):
        last = end
        for place in range(begin, last):
            near = queue[place]
            for lane in range(len(starts)):
                first = starts[lane][near]
                far = fars[lane]
                for at in range(first, first + degrees[lane][near]):
                    other = far[at]
                    if stamps[other] != stamp:
                        stamps[other] = stamp
                        queue[end] = other
                        end += 1
        if end == last:
            break
        begin = last
    return end


@numba.njit(cache=True)
def counts_within(
    starts: Any,
    degrees: Any,
    fars: Any,
    nodes: Any,
    hops: int,
    stamps: Any,
    stamp: int,
    queue: Any,
    counts: Any,
) -> int:
    """How many other nodes are within so many edges of each of these nodes. Returns the last stamp that was used."""
    for place in range(len(nodes)):
        if stamp == LAST_STAMP:
            stamps[:] = 0
            stamp = 0
        stamp += 1
        counts[place] = reached_within(starts, degrees, fars, nodes[place], hops, stamps, stamp, queue) - 1
    return stamp


@numba.njit(cache=True)
def edge_total_within(
    starts: Any,
    degrees: Any,
    fars: Any,
    edges: Any,
    loops: Any,
    values: Any,
    start: int,
    hops: int,
    stamps: Any,
    stamp: int,
    queue: Any,
) -> Any:
    """The sum of a field of the edges at the start, and at all nodes that are fewer than so many edges away.

    `loops` says for each lane whether edges of a node to itself are left out, because another lane has them.
    """
    stamps[start] = stamp
    queue[0] = start
    begin, end = 0, 1
    total = values[0][0] * 0
    for _ in range(hops):
        last = end
        for place in range(begin, last):
            near = queue[place]
            for lane in range(len(starts)):
                first = starts[lane][near]
                far, edge, value = fars[lane], edges[lane], values[lane]
                for at in range(first, first + degrees[lane][near]):
                    other = far[at]
                    if other == near and loops[lane]:
                        continue
                    total += value[edge[at]]
                    if stamps[other] != stamp:
                        stamps[other] = stamp
                        queue[end] = other
                        end += 1
        if end == last:
            break
        begin = last
    return total


@numba.njit(cache=True)
def next_level(
    starts: Any,
    degrees: Any,
    fars: Any,
    loops: Any,
    nodes: Any,
    counts: Any,
    stamps: Any,
    stamp: int,
    places: Any,
    found: Any,
    found_counts: Any,
) -> tuple[int, int]:
    """The nodes one step further, in the order in which they are reached, each with the number of paths to it.

    Returns how many nodes there are, and how many paths; -1 if there are more than can be counted.
    """
    end, total = 0, 0
    for place in range(len(nodes)):
        near, count = nodes[place], counts[place]
        for lane in range(len(starts)):
            first = starts[lane][near]
            far = fars[lane]
            for at in range(first, first + degrees[lane][near]):
                other = far[at]
                if other == near and loops[lane]:
                    continue
                if total > MOST_PATHS - count:
                    return end, -1
                total += count
                if stamps[other] != stamp:
                    stamps[other] = stamp
                    places[other] = end
                    found[end] = other
                    found_counts[end] = count
                    end += 1
                else:
                    found_counts[places[other]] += count
    return end, total


@numba.njit(cache=True)
def visits_of(
    starts: Any,
    degrees: Any,
    fars: Any,
    edges: Any,
    loops: Any,
    nodes: Any,
    counts: Any,
    found: Any,
    found_edges: Any,
    found_lanes: Any,
    found_counts: Any,
) -> int:
    """All edges of the last step, in order: where each leads, its number, its lane, and how many paths end with it."""
    end = 0
    for place in range(len(nodes)):
        near, count = nodes[place], counts[place]
        for lane in range(len(starts)):
            first = starts[lane][near]
            far, edge = fars[lane], edges[lane]
            for at in range(first, first + degrees[lane][near]):
                other = far[at]
                if other == near and loops[lane]:
                    continue
                found[end] = other
                found_edges[end] = edge[at]
                found_lanes[end] = lane
                found_counts[end] = count
                end += 1
    return end


@numba.njit(cache=True)
def next_ring(
    starts: Any,
    degrees: Any,
    fars: Any,
    edges: Any,
    ring: Any,
    seen: Any,
    stamp: int,
    banned: Any,
    before: Any,
    before_edges: Any,
    before_lanes: Any,
    found: Any,
) -> int:
    """The nodes that are one edge further than a ring and were not seen, and for each by which edge it is reached."""
    end = 0
    for place in range(len(ring)):
        near = ring[place]
        for lane in range(len(starts)):
            first = starts[lane][near]
            far, edge = fars[lane], edges[lane]
            for at in range(first, first + degrees[lane][near]):
                other = far[at]
                if seen[other] != stamp and banned[other] != stamp:
                    seen[other] = stamp
                    before[other] = near
                    before_edges[other] = edge[at]
                    before_lanes[other] = lane
                    found[end] = other
                    end += 1
    return end


@numba.njit(cache=True)
def first_seen(ring: Any, seen: Any, stamp: int) -> int:
    """The first node of a ring that the other side of a search has seen; -1 if there is none."""
    for place in range(len(ring)):
        if seen[ring[place]] == stamp:
            return int(ring[place])
    return -1


@numba.njit(cache=True)
def triangles_at(starts: Any, neighbours: Any, counts: Any) -> None:
    """The number of triangles at each node of an undirected graph, whose neighbours are sorted and different.

    Each triangle is found once, from its least node.
    """
    for a in range(len(starts) - 1):
        for at in range(starts[a], starts[a + 1]):
            b = neighbours[at]
            if b <= a:
                continue
            one, other = at + 1, starts[b]
            while one < starts[a + 1] and other < starts[b + 1]:
                if neighbours[one] < neighbours[other]:
                    one += 1
                elif neighbours[one] > neighbours[other]:
                    other += 1
                else:
                    c = neighbours[one]
                    if c > b:
                        counts[a] += 1
                        counts[b] += 1
                        counts[c] += 1
                    one += 1
                    other += 1
