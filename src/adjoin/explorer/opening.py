"""Opens the graph of a table for the explorer, with classes that are given or inferred from its items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidModel, NotFound, TableNotFound
from adjoin.explorer.read_only import ReadOnlyStore
from adjoin.graph import Graph
from adjoin.inferring import infer
from adjoin.inferring.checking import executed
from adjoin.inferring.sampling import sampled, spread
from adjoin.layouts.adjacency_list import AdjacencyList
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.locations import SERVICE, FileLocation, open_store, parse_location, table_named_by
from adjoin.requests import DescribeTable, ListTables, TableResponse, TablesResponse
from adjoin.runner import run
from adjoin.stores.interface import Store

SAMPLE = 2000
"""The greatest number of items that classes are inferred from."""


@dataclass(frozen=True)
class Explored:
    """A graph that is explored, and how it was opened."""

    graph: Graph
    location: str
    is_writable: bool
    source: str | None = None
    """The program that was inferred for the table; None if its classes were given."""
    read: int = 0
    """The items that it was inferred from, and how many of them it explains."""
    explained: int = 0
    notes: tuple[str, ...] = ()
    """What the inference is unsure of."""

    @property
    def layout(self) -> BoundLayout:
        return self.graph._layout

    @property
    def is_file(self) -> bool:
        """Whether it is in a file, which is scanned in the order of its keys."""
        return not self.location.startswith(SERVICE)

    @property
    def name(self) -> str:
        return self.layout.table

    def close(self) -> None:
        self.graph.close()


def open_explored(
    location: str,
    models: Iterable[type[Any]] | None = None,
    layout: Layout | None = None,
    *,
    table: str | None = None,
    tenant: str | None = None,
    write: bool = False,
) -> Explored:
    """Opens a graph with these classes; without classes, they are inferred from a sample of the items.

    A file or a table that does not exist is refused, because a graph would create it.
    """
    place = parse_location(location)
    if isinstance(place, FileLocation) and not _exists(place.path):
        raise NotFound(f"the file {place.path} does not exist; check the name")
    opened = open_store(location)
    store: Store = opened if write else ReadOnlyStore(opened)
    try:
        if models is None:
            return _inferred(store, location, table, tenant, write)
        declared = layout or AdjacencyList()
        if (named := table or table_named_by(location)) is not None:
            declared = declared.named(named)
        _described(store, declared.table)
        return Explored(Graph(store, models, declared, tenant=tenant), location, write)
    except BaseException:
        opened.close()
        raise


def _exists(path: str) -> bool:
    try:
        with open(path, "rb"):
            return True
    except FileNotFoundError:
        return False


def _inferred(store: Store, location: str, table: str | None, tenant: str | None, write: bool) -> Explored:
    name = table or table_named_by(location) or _only_table(store)
    described = _described(store, name)
    definition = described.definition
    is_large = described.item_count > SAMPLE
    is_file = not location.startswith(SERVICE)
    plan = spread(definition, SAMPLE) if is_file and is_large else sampled(definition, SAMPLE, is_large=is_large)
    items = run(plan, store)
    found = infer(definition, items, location, described.item_count)
    if not found.program.classes:
        raise InvalidModel(
            f"no classes can be inferred from the items of the table {name!r}; name yours with --models, or put "
            f"something into it first"
        )
    module = executed(found.source)
    graph = Graph(store, module.MODELS, module.LAYOUT, tenant=tenant)
    return Explored(graph, location, write, found.source, found.read, found.explained, tuple(found.program.notes))


def _described(store: Store, table: str) -> TableResponse:
    try:
        (response,) = store.execute([DescribeTable(table)])
    except TableNotFound:
        raise TableNotFound(f"there is no table {table!r}; {_choice(_tables(store))}") from None
    assert isinstance(response, TableResponse)
    return response


def _tables(store: Store) -> tuple[str, ...]:
    (response,) = store.execute([ListTables()])
    assert isinstance(response, TablesResponse)
    return response.names


def _only_table(store: Store) -> str:
    names = _tables(store)
    if len(names) != 1:
        raise TableNotFound(f"the table is not named; {_choice(names)}")
    return names[0]


def _choice(names: tuple[str, ...]) -> str:
    return f"choose one with --table: {', '.join(names)}" if names else "put something into it first"
