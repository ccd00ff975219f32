"""`adjoin shards`: shows how many shards the indexes of a table have, and raises these numbers.

It works also where a graph could not be opened, because its classes declare a higher number than the table has.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from adjoin import AdjacencyList
from adjoin.cli.batch import check_there
from adjoin.cli.command import Command, InvalidArguments, imported, layout_in, models_in
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.interface import Layout
from adjoin.locations import open_store, table_named_by
from adjoin.plans.shards import IndexShards, index_shards, raise_shards
from adjoin.runner import run as perform


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", metavar="LOCATION", help="a file, or a table such as dynamodb://Education")
    parser.add_argument("module", metavar="MODULE", help="the module with your classes, or MODULE:LAYOUT")
    parser.add_argument(
        "wanted", metavar="INDEX=N", nargs="*", type=_wanted, help="raise the number of shards of this index to N"
    )
    parser.add_argument(
        "--models", metavar="NAME", help="the list of classes in the module (default: all its Node and Edge classes)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per index and line")


def _wanted(text: str) -> tuple[str, int]:
    index, _, number = text.rpartition("=")
    if not index or not (number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not an index with a number of shards, such as GSI1=8")
    return index, int(number)


def run(arguments: argparse.Namespace) -> None:
    name, _, layout_name = arguments.module.partition(":")
    module = imported(name)
    models, layout = models_in(module, arguments.models), layout_in(module, layout_name)
    check_there(arguments.location, (layout or AdjacencyList()).table)
    found = _shards_of(arguments.location, models, layout, arguments.wanted)
    if not found:
        raise InvalidArguments(f"no index of the layout in {name} has shards; name another layout")
    for each in found:
        print(json.dumps(asdict(each)) if arguments.json else each)


def _shards_of(
    location: str,
    models: Iterable[type[Any]],
    layout: Layout | None = None,
    wanted: Iterable[tuple[str, int]] = (),
) -> list[IndexShards]:
    """Raises numbers of shards, by index, and returns the shards of all indexes that can have a number of them.

    No graph is opened: its classes may declare more shards than the table has, and a graph of them would be refused.
    """
    bound = bound_layout(models, layout, table_named_by(location))
    store = open_store(location)
    try:
        for index, number in wanted:
            perform(raise_shards(bound, index, number), store)
        return perform(index_shards(bound), store)
    finally:
        store.close()


COMMAND = Command(
    "shards",
    "shows how many shards the indexes of a table have, and raises these numbers",
    add_arguments,
    run,
    takes_file=False,
)
