"""Whether a program explains a table: its source is executed, and the items that were read go through its classes.

An item is explained if a class reads it and writes it back byte for byte. This is tried twice: item by item, with the
layout alone, which says what is wrong with which class; and with a graph over a copy of the items in memory, where all
is read, put again and compared.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import field, replace
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError
from adjoin.graph import Graph
from adjoin.inferring.patterns import Pattern
from adjoin.items import normal_item
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.interface import REVISION
from adjoin.locations import open_store
from adjoin.requests import CreateTable, PageResponse, Put, Scan
from adjoin.reserved import ATTRIBUTE, DECLARED, is_own_partition
from adjoin.stores.interface import Store
from adjoin.tables import TableDefinition
from adjoin.values import Item

_NUMBERS = itertools.count(1)


@dataclass
class Findings:
    """What a program does with items."""

    refused: str = ""
    """Why the classes or the layout cannot be used at all."""
    explained: int = 0
    by_class: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Item, str, str]] = field(default_factory=list)
    """Items that are not explained: the class that was expected to, and why not."""
    changed: dict[str, Counter[str]] = field(default_factory=dict)
    """For each class, the attributes that would be written otherwise, and how often."""


def executed(source: str) -> ModuleType:
    """The module of a source; raises what executing it raises."""
    module = ModuleType(f"adjoin_inferred_{next(_NUMBERS)}")
    # Pydantic looks up the module of a generic class while it is made.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, "inferred.py", "exec", dont_inherit=True), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


def is_own(definition: TableDefinition, item: Item) -> bool:
    """Whether an item is adjoin's own."""
    key = item[definition.partition.name]
    return "S" in key and is_own_partition(key["S"])


def tried(
    source: str, definition: TableDefinition, items: Sequence[Item], expected: Sequence[str] | None = None
) -> Findings:
    """What the classes of a source make of items; `expected` has the class of each."""
    found = Findings()
    try:
        module = executed(source)
        layout = bound_layout(module.MODELS, module.LAYOUT)
    except (AdjoinError, TypeError, ValueError, NameError, SyntaxError) as error:
        found.refused = str(error) or type(error).__name__
        return found
    for number, item in enumerate(items):
        wanted = expected[number] if expected is not None else ""
        try:
            entity = layout.read(item)
            if entity is None:
                found.failed.append((item, wanted, "no class reads it"))
                continue
            name = type(entity).__name__
            # A symmetric edge is stored twice; either item is read as the edge.
            written = next((each for each in layout.items(entity) if _has_key(definition, each, item)), {})
        except (AdjoinError, ValidationError) as error:
            found.failed.append((item, wanted, str(error)))
            continue
        # Reading is not enough: a put of what was read must leave the item as it is.
        if (wanted and name != wanted) or not _is_same(item, written):
            names = {each for each in item.keys() | written.keys() if item.get(each) != written.get(each)}
            found.changed.setdefault(name, Counter()).update(names)
            why = f"{name} would write {', '.join(sorted(names))} otherwise" if names else f"it is read as {name}"
            found.failed.append((item, wanted or name, why))
            continue
        found.explained += 1
        found.by_class[name] += 1
    return found


def _has_key(definition: TableDefinition, one: Item, other: Item) -> bool:
    return all(one.get(key.name) == other[key.name] for key in definition.keys)


def _is_same(item: Item, written: Item) -> bool:
    """Whether what is written is what was there, apart from attributes that adjoin adds when it stores."""
    names = {name for name in item if not name.startswith(ATTRIBUTE)}
    bare = {name: value for name, value in written.items() if not name.startswith(ATTRIBUTE)}
    return names == bare.keys() and normal_item(bare) == normal_item({name: item[name] for name in names})


@dataclass
class Confirmed:
    """What a graph with the program does with a copy of the items."""

    others: int
    """Items that no class explains."""
    changed: Counter[str]
    """Items that a put of what was read changes, by the classes that read them."""
    failing: dict[str, str]
    """The patterns that raise, with why."""


def confirmed(
    source: str, definition: TableDefinition, items: Sequence[Item], patterns: Sequence[Pattern]
) -> Confirmed:
    """Reads, puts and compares a copy of the table in memory, and tries each pattern with values from it."""
    module = executed(source)
    with closing(open_store(":memory:")) as store:
        store.execute([CreateTable(_plain(definition))])
        # The record of what another program declares says nothing about these classes.
        copied = [item for item in items if DECLARED not in item]
        for start in range(0, len(copied), 100):
            store.execute([Put(definition.name, item) for item in copied[start : start + 100]])
        before = _stored(store, definition)
        graph = Graph(store, module.MODELS, module.LAYOUT)
        contents = graph.scan().collect()
        entities = [*contents.nodes, *contents.edges]
        samples: dict[str, Any] = {}
        for entity in entities:
            samples.setdefault(type(entity).__name__, entity)
        failing = {each.name: why for each in patterns if (why := _why_not(graph, module, each, samples))}
        graph.put_many(entities)
        after = _stored(store, definition)
        layout = bound_layout(module.MODELS, module.LAYOUT)
        changed = Counter(
            "" if is_own(definition, item) or (kind := layout.kind_of(item)) is None else kind.name
            for key, item in before.items()
            if after.get(key) != item
        )
    return Confirmed(len(contents.others), changed, failing)


def _plain(definition: TableDefinition) -> TableDefinition:
    """The table without what costs or protects; without a time to live, nothing goes while items are compared."""
    indexes = tuple(replace(index, throughput=None) for index in definition.indexes)
    return replace(definition, indexes=indexes, ttl=None, throughput=None, tags=(), deletion_protection=False)


def _why_not(graph: Graph, module: ModuleType, pattern: Pattern, samples: dict[str, Any]) -> str:
    entity = samples.get(pattern.model)
    if entity is None:
        return ""
    try:
        arguments = [_value(module, entity, path) for path in pattern.takes]
        if pattern.is_of_element:
            arguments = [next(iter(each), None) for each in arguments]
        if any(each is None for each in arguments):
            return ""
        found = getattr(module, pattern.name)(graph, *arguments)
        return "" if found is None or found != [] else "it finds nothing"
    except (AdjoinError, ValidationError) as error:
        return str(error)


def _value(module: ModuleType, entity: Any, path: str) -> Any:
    """The value of a field of an entity, or of a part of the id of one of its ends."""
    side, _, rest = path.partition(".")
    value = getattr(entity, side)
    if not rest:
        return value
    id = value if isinstance(value, tuple) else (value,)
    kind = bound_layout(module.MODELS, module.LAYOUT).schema
    owner = kind.edges.get(type(entity)) or kind.node(type(entity))
    end = owner.end(side)
    return None if end is None else dict(zip(end.parts, id, strict=False)).get(rest)


def _stored(store: Store, definition: TableDefinition) -> dict[str, Item]:
    """The items by their keys, without the attribute that gets another random value with each write."""
    return {
        str([item[key.name] for key in definition.keys]): {
            name: value for name, value in item.items() if name != REVISION
        }
        for item in _scanned(store, definition.name)
    }


def _scanned(store: Store, table: str) -> Iterator[Item]:
    start: Item | None = None
    while True:
        (page,) = store.execute([Scan(table, start=start)])
        assert isinstance(page, PageResponse)
        yield from page.items
        if page.last is None:
            return
        start = page.last
