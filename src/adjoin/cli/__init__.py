"""The command line: `adjoin COMMAND …`, one module per command.

This module puts the commands together. An `AdjoinError`, or an error of the operating system about a file, becomes one
line on stderr. The exit status is 2 if arguments cannot be read, whoever finds out, and 1 if a command fails while it
works. Users never see a traceback of an expected error.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from adjoin import __version__
from adjoin.beginning import INTERRUPTED, over
from adjoin.cli import (
    changes,
    children,
    common,
    completion,
    copy,
    count,
    delete,
    explain,
    explore,
    export,
    find,
    get,
    importing,
    infer,
    init,
    into,
    maintain,
    migrate,
    out,
    put,
    rank,
    reachable,
    rebuild,
    recommend,
    render,
    scan,
    serve,
    shards,
    shortest_path,
    show,
    snapshot,
    stats,
    subtree,
    tables,
    update,
    verify,
    walk,
)
from adjoin.cli.command import FAILED, MISUSED, Command, InvalidArguments, Parser, error_line
from adjoin.errors import AdjoinError, InvalidCursor, InvalidLocation, UnknownField

_UNREACHABLE = "is_unreachable"
"""The attribute of a record of the log which says that nobody answers; see `stores/dynamodb/client`."""

COMMANDS: tuple[Command, ...] = (
    init.COMMAND,
    show.COMMAND,
    tables.COMMAND,
    changes.COMMAND,
    get.COMMAND,
    out.COMMAND,
    into.COMMAND,
    children.COMMAND,
    find.COMMAND,
    walk.COMMAND,
    shortest_path.COMMAND,
    reachable.COMMAND,
    recommend.COMMAND,
    common.COMMAND,
    subtree.COMMAND,
    rank.COMMAND,
    snapshot.COMMAND,
    scan.COMMAND,
    count.COMMAND,
    put.COMMAND,
    update.COMMAND,
    delete.COMMAND,
    explain.COMMAND,
    stats.COMMAND,
    copy.COMMAND,
    importing.COMMAND,
    export.COMMAND,
    infer.COMMAND,
    explore.COMMAND,
    maintain.COMMAND,
    rebuild.COMMAND,
    verify.COMMAND,
    migrate.COMMAND,
    shards.COMMAND,
    serve.COMMAND,
    render.COMMAND,
    completion.command(lambda: build_parser()),
)


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="adjoin",
        description="Reads, writes, copies, maintains and serves graphs that adjoin stores.",
    )
    parser.add_argument("--version", action="version", version=f"adjoin {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.summary, description=command.summary)
        if command.takes_file:
            sub.add_argument("file", metavar="FILE", help="the adjoin file")
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    try:
        over()
        with _warned():
            return _main(arguments)
    except KeyboardInterrupt:
        # Ctrl-C may come anywhere, also while another error is being printed; the user must not see a traceback.
        return INTERRUPTED


@contextmanager
def _warned() -> Iterator[None]:
    """Warnings begin as errors do, where neither a command nor the user's module has set up a log of its own."""
    before = logging.lastResort
    handler, waiting = (logging.StreamHandler() for _ in range(2))
    for each in (handler, waiting):
        each.setLevel(logging.WARNING)
        each.setFormatter(logging.Formatter("adjoin: %(message)s"))
    # Of the service's own log, which Python prints nothing of, only what one waits for without knowing why.
    waiting.addFilter(lambda record: hasattr(record, _UNREACHABLE) and not logging.root.handlers)
    service = logging.getLogger("adjoin.dynamodb")
    logging.lastResort = handler
    service.addHandler(waiting)
    try:
        yield
    finally:
        logging.lastResort = before
        service.removeHandler(waiting)


def _main(arguments: Sequence[str] | None) -> int:
    parsed = build_parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal with a narrow encoding gets a "?" for each character that it cannot show, and no error.
        sys.stdout.reconfigure(errors="replace")
    try:
        status: int | None = parsed.run(parsed)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Python flushes stdout again at exit; that must not fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (AdjoinError, OSError) as error:
        print(error_line(error), file=sys.stderr)
        return MISUSED if _is_of_arguments(error) else FAILED
    return status or 0


def _is_of_arguments(error: Exception) -> bool:
    """Whether an error is about how an argument is written, and not about what it names."""
    # Where the system has refused an address or the name of a file, it was read.
    is_tried = isinstance(error.__cause__, OSError)
    return isinstance(error, InvalidArguments | InvalidCursor | InvalidLocation | UnknownField) and not is_tried
