"""`adjoin tables`: lists the tables of a file, or of a region, with their keys, indexes, items and size."""

from __future__ import annotations

import argparse
import json
from typing import Any

from adjoin.cli.command import Command, described, existing, table_names
from adjoin.cli.drawing import Column, draw
from adjoin.locations import table_named_by
from adjoin.requests import TableResponse
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.units import KB, MB

_COLUMNS = (Column("table"), Column("keys"), Column("index"), Column("items", right=True), Column("size", right=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "location", metavar="LOCATION", help="a file, a table such as dynamodb://Education, or dynamodb:// for all"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per table and line")


def run(arguments: argparse.Namespace) -> None:
    named = table_named_by(arguments.location)
    with existing(arguments.location) as store:
        tables = [described(store, name) for name in ([named] if named else table_names(store))]
    if arguments.json:
        for table in tables:
            print(json.dumps(_object(table)))
    elif tables:
        print(draw(_COLUMNS, [_rows(table) for table in tables]))
    else:
        print("there is no table yet")


def _object(table: TableResponse) -> dict[str, Any]:
    definition = table.definition
    return {
        "table": definition.name,
        **_key_object(definition),
        "indexes": [{"index": index.name, **_key_object(index)} for index in definition.indexes],
        "items": table.item_count,
        "bytes": table.size,
    }


def _key_object(holder: TableDefinition | IndexDefinition) -> dict[str, Any]:
    keys = {"partition_key": holder.partitions, "sort_key": holder.sorts}
    return {name: [{"name": key.name, "type": key.type} for key in found] for name, found in keys.items()}


def _rows(table: TableResponse) -> list[list[str]]:
    """One row for the table with its first index, and one row for each further index."""
    definition = table.definition
    indexes = [f"{index.name} ({_keys(index)})" for index in definition.indexes] or [""]
    first = [definition.name, _keys(definition), indexes[0], f"{table.item_count:,}", sized(table.size)]
    return [first, *(["", "", index, "", ""] for index in indexes[1:])]


def _keys(holder: TableDefinition | IndexDefinition) -> str:
    """The partition key and the sort key; a plus sign joins the attributes of a key that has several."""
    return ", ".join(" + ".join(map(_key, keys)) for keys in (holder.partitions, holder.sorts) if keys)


def _key(key: KeyAttribute) -> str:
    return key.name if key.type == "S" else f"{key.name} ({key.type})"


def sized(size: int) -> str:
    """A number of bytes with a unit that suits it, such as "1.2 KB"."""
    if size < KB:
        return f"{size} B"
    return f"{size / KB:,.1f} KB" if size < MB else f"{size / MB:,.1f} MB"


COMMAND = Command(
    "tables",
    "lists the tables of a file or a region with their keys, indexes, items and size",
    add_arguments,
    run,
    takes_file=False,
)
