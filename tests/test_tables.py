"""What follows from a table's definition."""

from __future__ import annotations

import pytest

from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput

PK, SK = KeyAttribute("PK"), KeyAttribute("SK")
TABLE, OWN = Throughput(5, 6), Throughput(1, 2)


@pytest.mark.parametrize(
    ("table", "index", "expected"),
    [
        (None, IndexDefinition("GSI", SK), None),
        (TABLE, IndexDefinition("GSI", SK), TABLE),
        (TABLE, IndexDefinition("GSI", SK, throughput=OWN), OWN),
        (TABLE, IndexDefinition("LSI", PK, KeyAttribute("x"), local=True), None),
    ],
)
def test_an_index_has_its_own_throughput_or_its_table_s(
    table: Throughput | None, index: IndexDefinition, expected: Throughput | None
) -> None:
    assert TableDefinition("T", PK, SK, (index,), throughput=table).index_throughput(index) == expected


def test_an_index_has_one_attribute_or_several() -> None:
    a, b, c, d = (KeyAttribute(each) for each in "abcd")
    assert IndexDefinition.over("GSI", [a], [b]) == IndexDefinition("GSI", a, b)
    assert IndexDefinition.over("GSI", [a]) == IndexDefinition("GSI", a)
    one = IndexDefinition("GSI", a, b)
    assert (one.partitions, one.sorts, one.keys, one.is_multi_attribute) == ((a,), (b,), (a, b), False)
    several = IndexDefinition.over("GSI", [a, b], [c, d], Projection("KEYS_ONLY"), throughput=OWN)
    assert several == IndexDefinition("GSI", a, c, Projection("KEYS_ONLY"), False, OWN, (b,), (d,))
    assert (several.partition, several.sort) == (a, c)
    assert (several.partitions, several.sorts, several.keys) == ((a, b), (c, d), (a, b, c, d))
    assert several.is_multi_attribute
    assert IndexDefinition.over("GSI", [a, b]) != IndexDefinition.over("GSI", [a], [b])
    assert IndexDefinition.over("GSI", [a, b]).sorts == ()


def test_a_table_has_the_keys_of_its_indexes_once() -> None:
    table = TableDefinition(
        "T", PK, SK, (IndexDefinition.over("GSI", [SK, KeyAttribute("x")], [PK, KeyAttribute("y")]),)
    )
    assert [key.name for key in table.key_attributes] == ["PK", "SK", "x", "y"]
    assert (table.partitions, table.sorts) == ((PK,), (SK,))
    assert TableDefinition("T", PK).sorts == ()
