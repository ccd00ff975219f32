"""Where the nodes of a small drawing stand: pushed apart and pulled together, or in columns.

Points are complex numbers. This module knows numbers of nodes and pairs of them, and nothing of graphs.
"""

from __future__ import annotations

import cmath
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

WIDTH, MARGIN = 760.0, 56.0
"""The width of a drawing, and how far nodes stay from its sides."""


def placed(number: int, links: list[tuple[int, int]], height: float) -> list[complex]:
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
    across = _fitted([point.real for point in points], MARGIN, WIDTH - MARGIN)
    down = _fitted([point.imag for point in points], MARGIN * 0.7, height - MARGIN)
    return [complex(x, y) for x, y in zip(across, down, strict=True)]


def most_side_by_side(layers: Sequence[int], links: Iterable[tuple[int, int]]) -> int:
    """How many nodes, and edges that go past, the fullest column has."""
    many = Counter(layers)
    for a, b in dict.fromkeys(links):
        low, high = sorted((layers[a], layers[b]))
        many.update(range(low + 1, high))
    return max(many.values(), default=0)


def in_columns(
    layers: Sequence[int], links: list[tuple[int, int]], height: float
) -> tuple[list[complex], dict[tuple[int, int], complex]]:
    """Where nodes are if they stand in columns, each near the height of its neighbours in other columns.

    An edge that goes past a column has a place of its own there, so that it does not go through nodes. The second value
    says where such edges pass the middle of their way.
    """
    columns: list[list[int]] = [[] for _ in range(max(layers, default=0) + 1)]
    near: list[list[int]] = [[] for _ in layers]
    for node, layer in enumerate(layers):
        columns[layer].append(node)
    passing: dict[tuple[int, int], list[int]] = {}
    for a, b in dict.fromkeys(links):
        low, high = sorted((a, b), key=layers.__getitem__)
        way = [low]
        for layer in range(layers[low] + 1, layers[high]):
            way.append(len(near))
            columns[layer].append(len(near))
            near.append([])
        way.append(high)
        if layers[low] != layers[high]:
            for one, other in pairwise(way):
                near[one].append(other)
                near[other].append(one)
        passing[a, b] = way[1:-1]
    places = [0.0] * len(near)

    def settle(column: list[int]) -> None:
        for at, node in enumerate(column):
            places[node] = (at + 0.5) / len(column)

    for column in columns:
        settle(column)
    for _ in range(8):
        for column in (*columns, *reversed(columns)):
            wanted = {node: sum(places[other] for other in near[node]) / (len(near[node]) or 1) for node in column}
            column.sort(key=lambda node: wanted[node] if near[node] else places[node])
            settle(column)
    step = (WIDTH - 2 * MARGIN) / (len(columns) - 1 or 1)
    first = MARGIN if len(columns) > 1 else WIDTH / 2
    points = {
        node: complex(first + step * layer, (height - 20) * places[node])
        for layer, column in enumerate(columns)
        for node in column
    }
    middles = {link: sum(points[each] for each in way) / len(way) for link, way in passing.items() if way}
    return [points[node] for node in range(len(layers))], middles


def layers_of(number: int, steps: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The column of each node: how many steps lead to it at most. A step that would close a circle does not count."""
    after: list[list[int]] = [[] for _ in range(number)]
    for a, b in dict.fromkeys(steps):
        seen, left = {b}, [b]
        while left and a not in seen:
            left += [node for node in after[left.pop()] if node not in seen]
            seen.update(left)
        if a not in seen:
            after[a].append(b)
    layers = [0] * number
    # A way without circles has at most as many steps as there are other nodes.
    for _ in range(number):
        moved = False
        for a, others in enumerate(after):
            for b in others:
                if layers[b] <= layers[a]:
                    layers[b], moved = layers[a] + 1, True
        if not moved:
            break
    return tuple(layers)


def _fitted(values: list[float], low: float, high: float) -> list[float]:
    least, spread = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
    if spread < 1e-6:
        return [(low + high) / 2 for _ in values]
    return [low + (value - least) / spread * (high - low) for value in values]
