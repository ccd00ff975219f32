"""`adjoin copy`: copies a table from one location to another, and continues an interrupted copy."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from adjoin.cli.command import Command, InvalidArguments, chosen_table, described
from adjoin.cli.drawing import ProgressLine, counted, duration
from adjoin.cli.tables import sized
from adjoin.copying import Binding, Copied, Progress, StateFile, copy, verify
from adjoin.errors import ChangesTrimmed, InvalidLocation, NotFound, shown
from adjoin.locations import FileLocation, ServiceLocation, identity, open_store, parse_location, table_named_by
from adjoin.stores.interface import Store

MEMORY = ":memory:"
SERVICE_SEGMENTS = 8
"""The number of segments that are read side by side from DynamoDB. A file is read fastest in one."""
STREAM_LAG = 2.0
"""Seconds by which DynamoDB's change stream may lag behind its items; usually it is well below one."""

_WORK = {
    "preparing": ("reading earlier changes", "changes"),
    "copying": ("copying", "items"),
    "following": ("applying changes", "changes"),
    "verifying": ("verifying", "items"),
}
"""For each stage: its name in the progress line, and what it counts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="the location to copy from: a file, or dynamodb://TABLE")
    parser.add_argument(
        "destination", metavar="DESTINATION", help="the location to copy to; a file is created if needed"
    )
    parser.add_argument("--table", metavar="T", help="the table; not needed if the source has only one")
    parser.add_argument("--to", metavar="NAME", help="the table's name at the destination (default: the same name)")
    parser.add_argument("--overwrite", action="store_true", help="copy into a table that already has items")
    parser.add_argument("--verify", action="store_true", help="compare all items of both sides at the end")
    parser.add_argument(
        "--segments",
        metavar="N",
        type=_segments,
        help=f"read this many parts of the table side by side (default: 1, and {SERVICE_SEGMENTS} from DynamoDB)",
    )
    parser.add_argument("--state", metavar="PATH", help="the file that stores the progress of an interrupted copy")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _segments(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number from 1 to 1,000")
    return int(text)


def run(arguments: argparse.Namespace) -> None:
    segments = arguments.segments or (SERVICE_SEGMENTS if _is_service(arguments.source) else 1)
    with closing(_open_source(arguments.source)) as source:
        table = _source_table(source, arguments.source, arguments.table)
        to = _named(arguments.destination, arguments.to, "--to") or table
        binding = Binding(identity(arguments.source), identity(arguments.destination), table, to, segments)
        if (binding.source, table) == (binding.destination, to):
            raise InvalidLocation(f"source and destination are the same table {table!r}; choose another name with --to")
        state = StateFile(arguments.state or _default_state(arguments, binding), binding)
        begun = state.load() is not None
        with closing(_open_destination(arguments.destination)) as destination:
            if begun and not arguments.quiet:
                print(f"adjoin: continuing the copy whose progress is in {state.path}", file=sys.stderr)
            shown = _Shown(table, arguments.quiet)

            def finished(copied: Copied) -> None:
                shown.line.close()
                # Print the summary before the state is removed: if printing fails, the same command can run again.
                outcome = (
                    _object(table, to, copied) if arguments.json else _summary(table, to, arguments.destination, copied)
                )
                print(outcome, flush=True)
                shown.stage = ""

            try:
                copy(
                    source,
                    destination,
                    table,
                    to=to,
                    segments=segments,
                    overwrite=arguments.overwrite,
                    lag=STREAM_LAG if _is_service(arguments.source) else 0.0,
                    state=state,
                    progress=shown,
                    finished=finished,
                )
                if arguments.verify:
                    same = verify(source, destination, table, to=to, segments=segments, progress=shown)
                    shown.line.close()
                    if not arguments.json:
                        print(f"table {table}: verified, {counted(same, 'item')} on both sides")
            except BaseException as error:
                shown.line.close()
                # After ChangesTrimmed the copy cannot continue; the error itself says what to do.
                if shown.stage in ("copying", "following") and not isinstance(error, ChangesTrimmed):
                    print("adjoin: the copy is unfinished; run the same command again to continue it", file=sys.stderr)
                raise


class _Shown:
    """Shows the progress of a copy on stderr, and remembers the current stage."""

    def __init__(self, table: str, quiet: bool) -> None:
        self.line = ProgressLine(sys.stderr)
        self.stage = ""
        self._table, self._quiet = table, quiet

    def __call__(self, progress: Progress) -> None:
        self.stage = progress.stage
        if not self._quiet:
            work, noun = _WORK[progress.stage]
            self.line.show(f"table {self._table}: {work}", noun, progress.done, progress.total)


def _object(table: str, to: str, copied: Copied) -> str:
    numbers = {"table": table, "to": to, "items": copied.items, "bytes": copied.size, "changes": copied.changes}
    return json.dumps({**numbers, "rcu": copied.read, "wcu": copied.write, "seconds": copied.seconds})


def _summary(table: str, to: str, destination: str, copied: Copied) -> str:
    renamed = "" if to == table or table_named_by(destination) else f" as {to}"
    amount = f"{counted(copied.items, 'item')}, {sized(copied.size)}"
    units = f"{_units(copied.read, 'read')} and {_units(copied.write, 'write')}"
    price = f"${copied.dollars:,.2f}" if copied.dollars >= 0.01 else "less than $0.01"
    done = f"copied to {destination}{renamed}: {amount} in {duration(copied.seconds)}"
    lines = [f"table {table}: {done}; {units}, {price} on demand"]
    if copied.changes is None:
        lines.append(f"table {table}: it keeps no changes, so changes made during the copy are not included")
    elif copied.changes:
        lines.append(f"table {table}: including {counted(copied.changes, 'change')} made during the copy")
    return "\n".join(lines)


def _units(number: float, kind: str) -> str:
    return f"{number:,.1f}".removesuffix(".0") + f" {kind} unit{'' if number == 1 else 's'}"


# --- locations ------------------------------------------------------------------------------------


def _is_service(location: str) -> bool:
    return isinstance(parse_location(location), ServiceLocation)


def _open_source(location: str) -> Store:
    found = parse_location(location)
    if isinstance(found, FileLocation) and not os.path.exists(found.path):
        raise NotFound(f"the file {found.path} does not exist; check the name")
    return open_store(location)


def _open_destination(location: str) -> Store:
    found = parse_location(location)
    if isinstance(found, FileLocation) and found.path == MEMORY:
        raise InvalidLocation("a copy in memory would be lost when the command ends; give the path of a file")
    return open_store(location)


def _source_table(source: Store, location: str, asked: str | None) -> str:
    named = _named(location, asked, "--table")
    if not _is_service(location):
        return chosen_table(source, named).definition.name
    if named is None:
        raise InvalidArguments("the source names no table; name it as in dynamodb://Education, or with --table")
    return described(source, named).definition.name


def _named(location: str, asked: str | None, option: str) -> str | None:
    """The table that a location or an option names; both together must agree."""
    named = table_named_by(location)
    if named is not None and asked not in (None, named):
        raise InvalidLocation(
            f"{location} names the table {named!r}, and {option} names {asked!r}; leave one of them out"
        )
    return named or asked


def _default_state(arguments: argparse.Namespace, binding: Binding) -> Path:
    """The default path of the state: beside the source or the destination, if one of them is a file.

    There, it is found from every directory. The digest in its name distinguishes copies.
    """
    joined = "\0".join((binding.source, binding.destination, binding.table, binding.to))
    name = f"copy-{blake2b(joined.encode(), digest_size=4).hexdigest()}.json"
    for location, place in ((arguments.source, binding.source), (arguments.destination, binding.destination)):
        if not _is_service(location):
            return Path(f"{place}.{name}")
    return Path(f"{binding.table}.{name}")


COMMAND = Command("copy", "copies a table to another file, or to DynamoDB", add_arguments, run, takes_file=False)
