"""What a lock allows: the version that was seen, and no mark of a delete that came since."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import Child, ConditionFailed, Edge, Graph, Node, Version
from adjoin.evaluate import condition_test
from adjoin.layouts.interface import DELETING
from adjoin.plans.versions import Seen, as_seen


class Plain(Node):
    id: str
    revision: Annotated[int, Version()] = 0


class Named(Edge[Plain, Plain], key=("term",)):
    term: str
    revision: Annotated[int, Version()] = 0


@pytest.mark.parametrize(("model", "can_be_hidden"), [(Plain, False), (Named, True)])
def test_what_was_seen_has_no_mark_either(model: type[Any], can_be_hidden: bool) -> None:
    """A delete that hides an edge, between the look and the put, must not be overwritten."""
    with Graph(":memory:", [Plain, Named]) as g:
        layout = g._layout
        (kind,) = (each for each in layout.schema.types if each.model is model)
        assert kind.can_be_hidden == can_be_hidden
        version = kind.attributes[kind.version or ""]
        item: dict[str, Any] = {"PK": {"S": "a"}, "SK": {"S": "b"}, version: {"N": "3"}}
        hidden = {**item, DELETING: {"SS": ["token"]}}
        seen = condition_test(as_seen(layout, kind, Seen(3)))
        assert [seen(each) for each in (item, hidden)] == [True, not can_be_hidden]
        marked = condition_test(as_seen(layout, kind, Seen(3, hidden[DELETING])))
        assert [marked(each) for each in (item, hidden)] == [False, True]


class Desk(Node):
    id: str
    note: str = ""
    revision: Annotated[int, Version()] = 0


class Drawer(Child[Desk], key=("place",)):
    place: int


class Holds(Edge[Drawer, Plain]):
    pass


def test_children_stay_with_a_node_that_is_not_in_the_version_that_was_read() -> None:
    """Those with edges go one by one, before the node, so its version is looked at first."""
    with Graph(":memory:", [Plain, Desk, Drawer, Holds]) as g:
        g.put_many([Desk(id="d"), Drawer(parent="d", place=1), Plain(id="p")])
        read = g.get(Desk, "d")
        assert read is not None
        g.update(Desk, "d", note="new")
        with pytest.raises(ConditionFailed):
            g.delete(read)
        assert [drawer.place for drawer in g.children("d", Drawer)] == [1]
        assert g.delete(Desk, "d") is True
        assert list(g.children("d", Drawer)) == []
