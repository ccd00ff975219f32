"""`adjoin tables`: lists the tables of a file with their keys, indexes, items and size."""

from __future__ import annotations

import argparse

from adjoin.cli.command import Command, described, existing_file, table_names
from adjoin.cli.drawing import Column, draw
from adjoin.requests import TableResponse
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.units import KB, MB

_COLUMNS = (Column("table"), Column("keys"), Column("index"), Column("items", right=True), Column("size", right=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments besides the file."""


def run(arguments: argparse.Namespace) -> None:
    with existing_file(arguments.file) as store:
        tables = [described(store, name) for name in table_names(store)]
    if tables:
        print(draw(_COLUMNS, [_rows(table) for table in tables]))
    else:
        print("the file has no table yet")


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


COMMAND = Command("tables", "lists the tables of a file with their keys, indexes, items and size", add_arguments, run)
