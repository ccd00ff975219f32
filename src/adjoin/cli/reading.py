"""What commands share that print what a query finds: conditions, order, pages, and one line for each result.

Results are printed while they are read, so that `| head` ends the query.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from adjoin.cli.command import whole_number
from adjoin.cli.conditions import predicate
from adjoin.cli.results import as_json, as_text
from adjoin.entity_types import EntityType

_PAGE = 1000
"""How many results are read before they are printed."""


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=whole_number, help="print at most N results (default: all)")
    parser.add_argument("--after", metavar="TOKEN", help="go on after the page that ended with this token")
    parser.add_argument("--count", action="store_true", help="print only the number of results")
    add_json(parser)


def add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--where", metavar="CONDITION", help="only results for which this holds, such as: grade >= B and year in (1, 2)"
    )


def add_order(parser: argparse.ArgumentParser) -> None:
    """Options of queries for edges and children, which are in the order of their sort key."""
    add_where(parser)
    parser.add_argument(
        "--between", metavar=("LOW", "HIGH"), nargs=2, help="only those whose order field lies between these values"
    )
    parser.add_argument("--begins-with", metavar="TEXT", help="only those whose order field begins with this text")
    parser.add_argument("--reverse", action="store_true", help="in reverse order")


def ordered(query: Any, kind: EntityType, arguments: argparse.Namespace) -> Any:
    """A query with the conditions and the order that the arguments ask for."""
    if arguments.between is not None:
        query = query.between(*arguments.between)
    if arguments.begins_with is not None:
        query = query.begins_with(arguments.begins_with)
    query = filtered(query, kind, arguments)
    return query.reverse() if arguments.reverse else query


def filtered(query: Any, kind: EntityType | None, arguments: argparse.Namespace) -> Any:
    return query if arguments.where is None else query.where(predicate(arguments.where, kind))


def print_found(query: Any, arguments: argparse.Namespace) -> None:
    """Prints the results of a query, or their number."""
    if arguments.count:
        limited = query if arguments.limit is None else query.limit(arguments.limit)
        print(limited.count())
        return
    line = as_json if arguments.json else as_text
    token = arguments.after
    left = arguments.limit
    while True:
        page = query.page(limit=_PAGE if left is None else min(left, _PAGE), after=token)
        for each in page:
            print(line(each))
        token = page.next
        left = None if left is None else left - len(page)
        if token is None or left == 0:
            break
        sys.stdout.flush()
    if token is not None:
        # A token may begin with a hyphen, so it is joined to its option.
        print(f"there may be more; go on with: --after={token}", file=sys.stderr)
