"""Which parts of a class stored items lack when an index is added."""

from __future__ import annotations

from typing import Annotated

import pytest

from adjoin import AdjacencyList, Index, Indexed, Keys, Node
from adjoin.layouts.forms import FormPart
from adjoin.plans.declared import _over
from adjoin.schema import Schema


class Person(Node):
    id: str
    town: str = ""
    name: Annotated[str, Indexed()] = ""
    born: Annotated[int, Indexed()] = 0


MADE: FormPart = ("index", "Made")
MIXED: FormPart = ("index", "Mixed")
FIELDS: list[FormPart] = [("indexed", "name"), ("indexed", "born")]


@pytest.mark.parametrize(
    ("added", "lacked"),
    [
        (set(), []),
        # DynamoDB fills an index over attributes that items have.
        ({"Plain"}, []),
        ({"Made"}, [MADE]),
        # One attribute that they lack is enough.
        ({"Mixed"}, [MIXED]),
        ({"Plain", "Mixed", "Made"}, [MADE, MIXED]),
        ({"GSI3"}, FIELDS),
        ({"Made", "GSI3"}, [MADE, *FIELDS]),
        ({"Another"}, []),
    ],
)
def test_what_items_lack_under_an_added_index(added: set[str], lacked: list[FormPart]) -> None:
    layout = AdjacencyList(
        reverse=None,
        indexes=[Index("Plain", "town", "name"), Index("Made", "MadePK", "MadeSK"), Index("Mixed", "town", "MixedSK")],
        keys={Person: Keys(indexes={"Made": ("t#{town}", "n#{name}"), "Mixed": (None, "b#{born}")})},
    ).bind(Schema([Person]))
    assert layout.overloaded is not None
    assert layout.overloaded.name == "GSI3"
    (form,) = layout.forms().values()
    assert sorted(_over(layout, form, added)) == sorted(lacked)


class Unindexed(Node):
    id: str


def test_what_items_lack_where_no_field_is_indexed() -> None:
    layout = AdjacencyList(
        reverse=None, indexes=[Index("Made", "MadePK")], keys={Unindexed: Keys(indexes={"Made": "i#{id}"})}
    ).bind(Schema([Unindexed]))
    assert layout.overloaded is None
    (form,) = layout.forms().values()
    assert _over(layout, form, {"Made"}) == [MADE]
