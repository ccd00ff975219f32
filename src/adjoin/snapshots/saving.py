"""A snapshot in a folder: one file for each array, and a manifest that says what they are.

Arrays are opened by memory map, copy on write, so that several processes share the memory of a snapshot, and followed
changes do not reach the files. Opening compares a checksum of each file: a place that is beyond its array would
otherwise end the process, since walks and counts are compiled code that trusts its arrays.
"""

from __future__ import annotations

import os
import shutil
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from orjson import OPT_INDENT_2, JSONDecodeError, dumps, loads

from adjoin.entity_types import EntityType
from adjoin.errors import AlreadyExists, InvalidSnapshot, NotFound
from adjoin.layouts.bound import BoundLayout
from adjoin.snapshots.arrays import Array, Texts
from adjoin.snapshots.columns import HeldColumn
from adjoin.snapshots.following import Following
from adjoin.snapshots.item_reading import Held
from adjoin.snapshots.node_table import NodeTable
from adjoin.snapshots.relations import Relation, Side
from adjoin.values import Item

FORMAT = 1
_MANIFEST = "snapshot.json"


def save(
    folder: str | os.PathLike[str],
    layout: BoundLayout,
    held: Held,
    nodes: NodeTable,
    relations: Iterable[Relation],
    following: Following,
) -> None:
    """Writes the arrays into a folder, which may hold an earlier snapshot."""
    place = Path(folder)
    if place.exists() and not (place / _MANIFEST).is_file():
        raise AlreadyExists(f"{place} exists and is not a snapshot; name another folder")
    # The folder appears when it is complete: an interrupted save leaves what was there before.
    making, former = place.with_name(place.name + ".new"), place.with_name(place.name + ".old")
    for each in (making, former):
        shutil.rmtree(each, ignore_errors=True)
    making.mkdir(parents=True)
    writing = _Writing(making)
    nodes = nodes.packed()
    manifest = {
        "format": FORMAT,
        "table": layout.table,
        "tenant": layout.tenant,
        "table id": following.table_id,
        "keys": {kind.name: _keys(layout, kind) for kind in (*held.nodes, *held.relations)},
        "edges": [kind.name for kind in held.relations],
        "fields": [f"{name}.{each}" for name, each in _named_fields(held)],
        "position": following.position,
        "since": following.since,
        "marked": following.marked,
        "nodes": len(nodes),
        "sorted nodes": nodes.texts.sorted_count,
        "node columns": writing.nodes(nodes),
        "relations": [writing.relation(number, relation) for number, relation in enumerate(relations)],
        "checksums": writing.checksums,
    }
    manifest["checksum"] = crc32(dumps(manifest))
    (making / _MANIFEST).write_bytes(dumps(manifest, option=OPT_INDENT_2))
    if place.exists():
        place.rename(former)
    making.rename(place)
    shutil.rmtree(former, ignore_errors=True)


def _named_fields(held: Held) -> list[tuple[str, str]]:
    kinds = {kind.model: kind for kind in (*held.nodes, *held.relations)}
    return [(kinds[model].name, name) for model, fields in held.fields.items() for name in fields]


def _keys(layout: BoundLayout, kind: EntityType) -> list[str]:
    """The keys of a class as text. A snapshot that was made with others would find nothing."""
    templates = layout.key_templates(kind)
    return [str(templates.partition), str(templates.sort), str(templates.text)]


_BLOCK = 1024 * 1024


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = crc32(block, checksum)
    return checksum


class _Writing:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.checksums: dict[str, int] = {}

    def _save(self, name: str, array: Array) -> None:
        path = self._folder / f"{name}.npy"
        np.save(path, np.ascontiguousarray(array))
        self.checksums[name] = _checksum(path)

    def _texts(self, name: str, texts: Texts) -> None:
        packed = texts.packed()
        self._save(f"{name}.bytes", packed.blob)
        self._save(f"{name}.ends", packed.ends)

    def _column(self, name: str, column: HeldColumn, count: int) -> dict[str, Any]:
        self._save(f"{name}.values", column.values[:count])
        self._save(f"{name}.known", column.known[:count])
        return {"name": column.name, "scale": column.scale}

    def nodes(self, nodes: NodeTable) -> list[dict[str, Any]]:
        count = len(nodes)
        self._texts("nodes", nodes.texts)
        self._save("nodes.classes", nodes.classes[:count])
        self._save("nodes.exists", nodes.exists[:count])
        self._save("nodes.slots", nodes.slots)
        return [
            self._column(f"nodes.{number}.{name}", column, count) | {"class": number}
            for (number, name), column in nodes.columns.items()
        ]

    def relation(self, number: int, relation: Relation) -> dict[str, Any]:
        relation.pack()
        lead = {"out": self._side(f"edges.{number}.out", relation.out)}
        if relation.into is not relation.out:
            lead["into"] = self._side(f"edges.{number}.into", relation.into)
        self._save(f"edges.{number}.free", np.array(relation.free, np.int32))
        columns = [
            self._column(f"edges.{number}.{name}", column, relation.used) for name, column in relation.columns.items()
        ]
        return {"count": relation.count, "used": relation.used, "columns": columns, "sides": lead}

    def _side(self, name: str, side: Side) -> dict[str, Any]:
        assert side.bounds is not None
        self._save(f"{name}.bounds", side.bounds)
        self._save(f"{name}.far", side.far)
        self._save(f"{name}.edges", side.edges)
        if side.texts is not None:
            self._texts(f"{name}.sorts", side.texts)
        return {"lead": None if side.lead is None else b64encode(side.lead).decode(), "sorts": side.texts is not None}


# --- opening -----------------------------------------------------------------------------------


def load(
    layout: BoundLayout,
    folder: str | os.PathLike[str],
    held_of: Callable[[BoundLayout, Iterable[type[Any]], Iterable[str]], Held],
) -> tuple[Held, NodeTable, list[Relation], str | None, float, list[Item], str]:
    """The arrays in a folder, mapped into memory, where the stream continues, marked edges, and the id of the table."""
    place = Path(folder)
    if not (place / _MANIFEST).is_file():
        raise NotFound(f"{place} has no {_MANIFEST}; name the folder of a saved snapshot")
    try:
        manifest = loads((place / _MANIFEST).read_bytes())
        if manifest["format"] != FORMAT:
            raise InvalidSnapshot(
                f"{place} has the format {manifest['format']}, and this version reads {FORMAT}; build it again"
            )
        # Snapshots of earlier versions have no checksums.
        has_some = not manifest.keys().isdisjoint({"checksum", "checksums"})
        if manifest.pop("checksum", None) != crc32(dumps(manifest)) and has_some:
            raise ValueError(f"{_MANIFEST} does not match its checksum")
        held = _held(layout, place, manifest, held_of)
        reading = _Opening(place, layout, held, manifest.get("checksums", {}))
        nodes = reading.nodes(manifest["node columns"], manifest["sorted nodes"])
        relations = [reading.relation(nodes, number, told) for number, told in enumerate(manifest["relations"])]
        # Snapshots of earlier versions have no list of marked edges, and no id of the table.
        marked = [_with_keys(layout, item) for item in manifest.get("marked", [])]
        return held, nodes, relations, manifest["position"], manifest["since"], marked, manifest.get("table id", "")
    except (JSONDecodeError, LookupError, TypeError, ValueError, AttributeError, OSError, EOFError) as error:
        raise InvalidSnapshot(f"{place} is damaged: {error}; build the snapshot again") from error


def _with_keys(layout: BoundLayout, item: Item) -> Item:
    """An item that has the keys of the table; anything else raises as damage does."""
    for key in layout.definition.keys:
        if not isinstance(item[key.name], dict):
            raise TypeError(f"{key.name} of a marked edge is not a value")
    return item


def _held(layout: BoundLayout, place: Path, manifest: Mapping[str, Any], held_of: Any) -> Held:
    if (manifest["table"], manifest["tenant"]) != (layout.table, layout.tenant):
        raise InvalidSnapshot(
            f"{place} is a snapshot of the table {manifest['table']!r} and tenant {manifest['tenant']!r}, and this "
            f"graph has the table {layout.table!r} and tenant {layout.tenant!r}; open it with the other graph"
        )
    kinds = {kind.name: kind for kind in layout.schema.types}
    for name, keys in manifest["keys"].items():
        if name not in kinds or _keys(layout, kinds[name]) != keys:
            raise InvalidSnapshot(f"{place} was made with another declaration of {name}; build the snapshot again")
    held: Held = held_of(layout, [kinds[name].model for name in manifest["edges"]], manifest["fields"])
    return held


class _Opening:
    def __init__(self, folder: Path, layout: BoundLayout, held: Held, checksums: Mapping[str, int]) -> None:
        self._folder, self._layout, self._held, self._checksums = folder, layout, held, checksums

    def _load(self, name: str) -> Array:
        path = self._folder / f"{name}.npy"
        if name in self._checksums and _checksum(path) != self._checksums[name]:
            raise ValueError(f"{path.name} does not match its checksum")
        array: Array = np.load(path, mmap_mode="c", allow_pickle=False)
        # An array without the file's own methods: each slice of a memory map is as slow to make as the map itself.
        return array.view(np.ndarray)

    def _texts(self, name: str) -> Texts:
        return Texts(self._load(f"{name}.bytes"), self._load(f"{name}.ends"))

    def _column(self, owner: EntityType, prefix: str, told: Mapping[str, Any]) -> HeldColumn:
        name = told["name"]
        values, known = self._load(f"{prefix}.{name}.values"), self._load(f"{prefix}.{name}.known")
        return HeldColumn(owner.name, name, self._held.fields[owner.model][name], values, known, told["scale"])

    def nodes(self, columns: Iterable[Mapping[str, Any]], sorted_count: int) -> NodeTable:
        kinds = self._held.nodes
        found = {
            (told["class"], told["name"]): self._column(kinds[told["class"]], f"nodes.{told['class']}", told)
            for told in columns
        }
        classes, exists, slots = (self._load(f"nodes.{name}") for name in ("classes", "exists", "slots"))
        texts = self._texts("nodes")
        texts.sorted_count = sorted_count
        return NodeTable(self._layout, kinds, texts, classes, exists, found, slots)

    def relation(self, nodes: NodeTable, number: int, told: Mapping[str, Any]) -> Relation:
        kind = self._held.relations[number]
        sides = {name: self._side(nodes, f"edges.{number}.{name}", side) for name, side in told["sides"].items()}
        columns = {each["name"]: self._column(kind, f"edges.{number}", each) for each in told["columns"]}
        free: list[int] = self._load(f"edges.{number}.free").tolist()
        return Relation(kind, sides["out"], sides.get("into", sides["out"]), columns, told["count"], told["used"], free)

    def _side(self, nodes: NodeTable, name: str, told: Mapping[str, Any]) -> Side:
        lead = None if told["lead"] is None else b64decode(told["lead"])
        texts = self._texts(f"{name}.sorts") if told["sorts"] else None
        bounds, far, edges = (self._load(f"{name}.{each}") for each in ("bounds", "far", "edges"))
        return Side(nodes.texts, bounds, far, edges, lead, texts)
