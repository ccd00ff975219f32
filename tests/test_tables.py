"""What follows from a table's definition."""

from __future__ import annotations

import pytest

from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition, Throughput

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
