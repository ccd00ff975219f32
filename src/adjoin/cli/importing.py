"""`adjoin import`: loads a file of another program into a graph, and continues an interrupted import.

The exit status is 0 if all records are loaded, and 3 if some were refused.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from adjoin.cli import graphs
from adjoin.cli.batch import declared
from adjoin.cli.command import IN_PART, Command, InvalidArguments, described, existing
from adjoin.cli.drawing import ProgressLine, counted, duration
from adjoin.cli.graphs import Classes
from adjoin.errors import AlreadyExists, InvalidValue, shown
from adjoin.exchange.loading import RefusedFile, load
from adjoin.exchange.mapping import Records
from adjoin.exchange.progress import ImportBinding, Imported, ImportState
from adjoin.exchange.readers import FORMATS, STDIN, format_of, open_reader
from adjoin.graph import Graph
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.locations import SERVICE, identity, table_named_by


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument(
        "source", metavar="SOURCE", help="a file, also gzipped, the folder of an export of DynamoDB, or - for stdin"
    )
    parser.add_argument(
        "kind", metavar="CLASS", nargs="?", help="the class of the records; JSON lines may name it themselves"
    )
    parser.add_argument("--format", choices=FORMATS, help="the format of the file (default: by its name)")
    parser.add_argument(
        "--map",
        metavar="COLUMN=FIELD",
        action="append",
        type=_mapped,
        default=[],
        help="a column whose name is not that of its field; may be repeated",
    )
    parser.add_argument(
        "--ignore", metavar="COLUMN", action="append", default=[], help="leave this column out; may be repeated"
    )
    parser.add_argument(
        "--refused", metavar="PATH", help="write refused records to this file (default: beside the source)"
    )
    parser.add_argument("--state", metavar="PATH", help="the file that stores the progress of an interrupted import")
    parser.add_argument("--dry-run", action="store_true", help="check all records, and load none")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _mapped(text: str) -> tuple[str, str]:
    column, equals, field = text.rpartition("=")
    if not equals or not column or not field:
        raise argparse.ArgumentTypeError(f"{text!r} is not a column with its field, such as Name=name")
    return column, field


def _check_order(arguments: argparse.Namespace) -> None:
    """Refuses words in another order, if a word that is no source is the name of one."""
    if arguments.source == STDIN or format_of(arguments.source) is not None:
        return
    for word in (arguments.location, arguments.module, arguments.kind):
        # A folder may be a package with the classes.
        if word is not None and format_of(word) is not None and not os.path.isdir(word):
            raise InvalidArguments(
                f"the file to load comes after the module and before the class; write: adjoin import LOCATION MODULE "
                f"{shown(word)} CLASS"
            )


def run(arguments: argparse.Namespace) -> int:
    _check_order(arguments)
    models, layout = declared(arguments)
    bound = bound_layout(models, layout, table_named_by(arguments.location), arguments.tenant)
    kind = None if arguments.kind is None else Classes(bound.schema).kind(arguments.kind)
    format = arguments.format or format_of(arguments.source)
    try:
        records = Records(bound, format or "", kind, dict(arguments.map), arguments.ignore) if format else None
    except InvalidValue as error:
        raise InvalidArguments(str(error)) from None
    with closing(open_reader(arguments.source, format)) as reader:
        assert records is not None
        records.check_columns(arguments.source, reader.columns)
        refused = RefusedFile(_refused_path(arguments, format), reader.columns, is_csv=format == "csv")
        line, began = ProgressLine(sys.stderr), time.monotonic()

        def show(done: Imported) -> None:
            if not arguments.quiet:
                line.show("checking" if arguments.dry_run else "importing", "records", done.records, reader.total)

        if arguments.location.startswith(SERVICE) and not arguments.dry_run:
            with existing(arguments.location) as store:
                # A graph opens without its table, so that it can be created.
                described(store, bound.table)
        # Everything is checked up to here, and nothing is created yet.
        location = ":memory:" if arguments.dry_run else arguments.location
        state = None if arguments.dry_run else _state(arguments, bound.table)
        begun = state.load() if state is not None else None
        if begun is None and refused.path.exists():
            raise AlreadyExists(f"{refused.path} has refused records of another import; remove it, or name --refused")
        if begun is not None and not arguments.quiet:
            print(f"adjoin: continuing after record {begun.records:,}", file=sys.stderr)
        with Graph(location, models, layout, tenant=arguments.tenant) as graph:
            try:
                done = load(graph, reader, records, refused, state, show)
            except BaseException:
                line.close()
                if state is not None and state.path.exists():
                    print("adjoin: the import is unfinished; run the same command again to continue", file=sys.stderr)
                raise
        line.close()
    _report(arguments, done, refused.path, time.monotonic() - began, begun)
    if state is not None:
        state.remove()
    return IN_PART if done.refused else 0


def _refused_path(arguments: argparse.Namespace, format: str | None) -> str:
    if arguments.refused is not None:
        return str(arguments.refused)
    source = "stdin" if arguments.source == STDIN else os.path.normpath(arguments.source)
    return f"{source}.refused.{'csv' if format == 'csv' else 'jsonl'}"


def _state(arguments: argparse.Namespace, table: str) -> ImportState | None:
    """The state beside the source; None for stdin, which cannot be read again."""
    if arguments.source == STDIN:
        if arguments.state is not None:
            raise InvalidArguments("--state is for files, because stdin cannot be read again; leave it out")
        return None
    found = os.stat(arguments.source)
    source, destination = os.path.realpath(arguments.source), identity(arguments.location)
    binding = ImportBinding(source, found.st_size, found.st_mtime, destination, table, arguments.kind)
    digest = blake2b("\0".join((source, destination, table)).encode(), digest_size=4).hexdigest()
    beside = f"{os.path.normpath(arguments.source)}.import-{digest}.json"
    return ImportState(arguments.state or Path(beside), binding)


def _report(
    arguments: argparse.Namespace, done: Imported, refused: Path, seconds: float, begun: Imported | None
) -> None:
    if arguments.json:
        where = str(refused) if done.refused else None
        print(json.dumps({"loaded": done.loaded, "refused": done.refused, "refused_file": where}), flush=True)
        return
    number = done.loaded - (begun.loaded if begun is not None else 0)
    rate = f", {number / seconds:,.0f} a second" if seconds > 1 else ""
    verb = "would load" if arguments.dry_run else "loaded"
    aside = f"; {counted(done.refused, 'record')} refused, with the reasons in {refused}" if done.refused else ""
    print(f"{verb} {counted(done.loaded, 'record')} in {duration(seconds)}{rate}{aside}", flush=True)


COMMAND = Command(
    "import",
    "loads a file of CSV, JSON lines or Parquet, or an export of DynamoDB, into a graph",
    add_arguments,
    run,
    takes_file=False,
)
