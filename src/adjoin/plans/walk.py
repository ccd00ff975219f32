"""Walks: several steps from nodes along edges, level by level.

A walk stands for paths: sequences of nodes and edges, from a start to a node of the last level. How many there are is
not bounded by what is read, so they are not enumerated unless a program asks for them. A level knows of each node by
which edges it is reached, from which nodes of the level before, and so how many paths lead to it.

Results come in the order in which edges were reached. Whoever needs only the first results reads no further than they
are: the last step expands the nodes of its level in growing portions, and nothing before a result depends on how far
the walk went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from hashlib import blake2b
from itertools import islice, repeat, starmap
from typing import Any, Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidCursor, InvalidValue
from adjoin.fields import Predicate
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.model import Ref
from adjoin.plans.frontier import About, Adjacency, NodeKey, Stride, ref_of, sorted_by
from adjoin.plans.walk_results import Completeness, GroupCount, Trail, WalkResult, complete, path_of
from adjoin.requests import Plan
from adjoin.values import QUOTIENTS, exact_product, exact_total

MAX_HOPS = 100
"""How many edges the paths of a walk have at most."""
_PORTION = 16
"""How many nodes are expanded first, if not all results are wanted; then four times as many, and so on."""
_GROWTH = 4
_REMEMBERED = 8
"""How many results before it a page token names, so that the next page begins behind one that is still there."""

# --- what is asked -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Repeat:
    """A stride that is taken again and again. The results are all paths of at least `least` and at most `most` edges.

    With `until`, a path ends at the first node for which it holds, and only such paths are results.
    """

    stride: Stride
    least: int
    most: int
    until: Predicate | NodeKey | None = None

    @property
    def identity(self) -> str:
        return repr((self.stride.identity, self.least, self.most, self.until))


@dataclass(frozen=True, eq=False)
class Filter:
    """Keeps the paths for whose last edge, or last node, the predicate holds."""

    predicate: Predicate
    part: About

    @property
    def identity(self) -> str:
        return repr((self.predicate, self.part))


@dataclass(frozen=True, eq=False)
class Distinct:
    """Keeps the first path to each node."""

    identity = "distinct"


WalkStep: TypeAlias = Stride | Repeat | Filter | Distinct
What: TypeAlias = Literal["nodes", "refs", "edges", "paths"]


@dataclass(frozen=True, eq=False)
class Route:
    """A whole walk: where it begins, its steps, and how many results are wanted."""

    starts: tuple[NodeKey, ...]
    steps: tuple[WalkStep, ...]
    most: int | None = None

    def identity(self, texts: Sequence[str], what: What) -> bytes:
        """Bytes that are different for every other walk. `texts` are the keys of the starts, which tell tenants."""
        return repr((texts, [step.identity for step in self.steps], self.most, what)).encode()


# --- levels ------------------------------------------------------------------------------------


class Reach:
    """A node at one level, and how it is reached there."""

    __slots__ = ("count", "key", "visits")

    def __init__(self, key: NodeKey) -> None:
        self.key = key
        self.count = 0
        """The number of paths to it."""
        self.visits: list[Visit] = []


Visit: TypeAlias = tuple[NodeKey, Reach | None, Any, int]
"""One way to a node at a level: the node; the node of the level before, or None at the beginning of the walk; the edge
between them; and how many of the paths to the node before count. A walk has very many of them, so they are tuples."""


class Level:
    """All nodes that are reached at one point of a walk. Visits are in the order of the results."""

    def __init__(self, visits: Iterable[Visit] = ()) -> None:
        self.visits: list[Visit] = [*visits]
        self._reaches: dict[NodeKey, Reach] = {}
        self._told = 0
        """How many of the visits the reaches know."""

    def add(self, visits: Iterable[Visit]) -> None:
        self.visits += visits

    @property
    def reaches(self) -> dict[NodeKey, Reach]:
        """The nodes, in the order in which they are reached. The last level of a walk to refs does without them."""
        reaches = self._reaches
        for visit in islice(self.visits, self._told, None):
            key = visit[0]
            reach = reaches.get(key)
            if reach is None:
                reach = reaches[key] = Reach(key)
            reach.visits.append(visit)
            reach.count += visit[3]
        self._told = len(self.visits)
        return reaches

    @property
    def count(self) -> int:
        return sum(visit[3] for visit in self.visits)


def _trails(visit: Visit) -> Iterator[Trail]:
    """The paths that end with this visit."""
    key, reach, edge, count = visit
    if reach is None:
        yield (key,), ()
        return
    earlier = (trail for before in reach.visits for trail in _trails(before))
    for nodes, edges in islice(earlier, count):
        yield (*nodes, key), (*edges, edge)


# --- walking -----------------------------------------------------------------------------------


class Walking:
    """A walk while it is read. It may be read further than before, without reading anything again."""

    def __init__(self, adjacency: Adjacency, route: Route) -> None:
        self.adjacency, self.route = adjacency, route

    def level(self, wanted: int | None = None) -> Plan[Level]:
        """The last level; with `wanted`, as much of it as has at least so many results, if there are so many."""
        steps = self.route.steps
        # What comes after the last stride does not read on, so it tells when there are enough results.
        last = max((place for place, step in enumerate(steps) if isinstance(step, Stride | Repeat)), default=-1)
        tail = steps[last + 1 :]
        level = Level((key, None, None, 1) for key in self.route.starts)
        for place, step in enumerate(steps[: last + 1]):
            is_enough = self._enough(tail, wanted) if place == last and wanted is not None else None
            match step:
                case Stride():
                    level = yield from self._stride(step, level, is_enough)
                case Repeat():
                    level = yield from self._repeat(step, level, is_enough)
                case _:
                    level = yield from self._sifted(step, level)
        for step in tail:
            level = yield from self._sifted(step, level)
        return level

    def _enough(self, tail: Sequence[WalkStep], wanted: int | None) -> Callable[[Level], Plan[bool]]:
        def is_enough(level: Level) -> Plan[bool]:
            for step in tail:
                level = yield from self._sifted(step, level)
            return wanted is not None and level.count >= wanted

        return is_enough

    def _stride(self, stride: Stride, level: Level, is_enough: Callable[[Level], Plan[bool]] | None) -> Plan[Level]:
        adjacency = self.adjacency
        nodes = list(level.reaches.values())
        # A level that is sorted as a whole has to be read as a whole.
        size = len(nodes) if is_enough is None or stride.order is not None else _PORTION
        found = Level()
        while nodes:
            some, nodes = nodes[:size], nodes[size:]
            yield from adjacency.expand(stride, (reach.key for reach in some))
            for reach in some:
                count = reach.count
                found.add([(far, reach, edge, count) for edge, far in adjacency.arcs(stride, reach.key)])
            if is_enough is not None and (yield from is_enough(found)):
                break
            size *= _GROWTH
        order = stride.order
        if order is None or len(level.reaches) == 1:
            return found
        pairs = [(adjacency.value(order, visit[2], visit[0]), visit) for visit in found.visits]
        return Level(sorted_by(pairs, order.is_reversed))

    def _repeat(self, step: Repeat, level: Level, is_enough: Callable[[Level], Plan[bool]] | None) -> Plan[Level]:
        results = Level()
        for depth in range(step.most + 1):
            if depth:
                level = yield from self._stride(step.stride, level, None)
            if depth >= step.least:
                ended, level = yield from self._ended(step, level)
                results.add(ended)
                if is_enough is not None and (yield from is_enough(results)):
                    break
            if not level.visits:
                break
        return results

    def _ended(self, step: Repeat, level: Level) -> Plan[tuple[list[Visit], Level]]:
        """The paths that are results at this depth, and the level from which the walk goes on."""
        until = step.until
        if until is None:
            return level.visits, level
        if isinstance(until, Predicate):
            yield from self.adjacency.read(level.reaches)
            ends = {key for key in level.reaches if self.adjacency.is_one(key, (until,))}
        else:
            ends = {until}
        ended = [visit for visit in level.visits if visit[0] in ends]
        return ended, Level(visit for visit in level.visits if visit[0] not in ends)

    def _sifted(self, step: WalkStep, level: Level) -> Plan[Level]:
        """The level after a step that follows no edges."""
        adjacency = self.adjacency
        if isinstance(step, Filter) and step.part == "nodes":
            yield from adjacency.read(level.reaches)
            kept = {key for key in level.reaches if adjacency.is_one(key, (step.predicate,))}
            return Level(visit for visit in level.visits if visit[0] in kept)
        if isinstance(step, Filter):
            where = (step.predicate,)
            return Level(visit for visit in level.visits if visit[2] is not None and adjacency.is_edge(visit[2], where))
        # Of the first visit, only the first path counts.
        return Level((*reach.visits[0][:3], 1) for reach in level.reaches.values())

    # --- results -------------------------------------------------------------------------------

    def found(self, what: What, level: Level) -> Iterator[Trail]:
        """The results as they were found. Only for paths, their nodes and edges before the last matter."""
        for visit in level.visits:
            key, reach, edge, count = visit
            if what == "paths":
                yield from _trails(visit)
            elif reach is not None:
                yield from repeat(((reach.key, key), (edge,)), count)
            elif what != "edges":
                yield (key,), ()

    def finished(self, what: What, found: Sequence[Trail]) -> Plan[list[Any]]:
        """The results with the nodes that they need, which are read. Those without a node that exists are left out."""
        adjacency = self.adjacency
        match what:
            case "refs":
                return [ref_of(nodes[-1]) for nodes, _ in found]
            case "nodes":
                yield from adjacency.read(nodes[-1] for nodes, _ in found)
                results = [adjacency.nodes.get(nodes[-1]) for nodes, _ in found]
            case "edges":
                # Between a child and its parent there is no edge, and the child stands for it.
                children = [nodes[0] for nodes, edges in found if edges[0] is None]
                yield from adjacency.read(() if is_rehearsed() else children)
                results = [adjacency.nodes.get(nodes[0]) if edges[0] is None else edges[0] for nodes, edges in found]
            case "paths":
                yield from adjacency.read(node for nodes, _ in found for node in nodes)
                results = [path_of(adjacency, *trail) for trail in found]
        return [result for result in results if result is not None]

    def all(self, what: What) -> Plan[WalkResult[Any]]:
        """All results, or as many as the walk wants."""
        if self.route.most is not None:
            results, _, _ = yield from self.page(what, self.route.most, 0, None)
            return WalkResult(results, Completeness.of(self.adjacency))
        if what in ("nodes", "refs"):
            results = yield from self._ends(what, (yield from self._level_of_nodes()))
        else:
            level = yield from self.level()
            results = yield from self.finished(what, list(self.found(what, level)))
        return WalkResult(results, Completeness.of(self.adjacency))

    def _level_of_nodes(self, wanted: int | None = None) -> Plan[Level]:
        """The last level, for results that no edge is part of: edges are not read as such, if no step is about them."""
        self.adjacency.reads_edges = any(map(_is_about_edges, self.route.steps))
        return (yield from self.level(wanted))

    def _ends(self, what: What, level: Level) -> Plan[list[Any]]:
        """The same as `finished` of all that was found, in half the time: a node or ref is made once."""
        keys = dict.fromkeys(visit[0] for visit in level.visits)
        if what == "nodes":
            yield from self.adjacency.read(keys)
            ends = {key: node for key in keys if (node := self.adjacency.nodes.get(key)) is not None}
        else:
            ends = dict(zip(keys, starmap(Ref, keys), strict=True))
        return [end for key, _, _, count in level.visits if key in ends for end in repeat(ends[key], count)]

    def page(
        self, what: What, limit: int | None, given: int, last: str | None
    ) -> Plan[tuple[list[Any], int | None, str]]:
        """A page of results after `given` of them, or all. `last` is the end of the page before, as it was returned.

        Returns them, how many were given then (None at the end), and the last of them as a text.
        """
        results: list[Any] = []
        ends = [] if last is None else last.split(" ")
        at: int | None = None
        # A path without edges is no result if edges are asked for.
        without = len(self.route.starts) if what == "edges" else 0
        while True:
            missing = None if limit is None else limit - len(results)
            wanted = None if missing is None else (given if at is None else at) + missing + 1 + without
            level = yield from self.level(wanted)
            if at is None:
                at = self._place(what, level, given, last)
            found = list(islice(self.found(what, level), at, None if missing is None else at + missing + 1))
            some = found[:missing]
            results += yield from self.finished(what, some)
            at += len(some)
            ends = [*ends, *map(self._text, some[-_REMEMBERED:])][-_REMEMBERED:]
            if missing is None or len(found) <= missing:
                return results, None, ""
            if len(results) == limit:
                return results, at, " ".join(ends)

    def _place(self, what: What, level: Level, given: int, last: str | None) -> int:
        """Where a page begins: behind the results of the page before, also if the graph has changed since."""
        if last is None:
            return 0
        ends = last.split(" ")
        before = next(islice(self.found(what, level), given - 1, given), None)
        if before is not None and self._text(before) == ends[-1]:
            return given
        places = {self._text(trail): place for place, trail in enumerate(self.found(what, level))}
        for end in reversed(ends):
            if end in places:
                return places[end] + 1
        raise InvalidCursor(
            "the last results before this page no longer exist, so it is not known where it begins; start again from "
            "the first page"
        )

    def _text(self, trail: Trail) -> str:
        """A short text for a result in a page token, made of what names its nodes and edges."""
        nodes, edges = trail
        ends = [(model.__name__, id) for model, id in nodes]
        keys = [self.adjacency.own_key(edge) for edge in edges if edge is not None]
        return blake2b(repr((ends, keys)).encode(), digest_size=8).hexdigest()

    # --- numbers -------------------------------------------------------------------------------

    def group_count(self) -> Plan[GroupCount[Any]]:
        """The number of paths to each node."""
        level = yield from self._level_of_nodes()
        counts = ((ref_of(key), reach.count) for key, reach in level.reaches.items())
        return GroupCount(counts, Completeness.of(self.adjacency))

    def count(self) -> Plan[int]:
        """The number of paths."""
        most = self.route.most
        level = yield from self._level_of_nodes(most)
        if most is not None and level.count >= most:
            return most
        return complete(self.adjacency, "the count", level.count)

    def values(self, field: str, part: About) -> Plan[list[tuple[Any, int]]]:
        """The values of a field of the last nodes or edges, each with the number of paths that end there."""
        entities = yield from self.entities(part)
        pairs = ((getattr(entity, field, None), count) for entity, count in entities)
        return [(value, count) for value, count in pairs if value is not None]

    def entities(self, part: About) -> Plan[list[tuple[Any, int]]]:
        """The last nodes or edges, each with the number of paths that end there."""
        adjacency = self.adjacency
        if part == "edges":
            level = yield from self.level()
            return [(edge, count) for _, _, edge, count in level.visits if edge is not None]
        level = yield from self._level_of_nodes()
        yield from adjacency.read(level.reaches)
        nodes = ((adjacency.nodes.get(key), reach.count) for key, reach in level.reaches.items())
        return [(node, count) for node, count in nodes if node is not None]

    def top(self, field: str, part: About, number: int) -> Plan[list[Any]]:
        """The last nodes or edges with the greatest values of a field, each once."""
        entities = yield from self.entities(part)
        if part == "nodes":
            return greatest((node for node, _ in entities), field, number)
        # A walk comes to the same edge at several depths, and from both of its ends.
        edges: dict[Any, Any] = {}
        for edge, _ in entities:
            edges.setdefault(self.adjacency.identity(edge), edge)
        return greatest(edges.values(), field, number)


def _is_about_edges(step: WalkStep) -> bool:
    """Whether a step needs the fields of edges that were read. DynamoDB filters edges before it sends them."""
    if isinstance(step, Filter):
        return step.part == "edges"
    order = None if isinstance(step, Distinct) else (step.stride if isinstance(step, Repeat) else step).order
    return order is not None and order.part == "edges"


# --- numbers of fields -------------------------------------------------------------------------


def total(values: Iterable[tuple[Any, int]]) -> Any:
    """The exact sum of numbers, each taken so many times; a float only if one of them is."""
    products = [exact_product(value, times) for value, times in values]
    return exact_total(products)


def average(values: Sequence[tuple[Any, int]]) -> Any:
    """The mean of numbers, each taken so many times, as a Decimal, or a float if one of them is; None of no numbers."""
    times = sum(count for _, count in values)
    if not times:
        return None
    whole = total(values)
    return whole / times if isinstance(whole, float) else QUOTIENTS.divide(Decimal(whole), Decimal(times))


def extreme(values: Iterable[tuple[Any, int]], *, least: bool) -> Any:
    """The least or the greatest value; None if there are none."""
    try:
        return (min if least else max)((value for value, _ in values), default=None)
    except TypeError as error:
        raise InvalidValue(f"the values of the field cannot be compared: {error}; name another field") from None


def greatest(entities: Iterable[Any], field: str, number: int) -> list[Any]:
    """The entities with the greatest values of a field."""
    pairs = [(getattr(entity, field, None), entity) for entity in entities]
    return sorted_by([pair for pair in pairs if pair[0] is not None], is_reversed=True)[:number]
