"""Two keys of which one is fixed, and the other could be it: the remedy names a bound that excludes it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, InvalidModel, Keys, Node
from adjoin.schema import Schema


class Model(Node):
    id: str


class Version(Node, key=("model", "number")):
    model: str
    number: int


class Build(Node, key=("model", "number", "build")):
    model: str
    number: int
    build: int


class Moment(Node, key=("model", "at")):
    model: str
    at: dt.datetime


class Word(Node, key=("model", "word")):
    model: str
    word: str


class Used(Edge[Model, Version], key=("count",)):
    count: int
    rank: int = 0


class Named(Edge[Model, Version], key=("note",)):
    note: str


PLAIN = "change a label or a template"


@pytest.mark.parametrize(
    ("fixed", "model", "sort", "remedy"),
    [
        ("v0", Version, "v{number}", f"{PLAIN}, or give Version.number a bound that excludes it, such as Field(ge=1)"),
        # The last of several numbers, as the others are mostly numbers of something else.
        (
            "1#2",
            Build,
            "{number}#{build}",
            f"{PLAIN}, or give Build.build a bound that excludes it, such as Field(ge=1)",
        ),
        ("w", Word, "{word}", PLAIN),
    ],
)
def test_a_number_or_a_moment_can_have_a_bound(fixed: str, model: Any, sort: str, remedy: str) -> None:
    for models in ([Model, model], [model, Model]):
        layout = AdjacencyList(keys={Model: Keys("m|{id}", fixed), model: Keys("m|{model}", sort)})
        with pytest.raises(InvalidModel) as refused:
            layout.bind(Schema(models))
        assert str(refused.value).endswith(f"; {remedy}")


def test_a_moment_in_a_number_can_have_a_bound() -> None:
    keys: dict[type[Any], Keys] = {Model: Keys("m|{id}", "0"), Moment: Keys("m|{model}", "{at:epoch}")}
    layout = AdjacencyList(types={"SK": "N"}, reverse=None, keys=keys)
    with pytest.raises(InvalidModel) as refused:
        layout.bind(Schema([Model, Moment]))
    bound = "Field(gt=datetime(1970, 1, 1, tzinfo=UTC))"
    assert str(refused.value).endswith(f"; {PLAIN}, or give Moment.at a bound that excludes it, such as {bound}")


def test_two_open_keys_have_no_such_remedy() -> None:
    layout = AdjacencyList(keys={Version: Keys("m|{model}", "{number}"), Word: Keys("m|{model}", "{word}")})
    with pytest.raises(InvalidModel, match=r"^Version and Word can have the same .*; change a label or a template$"):
        layout.bind(Schema([Version, Word]))


@pytest.mark.parametrize(
    ("edge", "node", "sort", "remedy"),
    [
        (Used, "v0", "v{count}", ", or give Used.count a bound that excludes it, such as Field(ge=1)"),
        (Used, "v0#x", "v{count}#{target.model}", ", or give Used.count a bound that excludes it, such as Field(ge=1)"),
        # What is no part of the identity needs no bound, and a number at the other end has its bound there.
        (Used, "w#0#0", "w#{count}#{rank}", ", or give Used.count a bound that excludes it, such as Field(ge=1)"),
        (Named, "w#0", "{note}#{target.number}", ""),
    ],
)
def test_the_key_of_an_edge_that_can_be_that_of_its_node(edge: Any, node: str, sort: str, remedy: str) -> None:
    attributes = {"model": "{target.model}", "number": "{target.number}"}
    layout = AdjacencyList(
        reverse=None,
        keys={
            Model: Keys("m|{id}", node),
            Version: Keys("x|{model}", "{number}"),
            edge: Keys(sort=sort, attributes=attributes),
        },
    )
    with pytest.raises(InvalidModel) as refused:
        layout.bind(Schema([Model, Version, edge]))
    assert str(refused.value).endswith(f"the sort key of Model itself; change one of the templates{remedy}")
