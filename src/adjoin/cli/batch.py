"""What `adjoin maintain`, `rebuild` and `verify` share: arguments that name the graph and the source of its items."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from adjoin import AdjacencyList
from adjoin.cli.command import chosen_table, error_line, existing_file, imported, layout_in, models_in
from adjoin.cli.drawing import ProgressLine
from adjoin.errors import AdjoinError
from adjoin.graph import Graph
from adjoin.locations import FileLocation, parse_location

NOT_CARRIED_OUT = 2
"""The exit status if the command failed, so that it says nothing about the table."""


def add_graph(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a graph."""
    parser.add_argument("location", metavar="LOCATION", help="a file, or a table such as dynamodb://Education")
    parser.add_argument("module", metavar="MODULE", help="the module with your classes, or MODULE:LAYOUT")
    parser.add_argument(
        "--models", metavar="NAME", help="the list of classes in the module (default: all its Node and Edge classes)"
    )
    parser.add_argument(
        "--tenant", metavar="T", help="use the graph of this tenant (default: all tenants of the table)"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_graph(parser)
    parser.add_argument(
        "--from",
        metavar="EXPORT",
        dest="source",
        help="read this export, a folder or s3://…, or 'scan' to read the table item by item (default: read the file)",
    )
    parser.add_argument(
        "--engine",
        choices=("duckdb", "spark"),
        default="duckdb",
        help="the engine that computes: duckdb (the default) or spark",
    )
    parser.add_argument(
        "--memory",
        metavar="M",
        help="for duckdb: the memory it may use (default: 1GB); data that does not fit goes to disk",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def carried_out(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Wraps a command whose exit status 1 means that it found something: every error then gets status 2."""

    @wraps(run)
    def status(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except BrokenPipeError:
            # The reader closed the pipe. `main` handles that for all commands.
            raise
        except (AdjoinError, OSError) as error:
            print(error_line(error), file=sys.stderr)
        except Exception:
            # Python itself would exit with 1, which means here that something was found.
            traceback.print_exc()
        return NOT_CARRIED_OUT

    return status


@contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[Graph]:
    models, layout = declared(arguments)
    check_there(arguments.location, (layout or AdjacencyList()).table)
    with Graph(arguments.location, models, layout, tenant=arguments.tenant) as graph:
        yield graph


def declared(arguments: argparse.Namespace) -> tuple[list[Any], Any]:
    """The classes and the layout in the module that the arguments name; None for the default layout."""
    name, _, layout_name = arguments.module.partition(":")
    module = imported(name)
    return models_in(module, arguments.models), layout_in(module, layout_name)


def check_there(location: str, table: str) -> None:
    """Refuses a missing file or table. A graph would create it, and a check of an empty table finds no fault."""
    place = parse_location(location)
    if isinstance(place, FileLocation):
        with existing_file(place.path) as store:
            chosen_table(store, table)


def options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"memory": arguments.memory} if arguments.memory else {}


@contextmanager
def shown(arguments: argparse.Namespace) -> Iterator[Callable[[str, int], None] | None]:
    """A callback that shows progress on stderr; None with --quiet."""
    line = ProgressLine(sys.stderr)
    try:
        yield None if arguments.quiet else (lambda name, done: line.show(name, "nodes", done, 0))
    finally:
        line.close()
