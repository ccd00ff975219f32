"""A move into another table, for classes with every mark: the same queries give the same answers there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import computed_field

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    Copy,
    Count,
    Edge,
    Graph,
    Indexed,
    MaterializedGraph,
    Node,
    Stored,
    field,
)
from adjoin.layouts.interface import Layout


class Writer(Node):
    id: str
    name: str = "x"
    tags: Annotated[list[str], Indexed(elements=True)] = []
    wrote: Annotated[int, Count("Wrote"), Indexed()] = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def short(self) -> Annotated[str, Stored()]:
        return self.name[:1]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def loud(self) -> Annotated[str, Indexed()]:
        return self.name.upper()


class Work(Node):
    id: str


class Wrote(Edge[Writer, Work], order="name"):
    name: Annotated[str, Copy("source.name")] = ""


class Read(Edge[Writer, Work]):
    name: Annotated[str, Copy("source.name"), Indexed()] = ""
    place: Annotated[str, Indexed()] = "home"


class Met(Edge[Writer, Writer], symmetric=True, order="name"):
    name: Annotated[str, Copy("target.name")] = ""


class Owns(Edge[Writer, Work], one_target=True):
    pass


MODELS: list[type[Any]] = [Writer, Work, Wrote, Read, Met, Owns]
ASKED: list[Callable[[Graph], Any]] = [
    lambda g: [edge.source for edge in g.into("B", Wrote)],
    lambda g: [edge.name for edge in g.out("A1", Wrote)],
    lambda g: sorted(edge.source for edge in g.find(Read, field("name") >= "n")),
    lambda g: g.find(Read, field("place") == "home").count(),
    lambda g: [[edge.target for edge in g.out(f"A{at}", Met)] for at in range(4)],
    lambda g: sorted(each.id for each in g.find(Writer, field("tags").contains("t1"))),
    lambda g: g.find(Writer, field("loud") == "N1").count(),
    lambda g: g.scan(Writer).where(field("short") == "n").count(),
    lambda g: sorted((each.wrote, each.id) for each in g.find(Writer, order="wrote")),
]


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("is_back", [False, True])
def test_every_mark_holds_in_the_new_table(*, is_back: bool, tenant: str | None) -> None:
    layouts: list[Layout] = [AdjacencyList(table="Plain"), MaterializedGraph(table="Other")]
    old, new = (Graph(":memory:", MODELS, layout) for layout in (layouts[::-1] if is_back else layouts))
    before, after = (g if tenant is None else g.for_tenant(tenant) for g in (old, new))
    before.put_many([Work(id="B"), *(Writer(id=f"A{at}", name=f"n{-at % 4}", tags=[f"t{at % 2}"]) for at in range(4))])
    before.put_many([each(source=f"A{at}", target="B") for each in (Wrote, Read) for at in range(3)])
    before.put_many(Met(source="A0", target=f"A{at}") for at in range(1, 4))
    before.put(Owns(source="A0", target="B"))
    assert not old.migrate(into=new).ended
    before.put_many([Wrote(source="A3", target="B"), Read(source="A3", target="B")])
    assert old.migrate(into=new, finish=True).ended
    old.maintain(once=True)
    answers = [ask(before) for ask in ASKED]
    assert all(answers)
    assert [ask(after) for ask in ASKED] == answers
    with pytest.raises(AlreadyExists):
        after.put(Owns(source="A0", target="C"))
