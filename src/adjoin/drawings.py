"""`g.draw`: a small graph as a picture in a notebook.

The calls are in `adjoin.drawing`. `Gathering` decides what is drawn, `adjoin.placing` where, and `Drawing` makes the
SVG of it. The same nodes and edges in the same order give the same picture.
"""

from __future__ import annotations

import cmath
import math
from collections import Counter
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import Any, TypeVar

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidValue, shown
from adjoin.model import Child, Edge, Node, Ref, identity_of, node_id
from adjoin.notebooks import cut, text_of
from adjoin.placing import MARGIN, WIDTH, in_columns, layers_of, most_side_by_side, placed
from adjoin.plans.frontier import NodeKey
from adjoin.plans.walk_results import WalkPath
from adjoin.schema import Schema

T = TypeVar("T")

MOST = 200
"""The greatest number of nodes that a drawing may have; with more, nobody could read it."""
_EDGES_PER_NODE = 4
_LABEL, _SMALL = 24, 10
_RADIUS = 9.0
_COLOURS = ("#3b82c4", "#d9772b", "#3f9b5c", "#c2518f", "#8a6fd1", "#b08a1e", "#2a9d9d", "#c7504a")
"""Of a middle lightness, so that each can be seen on a white and on a black page."""
_STYLE = (
    "<style>.adjoin-drawing{color:#424a53}@media(prefers-color-scheme:dark){.adjoin-drawing{color:#c4ccd4}}</style>"
)
"""The colour of text and lines in a file, where no page has one: for light pages, and for dark ones."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of some nodes and edges, which a notebook shows. `svg` is its text, to be saved as a file.

    `nodes` and `edges` are how many it has; `is_capped` says that there were more than the call allows.
    """

    _nodes: tuple[tuple[str, str], ...]
    """The class and the label of each node."""
    _edges: tuple[tuple[int, int, str, bool, str], ...]
    """Of each edge the places of its nodes, its class, whether it has a direction, and what is written on it."""
    is_capped: bool = False
    _layers: tuple[int, ...] | None = None
    """In which column each node stands, if they stand in columns."""

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    @property
    def edges(self) -> int:
        return len(self._edges)

    @property
    def svg(self) -> str:
        return self._svg(_STYLE)

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

    def _svg(self, style: str) -> str:
        links = [(a, b) for a, b, *_ in self._edges]
        height = 160 + 40 * min(16, math.isqrt(self.nodes * 6))
        if self._layers is not None:
            most = most_side_by_side(self._layers, links)
            # Closer together if there are many, but never so close that a label has no room above the next node.
            height = 20 + max(min(66 * most, 800), 36 * most)
        classes = list(dict.fromkeys(name for name, _ in self._nodes))
        filled = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(classes)}
        middles: dict[tuple[int, int], complex] = {}
        if self._layers is None:
            points = placed(self.nodes, links, height)
        else:
            points, middles = in_columns(self._layers, links, height)
        room = _Room(points)
        shown_at = zip(points, self._nodes, strict=True)
        circles = [_circle(at, filled[name], name, label, room) for at, (name, label) in shown_at]
        lines = list(self._lines(points, middles, room))
        legend = list(_legend(filled, height))
        whole = height + 20 * (len(legend) + self.is_capped)
        note = _text(MARGIN / 2, whole - 8, self._said, 11, "start") if self.is_capped else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {whole}" width="{WIDTH:g}" '
            f'class="adjoin-drawing" style="max-width:100%;height:auto" role="img" font-family="sans-serif">{style}'
            f"<title>{escape(self._said)}</title>{''.join(lines)}"
            f"{''.join(circles)}{''.join(legend)}{note}</svg>"
        )

    def _lines(self, points: list[complex], middles: dict[tuple[int, int], complex], room: _Room) -> Iterator[str]:
        """The edges, bent apart where there are several between the same two nodes."""
        many = Counter(frozenset((a, b)) for a, b, *_ in self._edges)
        seen: Counter[frozenset[int]] = Counter()
        for a, b, name, has_direction, label in self._edges:
            pair = frozenset((a, b))
            turn = seen[pair]
            seen[pair] += 1
            if a == b:
                yield _loop(points[a], name, label, turn, room)
                continue
            bend = (turn - (many[pair] - 1) / 2) * 26
            way = _way(points[a], points[b], bend if a < b else -bend, middles.get((a, b)))
            yield _line(points[a], way, points[b], (name, label), has_direction, room)


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


def _way(start: complex, end: complex, bend: float, middle: complex | None) -> complex:
    """The point towards which the curve between two nodes is drawn, so that it is bent, or passes a point."""
    way = end - start
    unit = way / abs(way) if way else 1 + 0j
    straight = (start + end) / 2 if middle is None else 2 * middle - (start + end) / 2
    return straight + unit * 1j * bend * 2


def _line(
    start: complex, control: complex, end: complex, said: tuple[str, str], has_direction: bool, room: _Room
) -> str:
    name, label = said
    way = end - start
    unit = way / abs(way) if way else 1 + 0j
    middle = (start + 2 * control + end) / 4
    arriving = end - control
    arriving = arriving / abs(arriving) if arriving else unit
    tip = end - arriving * (_RADIUS + 1)
    curve = f"M{_at(start)}Q{_at(control)} {_at(tip)}"
    drawn = f'<path d="{curve}" fill="none" stroke="currentColor" stroke-opacity=".45"/>'
    if has_direction:
        left, right = (tip - arriving * cmath.rect(8, turn) for turn in (0.4, -0.4))
        drawn += f'<path d="M{_at(tip)}L{_at(left)}L{_at(right)}Z" fill="currentColor" fill-opacity=".6"/>'
    written = cut(label or name, _LABEL)
    # Above a line that rises, a text stands higher, so that the line does not go through it.
    above = 3 + min(16.0, 0.3 * _SMALL * len(written) * abs(unit.imag / (unit.real or 1)))
    # Where lines lie close together, a place nearer to one end is often free.
    places = (middle, (start + 2 * middle) / 3, (2 * middle + end) / 3)
    text = next((text for at in places if (text := room.text(at - above * 1j, written, _SMALL))), "")
    return f"<g><title>{escape(_titled(name, label))}</title>{drawn}{text}</g>"


def _titled(name: str, label: str) -> str:
    return f"{name} {label}" if label else name


def _loop(at: complex, name: str, label: str, turn: int, room: _Room) -> str:
    size = 14 + 7 * turn
    circle = f'<circle cx="{at.real:.1f}" cy="{at.imag - size:.1f}" r="{size}" fill="none" '
    text = room.text(at - (2 * size + 3) * 1j, cut(label or name, _LABEL), _SMALL)
    title = f"<title>{escape(_titled(name, label))}</title>"
    return f'<g>{title}{circle}stroke="currentColor" stroke-opacity=".45"/>{text}</g>'


def _at(point: complex) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


def _legend(filled: dict[str, str], height: int) -> Iterator[str]:
    """Rows of four classes, each with its colour."""
    names = list(filled)
    for row in range(0, len(names), 4):
        parts = []
        for column, name in enumerate(names[row : row + 4]):
            x, y = MARGIN / 2 + column * (WIDTH - MARGIN) / 4, height + 5 * row + 8
            parts.append(f'<circle cx="{x + 5:.1f}" cy="{y - 4:.1f}" r="5" fill="{filled[name]}"/>')
            parts.append(_text(x + 15, y, cut(name, _LABEL), 11, "start"))
        yield "".join(parts)


# --- what is drawn -----------------------------------------------------------------------------


class Gathering:
    """The nodes and edges of a drawing, as they come."""

    def __init__(
        self, schema: Schema, label: str | None, edge_label: str | None, most: int, in_layers: bool = False
    ) -> None:
        self._schema, self._label, self._edge_label, self.most = schema, label, edge_label, most
        self._in_layers = in_layers
        self._nodes: dict[NodeKey, tuple[str, str]] = {}
        self._edges: dict[Any, tuple[NodeKey, NodeKey, str, bool, str]] = {}
        self._steps: list[tuple[NodeKey, NodeKey]] = []
        """From which node to which a path, or an edge, leads."""
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

    def add_at(self, start: Node | Ref[Any], thing: Any) -> None:
        """Adds something that was found at a node: the steps lead away from it."""
        steps, near = len(self._steps), self._key(start)
        self.add_found(thing)
        self._steps[steps:] = [(b, a) if b == near else (a, b) for a, b in self._steps[steps:]]

    def add_found(self, thing: Any) -> None:
        """Adds something of which nothing more is read."""
        match thing:
            case Child():
                kind = self._schema.node(type(thing)).whole
                assert kind.parent is not None
                parent = Ref(kind.parent.model, kind.parent.id(thing.parent))
                self._add_edge((kind.model, identity_of(thing)), (parent, thing), "child", True, self._written(thing))
            case Node() | Ref():
                self._add_node(thing)
            case Edge():
                self._add_stored(thing)
            case WalkPath():
                for node in thing.nodes:
                    if not isinstance(node, Node):
                        # A snapshot holds a node without its class.
                        raise InvalidValue(not_drawn(node))
                    self._add_node(node)
                self._steps += pairwise(map(self._key, thing.nodes))
                steps = len(self._steps)
                for edge in thing.edges:
                    self.add_found(edge)
                # The path says in which direction they lead.
                del self._steps[steps:]
            case tuple():
                for each in thing:
                    self.add_found(each)
            case _:
                raise InvalidValue(not_drawn(thing))

    def _add_stored(self, edge: Any) -> None:
        kind = self._schema.edge(type(edge))
        ends = (kind.source.of(edge.source), kind.target.of(edge.target))
        source, target = (Ref(end.whole.model, id) for end, id in ends)
        identity = identity_of(edge)
        if kind.symmetric:
            # Either item of a symmetric edge is the edge.
            identity = (frozenset(identity[:2]), *identity[2:])
        self._add_edge((kind.model, identity), (source, target), kind.name, not kind.symmetric, self._written(edge))

    def _written(self, edge: Any) -> str:
        value = None if self._edge_label is None else edge.__dict__.get(self._edge_label)
        return "" if value is None else text_of(value)

    def _add_edge(self, identity: Any, ends: tuple[Any, Any], name: str, has_direction: bool, label: str) -> None:
        if identity in self._edges or not all(self._add_node(end) for end in ends):
            return
        if len(self._edges) == _EDGES_PER_NODE * self.most:
            self.is_capped = True
            return
        source, target = map(self._key, ends)
        self._steps.append((source, target))
        self._edges[identity] = source, target, name, has_direction, label

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
        return model.__name__, text_of(key[1] if label is None else label)

    def drawing(self) -> Drawing:
        places = {key: place for place, key in enumerate(self._nodes)}
        edges = tuple((places[a], places[b], name, arrow, label) for a, b, name, arrow, label in self._edges.values())
        layers = None
        if self._in_layers:
            known = ((a, b) for a, b in self._steps if a in places and b in places)
            layers = layers_of(len(places), ((places[a], places[b]) for a, b in known))
        return Drawing(tuple(self._nodes.values()), edges, self.is_capped, layers)


def not_drawn(thing: Any) -> str:
    return (
        f"draw takes nodes, refs, edges and paths, or a list of them, got {shown(thing)}; pass Model.ref(id) for an id"
    )
