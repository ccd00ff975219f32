"""`adjoin tables`: what tables a file holds, with their keys, indexes, items and size."""

from __future__ import annotations

import argparse

from adjoin.cli.command import Command, described, existing_file, table_names
from adjoin.cli.drawing import Column, draw
from adjoin.requests import TableResponse
from adjoin.tables import KeyAttribute
from adjoin.units import KB, MB

_COLUMNS = (Column("table"), Column("keys"), Column("index"), Column("items", right=True), Column("size", right=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file is all it takes."""


def run(arguments: argparse.Namespace) -> None:
    with existing_file(arguments.file) as store:
        tables = [described(store, name) for name in table_names(store)]
    if tables:
        print(draw(_COLUMNS, [_rows(table) for table in tables]))
    else:
        print("the file holds no table yet")


def _rows(table: TableResponse) -> list[list[str]]:
    """A line for the table, and one for each further index."""
    definition = table.definition
    indexes = [f"{index.name} ({_keys(index.keys)})" for index in definition.indexes] or [""]
    first = [definition.name, _keys(definition.keys), indexes[0], f"{table.item_count:,}", sized(table.size)]
    return [first, *(["", "", index, "", ""] for index in indexes[1:])]


def _keys(keys: tuple[KeyAttribute, ...]) -> str:
    return ", ".join(key.name if key.type == "S" else f"{key.name} ({key.type})" for key in keys)


def sized(size: int) -> str:
    """Bytes as a person reads them."""
    if size < KB:
        return f"{size} B"
    return f"{size / KB:,.1f} KB" if size < MB else f"{size / MB:,.1f} MB"


COMMAND = Command("tables", "lists the tables with their keys, indexes, items and size", add_arguments, run)
