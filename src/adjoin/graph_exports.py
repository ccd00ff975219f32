"""A graph as files that other graph databases and tools load: Neptune's bulk-load CSV, and GraphML.

The table is scanned once, and what is read is written at once, so that a graph of any size needs little memory. The id
of a node is its class and its id, as in "Person#ann"; the id of an edge is its class, its ends and its key fields.
Numbers are written with all their digits.

Items that no class explains are not part of a graph, and are not exported.
"""

from __future__ import annotations

import base64
import datetime as dt
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from enum import Enum
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, get_origin
from xml.sax.saxutils import escape, quoteattr

from pydantic_core import to_json

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import AlreadyExists, InvalidValue, shown
from adjoin.field_types import plain_type
from adjoin.graph import Graph
from adjoin.layouts.key_values import key_text
from adjoin.model import Child, Edge, Ref, node_id
from adjoin.values import in_utc

_TAKEN = ("id", "label")
"""What programs that read GraphML call the id of a node or edge, and what its class is called here."""
_LONGEST = 2**63
_UNSAFE = re.compile("[\x00-\x1f\x7f#%]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class ExportedGraph:
    """What an export has written."""

    nodes: int
    edges: int
    """Also one from each parent to each of its children."""
    files: tuple[Path, ...]


def neptune(
    g: Graph, folder: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
) -> ExportedGraph:
    """Writes a graph as CSV for the bulk loader of Amazon Neptune (Gremlin): two files at most for each class.

    `nodes-Person.csv` has the nodes of a class, `edges-Knows.csv` its edges. A file is written only for a class of
    which there is something. `progress` is called with the number of nodes and edges so far.
    """
    _check(g)
    home = Path(folder)
    if home.exists() and any(home.iterdir()):
        raise AlreadyExists(f"{home} is not empty; name a new folder")
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        writing = _Csv(home, stack)
        nodes, edges = _written(g, writing, progress)
    return ExportedGraph(nodes, edges, tuple(sorted(writing.files)))


def graphml(g: Graph, path: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None) -> ExportedGraph:
    """Writes a graph as one GraphML file, which NetworkX, igraph, Gephi, yEd and others read.

    Every node and edge has its class in `label`, and its fields as typed data.
    """
    _check(g)
    place = Path(path)
    if place.exists():
        raise AlreadyExists(f"{place} exists; name a new file")
    making = place.with_name(place.name + ".new")
    with making.open("w", encoding="utf-8", newline="\n") as file, TemporaryFile("w+", encoding="utf-8") as later:
        nodes, edges = _written(g, _Xml(g, file, later), progress)
        later.seek(0)
        shutil.copyfileobj(later, file)
        file.write("  </graph>\n</graphml>\n")
    making.rename(place)
    return ExportedGraph(nodes, edges, (place,))


def _check(g: Any) -> None:
    if not isinstance(g, Graph):
        raise InvalidValue(f"an export reads a Graph, got {shown(g)}; open one")


def _written(g: Graph, writing: _Csv | _Xml, progress: Callable[[int], None] | None) -> tuple[int, int]:
    schema = g._layout.schema
    nodes = edges = 0
    for entity in g.scan():
        if isinstance(entity, Edge):
            kind = schema.edge(type(entity))
            ends = (_end(kind.source, entity.source), _end(kind.target, entity.target))
            writing.edge(kind, _edge_id(kind, entity, *ends), *ends, entity)
            edges += 1
        else:
            node = schema.node(type(entity))
            own = _node_id(node.whole, node_id(entity))
            writing.node(node, own, entity)
            nodes += 1
            if isinstance(entity, Child):
                parent = _end(node.source, entity.parent)
                writing.edge(node, f"{node.name}#{_quoted(parent)}#{_quoted(own)}", parent, own, None)
                edges += 1
        if progress is not None:
            progress(nodes + edges)
    return nodes, edges


# --- ids ---------------------------------------------------------------------------------------


def _node_id(kind: NodeType, id: Any) -> str:
    parts = kind.part_values(id).values()
    return "#".join([kind.name, *(_quoted(key_text(part)) for part in parts)])


def _end(end: NodeType, id: Any) -> str:
    kind, own = end.of(id.id if isinstance(id, Ref) and len(end.classes) == 1 else id)
    return _node_id(kind.whole, own)


def _edge_id(kind: EdgeType, edge: Any, source: str, target: str) -> str:
    keys = (_quoted(key_text(getattr(edge, name))) for name in type(edge).__declaration__.key)
    return "#".join([kind.name, _quoted(source), _quoted(target), *keys])


def _quoted(text: str) -> str:
    """Text without characters that separate the parts of an id, or that a file cannot have."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", text)


# --- fields ------------------------------------------------------------------------------------

_TYPES: tuple[tuple[type, str, str], ...] = (
    (bool, "Bool", "boolean"),
    (int, "Long", "long"),
    (Decimal, "Double", "double"),
    (float, "Double", "double"),
    (dt.date, "Date", "string"),
)
"""Types of fields, in Neptune's words and in those of GraphML. Others are text."""


@dataclass(frozen=True)
class _Column:
    """A field as it is exported."""

    owner: str
    name: str
    neptune: str
    graphml: str

    def text(self, value: Any) -> str | None:
        """A value as it is written; None if there is none."""
        if value is None:
            return None
        if self.neptune.endswith("[]"):
            escaped = (_plain(each).replace("\\", "\\\\").replace(";", "\\;") for each in value)
            return ";".join(sorted(escaped)) if value else None
        if self.neptune == "Long" and not -_LONGEST <= value < _LONGEST:
            raise InvalidValue(
                f"{self.owner}.{self.name} is {shown(value)}, which does not fit into 64 bits; shorten it"
            )
        return _plain(value)


def _plain(value: Any) -> str:
    match value:
        case Enum():
            return _plain(value.value)
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return str(value)
        case Decimal():
            return format(value, "f")
        case dt.datetime():
            return (in_utc(value) if value.tzinfo is not None else value).isoformat().replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
    return to_json(value, bytes_mode="base64").decode()


def _columns(kind: EntityType) -> list[_Column]:
    found = []
    for name, info in kind.fields.items():
        if name in ("source", "target", "parent"):
            continue
        plain = plain_type(info)
        types = next((each[1:] for each in _TYPES if plain is not None and issubclass(plain, each[0])), None)
        if types is None or (plain is not None and issubclass(plain, Enum)):
            is_set = (get_origin(info.annotation) or info.annotation) in (set, frozenset)
            # Neptune has sets of values, and of nodes only.
            types = ("String[]" if is_set and isinstance(kind, NodeType) else "String", "string")
        found.append(_Column(kind.name, name, *types))
    return found


# --- Neptune -----------------------------------------------------------------------------------


class _Csv:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._open: dict[tuple[str, str], tuple[IO[str], list[_Column]]] = {}
        self.files: list[Path] = []

    def _file(self, sort: str, kind: EntityType, head: Iterable[str], columns: list[_Column]) -> Any:
        found = self._open.get((sort, kind.name))
        if found is None:
            path = self._folder / f"{sort}-{kind.name}.csv"
            file = self._stack.enter_context(path.open("w", encoding="utf-8", newline=""))
            file.write(",".join([*head, *(f"{column.name}:{column.neptune}" for column in columns)]) + "\n")
            self.files.append(path)
            found = self._open[sort, kind.name] = (file, columns)
        return found

    def node(self, kind: NodeType, id: str, entity: Any) -> None:
        file, columns = self._file("nodes", kind, ("~id", "~label"), _columns(kind))
        file.write(_line([id, kind.name, *(column.text(getattr(entity, column.name)) for column in columns)]))

    def edge(self, kind: EntityType, id: str, source: str, target: str, entity: Any) -> None:
        columns = [] if entity is None else _columns(kind)
        file, columns = self._file("edges", kind, ("~id", "~from", "~to", "~label"), columns)
        values = (column.text(getattr(entity, column.name)) for column in columns)
        file.write(_line([id, source, target, kind.name, *values]))


def _line(values: Iterable[str | None]) -> str:
    return ",".join(map(_cell, values)) + "\n"


def _cell(value: str | None) -> str:
    """A field of CSV. Nothing stands for no value, and two quotes are an empty text."""
    if value is None:
        return ""
    if value and not any(each in value for each in ',"\r\n') and value == value.strip():
        return value
    return '"' + value.replace('"', '""') + '"'


# --- GraphML -----------------------------------------------------------------------------------


class _Xml:
    def __init__(self, g: Graph, file: IO[str], later: IO[str]) -> None:
        self._file, self._later = file, later
        self._names: dict[tuple[type[Any], str], str] = {}
        schema = g._layout.schema
        kinds: list[EntityType] = [*schema.nodes.values(), *schema.edges.values()]
        self._columns = {kind.model: _columns(kind) for kind in kinds}
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.write('<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for sort in ("node", "edge"):
            file.write(f'  <key id="{sort}.label" for="{sort}" attr.name="label" attr.type="string"/>\n')
        for (sort, key), (name, type) in self._keys().items():
            names = f"id={quoteattr(key)} for={quoteattr(sort)} attr.name={quoteattr(name)}"
            file.write(f'  <key {names} attr.type="{type}"/>\n')
        file.write('  <graph edgedefault="directed">\n')

    def _keys(self) -> dict[tuple[str, str], tuple[str, str]]:
        """The name and the type of each attribute, by what it is of and its key.

        Fields of one name are one attribute: programs refuse two of the same name. If their types differ, or the
        name is taken, each is named with its class.
        """
        types: dict[tuple[str, str], set[str]] = {}
        for model, columns in self._columns.items():
            for column in columns:
                types.setdefault((_sort(model), column.name), set()).add(column.graphml)
        found: dict[tuple[str, str], tuple[str, str]] = {}
        for model, columns in self._columns.items():
            sort = _sort(model)
            for column in columns:
                is_plain = len(types[sort, column.name]) == 1 and column.name not in _TAKEN
                name = column.name if is_plain else f"{column.owner}.{column.name}"
                self._names[model, column.name] = key = f"{sort}.{name}"
                found[sort, key] = (name, column.graphml)
        return found

    def node(self, kind: NodeType, id: str, entity: Any) -> None:
        self._file.write(f"    <node id={quoteattr(id)}>{''.join(self._data('node', kind, entity))}</node>\n")

    def edge(self, kind: EntityType, id: str, source: str, target: str, entity: Any) -> None:
        data = "".join(self._data("edge", kind, entity))
        ends = f"source={quoteattr(source)} target={quoteattr(target)}"
        # Nodes come first, because some programs need them so.
        self._later.write(f"    <edge id={quoteattr(id)} {ends}>{data}</edge>\n")

    def _data(self, sort: str, kind: EntityType, entity: Any) -> Iterator[str]:
        yield f'<data key="{sort}.label">{escape(kind.name)}</data>'
        for column in [] if entity is None else self._columns[kind.model]:
            text = column.text(getattr(entity, column.name))
            if text is None:
                continue
            if _NOT_XML.search(text):
                raise InvalidValue(
                    f"{column.owner}.{column.name} is {shown(text)}, which has a character that XML cannot have; "
                    f"remove it, or export to another format"
                )
            # A carriage return that is not written so would be read as a line feed.
            xml = escape(text, {"\r": "&#13;"})
            yield f"<data key={quoteattr(self._names[kind.model, column.name])}>{xml}</data>"


def _sort(model: type[Any]) -> str:
    return "edge" if issubclass(model, Edge) else "node"
