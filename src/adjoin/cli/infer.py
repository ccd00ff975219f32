"""`adjoin infer`: writes a Python file with classes, a layout and access patterns for a table that exists."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing

from orjson import JSONDecodeError, loads

from adjoin.batch.exports import lines_of, open_export
from adjoin.cli.command import Command, InvalidArguments, chosen_table, described, existing_file
from adjoin.cli.drawing import counted
from adjoin.errors import AlreadyExists, InvalidExport, InvalidLocation, shown
from adjoin.inferring import Inferred, infer
from adjoin.inferring.sampling import chosen, definition_in, sampled, spread
from adjoin.locations import SERVICE, open_store, table_named_by
from adjoin.requests import TableResponse
from adjoin.runner import run as run_plan
from adjoin.stores.interface import Store
from adjoin.tables import TableDefinition
from adjoin.values import Item

SAMPLE = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "location", metavar="LOCATION", help="a file, dynamodb://TABLE, or the folder of an export of DynamoDB"
    )
    parser.add_argument("--table", metavar="T", help="the table; not needed if the file has only one")
    parser.add_argument(
        "--sample",
        metavar="N",
        type=_number,
        default=SAMPLE,
        help=f"read at most this many items (default: {SAMPLE:,})",
    )
    parser.add_argument("--keys", metavar="PK,SK", help="the keys of an exported table, if its items do not show them")
    parser.add_argument("--out", metavar="FILE", help="write the program into this file, which must not exist yet")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON instead of the program")


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or not int(text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number from 1 on")
    return int(text)


def run(arguments: argparse.Namespace) -> None:
    if arguments.out is not None and os.path.exists(arguments.out):
        raise AlreadyExists(f"the file {arguments.out} already exists; choose another name, or remove it")
    if os.path.isdir(arguments.location):
        definition, items, total = _of_export(arguments)
    elif arguments.keys is not None:
        raise InvalidArguments("--keys is for exports; a table has its keys itself")
    elif arguments.location.startswith(SERVICE):
        table = arguments.table or table_named_by(arguments.location)
        if table is None:
            raise InvalidLocation("name the table, as in dynamodb://Education, or with --table")
        with closing(open_store(arguments.location)) as store:
            definition, items, total = _of_table(store, described(store, table), arguments.sample)
    else:
        with existing_file(arguments.location) as store:
            definition, items, total = _of_table(store, chosen_table(store, arguments.table), arguments.sample)
    found = infer(definition, items, arguments.location, total)
    if arguments.out is not None:
        with open(arguments.out, "x", encoding="utf-8") as file:
            file.write(found.source)
    if arguments.json:
        print(json.dumps(_object(found), ensure_ascii=False, indent=2))
    elif arguments.out is None:
        print(found.source, end="")
    _summarize(found, arguments.out, to_stdout=arguments.out is not None and not arguments.json)


def _of_table(store: Store, table: TableResponse, number: int) -> tuple[TableDefinition, list[Item], int]:
    definition = table.definition
    if hasattr(store, "dump"):
        is_large = table.item_count > number
        plan = spread(definition, number) if is_large else sampled(definition, number, is_large=False)
    else:
        # DynamoDB counts items about every six hours, so a small number may be a large table by now.
        plan = sampled(definition, number, is_large=True)
    return definition, run_plan(plan, store), table.item_count


def _of_export(arguments: argparse.Namespace) -> tuple[TableDefinition, list[Item], int]:
    export = open_export(arguments.location)
    items = chosen([_items_in(name) for name in export.files], arguments.sample)
    keys = [name for name in (arguments.keys or "").split(",") if name]
    if len(keys) > 2:
        raise InvalidArguments(f"--keys takes the partition key and the sort key, got {arguments.keys!r}")
    return definition_in(arguments.table or export.table or "adjoin", items, keys), items, export.items


def _items_in(name: str) -> Iterator[Item]:
    for line in lines_of([name]):
        try:
            yield loads(line)["Item"]
        except (JSONDecodeError, KeyError, TypeError):
            raise InvalidExport(
                f"{name} has a line that is not an item in DynamoDB JSON; copy the export again"
            ) from None


def _object(found: Inferred) -> dict[str, object]:
    program = found.program
    return {
        "table": program.definition.name,
        "read": found.read,
        "explained": found.explained,
        "own": found.own,
        "classes": [
            {"name": each.name, "kind": each.kind, "items": each.count, "unsure": [*each.notes]}
            for each in program.classes
        ],
        "functions": [each.name for each in found.patterns],
        "unexplained": [{"items": number, "why": why} for why, number in found.unexplained],
        "unsure": [*program.notes],
    }


def _summarize(found: Inferred, out: str | None, *, to_stdout: bool) -> None:
    share = 100 * found.explained / found.read if found.read else 100.0
    number = len(found.program.classes)
    classes = "1 class" if number == 1 else f"{number:,} classes"
    explained = f"{found.explained:,} of {counted(found.read, 'item')} explained ({share:.1f} %)"
    line = f"table {found.program.definition.name}: {explained} by {classes}"
    print(f"{line}{f'; written to {out}' if out else ''}", file=sys.stdout if to_stdout else sys.stderr)


COMMAND = Command(
    "infer",
    "writes classes, a layout and access patterns for an existing table",
    add_arguments,
    run,
    takes_file=False,
)
