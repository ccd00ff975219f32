"""Where the nodes of a drawing stand: in columns whose edges cross seldom, and inside of the picture."""

from __future__ import annotations

from itertools import combinations

import pytest

from adjoin.placing import MARGIN, WIDTH, in_columns, layers_of, most_side_by_side, placed

HEIGHT = 400.0


def crossings(links: list[tuple[int, int]], points: list[complex]) -> int:
    """How often edges between two neighbouring columns cross."""
    return sum(
        (points[a].imag - points[c].imag) * (points[b].imag - points[d].imag) < 0
        for (a, b), (c, d) in combinations(links, 2)
    )


def test_nodes_stand_near_the_height_of_their_neighbours() -> None:
    links = [(0, 5), (1, 4), (2, 3)]  # in the order of their numbers, each edge would cross each other one
    points, _ = in_columns([0, 0, 0, 1, 1, 1], links, HEIGHT)
    assert crossings(links, points) == 0
    assert [points[a].imag for a, _ in links] == [points[b].imag for _, b in links]


def test_a_node_without_neighbours_keeps_its_place() -> None:
    points, _ = in_columns([0, 0, 0, 1], [(0, 3)], HEIGHT)
    assert points[0].imag < points[1].imag < points[2].imag
    lone, _ = in_columns([0, 0, 0], [], HEIGHT)
    assert lone[0].imag < lone[1].imag < lone[2].imag
    assert {point.real for point in lone} == {WIDTH / 2}


def test_an_edge_past_a_column_has_a_place_of_its_own_there() -> None:
    links = [(0, 1), (1, 2), (0, 2)]
    points, middles = in_columns([0, 1, 2], links, HEIGHT)
    assert list(middles) == [(0, 2)]
    assert middles[0, 2].real == points[1].real
    assert middles[0, 2].imag != points[1].imag
    assert most_side_by_side([0, 1, 2], links) == 2


@pytest.mark.parametrize(
    ("number", "steps", "layers"),
    [
        (0, [], ()),
        (3, [(0, 1), (1, 2), (0, 2)], (0, 1, 2)),
        (3, [(0, 1), (1, 2), (2, 0)], (0, 1, 2)),
        (2, [(0, 0), (0, 1), (1, 0)], (0, 1)),
        (4, [(3, 2), (2, 0)], (2, 0, 1, 0)),
    ],
)
def test_layers(number: int, steps: list[tuple[int, int]], layers: tuple[int, ...]) -> None:
    assert layers_of(number, steps) == layers


def test_nodes_are_inside_of_the_picture_and_apart() -> None:
    points = placed(12, [(0, other) for other in range(1, 12)], HEIGHT)
    assert all(MARGIN <= point.real <= WIDTH - MARGIN and 0 < point.imag < HEIGHT for point in points)
    assert min(abs(a - b) for a, b in combinations(points, 2)) > 10
    assert placed(1, [], HEIGHT)[0].real == WIDTH / 2
