"""`adjoin export`: writes a table of a file in the format of DynamoDB's export to S3."""

from __future__ import annotations

import argparse
import sys

from adjoin.batch.exports import write_export
from adjoin.batch.sources import dump_of
from adjoin.cli.command import Command, chosen_table, existing_file
from adjoin.cli.drawing import ProgressLine, counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="the folder to write to; it may hold several exports")
    parser.add_argument("--table", metavar="T", help="the table; not needed if the file has only one")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> None:
    with existing_file(arguments.file) as store:
        described = chosen_table(store, arguments.table)
        table = described.definition.name
        line = ProgressLine(sys.stderr)

        def show(done: int) -> None:
            if not arguments.quiet:
                line.show(f"table {table}: exporting", "items", done, described.item_count)

        export = write_export(dump_of(store, table).lines(), arguments.folder, table, progress=show)
        line.close()
    print(f"table {table}: exported {counted(export.items, 'item')} to {export.place}")


COMMAND = Command("export", "writes a table in the format of DynamoDB's export to S3", add_arguments, run)
