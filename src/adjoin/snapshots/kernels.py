"""Compiled loops over the arrays of a snapshot, for what no library of arrays has at this speed.

Of a lane, a loop takes four arrays: where the edges of each node begin, how many there are, the nodes to which they
lead, and their numbers. Loops over several lanes take a tuple of each. The array `seen_in` has, for each node, the
number of the last search that has seen it. So nothing has to be cleared before the numbers are used up.

A compiled loop looks at every array that it is given, at each call, and that takes longer than to find a node or to
count two hops. So what is called very often takes the address of a record, which has the addresses of arrays. Who makes
a record keeps its arrays alive, and sees to it that places are inside them: nothing is checked here.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

MOST_PATHS = 2**62
"""So many paths are counted in 64 bits at most; -1 stands for more."""


# --- addresses ---------------------------------------------------------------------------------


def _pointing(_: Any, address: Any, example: Any) -> Any:

    def built(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], context.get_value_type(signature.return_type))

    pointer: Any = types.CPointer
    return pointer(example)(types.intp, example), built


pointer_to: Any = intrinsic(_pointing)
"""`pointer_to(address, example)` is the address as a pointer to values of the type of the example."""


def _fetching(_: Any, pointer: Any, place: Any) -> Any:

    def built(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        at = builder.bitcast(builder.gep(given[0], [given[1]]), byte)
        # To read, to be kept near, and data rather than code.
        builder.call(prefetch, [at, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(pointer, place), built


fetch: Any = intrinsic(_fetching)
"""`fetch(pointer, place)` tells the processor that the value at a place will be read soon. It need not exist."""


@numba.njit(cache=True)
def addresses(address: int) -> Any:
    """A pointer to numbers of 64 bits, such as other addresses."""
    return pointer_to(address, np.int64(0))


@numba.njit(cache=True)
def numbers(address: int) -> Any:
    """A pointer to numbers of 32 bits: those of nodes and edges."""
    return pointer_to(address, np.int32(0))


@numba.njit(cache=True)
def small_numbers(address: int) -> Any:
    """A pointer to single bytes."""
    return pointer_to(address, np.uint8(0))


# --- loops -------------------------------------------------------------------------------------


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
def found_number(at: int, text: bytes, hashed: int, class_number: int) -> Any:
    """The number of the node with a text and a class; -1 if it is not there. The record is that of a `NodeTable`."""
    record = addresses(at)
    slots, mask, ends = numbers(record[0]), record[1], addresses(record[2])
    blob, classes = small_numbers(record[3]), small_numbers(record[4])
    size = len(text)
    place = hashed & mask
    while slots[place] >= 0:
        number = slots[place]
        first = ends[number]
        if ends[number + 1] - first == size and classes[number] == class_number:
            at_byte = 0
            while at_byte < size and blob[first + at_byte] == text[at_byte]:
                at_byte += 1
            if at_byte == size:
                return number
        place = (place + 1) & mask
    return -1


@numba.njit(cache=True)
def next_level(
    starts: Any,
    degrees: Any,
    fars: Any,
    loops: Any,
    nodes: Any,
    counts: Any,
    seen_in: Any,
    search: int,
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
                # Compiled numbers have 64 bits, and would wrap without a sign of it.
                if total > MOST_PATHS - count:
                    return end, -1
                total += count
                if seen_in[other] != search:
                    seen_in[other] = search
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
    search: int,
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
                if seen[other] != search and banned[other] != search:
                    seen[other] = search
                    before[other] = near
                    before_edges[other] = edge[at]
                    before_lanes[other] = lane
                    found[end] = other
                    end += 1
    return end


@numba.njit(cache=True)
def first_seen(ring: Any, seen: Any, search: int) -> int:
    """The first node of a ring that the other side of a search has seen; -1 if there is none."""
    for place in range(len(ring)):
        if seen[ring[place]] == search:
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
            # Only upwards, so that each triangle is found from its least node, and once.
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
