"""Tables and keys of a graph without a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adjoin import AdjacencyList, Graph, InvalidModel, InvalidValue, Node, aws
from adjoin.requests import DescribeTable, TableResponse
from adjoin.stores.sqlite import SQLiteStore
from examples import education, homes, invoices, people


@pytest.mark.parametrize("example", [education, homes, invoices, people])
def test_a_table_is_the_one_that_a_graph_makes(example: Any) -> None:
    table = aws.table(example.MODELS, example.LAYOUT)
    store = SQLiteStore(":memory:")
    with Graph(store, example.MODELS, example.LAYOUT):
        (response,) = store.execute([DescribeTable(table.name)])
        assert isinstance(response, TableResponse)
        assert response.definition == table
    assert aws.table(example.MODELS, example.LAYOUT, "Other") == replace(table, name="Other")


def test_without_a_layout_it_is_the_default() -> None:
    assert aws.table(education.MODELS).name == AdjacencyList().table == "adjoin"


def test_what_is_no_layout_or_no_class_is_refused() -> None:
    with pytest.raises(InvalidModel, match="'Education' is not a layout; pass one such as AdjacencyList"):
        aws.table(education.MODELS, "Education")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidModel, match=r"AdjacencyList is a class of layouts; pass an instance, such as Adj\w+\(\)"
    ):
        aws.table(education.MODELS, AdjacencyList)  # type: ignore[arg-type]
    with pytest.raises(InvalidModel, match=r'AdjacencyList\(table="app"\)$'):
        aws.table(education.MODELS, {"table": "Education"})  # type: ignore[arg-type]
    with pytest.raises(InvalidModel, match="models must be a list of Node and Edge classes"):
        aws.table(Node)  # type: ignore[arg-type]


class Person(Node):
    id: str


def test_leading_keys_are_partition_keys() -> None:
    assert aws.leading_key(Person.ref("a b#*"), [Person]) == "PERSON#a%20b%23*"
    student = education.SAMPLE[0]
    assert isinstance(student, Node)
    assert aws.leading_key(student, education.MODELS, education.LAYOUT) == "STUDENT#S1"
    with pytest.raises(InvalidValue, match="'S1' does not name a class"):
        aws.leading_key("S1", education.MODELS)  # type: ignore[arg-type]
    with pytest.raises(InvalidModel, match="Person is not a Node class of this graph"):
        aws.leading_key(Person.ref("1"), education.MODELS)
