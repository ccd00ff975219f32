"""A condition holds in an engine exactly where the predicate does that it comes from."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from adjoin import Graph
from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.numbers import Narrow, Wide
from adjoin.batch.rule_book import holds, wants_of
from adjoin.batch.sources import dump_of
from adjoin.batch.tables import TARGET, Tables, stored_condition
from adjoin.plans.counting.contributions import predicate_test
from tests.maintenance.test_predicates import VALUES, Line, Point, a_predicate

SOME = 40


@pytest.mark.parametrize("numbers", [Narrow(), Wide()], ids=["narrow", "wide"])
def test_engines_and_predicates_agree(numbers: Any) -> None:
    chance = Random(3)
    with Graph(":memory:", [Point, Line]) as graph, DuckDBEngine(threads=1) as engine:
        graph.put_many(
            Line(source="a", target=str(number), **{name: chance.choice(values) for name, values in VALUES.items()})
            for number in range(60)
        )
        layout = graph._layout
        kind = layout.schema.edge(Line)
        asked = [a_predicate(chance) for _ in range(SOME)]
        conditions = [stored_condition(layout, kind, each) for each in asked]
        wants = {want for each in conditions for want in wants_of(each)}
        tables = Tables(engine, dump_of(graph._store, layout.table), layout, {Line: {TARGET, *wants}})
        rows = tables.table(kind)
        columns = {
            f"p{place}": holds(each, lambda want: rows[tables.column(want)], numbers)
            for place, each in enumerate(conditions)
        }
        found = {row["target"]: row for row in engine.fetch(rows.select(target=rows.target, **columns))}
        edges = list(graph.out("a", Line))
        assert len(found) == len(edges) == 60
        for place, predicate in enumerate(asked):
            counts = predicate_test(layout, kind, predicate)
            expected = {edge.target for edge in edges if counts(edge)}
            assert {target for target, row in found.items() if row[f"p{place}"]} == expected, predicate
