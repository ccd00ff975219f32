"""What `adjoin maintain`, `rebuild` and `verify` share: the graph they are about, and where they read."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from adjoin import AdjacencyList
from adjoin.cli.command import chosen_table, existing_file, told
from adjoin.cli.modules import imported, layout_in, models_in
from adjoin.cli.progress import ProgressLine
from adjoin.errors import AdjoinError
from adjoin.graph import Graph
from adjoin.stores.locations import FileLocation, parse_location

NOT_CARRIED_OUT = 2
"""The exit status if nothing can be said about the table."""


def add_graph(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a graph."""
    parser.add_argument("location", metavar="LOCATION", help="the file, or the table as in dynamodb://Education")
    parser.add_argument("module", metavar="MODULE", help="the module with your classes, or MODULE:LAYOUT")
    parser.add_argument("--models", metavar="NAME", help="the list of classes in the module (default: all it has)")
    parser.add_argument("--tenant", metavar="T", help="the tenant whose graph it is (default: all tenants)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_graph(parser)
    parser.add_argument(
        "--from", metavar="EXPORT", dest="source", help="read this export: a folder, or s3://…; or scan the table"
    )
    parser.add_argument(
        "--engine", choices=("duckdb", "spark"), default="duckdb", help="what computes: duckdb or spark"
    )
    parser.add_argument(
        "--memory", metavar="M", help="duckdb: so much memory, as 1GB (the default); the rest is on disk"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def carried_out(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """A command whose status says what it found, so that another has to say that it could not look."""

    @wraps(run)
    def status(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except BrokenPipeError:
            raise
        except (AdjoinError, OSError) as error:
            print(told(error), file=sys.stderr)
        except Exception:
            traceback.print_exc()
        return NOT_CARRIED_OUT

    return status


@contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[Graph]:
    name, _, layout_name = arguments.module.partition(":")
    module = imported(name)
    layout = layout_in(module, layout_name)
    _check_there(arguments.location, (layout or AdjacencyList()).table)
    with Graph(arguments.location, models_in(module, arguments.models), layout, tenant=arguments.tenant) as graph:
        yield graph


def _check_there(location: str, table: str) -> None:
    """A graph makes the file and the table that it does not find; there would be nothing wrong with them."""
    place = parse_location(location)
    if isinstance(place, FileLocation):
        with existing_file(place.path) as store:
            chosen_table(store, table)


def options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"memory": arguments.memory} if arguments.memory else {}


@contextmanager
def shown(arguments: argparse.Namespace) -> Iterator[Callable[[str, int], None] | None]:
    """The progress on stderr, unless nobody wants to see it."""
    line = ProgressLine(sys.stderr)
    try:
        yield None if arguments.quiet else (lambda name, done: line.show(name, "nodes", done, 0))
    finally:
        line.close()
