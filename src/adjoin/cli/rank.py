"""`adjoin rank`: prints the nodes that stand first by PageRank, degree and the like, or the groups that nodes form.

It asks a snapshot: a saved one, or one that it takes for itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from adjoin.cli import following, graphs
from adjoin.cli.command import Command, InvalidArguments, whole_number
from adjoin.cli.results import as_json, named
from adjoin.cli.snapshot import taken
from adjoin.exchange.texts import plain

_Rank = Callable[[Any, list[type[Any]], argparse.Namespace], Any]

_SCORES: dict[str, _Rank] = {
    "pagerank": lambda s, via, given: s.pagerank(via, direction=given.direction, weight=given.weight),
    "degree": lambda s, via, given: s.degrees(via, direction=given.direction),
    "hops": lambda s, via, given: s.k_hop_counts(via, given.hops, direction=given.direction),
    "triangles": lambda s, via, given: s.triangles(via),
}
_GROUPS: dict[str, _Rank] = {
    "components": lambda s, via, given: s.components(via, strong=given.strong),
    "communities": lambda s, via, given: s.communities(via, weight=given.weight),
}
_WEIGHTED = ("pagerank", "communities")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("edges", metavar="EDGE", help="the class of edges; several are joined by commas")
    parser.add_argument(
        "--by",
        choices=(*_SCORES, *_GROUPS),
        default="pagerank",
        help="what ranks nodes; hops counts the different nodes within --hops edges (default: pagerank)",
    )
    following.add_direction(parser)
    parser.add_argument("--weight", metavar="FIELD", help="a field of the edges by which they count")
    parser.add_argument("--hops", metavar="N", type=whole_number, default=2, help="for --by hops (default: 2)")
    parser.add_argument(
        "--strong", action="store_true", help="for components: nodes that can all reach each other along edges"
    )
    parser.add_argument("--limit", metavar="N", type=whole_number, default=10, help="print at most N (default: 10)")
    parser.add_argument("--snapshot", metavar="FOLDER", help="a saved snapshot; later changes are applied in memory")
    parser.add_argument("--from", dest="source", metavar="EXPORT", help="read this export instead of the table")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> None:
    if arguments.weight is not None and arguments.by not in _WEIGHTED:
        raise InvalidArguments(f"--weight is for {' and '.join(_WEIGHTED)}, and not for {arguments.by}; leave it out")
    if arguments.snapshot is not None and arguments.source is not None:
        raise InvalidArguments("--snapshot and --from both say what is read; leave one out")
    with graphs.opened(arguments) as asked:
        via = following.followed(asked, [arguments.edges])
        if arguments.snapshot is not None:
            snapshot = asked.graph.open_snapshot(arguments.snapshot)
            snapshot.follow(once=True)
        else:
            arguments.fields = [] if arguments.weight is None else [arguments.weight]
            snapshot = taken(asked, via, arguments)
        if arguments.by in _SCORES:
            lines = _scores(_SCORES[arguments.by](snapshot, via, arguments).top(arguments.limit), arguments)
        else:
            lines = _groups(_GROUPS[arguments.by](snapshot, via, arguments)[: arguments.limit], arguments)
        for line in lines:
            print(line)


def _scores(found: list[tuple[Any, Any]], arguments: argparse.Namespace) -> Iterator[str]:
    for ref, value in found:
        if arguments.json:
            yield as_json({"node": plain(ref), arguments.by: value})
        else:
            yield f"{value:.6f}  {named(ref)}" if isinstance(value, float) else f"{value:,}  {named(ref)}"


def _groups(found: list[list[Any]], arguments: argparse.Namespace) -> Iterator[str]:
    for group in found:
        if arguments.json:
            yield as_json({"size": len(group), "nodes": [plain(ref) for ref in group]})
        else:
            shown = ", ".join(map(named, group[: arguments.limit]))
            yield f"{len(group):,}  {shown}{', …' if len(group) > arguments.limit else ''}"


COMMAND = Command("rank", "prints the highest-ranked nodes, by PageRank or degree", add_arguments, run, False)
