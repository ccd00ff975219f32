"""The command line: `adjoin COMMAND …`, one module a command.

Here the commands come together. What goes wrong, an `AdjoinError` or what the system says about a file, is one
line on stderr and exit status 1; arguments that cannot be understood, or cannot be, are exit status 2. Nobody sees
a traceback.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from adjoin import __version__
from adjoin.beginning import INTERRUPTED, over
from adjoin.cli import changes, copy, export, maintain, rebuild, render, serve, show, tables, verify
from adjoin.cli.command import FAILED, MISUSED, Command, InvalidArguments, told
from adjoin.errors import AdjoinError

COMMANDS: tuple[Command, ...] = (
    show.COMMAND,
    tables.COMMAND,
    changes.COMMAND,
    copy.COMMAND,
    export.COMMAND,
    maintain.COMMAND,
    rebuild.COMMAND,
    verify.COMMAND,
    serve.COMMAND,
    render.COMMAND,
)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="adjoin",
        description="Looks into the files that adjoin keeps graphs in, copies them, and renders tables for AWS.",
    )
    parser.add_argument("--version", action="version", version=f"adjoin {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.summary, description=command.summary)
        if command.takes_file:
            sub.add_argument("file", metavar="FILE", help="the file")
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; answers the exit status."""
    try:
        over()
        return _main(arguments)
    except KeyboardInterrupt:
        # Wherever it is: also while something else that went wrong is told.
        return INTERRUPTED


def _main(arguments: Sequence[str] | None) -> int:
    parsed = build_parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets a "?" for it.
        sys.stdout.reconfigure(errors="replace")
    try:
        status: int | None = parsed.run(parsed)
        sys.stdout.flush()
    except InvalidArguments as error:
        print(told(error), file=sys.stderr)
        return MISUSED
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (AdjoinError, OSError) as error:
        print(told(error), file=sys.stderr)
        return FAILED
    return status or 0
