"""Fields that only the key of an index holds: what a rebuild computes from them is what was maintained."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated

from adjoin import AdjacencyList, Edge, Graph, Index, Keys, Node, field
from adjoin.aggregates import Count, Latest, Max


class Depot(Node):
    id: str
    late: Annotated[int, Count("Sent", where=field("state") == "late")] = 0
    last: Annotated[str | None, Max("Sent", field="state")] = None
    newest: Annotated[dt.datetime | None, Latest("Sent", field="at", by="at")] = None


class Parcel(Node):
    id: str


class Sent(Edge[Depot, Parcel]):
    state: str
    at: dt.datetime


LAYOUT = AdjacencyList(
    indexes=[Index("ByState", "StatePK", "StateSK")],
    keys={Sent: Keys(indexes={"ByState": ("s#{state}", "{at}#{target}")}, only_in_keys=["state", "at"])},
)


def test_a_rebuild_reads_fields_that_only_an_index_key_holds(tmp_path: Path) -> None:
    with Graph(tmp_path / "graph.db", [Depot, Parcel, Sent], LAYOUT) as graph:
        noon = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
        graph.put_many([Depot(id="D"), *(Parcel(id=each) for each in "abc")])
        for target, state, hours in (("a", "late", 1), ("b", "lost", 3), ("c", "late", 2)):
            graph.put(Sent(source="D", target=target, state=state, at=noon + dt.timedelta(hours=hours)))
        graph.maintain(once=True)
        maintained = graph.get(Depot, "D")
        assert maintained == Depot(id="D", late=2, last="lost", newest=noon + dt.timedelta(hours=3))
        assert graph.verify(threads=1).findings == ()
        assert [result.differ for result in graph.rebuild(threads=1).results] == [0, 0, 0]
        assert graph.get(Depot, "D") == maintained
