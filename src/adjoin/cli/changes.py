"""`adjoin changes`: prints the change stream of a table, one line per change."""

from __future__ import annotations

import argparse
import datetime as dt
import json
from collections.abc import Iterator

from adjoin.cli.command import Command, InvalidArguments, existing, table_at
from adjoin.cli.drawing import is_own, printable, shortened, shown, shown_key, without_own_attributes
from adjoin.errors import InvalidRequest
from adjoin.requests import ChangesResponse, ItemChange, ReadChanges
from adjoin.stores.interface import Store
from adjoin.values import Item


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", metavar="LOCATION", help="a file, or a table such as dynamodb://Education")
    parser.add_argument("--table", metavar="T", help="the table; not needed if the file has only one")
    parser.add_argument("--after", metavar="P", help="only changes after this position")
    parser.add_argument("--all", action="store_true", help="also changes of adjoin's own items")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per line, with the item before and after"
    )


def run(arguments: argparse.Namespace) -> None:
    line = _as_json if arguments.json else _as_text
    with existing(arguments.location) as store:
        table = table_at(store, arguments.location, arguments.table).definition
        for change in _changes(store, table.name, arguments.after):
            if arguments.all:
                print(line(change))
            elif not is_own(change.key[table.partition.name]):
                print(line(_without_own(change)))


def _without_own(change: ItemChange) -> ItemChange:
    old, new = (image and without_own_attributes(image) for image in (change.old, change.new))
    return ItemChange(change.position, change.at, change.key, old, new, change.expired)


def _changes(store: Store, table: str, after: str | None) -> Iterator[ItemChange]:
    while True:
        try:
            (response,) = store.execute([ReadChanges(table, after)])
        except InvalidRequest as error:
            # The position is all that a user says of the request.
            raise InvalidArguments(str(error)) from None
        assert isinstance(response, ChangesResponse)
        if not response.changes:
            return
        yield from response.changes
        after = response.next


def _kind(change: ItemChange) -> str:
    if change.old is None:
        return "insert"
    if change.new is None:
        return "expire" if change.expired else "remove"
    return "modify"


def _as_json(change: ItemChange) -> str:
    # Not orjson: the json module escapes what is not ASCII, so the line is complete in every encoding of stdout.
    return json.dumps(
        {
            "position": change.position,
            "at": _time(change.at),
            "kind": _kind(change),
            "key": change.key,
            "old": change.old,
            "new": change.new,
        },
        separators=(",", ":"),
    )


def _as_text(change: ItemChange) -> str:
    key = " ".join(shown_key(value) for value in change.key.values())
    detail = _difference(change.old or {}, change.new or {}, change.key)
    return f"{change.position}  {_time(change.at)}  {_kind(change)}  {key}  {detail}".rstrip()


def _difference(old: Item, new: Item, key: Item) -> str:
    """The attributes that changed: all of them if the item was inserted or removed."""
    names = [name for name in {**old, **new} if name not in key and old.get(name) != new.get(name)]
    return ", ".join(f"{printable(name)}: {_step(old, new, name)}" for name in names)


def _step(old: Item, new: Item, name: str) -> str:
    before, after = (shortened(shown(item[name])) if name in item else "" for item in (old, new))
    return f"{before} → {after}".strip() if old and new else before or after


def _time(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


COMMAND = Command("changes", "lists the changes of a table, oldest first", add_arguments, run, takes_file=False)
