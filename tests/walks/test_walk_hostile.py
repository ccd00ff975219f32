"""Whatever a program passes to a traversal, it gets an answer or an error of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import Budget, Graph, field
from adjoin.plans import read
from tests.shares import examples
from tests.test_hostile_arguments import HOSTILE, MODELS, Knows, Owns, Person, Thing, json_values, refused

CALLS: dict[str, Callable[[Graph, Any], object]] = {
    "walk": lambda g, x: list(g.walk(x).out(Owns).refs()),
    "walk list": lambda g, x: list(g.walk([x]).out(Owns).refs()),
    "walk nothing": lambda g, x: list(g.walk(x).nodes()),
    "budget": lambda g, x: g.walk("a", budget=x).out(Owns).count(),
    "requests": lambda g, x: Budget(requests=x),
    "rcu": lambda g, x: Budget(rcu=x),
    "seconds": lambda g, x: Budget(seconds=x),
    "nodes": lambda g, x: Budget(nodes=x),
    "on_exceeded": lambda g, x: Budget(on_exceeded=x),
    "cap": lambda g, x: g.walk("a", cap=x).out(Owns).count(),
    "consistent": lambda g, x: g.walk("a", consistent=x).out(Owns).count(),
    "out": lambda g, x: g.walk("a").out(x).count(),
    "into": lambda g, x: g.walk("a").out(Owns).into(x).count(),
    "both": lambda g, x: g.walk("a").both(Knows, x).count(),
    "children": lambda g, x: g.walk("a").children(x).count(),
    "repeat": lambda g, x: g.walk("a").repeat(x, max=2).count(),
    "repeat min": lambda g, x: g.walk("a").repeat(Knows, min=x, max=2).count(),
    "repeat max": lambda g, x: g.walk("a").repeat(Knows, max=x).count(),
    "repeat until": lambda g, x: g.walk("a").repeat(Knows, max=2, until=x).count(),
    "repeat direction": lambda g, x: g.walk("a").repeat(Knows, max=2, direction=x).count(),
    "repeat where": lambda g, x: g.walk("a").repeat(Knows, max=2, where=x).count(),
    "where": lambda g, x: g.walk("a").out(Owns).where(x).count(),
    "where edges": lambda g, x: g.walk("a").out(Owns).where(field("share") == x).count(),
    "where nodes": lambda g, x: g.walk("a").out(Owns).where(field("note") == x).count(),
    "where later": lambda g, x: g.walk("a").out(Owns).distinct().where(field("share") > x).count(),
    "where on": lambda g, x: g.walk("a").out(Owns).where(field("note") == "", on=x).count(),
    "order_by": lambda g, x: list(g.walk("a").out(Owns).order_by(x).refs()),
    "order_by reverse": lambda g, x: list(g.walk("a").out(Owns).order_by("since", reverse=x).refs()),
    "limit_per_node": lambda g, x: g.walk("a").out(Owns).limit_per_node(x).count(),
    "limit": lambda g, x: g.walk("a").out(Owns).limit(x).count(),
    "page": lambda g, x: g.walk("a").out(Owns).page(x),
    "page after": lambda g, x: g.walk("a").out(Owns).page(1, after=x),
    "sum": lambda g, x: g.walk("a").out(Owns).sum(x),
    "min": lambda g, x: g.walk("a").out(Owns).min("since", on=x),
    "avg": lambda g, x: g.walk("a").out(Owns).avg(x),
    "top": lambda g, x: g.walk("a").out(Owns).top("since", x),
    "shortest_path": lambda g, x: g.shortest_path(x, x, via=[Knows]),
    "shortest_path end": lambda g, x: g.shortest_path("a", x, via=[Knows]),
    "shortest_path via": lambda g, x: g.shortest_path("a", "b", via=x),
    "shortest_path max_depth": lambda g, x: g.shortest_path("a", "b", via=Knows, max_depth=x),
    "shortest_path weight": lambda g, x: g.shortest_path("a", "b", via=Knows, weight=x),
    "shortest_path where": lambda g, x: g.shortest_paths("a", "b", via=Knows, where=x),
    "can_reach": lambda g, x: g.can_reach("a", "b", via=[Knows], direction=x),
    "reachable": lambda g, x: g.reachable(x, via=[Knows, Owns]),
    "reachable path": lambda g, x: g.reachable("a", via=[Knows, Owns]).path(x),
    "recommend": lambda g, x: g.recommend(x, Knows),
    "recommend model": lambda g, x: g.recommend("a", x),
    "recommend to": lambda g, x: g.recommend("a", Owns, to=x),
    "recommend score": lambda g, x: g.recommend("a", Owns, score=x),
    "recommend weight": lambda g, x: g.recommend("a", Owns, weight=x),
    "recommend exclude": lambda g, x: g.recommend("a", Owns, exclude=x),
    "recommend limit": lambda g, x: g.recommend("a", Owns, limit=x),
    "common": lambda g, x: g.common("a", x, Owns),
    "common model": lambda g, x: g.common("a", "b", x),
    "subtree": lambda g, x: g.subtree(x, Owns),
    "subtree model": lambda g, x: g.subtree("a", x),
    "subtree quantity": lambda g, x: g.subtree("a", Owns, quantity=x),
    "subtree total": lambda g, x: g.subtree("a", Owns).total(x),
    "subtree shared": lambda g, x: g.subtree("a", Owns).total("id", shared=x),
}


@pytest.mark.parametrize("call", CALLS)
def test_calls(call: str) -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many([Person(id="a", city="a"), Person(id="b", city="b"), Thing(id=1), Knows(source="a", target="b")])
        g.connect(Owns, "a", 1)
        g.connect(Owns, "b", 1)
        found = {name: said for name, x in HOSTILE.items() if (said := refused(lambda: CALLS[call](g, x)))}  # noqa: B023
        assert found == {}


@pytest.mark.simulation
def test_forged_page_tokens() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put(Person(id="a", city="a"))
        g.put_many(Owns(source="a", target=number) for number in range(5))
        walk = g.walk("a").out(Owns)
        results = walk.refs()
        token = results.page(limit=2).next
        assert token is not None
        identity = walk._identity("refs")
        start, _ = read.decode_cursor(token, identity, b"")

        @settings(max_examples=examples(27))
        @given(json_values, st.sampled_from(["all", "key", "given", "last", "type", "text"]), st.text())
        def forge(value: Any, what: str, text: str) -> None:
            forged = {
                "all": value,
                "key": [value, 1],
                "given": [start, value],
                "last": [{"last": value}, 1],
                "type": [{"last": {"N": "1"}}, 1],
                "text": [{"last": {"S": text}}, 3],
            }[what]
            raw = json.dumps(forged).encode()
            made = read._spelled(read._digest(raw, identity, b"") + raw)
            assert refused(lambda: results.page(limit=2, after=made)) is None

        forge()
