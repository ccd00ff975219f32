"""`g.draw`: a small graph as a picture in a notebook.

`Draws` and `AsyncDraws` are the calls; `Graph` and `AsyncGraph` inherit from them. `_Gathering` decides what is drawn,
`_placed` where, and `Drawing` makes the SVG of it. The same nodes and edges in the same order give the same picture.
"""

from __future__ import annotations

import cmath
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from adjoin.collecting import CollectionQuery
from adjoin.errors import InvalidValue, UnknownField, shown
from adjoin.model import Child, Edge, Node, Ref, identity_of, node_id
from adjoin.notebooks import cut, told
from adjoin.plans.frontier import NodeKey
from adjoin.plans.steps.spending import Spending, side_by_side
from adjoin.plans.walk_results import WalkPath
from adjoin.queries import Page, whole_number
from adjoin.requests import Plan
from adjoin.schema import Schema
from adjoin.verbs import Verbs
from adjoin.walks import AsyncWalk, Walk

T = TypeVar("T")

MOST = 200
"""The greatest number of nodes that a drawing may have; with more, nobody could read it."""
_EDGES_PER_NODE = 4
_LABEL = 24
_WIDTH, _MARGIN, _RADIUS = 760.0, 56.0, 9.0
_COLOURS = ("#3b82c4", "#d9772b", "#3f9b5c", "#c2518f", "#8a6fd1", "#b08a1e", "#2a9d9d", "#c7504a")
"""Of a middle lightness, so that each can be told from a white and from a black page."""
_GREY = "#767676"
"""The colour of text in a file, where no page has one; its contrast is 4.5 on white and on black."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of some nodes and edges, which a notebook shows. `svg` is its text, to be saved as a file.

    `nodes` and `edges` are how many it has; `is_capped` says that there were more than the call allows.
    """

    _nodes: tuple[tuple[str, str], ...]
    """The class and the label of each node."""
    _edges: tuple[tuple[int, int, str, bool], ...]
    """Of each edge the places of its nodes, its class, and whether it has a direction."""
    is_capped: bool = False

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    @property
    def edges(self) -> int:
        return len(self._edges)

    @property
    def svg(self) -> str:
        return self._svg(f' color="{_GREY}"')

    def __repr__(self) -> str:
        return f"<Drawing of {self._said}>"

    @property
    def _said(self) -> str:
        many = f"{self.nodes} node{'s' * (self.nodes != 1)} and {self.edges} edge{'s' * (self.edges != 1)}"
        return f"{many}; more are not drawn" if self.is_capped else many

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        # Text and lines have the colour of the page.
        return f'<div style="overflow-x:auto">{self._svg("")}</div>'

    def _svg(self, colour: str) -> str:
        height = 160 + 40 * min(16, math.isqrt(self.nodes * 6))
        classes = list(dict.fromkeys(name for name, _ in self._nodes))
        filled = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(classes)}
        points = _placed(self.nodes, [(a, b) for a, b, _, _ in self._edges], height)
        room = _Room(points)
        shown_at = zip(points, self._nodes, strict=True)
        circles = [_circle(at, filled[name], name, label, room) for at, (name, label) in shown_at]
        lines = list(self._lines(points, room))
        legend = list(_legend(filled, height))
        whole = height + 20 * (len(legend) + self.is_capped)
        note = _text(_MARGIN / 2, whole - 8, self._said, 11, "start") if self.is_capped else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {whole}" width="{_WIDTH:g}" '
            f'style="max-width:100%;height:auto" role="img" font-family="sans-serif"{colour}>'
            f"<title>{escape(self._said)}</title>{''.join(lines)}"
            f"{''.join(circles)}{''.join(legend)}{note}</svg>"
        )

    def _lines(self, points: list[complex], room: _Room) -> Iterator[str]:
        """The edges, bent apart where there are several between the same two nodes."""
        many = Counter(frozenset((a, b)) for a, b, _, _ in self._edges)
        seen: Counter[frozenset[int]] = Counter()
        for a, b, name, has_direction in self._edges:
            pair = frozenset((a, b))
            turn = seen[pair]
            seen[pair] += 1
            if a == b:
                yield _loop(points[a], name, turn, room)
                continue
            bend = (turn - (many[pair] - 1) / 2) * 26
            yield _line(points[a], points[b], name, bend if a < b else -bend, has_direction, room)


# --- lines and texts ---------------------------------------------------------------------------


def _text(x: float, y: float, text: str, size: int, anchor: str = "middle") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="currentColor">{escape(text)}</text>'


class _Room:
    """Where texts may still be written. One that would lie on another, or on a node, is left out; its title has it."""

    def __init__(self, points: list[complex]) -> None:
        self._taken = [(at - _RADIUS * (1 + 1j), at + _RADIUS * (1 + 1j)) for at in points]

    def text(self, at: complex, text: str, size: int) -> str:
        half = 0.3 * size * len(text)
        low, high = at - complex(half, 0.8 * size), at + complex(half, 0.1 * size)
        for one, other in self._taken:
            if one.real < high.real and low.real < other.real and one.imag < high.imag and low.imag < other.imag:
                return ""
        self._taken.append((low, high))
        return _text(at.real, at.imag, text, size)


def _circle(at: complex, colour: str, name: str, label: str, room: _Room) -> str:
    circle = f'<circle cx="{at.real:.1f}" cy="{at.imag:.1f}" r="{_RADIUS:g}" fill="{colour}"/>'
    title = f"<title>{escape(f'{name} {label}')}</title>"
    return f"<g>{title}{circle}{room.text(at + 22j, cut(label, _LABEL), 11)}</g>"


def _line(start: complex, end: complex, name: str, bend: float, has_direction: bool, room: _Room) -> str:
    way = end - start
    unit = way / abs(way) if way else 1 + 0j
    control = (start + end) / 2 + unit * 1j * bend * 2
    middle = (start + 2 * control + end) / 4
    arriving = end - control
    arriving = arriving / abs(arriving) if arriving else unit
    tip = end - arriving * (_RADIUS + 1)
    curve = f"M{_at(start)}Q{_at(control)} {_at(tip)}"
    drawn = f'<path d="{curve}" fill="none" stroke="currentColor" stroke-opacity=".45"/>'
    if has_direction:
        left, right = (tip - arriving * cmath.rect(8, turn) for turn in (0.4, -0.4))
        drawn += f'<path d="M{_at(tip)}L{_at(left)}L{_at(right)}Z" fill="currentColor" fill-opacity=".6"/>'
    return f"<g><title>{escape(name)}</title>{drawn}{room.text(middle - 3j, cut(name, _LABEL), 9)}</g>"


def _loop(at: complex, name: str, turn: int, room: _Room) -> str:
    size = 14 + 7 * turn
    circle = f'<circle cx="{at.real:.1f}" cy="{at.imag - size:.1f}" r="{size}" fill="none" '
    text = room.text(at - (2 * size + 3) * 1j, cut(name, _LABEL), 9)
    return f'<g><title>{escape(name)}</title>{circle}stroke="currentColor" stroke-opacity=".45"/>{text}</g>'


def _at(point: complex) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


def _legend(filled: dict[str, str], height: int) -> Iterator[str]:
    """Rows of four classes, each with its colour."""
    names = list(filled)
    for row in range(0, len(names), 4):
        parts = []
        for column, name in enumerate(names[row : row + 4]):
            x, y = _MARGIN / 2 + column * (_WIDTH - _MARGIN) / 4, height + 5 * row + 8
            parts.append(f'<circle cx="{x + 5:.1f}" cy="{y - 4:.1f}" r="5" fill="{filled[name]}"/>')
            parts.append(_text(x + 15, y, cut(name, _LABEL), 11, "start"))
        yield "".join(parts)


def _placed(number: int, links: list[tuple[int, int]], height: float) -> list[complex]:
    """Where nodes are: they begin on a circle, push each other away if they are near, and edges pull them together."""
    points = [cmath.rect(1, 2 * math.pi * place / number) for place in range(number)]
    near = 1.6 / math.sqrt(number or 1)
    steps = max(40, min(200, 700_000 // (number * number or 1)))
    for step in range(steps):
        moves = [-0.6 * point for point in points]
        for a in range(number):
            for b in range(a):
                apart = points[a] - points[b] or complex(1e-3 * (a - b), 1e-3)
                if abs(apart) > 4 * near:
                    continue
                push = apart * (near * near / max(abs(apart) ** 2, 1e-6))
                moves[a] += push
                moves[b] -= push
        for a, b in links:
            apart = points[a] - points[b]
            pull = apart * (abs(apart) / near)
            moves[a] -= pull
            moves[b] += pull
        heat = 0.25 * (1 - step / steps)
        points = [p + move * (min(abs(move), heat) / (abs(move) or 1)) for p, move in zip(points, moves, strict=True)]
    across = _fitted([point.real for point in points], _MARGIN, _WIDTH - _MARGIN)
    down = _fitted([point.imag for point in points], _MARGIN * 0.7, height - _MARGIN)
    return [complex(x, y) for x, y in zip(across, down, strict=True)]


def _fitted(values: list[float], low: float, high: float) -> list[float]:
    least, spread = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
    if spread < 1e-6:
        return [(low + high) / 2 for _ in values]
    return [low + (value - least) / spread * (high - low) for value in values]


# --- what is drawn -----------------------------------------------------------------------------


class _Gathering:
    """The nodes and edges of a drawing, as they come."""

    def __init__(self, schema: Schema, label: str | None, most: int) -> None:
        self._schema, self._label, self.most = schema, label, most
        self._nodes: dict[NodeKey, tuple[str, str]] = {}
        self._edges: dict[Any, tuple[NodeKey, NodeKey, str, bool]] = {}
        self.is_capped = False
        self.starts: list[Node | Ref[Any]] = []

    def add(self, thing: Any) -> bool:
        """Adds what a program names; returns whether there is room for more. A node by itself is a start."""
        match thing:
            case Node() | Ref():
                if self._add_node(thing):
                    self.starts.append(thing)
            case _:
                self.add_found(thing)
        return not self.is_capped

    def add_found(self, thing: Any) -> None:
        """Adds something of which nothing more is read."""
        match thing:
            case Child():
                kind = self._schema.node(type(thing)).whole
                assert kind.parent is not None
                parent = Ref(kind.parent.model, kind.parent.id(thing.parent))
                self._add_edge((kind.model, identity_of(thing)), (parent, thing), "child", True)
            case Node() | Ref():
                self._add_node(thing)
            case Edge():
                self._add_stored(thing)
            case WalkPath():
                for node in thing.nodes:
                    if not isinstance(node, Node):
                        # A snapshot holds a node without its class.
                        raise InvalidValue(_not_drawn(node))
                    self._add_node(node)
                for edge in thing.edges:
                    self.add_found(edge)
            case tuple():
                for each in thing:
                    self.add_found(each)
            case _:
                raise InvalidValue(_not_drawn(thing))

    def _add_stored(self, edge: Any) -> None:
        kind = self._schema.edge(type(edge))
        ends = (kind.source.of(edge.source), kind.target.of(edge.target))
        source, target = (Ref(end.whole.model, id) for end, id in ends)
        identity = identity_of(edge)
        if kind.symmetric:
            # Either item of a symmetric edge is the edge.
            identity = (frozenset(identity[:2]), *identity[2:])
        self._add_edge((kind.model, identity), (source, target), kind.name, not kind.symmetric)

    def _add_edge(self, identity: Any, ends: tuple[Any, Any], name: str, has_direction: bool) -> None:
        if identity in self._edges or not all(self._add_node(end) for end in ends):
            return
        if len(self._edges) == _EDGES_PER_NODE * self.most:
            self.is_capped = True
            return
        source, target = map(self._key, ends)
        self._edges[identity] = source, target, name, has_direction

    def _add_node(self, node: Node | Ref[Any]) -> bool:
        key = self._key(node)
        if key not in self._nodes and len(self._nodes) == self.most:
            self.is_capped = True
            return False
        if key not in self._nodes or isinstance(node, Node):
            # A node says more than its ref.
            self._nodes[key] = self._shown(node, key)
        return True

    def _key(self, node: Node | Ref[Any]) -> NodeKey:
        kind = self._schema.node(node.model if isinstance(node, Ref) else type(node)).whole
        return kind.model, node_id(node) if isinstance(node, Node) else kind.id(node.id)

    def _shown(self, node: Node | Ref[Any], key: NodeKey) -> tuple[str, str]:
        model = type(node) if isinstance(node, Node) else node.model
        label = None if self._label is None or isinstance(node, Ref) else node.__dict__.get(self._label)
        return model.__name__, told(key[1] if label is None else label)

    def drawing(self) -> Drawing:
        places = {key: place for place, key in enumerate(self._nodes)}
        edges = tuple((places[a], places[b], name, arrow) for a, b, name, arrow in self._edges.values())
        return Drawing(tuple(self._nodes.values()), edges, self.is_capped)


def _not_drawn(thing: Any) -> str:
    return (
        f"draw takes nodes, refs, edges and paths, or a list of them, got {shown(thing)}; pass Model.ref(id) for an id"
    )


class _ToDraw(Verbs):
    """What both graphs share."""

    def _gathering(self, x: Any, direction: str, label: str | None, most: int) -> _Gathering:
        if direction not in ("out", "into", "both"):
            raise InvalidValue(f'direction must be "out", "into" or "both", got {shown(direction)}')
        if whole_number("most", most) > MOST:
            raise InvalidValue(f"most must be at most {MOST}, got {shown(most)}; draw fewer nodes")
        if label is not None and not any(label in model.model_fields for model in self._schema.nodes):
            raise UnknownField(f"no class of nodes has a field {shown(label)}; pass one that labels nodes, or None")
        if isinstance(x, str | bytes | dict) or not isinstance(
            x, Iterable | AsyncIterable | Node | Edge | Ref | WalkPath
        ):
            raise InvalidValue(_not_drawn(x))
        return _Gathering(self._schema, label, most)

    def _drawn(self, gathering: _Gathering, direction: str) -> Plan[Drawing]:
        """Reads the edges of the nodes that stand by themselves, all in one round, and draws everything."""
        ways = ("out", "into") if direction == "both" else (direction,)
        pages: dict[int, Page[Any]] = {}

        def read(place: int, start: Node | Ref[Any], way: str) -> Plan[None]:
            query = CollectionQuery(self._context, self._collection(start, way, None), _node=start)
            # The first is the node itself.
            pages[place] = yield from query._page_plan(gathering.most + 1, None)

        asked = [(start, way) for start in gathering.starts for way in ways]
        plans = [read(place, *each) for place, each in enumerate(asked)]
        yield from side_by_side(plans, Spending(None, self._clock))
        for page in (pages[place] for place in sorted(pages)):
            gathering.is_capped |= page.next is not None
            for found in page:
                # Items of no class are no part of a graph.
                if isinstance(found, Node | Edge):
                    gathering.add_found(found)
        return gathering.drawing()


def _listed(x: Any) -> Any:
    """What is drawn one by one. Of a walk, it is its paths."""
    if isinstance(x, Walk | AsyncWalk):
        return x.paths()
    return [x] if isinstance(x, Node | Edge | Ref | WalkPath) else x


class Draws(_ToDraw):
    """The call of `Graph`."""

    @abstractmethod
    def _run(self, plan: Plan[T]) -> T: ...

    def draw(self, x: Any, *, direction: str = "out", label: str | None = None, most: int = 50) -> Drawing:
        """Draws a small graph, which a notebook shows: `g.draw(ann)`, or `g.draw(g.walk(ann).out(Knows))`.

        `x` is a node, a ref, an edge or a path, a list of them, a query or a walk. Edges and paths are drawn as they
        are. A node or a ref by itself is drawn with the edges that leave it, that arrive at it (`direction="into"`), or
        "both": one query for each node and direction, all in one round. `label` is the field of nodes that is written
        beside them; without it, it is their id. At most `most` nodes are drawn, and the picture says if there are more.
        """
        gathering = self._gathering(x, direction, label, most)
        for each in _listed(x):
            if not gathering.add(each):
                break
        return self._run(self._drawn(gathering, direction))


class AsyncDraws(_ToDraw):
    """The call of `AsyncGraph`."""

    @abstractmethod
    async def _run(self, plan: Plan[T]) -> T: ...

    async def draw(self, x: Any, *, direction: str = "out", label: str | None = None, most: int = 50) -> Drawing:
        """Draws a small graph, which a notebook shows; see `Graph.draw`."""
        gathering = self._gathering(x, direction, label, most)
        things = _listed(x)
        if isinstance(things, AsyncIterable):
            async for each in things:
                if not gathering.add(each):
                    break
        else:
            for each in things:
                if not gathering.add(each):
                    break
        return await self._run(self._drawn(gathering, direction))
