"""Draws the examples of walks, for docs/walks.md.

python -m examples.pictures [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from adjoin import Drawing
from examples import access, materials, purchases, services, social

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"


def friends() -> Drawing:
    """Everybody whom Ann can reach over three friends."""
    with social.open_graph() as g:
        return g.draw(g.walk("ann").repeat(social.Friend, max=3), label="name", edge_label="since", layers=True)


def also_bought() -> Drawing:
    """Who bought tea, and what these customers also bought."""
    with purchases.open_graph() as g:
        tea = purchases.Product.ref("tea")
        walk = g.walk(tea).into(purchases.Bought).out(purchases.Bought)
        return g.draw(walk, edge_label="number", layers=True)


def outage() -> Drawing:
    """What breaks if a server goes down: on it, above that, and above that."""
    with services.open_graph() as g:
        host = services.Host.ref("host-1")
        walk = g.walk(host).repeat(services.RunsOn, services.DependsOn, max=3, direction="into")
        return g.draw(walk, layers=True)


def ways_to_a_secret() -> Drawing:
    """Who can reach a secret, and through what."""
    with access.open_graph() as g:
        found = g.reachable(access.Secret.ref("db-password"), via=access.VIA, direction="into")
        return g.draw([found.path(node) for node in found], layers=True)


def bicycle() -> Drawing:
    """What a bicycle is made of, and how many of each part."""
    with materials.open_graph() as g:
        return g.draw(g.walk("bike").repeat(materials.Uses, max=3), edge_label="number", layers=True)


PICTURES: dict[str, Callable[[], Drawing]] = {
    "walk-friends": friends,
    "walk-also-bought": also_bought,
    "walk-outage": outage,
    "walk-secret": ways_to_a_secret,
    "walk-bicycle": bicycle,
}


def main(arguments: Sequence[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    folder = Path(given[0]) if given else FOLDER
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw().svg + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
