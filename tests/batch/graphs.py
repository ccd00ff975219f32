"""A filled graph of the models, larger than Hypothesis makes them, and the differences a job finds in it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

from adjoin.batch.engines import Engine, Source
from adjoin.batch.job import Job
from adjoin.layouts.bound import BoundLayout
from tests.batch.models import Author, Book, Follows, Holds, Knows, Part, Shop, Sold, World, Wrote


def filled(size: int = 40, *, seed: int = 7, wide: bool = False) -> World:
    """A world with ties, edges that dangle, nodes without edges, and a circle of parts."""
    random = Random(seed)

    def number() -> Decimal:
        places = 22 if wide and random.random() < 0.2 else 3
        return Decimal(random.randrange(-(10**5), 10**5)).scaleb(-places)

    signs = ["", "#é", "%23", " ", "|~", "!"]
    authors = [f"a{place}{signs[place % len(signs)]}" for place in range(size)]
    world = World()
    world.nodes[Author] = {id: Author(id=id) for id in authors[:-2]}
    world.nodes[Book] = {id: Book(id=id, price=number() if id % 5 else None) for id in range(-3, size)}
    world.nodes[Shop] = {id: Shop(id=id) for id in ("x", "y", "z")}
    world.nodes[Part] = {id: Part(id=id, cost=number()) for id in range(size)}
    wrote = {(random.choice(authors[3:]), random.randrange(size), random.randrange(-1, 2)) for _ in range(4 * size)}
    roles = (None, "editor", "author")
    world.edges[Wrote] = [
        Wrote(source=s, target=t, year=year, length=number() if t % 7 else None, role=random.choice(roles))
        for s, t, year in sorted(wrote)
    ]
    sold = {(random.randrange(-3, size + 2), random.choice("xyzw")) for _ in range(3 * size)}
    day = dt.date(2024, 1, 1)
    world.edges[Sold] = [
        Sold(
            source=s,
            target=t,
            at=day + dt.timedelta(random.randrange(4)),
            amount=number(),
            note=random.choice([None, "x", "é"]),
        )
        for s, t in sorted(sold)
    ]
    pairs = {(random.choice(authors[:20]), random.choice(authors)) for _ in range(size)}
    world.edges[Follows] = [Follows(source=s, target=t) for s, t in sorted(pairs)]
    friends = {tuple(sorted((random.choice(authors), random.choice(authors)))) for _ in range(size)}
    world.edges[Knows] = [Knows(source=s, target=t, strength=random.randrange(9)) for s, t in sorted(friends)]
    below = {(place, place + random.randrange(1, 9)) for place in range(size) for _ in range(2)} | {(3, 2), (2, 3)}
    world.edges[Holds] = [
        Holds(source=s, target=t, number=number(), year=random.randrange(3), times=(s + t) % 3 or None)
        for s, t in sorted(below)
    ]
    return world


def everything(engine: Engine, source: Source, layout: BoundLayout, only: Any = None) -> dict[str, Any]:
    """All that a job computes, by name: what differs on which node, and which nodes are on circles."""
    job = Job(engine, source, layout, layout.rules, only=only)
    found: dict[str, Any] = {"counts": job.tables.counts}
    for rule in job.rules:
        differences, computed = job.aggregate(rule)
        found[rule.name] = {each.id: (each.stored, each.computed) for each in differences}
        if computed.circular is not None:
            found[rule.name + " circles"] = sorted(row["id"] for row in engine.fetch(computed.circular))
    for summary in job.summaries:
        differences = job.summary(summary)
        found[differences.name] = {each.id: (each.stored, each.computed) for each in differences}
    return found
