"""Refs as values of fields, and the keys of edges whose ends are of several classes."""

from __future__ import annotations

import datetime as dt
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin import Child, Edge, InvalidKey, Node
from adjoin.schema import Schema
from tests.unions import LAYOUTS, MODELS, Comment, Liked, Line, Post, User, sources, texts

# --- refs as values ----------------------------------------------------------------------------


def test_a_ref_is_dumped_and_validated() -> None:
    class Event(Node):
        id: UUID

    class Slot(Child[Event], key=("at",)):
        at: dt.date

    class Booked(Edge[User, Event | Slot]):
        pass

    id = UUID(int=7)
    for target in (Event.ref(id), Slot.ref((id, dt.date(2024, 1, 2)))):
        booked = Booked(source="ann", target=target)
        assert Booked.model_validate_json(booked.model_dump_json()) == booked
        assert Booked.model_validate(booked.model_dump()) == booked
        assert len({booked.target, target}) == 1
    assert Booked(source="ann", target=Event.ref(str(id))).target == Event.ref(id)
    assert Booked(source="ann", target=Event.ref(id)).model_dump() == {
        "source": "ann",
        "target": {"model": "Event", "id": id},
    }
    assert Booked.model_json_schema()["properties"]["target"]["required"] == ["model", "id"]
    with pytest.raises(InvalidKey, match="must be a Event or a Slot, got a User"):
        Booked.model_validate({"source": "ann", "target": {"model": "User", "id": "ann"}})


# --- keys --------------------------------------------------------------------------------------

refs = st.one_of(
    st.builds(Post.ref, texts),
    st.builds(Comment.ref, st.integers(0, 999_999)),
    st.builds(Line.ref, st.tuples(texts, st.integers(-5, 5))),
)

BOUND = {
    (name, tenant): layout.bind(Schema(MODELS), tenant) for name, layout in LAYOUTS.items() for tenant in (None, "acme")
}


@pytest.mark.parametrize("bound", BOUND.values(), ids=map(str, BOUND))
@given(data=st.data())
def test_distinct_ends_have_distinct_keys_and_are_read_back(bound: Any, data: st.DataObject) -> None:
    kind = bound.schema.edge(Liked)
    one, other = (data.draw(st.tuples(sources, refs)) for _ in range(2))
    keys = [bound.edge_key(kind, *ends, {}) for ends in (one, other)]
    assert (keys[0] == keys[1]) is (one == other)
    for source, target in (one, other):
        edge = Liked(source=source, target=target, at=1)
        (item,) = bound.items(edge)
        assert bound.kind_of(item) is kind
        assert bound.read(item) == edge
        assert bound.id_in(kind.target, bound.node_text(kind.target, target)) == target
        assert bound.ends(kind, item) == (bound.node_text(kind.source, source), bound.node_text(kind.target, target))
