"""LinkBench's graph and its request mix, as values: nodes, links and operations, all from one seed.

The shape is that of `FBWorkload.properties` of facebookarchive/linkbench, with the parameters that
`docs/benchmarks.md` lists. All random choices are made here, before any clock runs, so that every
contestant replays exactly the same operations. Nothing here knows a store.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import itemgetter
from random import Random
from typing import Any, NamedTuple

MIX: dict[str, float] = {
    "getlinklist": 50.71,
    "getnode": 12.93,
    "addlink": 8.99,
    "updatelink": 8.01,
    "updatenode": 7.37,
    "countlink": 4.89,
    "deletelink": 2.99,
    "addnode": 2.57,
    "deletenode": 1.01,
    "multiget": 0.53,
}
"""The share of each operation, in percent."""

LINK_ZIPF = 0.8
NODE_ZIPF = 0.63
READS_BY_DEGREE = 0.005
WRITES_BY_DEGREE = 0.05
"""The share of link reads and writes whose popularity follows the degree. For the rest, it is independent of it."""

LINK_LIMIT = 10_000
"""The most links of a list that are requested: LinkBench's DEFAULT_LIMIT."""
LINK_BYTES, MAX_LINK_BYTES = 8, 255
NODE_BYTES, MAX_NODE_BYTES = 128, 1 << 18
SIGMA = 1.0
"""The median sizes of payloads, their limits, and the spread of the log-normal distribution."""

_NODE_TYPE = 2048
_FIRST_TIME = 1_700_000_000_000
_YEAR = 365 * 86_400_000
_MULTIGET_STOP, _MULTIGET_MOST = 0.382, 128
_THERE = {"addlink": 0.05, "updatelink": 0.9, "deletelink": 0.9, "multiget": 0.5}
"""The probability that the link of an operation exists (the constants of LinkBench's ID2Chooser)."""


class NodeRow(NamedTuple):
    id: int
    type: int
    version: int
    time: int
    data: bytes


class LinkRow(NamedTuple):
    id1: int
    id2: int
    visibility: int
    version: int
    time: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Operation:
    """One request: its name, and the arguments of the contestant's method of that name."""

    name: str
    arguments: tuple[Any, ...]


# --- degrees -----------------------------------------------------------------------------------

ZERO, ONE = 0.453, 0.321
QUANTILES: tuple[tuple[float, int], ...] = ((0.9, 3), (0.99, 15), (0.999, 264), (0.9999, 6051))
MEAN_DEGREE = 4.1
_LARGEST = 12_000


def degree_at(share: float, bend: float) -> int:
    """The degree that this share of all nodes does not exceed.

    Between two known quantiles, the logarithm of the degree rises with a power of the share. `bend` is
    that power. It is the only free parameter, and is chosen so that the mean is right.
    """
    if share < ZERO:
        return 0
    if share < ZERO + ONE:
        return 1
    known = ((ZERO + ONE, 2), *QUANTILES, (1.0, _LARGEST))
    above = min(bisect_right(known, share, key=itemgetter(0)), len(known) - 1)
    (start, low), (end, high) = known[above - 1], known[above]
    way = (share - start) / (end - start)
    return round(low * math.pow(high / low, math.pow(way, bend)))


def fitted_bend() -> float:
    """The bend for which the mean degree is that of LinkBench."""
    low, high = 0.5, 4.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        if _mean_degree(middle) > MEAN_DEGREE:
            low = middle
        else:
            high = middle
    return low


def _mean_degree(bend: float) -> float:
    steps = 2000
    bounds = [ZERO, ZERO + ONE, *(at for at, _ in QUANTILES), 1.0]
    total = 0.0
    for start, end in pairwise(bounds):
        width = (end - start) / steps
        total += sum(degree_at(start + (step + 0.5) * width, bend) for step in range(steps)) * width
    return total


# --- the graph ---------------------------------------------------------------------------------


class Workload:
    """A graph of `nodes` nodes, with ids from 1, and the operations on it."""

    def __init__(self, nodes: int, seed: int = 1) -> None:
        self.size = nodes
        self._seed = seed
        random = Random(f"{seed}:degrees")
        bend = fitted_bend()
        by_degree = list(range(1, nodes + 1))
        random.shuffle(by_degree)
        self._by_degree = by_degree
        """Ids, those with the most links first."""
        self.degrees = [0] * (nodes + 1)
        """The number of links of each id; ids count from 1."""
        for rank, id in enumerate(by_degree):
            # One quantile per node: the degrees follow the distribution exactly, and are not a sample of it.
            self.degrees[id] = min(degree_at((nodes - rank) / nodes, bend), nodes - 1)

    @property
    def links_in_all(self) -> int:
        return sum(self.degrees)

    def nodes(self) -> Iterator[NodeRow]:
        random = Random(f"{self._seed}:nodes")
        for id in range(1, self.size + 1):
            yield NodeRow(id, _NODE_TYPE, 0, _time(random), _payload(random, NODE_BYTES, MAX_NODE_BYTES))

    def links(self) -> Iterator[LinkRow]:
        random = Random(f"{self._seed}:links")
        for id in range(1, self.size + 1):
            for place in range(self.degrees[id]):
                yield LinkRow(
                    id, self.target(id, place), 1, 0, _time(random), _payload(random, LINK_BYTES, MAX_LINK_BYTES)
                )

    def target(self, id: int, place: int) -> int:
        """Links lead to the ids after their source, as in LinkBench, but always within the graph."""
        return (id + place) % self.size + 1

    # --- operations ----------------------------------------------------------------------------

    def operations(self, count: int) -> list[Operation]:
        random = Random(f"{self._seed}:operations")
        names = random.choices(list(MIX), list(MIX.values()), k=count)
        deal = _Deal(self, random)
        return [Operation(name, getattr(deal, name)()) for name in names]


class _Deal:
    """Draws the arguments of operations, with one method per operation."""

    def __init__(self, workload: Workload, random: Random) -> None:
        self._workload = workload
        self._random = random
        self._by_degree = workload._by_degree
        self._reads, self._writes, self._node_ids = (self._shuffled(random) for _ in range(3))
        self._link_popularity = _zipf(workload.size, LINK_ZIPF)
        self._node_popularity = _zipf(workload.size, NODE_ZIPF)
        self._last_id = workload.size
        self._now = _FIRST_TIME + _YEAR

    def _shuffled(self, random: Random) -> list[int]:
        return random.sample(range(1, self._workload.size + 1), self._workload.size)

    def _rank(self, popularity: Sequence[float]) -> int:
        return bisect_right(popularity, self._random.random() * popularity[-1], hi=len(popularity) - 1)

    def _read_id(self) -> int:
        ids = self._by_degree if self._random.random() < READS_BY_DEGREE else self._reads
        return ids[self._rank(self._link_popularity)]

    def _written_id(self) -> int:
        ids = self._by_degree if self._random.random() < WRITES_BY_DEGREE else self._writes
        return ids[self._rank(self._link_popularity)]

    def _node_id(self) -> int:
        return self._node_ids[self._rank(self._node_popularity)]

    def _places(self, id: int, name: str) -> int:
        """Among how many links to choose, so that the chosen one exists with LinkBench's probability."""
        return max(1, math.ceil(self._workload.degrees[id] / _THERE[name]))

    def _link(self, name: str) -> tuple[int, int]:
        id = self._written_id()
        while _THERE[name] > 0.5 and not self._workload.degrees[id]:
            # A node without links has no link to change or remove.
            id = self._written_id()
        return id, self._workload.target(id, self._random.randrange(self._places(id, name)))

    def _tick(self) -> int:
        self._now += 1
        return self._now

    def _link_payload(self) -> bytes:
        return _payload(self._random, LINK_BYTES, MAX_LINK_BYTES)

    def _node_payload(self) -> bytes:
        return _payload(self._random, NODE_BYTES, MAX_NODE_BYTES)

    def getlinklist(self) -> tuple[Any, ...]:
        return (self._read_id(), LINK_LIMIT)

    def countlink(self) -> tuple[Any, ...]:
        return (self._read_id(),)

    def multiget(self) -> tuple[Any, ...]:
        id = self._read_id()
        count = 1
        while count < _MULTIGET_MOST and self._random.random() >= _MULTIGET_STOP:
            count += 1
        places = range(max(self._places(id, "multiget"), count))
        return id, tuple(self._workload.target(id, place) for place in self._random.sample(places, count))

    def addlink(self) -> tuple[Any, ...]:
        id, target = self._link("addlink")
        return (LinkRow(id, target, 1, 0, self._tick(), self._link_payload()),)

    def updatelink(self) -> tuple[Any, ...]:
        return (*self._link("updatelink"), self._tick(), self._link_payload())

    def deletelink(self) -> tuple[Any, ...]:
        return self._link("deletelink")

    def getnode(self) -> tuple[Any, ...]:
        return (self._node_id(),)

    def addnode(self) -> tuple[Any, ...]:
        self._last_id += 1
        return (NodeRow(self._last_id, _NODE_TYPE, 0, self._tick(), self._node_payload()),)

    def updatenode(self) -> tuple[Any, ...]:
        return (self._node_id(), self._tick(), self._node_payload())

    def deletenode(self) -> tuple[Any, ...]:
        # Uniform among all nodes, as in LinkBench: popular nodes should not be removed first.
        return (self._random.randint(1, self._workload.size),)


# --- draws -------------------------------------------------------------------------------------


def _zipf(size: int, exponent: float) -> list[float]:
    """Cumulative weights of ranks."""
    return list(accumulate((rank + 1) ** -exponent for rank in range(size)))


def _payload(random: Random, median: int, most: int) -> bytes:
    return random.randbytes(min(max(1, round(random.lognormvariate(math.log(median), SIGMA))), most))


def _time(random: Random) -> int:
    return _FIRST_TIME + random.randrange(_YEAR)


# --- the result --------------------------------------------------------------------------------


def quantile(values: Sequence[int], share: float) -> int:
    """The least value that this share of the sorted values does not exceed."""
    return values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def shape_of(workload: Workload) -> dict[str, float]:
    """The degrees of the graph, under the names that LinkBench uses."""
    degrees = sorted(workload.degrees[1:])
    count = len(degrees)
    return {
        "zero": degrees.count(0) / count,
        "one": degrees.count(1) / count,
        **{f"p{100 * share:g}": quantile(degrees, share) for share, _ in QUANTILES},
        "mean": sum(degrees) / count,
    }
