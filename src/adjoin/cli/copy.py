"""`adjoin copy`: a table from one place to another, which goes on where it was interrupted."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path

from adjoin.cli.command import Command, chosen_table
from adjoin.cli.drawing import counted
from adjoin.cli.progress import ProgressLine, duration
from adjoin.cli.tables import sized
from adjoin.copying import Binding, Copied, Progress, StateFile, copy, verify
from adjoin.errors import ChangesTrimmed, InvalidLocation, NotFound
from adjoin.stores.interface import Store
from adjoin.stores.locations import open_store, parse_location

_WORK = {
    "preparing": ("preparing", "items"),
    "copying": ("copying", "items"),
    "following": ("applying changes", "changes"),
    "verifying": ("verifying", "items"),
}
"""What each stage is called, and what it counts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="where the table is")
    parser.add_argument("destination", metavar="DESTINATION", help="where to copy it; a file is made if there is none")
    parser.add_argument("--table", metavar="T", help="the table; not needed if the source holds one")
    parser.add_argument("--to", metavar="NAME", help="the table's name at the destination (default: the same)")
    parser.add_argument("--overwrite", action="store_true", help="copy into a table that holds items already")
    parser.add_argument("--verify", action="store_true", help="compare all items at the end")
    parser.add_argument("--segments", metavar="N", type=_segments, help="read so many parts of the table side by side")
    parser.add_argument("--state", metavar="PATH", help="the file that remembers how far an interrupted copy came")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _segments(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1,000")
    return int(text)


def run(arguments: argparse.Namespace) -> None:
    segments = arguments.segments or 1
    with _source(arguments.source) as source:
        table = chosen_table(source, arguments.table).definition.name
        to = arguments.to or table
        binding = Binding(_place(arguments.source), _place(arguments.destination), table, to, segments)
        if (binding.source, table) == (binding.destination, to):
            raise InvalidLocation(f"source and destination are the same table {table!r}; choose a name with --to")
        state = StateFile(arguments.state or _default_state(binding), binding)
        begun = state.load() is not None
        with _destination(arguments.destination) as destination:
            if begun and not arguments.quiet:
                print(f"adjoin: going on with the copy that {state.path} remembers", file=sys.stderr)
            shown = _Shown(table, arguments.quiet)
            try:
                copied = copy(
                    source,
                    destination,
                    table,
                    to=to,
                    segments=segments,
                    overwrite=arguments.overwrite,
                    state=state,
                    progress=shown,
                )
                shown.line.close()
                print(_summary(table, to, arguments.destination, copied))
                if arguments.verify:
                    same = verify(source, destination, table, to=to, segments=segments, progress=shown)
                    shown.line.close()
                    print(f"{table}: verified, {counted(same, 'item')} on both sides")
            except BaseException as error:
                shown.line.close()
                if shown.stage in ("copying", "following") and not isinstance(error, ChangesTrimmed):
                    print("adjoin: the copy is unfinished; the same command goes on with it", file=sys.stderr)
                raise


class _Shown:
    """The progress of a copy on stderr, and the stage it has come to."""

    def __init__(self, table: str, quiet: bool) -> None:
        self.line = ProgressLine(sys.stderr)
        self.stage = ""
        self._table, self._quiet = table, quiet

    def __call__(self, progress: Progress) -> None:
        self.stage = progress.stage
        if not self._quiet:
            work, noun = _WORK[progress.stage]
            self.line.show(f"{self._table}: {work}", noun, progress.done, progress.total)


def _summary(table: str, to: str, destination: str, copied: Copied) -> str:
    renamed = "" if to == table else f" as {to}"
    amount = f"{counted(copied.items, 'item')}, {sized(copied.size)}"
    units = f"{copied.read:,g} read units and {copied.write:,g} write units"
    price = f"${copied.dollars:,.2f}" if copied.dollars >= 0.01 else "less than $0.01"
    lines = [
        f"{table}: copied to {destination}{renamed}: {amount} in {duration(copied.seconds)}; {units}, {price} on demand"
    ]
    if copied.changes is None:
        lines.append(f"{table}: it keeps no changes, so those made while it was copied are not included")
    elif copied.changes:
        lines.append(f"{table}: {counted(copied.changes, 'change')} made while it was copied included")
    return "\n".join(lines)


# --- places --------------------------------------------------------------------------------------


@contextmanager
def _source(location: str) -> Iterator[Store]:
    found = parse_location(location)
    if not os.path.exists(found.path):
        raise NotFound(f"there is no file {found.path}; check the name")
    with closing(open_store(location)) as store:
        yield store


@contextmanager
def _destination(location: str) -> Iterator[Store]:
    if parse_location(location).path == ":memory:":
        raise InvalidLocation("a copy in memory would be gone at once; give the path of a file")
    with closing(open_store(location)) as store:
        yield store


def _place(location: str) -> str:
    """A location as it is called from everywhere, without what does not matter to its data."""
    return os.path.realpath(parse_location(location).path)


def _default_state(binding: Binding) -> Path:
    """Beside the source file, where it is found from every directory; the name tells copies apart."""
    named = "\0".join((binding.source, binding.destination, binding.table, binding.to))
    digest = blake2b(named.encode(), digest_size=4).hexdigest()
    return Path(f"{binding.source}.copy-{digest}.json")


COMMAND = Command("copy", "copies a table to another file, or to DynamoDB", add_arguments, run, takes_file=False)
