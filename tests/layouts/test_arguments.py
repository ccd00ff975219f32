"""What a layout is given: arguments of other types than it takes are refused with what it takes."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AdjacencyList, Graph, Index, InvalidModel, Keys, Node


class User(Node):
    id: int
    name: str = "x"


KEYS: Any = Keys


def index(**more: Any) -> Index:
    return Index("ByName", "name", **more)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"indexes": [index(projection="KEYS_ONLY")]}, "projection= of the index 'ByName' takes a value such as"),
        ({"indexes": [index(projection=["name"])]}, r"Projection\(\"KEYS_ONLY\"\), got \['name'\]"),
        ({"indexes": [index(types="N")]}, "types= of the index 'ByName' takes a map"),
        ({"indexes": ["ByName"]}, r"indexes= takes Index\(…\) values, got 'ByName'"),
        ({"indexes": index()}, r"indexes= takes a list of Index\(…\) values"),
        ({"indexes": "ByName"}, r"indexes= takes a list of Index\(…\) values"),
        ({"indexes": 7}, r"indexes= takes a list of Index\(…\) values"),
        ({"types": "N"}, "types= of the layout takes a map"),
        ({"keys": [User]}, r"keys= takes a map from classes to Keys\(…\)"),
        ({"keys": {"User": Keys("u#{id}")}}, "keys= names 'User', which is not a class of this graph"),
        ({"keys": {User: "u#{id}"}}, r"keys= takes Keys\(…\) for User, got 'u#{id}'"),
        ({"keys": {User: KEYS(7)}}, r"Keys\(partition=…\) of User takes a template as text, got 7"),
        ({"keys": {User: KEYS(indexes=["ByName"])}}, r"Keys\(indexes=…\) of User takes a map"),
        ({"keys": {User: KEYS(attributes="a")}}, r"Keys\(attributes=…\) of User takes a map"),
        (
            {"indexes": [index()], "keys": {User: KEYS(indexes={"ByName": None})}},
            "takes one template or two for 'ByName'",
        ),
        ({"keys": {User: Keys(only_in_keys="name")}}, r"Keys\(only_in_keys=…\) of User takes a list of names"),
    ],
)
def test_arguments_of_other_types(given: Any, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        Graph(":memory:", [User], AdjacencyList(**given))
