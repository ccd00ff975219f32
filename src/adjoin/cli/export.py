"""`adjoin export`: writes a table in the format of DynamoDB's export to S3, or nodes and edges to a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

from adjoin.batch.exports import write_export
from adjoin.batch.sources import dump_of
from adjoin.cli import graphs
from adjoin.cli.command import Command, InvalidArguments, chosen_table, existing_file
from adjoin.cli.drawing import ProgressLine, counted
from adjoin.errors import shown
from adjoin.exchange.readers import FORMATS, format_of
from adjoin.exchange.writers import write_entities
from adjoin.graph_exports import ExportedGraph, graphml, neptune

_WHOLE: dict[str, Callable[..., ExportedGraph]] = {"graphml": graphml, "neptune": neptune}
"""Formats of other graph databases, which have a whole graph."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", metavar="LOCATION", help="a file, or a table such as dynamodb://Education")
    parser.add_argument(
        "destination",
        metavar="DESTINATION",
        help="a file that ends with .csv, .jsonl (both also with .gz), .parquet or .graphml; else a folder, which may "
        "hold several exports in DynamoDB's format, or a new one for --format neptune",
    )
    parser.add_argument("module", metavar="MODULE", nargs="?", help="for a file: the module with your classes")
    parser.add_argument(
        "kind", metavar="CLASS", nargs="?", help="for a file: the class to write; JSON lines take all classes"
    )
    parser.add_argument("--format", choices=(*FORMATS, *_WHOLE), help="the format (default: by the name)")
    parser.add_argument(
        "--models", metavar="NAME", help="the list of classes in the module (default: all its Node and Edge classes)"
    )
    parser.add_argument(
        "--tenant", metavar="T", help="use the graph of this tenant (default: the one without a tenant)"
    )
    parser.add_argument("--table", metavar="T", help="for a folder: the table; not needed if the file has only one")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> None:
    named = _named_by(arguments.destination)
    for word in (arguments.module, arguments.kind):
        if named is None and word is not None and _named_by(word) is not None:
            raise InvalidArguments(
                f"the file comes before the module; write: adjoin export LOCATION {shown(word)} MODULE CLASS"
            )
    format = arguments.format or named or "dynamodb"
    if format == "dynamodb":
        _export_table(arguments)
    elif arguments.module is None:
        raise InvalidArguments(
            f"{shown(arguments.destination)} is a file of nodes and edges; name the module with your classes after it"
        )
    elif arguments.table is not None:
        raise InvalidArguments("--table is for folders; for a file, the layout in your module names the table")
    elif format not in _WHOLE:
        _export_graph(arguments, format)
    elif arguments.kind is not None:
        raise InvalidArguments(f"a {format} export has the whole graph; leave the class out")
    else:
        _export_whole(arguments, _WHOLE[format])


def _named_by(path: str) -> str | None:
    """The format that a name tells; None if it is that of a folder, or tells none."""
    found = "graphml" if path.endswith(".graphml") else format_of(path)
    return None if found == "dynamodb" else found


def _export_table(arguments: argparse.Namespace) -> None:
    if arguments.module is not None:
        raise InvalidArguments("an export in DynamoDB's format has all items of a table; leave the module out")
    with existing_file(arguments.location) as store:
        table = chosen_table(store, arguments.table)
        name = table.definition.name
        line = ProgressLine(sys.stderr)

        def show(done: int) -> None:
            if not arguments.quiet:
                line.show(f"table {name}: exporting", "items", done, table.item_count)

        export = write_export(dump_of(store, name).lines(), arguments.destination, name, progress=show)
        line.close()
    if arguments.json:
        print(json.dumps({"exported": export.items, "to": str(export.place)}))
    else:
        print(f"table {name}: exported {counted(export.items, 'item')} to {export.place}")


def _export_graph(arguments: argparse.Namespace, format: str) -> None:
    line = ProgressLine(sys.stderr)

    def show(done: int) -> None:
        if not arguments.quiet:
            line.show("exporting", "nodes and edges", done, 0)

    with graphs.opened(arguments) as asked:
        kind = None if arguments.kind is None else asked.kind(arguments.kind)
        if kind is None and format != "jsonl":
            raise InvalidArguments(f"the rows of a {format} file are of one class; name it after the module")
        entities = asked.graph.scan() if kind is None else asked.graph.scan(kind.model)
        number = write_entities(entities, arguments.destination, format, kind, show)
    line.close()
    what = "node or edge" if kind is None else kind.name
    if arguments.json:
        print(json.dumps({"exported": number, "to": arguments.destination}))
    else:
        plural = "nodes and edges" if kind is None else what
        print(f"exported {number:,} {what if number == 1 else plural} to {arguments.destination}")


def _export_whole(arguments: argparse.Namespace, write: Callable[..., ExportedGraph]) -> None:
    line = ProgressLine(sys.stderr)

    def show(done: int) -> None:
        if not arguments.quiet:
            line.show("exporting", "nodes and edges", done, 0)

    with graphs.opened(arguments) as asked:
        export = write(asked.graph, arguments.destination, progress=show)
    line.close()
    if arguments.json:
        files = [str(each) for each in export.files]
        print(json.dumps({"nodes": export.nodes, "edges": export.edges, "to": arguments.destination, "files": files}))
    else:
        what = f"{counted(export.nodes, 'node')} and {counted(export.edges, 'edge')}"
        print(f"exported {what} to {arguments.destination}")


COMMAND = Command(
    "export", "writes a table in DynamoDB's export format, or nodes and edges to a file", add_arguments, run, False
)
