"""What an audit refuses to read, what it finds of items that others wrote, and repairs that fail one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjoin import Graph, InvalidExport, Node
from adjoin.batch.exports import SUMMARY, write_export
from adjoin.batch.sources import dump_of


class Thing(Node):
    id: str
    size: int = 0


def exported(graph: Graph, folder: Path, table: str = "adjoin") -> Path:
    lines = dump_of(graph._store, graph._layout.table).lines()
    return Path(write_export(lines, folder, table).place)


# --- exports -----------------------------------------------------------------------------------


def test_an_export_of_another_table_is_refused(tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Thing]) as graph:
        graph.put(Thing(id="a"))
        other = exported(graph, tmp_path, "Other")
        message = "an export of the table 'Other', and this graph is in the table 'adjoin'; name an export of 'adjoin'"
        for work in (graph.verify, graph.rebuild):
            with pytest.raises(InvalidExport, match=message):
                work(other, threads=1)


@pytest.mark.parametrize("arn", ["", None, "arn:aws:dynamodb:eu-west-1:123456789012:table/adjoin"])
def test_an_export_that_does_not_tell_its_table_is_read(tmp_path: Path, arn: Any) -> None:
    with Graph(tmp_path / "g.db", [Thing]) as graph:
        graph.put(Thing(id="a"))
        summary = exported(graph, tmp_path, "Other") / SUMMARY
        summary.write_text(json.dumps(json.loads(summary.read_text()) | {"tableArn": arn}))
        summary.with_suffix(".checksum").unlink()
        assert graph.verify(tmp_path, threads=1).counts == {"THING": 1}
