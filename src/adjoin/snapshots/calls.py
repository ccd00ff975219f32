"""`snapshot` as `Graph` and `AsyncGraph` call it: what is held, where it is read from, and where changes go on.

The arrays are imported only when a call needs them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from gzip import open as open_gzip
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orjson import loads

from adjoin.batch import RunPlan, TellProgress
from adjoin.batch import needed as needed_for_batch
from adjoin.batch.calls import PathName
from adjoin.batch.exports import Export, is_remote, open_export
from adjoin.batch.sources import SCAN, dump_of, scan_of
from adjoin.copying.steps import Mark, describe, read_changes
from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidExport, InvalidValue, MissingExtra, UnknownField, shown
from adjoin.field_types import plain_type, unknown_field
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.model import Child, Edge
from adjoin.plans.declared import check_due
from adjoin.plans.deletion import visible
from adjoin.requests import Plan
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.snapshots.item_reading import Held, Row

UNKNOWN_TIME = 1.0
"""The time of what a snapshot was made from, if it is not known: so long ago that changes since then may be missing."""
_PIECE = 10_000
"""How many items are read between two calls of `progress`."""


def needed(name: str) -> Any:
    """A module of this package that needs the extra. If that is not installed, the error says how to install it."""
    try:
        return import_module(f"adjoin.snapshots.{name}")
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "adjoin":
            raise
        raise MissingExtra(f"snapshots need {error.name}; install it with: pip install 'adjoin[snapshot]'") from error


@dataclass(frozen=True)
class Taking:
    """The arguments of one call: the graph, the runner of its plans, and what is taken from where."""

    layout: BoundLayout
    store: Any
    secret: bytes
    run: RunPlan
    follow: RunPlan
    """Runs a plan for the program that follows; of an asynchronous graph, an awaitable of its result."""
    edges: Iterable[type[Any]]
    fields: Iterable[str]
    source: PathName | None
    progress: TellProgress | None


def taken(taking: Taking, is_async: bool) -> Any:
    """A snapshot of what the graph holds now, or held when it was exported."""
    module, building = needed("snapshot"), needed("building")
    layout = taking.layout
    held = held_of(layout, taking.edges, taking.fields)
    for kind in (*held.nodes, *held.relations):
        taking.run(_checked(layout, kind))
    # The position is noted before the first item is read, so that `follow` applies what changes meanwhile.
    export = _export(taking)
    position, since, table_id = _position(taking) if export is None else (None, export.at or UNKNOWN_TIME, "")
    marked: list[Item] = []
    nodes, relations = building.build(layout, held, lambda: _rows(taking, held, export, marked), taking.progress)
    made = module.AsyncSnapshot if is_async else module.Snapshot
    return made(layout, taking.secret, taking.follow, held, nodes, relations, position, since, marked, table_id)


def opened(layout: BoundLayout, secret: bytes, follow: RunPlan, folder: PathName, is_async: bool) -> Any:
    """A snapshot that was saved."""
    module, saving = needed("snapshot"), needed("saving")
    made = module.AsyncSnapshot if is_async else module.Snapshot
    return made(layout, secret, follow, *saving.load(layout, folder, held_of), is_opened=True)


def _checked(layout: BoundLayout, kind: EntityType) -> Plan[None]:
    """Raises if items of a class may be stored under keys that are not of the class any more, or at one end only."""
    if layout.due.is_any:
        yield from check_due(layout, lambda due: due.check_range(kind, None))


# --- what is held ------------------------------------------------------------------------------


def held_of(layout: BoundLayout, edges: Iterable[type[Any]], fields: Iterable[str]) -> Held:
    """What a program wants to hold, checked."""
    if isinstance(edges, type) or not isinstance(edges, Iterable):
        raise InvalidValue(f"edges takes a list of classes of edges or of children, got {shown(edges)}; use a list")
    if isinstance(fields, str) or not isinstance(fields, Iterable):
        raise InvalidValue(f'fields takes a list of names, such as ["Knows.weight"], got {shown(fields)}; use a list')
    relations: list[EdgeType | NodeType] = []
    for model in dict.fromkeys(edges):
        if not isinstance(model, type) or not issubclass(model, Edge | Child):
            name = model.__name__ if isinstance(model, type) else shown(model)
            raise InvalidValue(f"edges takes classes of edges or of children, got {name}; leave it out")
        kind = layout.schema.edge(model) if issubclass(model, Edge) else layout.schema.node(model).whole
        relations.append(kind)
    if not relations:
        raise InvalidValue("a snapshot needs at least one class of edges or of children; name it in edges=")
    ends = [each.whole for kind in relations for end in (kind.source, kind.target) for each in end.classes]
    nodes = tuple({kind.model: kind for kind in ends}.values())
    held: dict[type[Any], dict[str, type]] = {}
    kinds: list[EntityType] = list({kind.model: kind for kind in (*nodes, *relations)}.values())
    for name in fields:
        for owner in _owners(kinds, name):
            field = name.rpartition(".")[2]
            held.setdefault(owner.model, {})[field] = _numbers(owner, field)
    made: Held = needed("item_reading").Held(tuple(relations), nodes, held)
    return made


def _owners(kinds: list[EntityType], name: Any) -> list[EntityType]:
    """The classes of which a field is held: the one that is named before it, or all that have it."""
    if not isinstance(name, str):
        raise InvalidValue(f"a field is given by its name, got {shown(name)}")
    owner, _, field = name.rpartition(".")
    among = [kind for kind in kinds if not owner or kind.name == owner]
    if not among:
        raise UnknownField(unknown_field("this snapshot", owner, [kind.name for kind in kinds]))
    found = [kind for kind in among if field in kind.fields]
    if not found:
        known = dict.fromkeys(each for kind in among for each in kind.fields)
        raise UnknownField(unknown_field(" or ".join(kind.name for kind in among), field, known))
    return found


def _numbers(kind: EntityType, name: str) -> type:
    plain = plain_type(kind.fields[name])
    numbers = next((each for each in needed("columns").PLAIN if plain is each), None)
    if numbers is None:
        raise InvalidValue(
            f"a snapshot holds numbers, and {kind.name}.{name} is not one; leave it out, and read it with the graph"
        )
    found: type = numbers
    return found


# --- items -------------------------------------------------------------------------------------


def _position(taking: Taking) -> tuple[str | None, float, str]:
    """Where the change stream is now, so that changes which are made while items are read are applied later.

    The last of the three is the id of the table.

    If the table has no stream, it is not known what one would miss that is switched on later.
    """
    table = taking.layout.table
    told = taking.run(describe(table))
    if not told.definition.streams_images:
        return None, UNKNOWN_TIME, told.history.id
    if hasattr(taking.store, "stream_end"):
        return taking.store.stream_end(table), 0.0, told.history.id
    began, mark = time.time(), Mark()
    while True:
        # The only way to find the end of a stream of DynamoDB is to read all changes.
        response = taking.run(read_changes(table, mark.position))
        mark = mark.moved(response)
        if not response.changes or mark.at >= began:
            return mark.position, 0.0, told.history.id


def _export(taking: Taking) -> Export | None:
    """The export to read; None for another source."""
    source, table = taking.source, taking.layout.table
    if source is None or source == SCAN:
        return None
    if is_remote(source):
        folder = Path(tempfile.mkdtemp(prefix="adjoin-"))
        weakref.finalize(taking, shutil.rmtree, folder, ignore_errors=True)
        source = needed_for_batch("engines").copied(os.fspath(source), folder)
    export = open_export(source)
    if export.table not in ("", table):
        raise InvalidExport(
            f"{export.place} is an export of the table {export.table!r}, and this graph is in the table {table!r}; "
            f"name an export of {table!r}"
        )
    return export


def _rows(taking: Taking, held: Held, export: Export | None, marked: list[Item]) -> Iterator[Row]:
    """What all items mean. The edges that deletes have marked are left in a list, since they have to be followed."""
    reading = needed("item_reading").RowReading(taking.layout, held)
    read, count = reading.read, 0
    marked.clear()
    for items in _pieces(taking, export):
        for item in items:
            if DELETING in item:
                marked.append(item)
            else:
                yield read(item)
        count += len(items)
        if taking.progress is not None:
            taking.progress("reading items", count)
    for item in taking.run(visible(taking.layout, marked)) if marked else ():
        yield read(item)


def _pieces(taking: Taking, export: Export | None) -> Iterator[list[Item]]:
    """All items, some at a time."""
    if export is not None:
        yield from _exported(export)
        return
    is_file = taking.source is None and hasattr(taking.store, "dump")
    table = taking.layout.table
    dump = dump_of(taking.store, table) if is_file else scan_of(taking.run, table)
    for lines in dump.lines():
        yield list(map(loads, lines))


def _exported(export: Export) -> Iterator[list[Item]]:
    piece: list[Item] = []
    for name in export.files:
        with open_gzip(name) as lines:
            for line in lines:
                piece.append(loads(line)["Item"])
                if len(piece) == _PIECE:
                    yield piece
                    piece = []
    yield piece
