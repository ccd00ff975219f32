"""What a lock allows: the version that was seen, and no mark of a delete that came since."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, Node, Version
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
